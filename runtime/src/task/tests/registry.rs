//! The registry: who gets into it, keys that are used again, closing.

use std::future::poll_fn;
use std::task::Poll;

use super::toy::{Birth, ToyScheduler};
use crate::sync::Arc;
use crate::task::refs::Runnable;
use crate::task::registry::Registry;
use crate::task::{JoinHandle, yield_now};

/// A task that was polled once, and waits.
fn waiting(scheduler: &Arc<ToyScheduler>) -> JoinHandle<()> {
    let handle = scheduler.spawn(std::future::pending::<()>());
    assert!(scheduler.run_one());
    handle
}

/// A new task that was registered at birth.
fn registered(scheduler: &Arc<ToyScheduler>, shard: u32) -> Runnable {
    let runnable = scheduler.detached();
    assert!(runnable.register(|task| scheduler.registry.insert(task, shard)));
    runnable
}

#[test]
fn a_task_is_registered_when_it_first_waits() {
    let scheduler = ToyScheduler::new();
    let registered = || scheduler.registry.snapshot().len();
    let mut polls = 0;
    let mut handle = scheduler.spawn(poll_fn(move |cx| {
        polls += 1;
        match polls {
            // To be woken during the poll is not to wait.
            1 => cx.waker().wake_by_ref(),
            2 => {}
            _ => return Poll::Ready(()),
        }
        Poll::Pending
    }));
    assert_eq!((registered(), scheduler.live()), (0, 1), "queued");
    assert!(scheduler.run_one());
    assert_eq!(registered(), 0, "queued again");
    assert!(scheduler.run_one());
    assert_eq!((registered(), scheduler.live()), (1, 1), "waiting");
    let task = scheduler.registry.snapshot().pop().unwrap();
    assert_eq!(task.id(), handle.id());
    task.abort();
    drop(task);
    assert!(scheduler.run_one());
    assert_eq!((registered(), scheduler.live()), (0, 0));
    assert!(
        super::cell::output_of(&mut handle)
            .unwrap_err()
            .is_cancelled()
    );
}

#[test]
fn what_ends_without_waiting_never_is() {
    let scheduler = ToyScheduler::new();
    let handle = scheduler.spawn(yield_now());
    while scheduler.run_one() {
        assert!(scheduler.registry.snapshot().is_empty());
    }
    assert!(handle.is_finished());
}

#[test]
fn a_key_is_never_two_tasks_at_once() {
    let scheduler = ToyScheduler::new();
    let mut tasks: Vec<Runnable> = Vec::new();
    for round in 0..50 {
        tasks.push(registered(&scheduler, 0));
        if round % 3 == 0 {
            tasks.remove(tasks.len() / 2).run();
        }
        let mut keys: Vec<_> = tasks
            .iter()
            .map(|task| task.as_task().unwrap().registry_key().expect("registered"))
            .collect();
        keys.sort_unstable();
        keys.dedup();
        assert_eq!(keys.len(), tasks.len());
        assert!(
            keys.iter().all(|key| key.index <= tasks.len() + 1),
            "reused"
        );
    }
    for task in tasks {
        task.run();
    }
}

#[test]
fn shards_of_seats_and_of_everybody_else() {
    let registry = Registry::new(3);
    let seats: Vec<_> = (0..7).map(|seat| registry.shard_for(Some(seat))).collect();
    assert_eq!(seats, [0, 1, 2, 0, 1, 2, 0], "lent seats share");
    let outside = registry.shard_for(None);
    assert!((3..registry.blocking_shard()).contains(&outside));
}

#[test]
fn after_the_closing_nobody_gets_in() {
    let scheduler = ToyScheduler::new();
    let before = registered(&scheduler, 0);
    scheduler.registry.census.close();
    for shard in 0..=scheduler.registry.blocking_shard() {
        let runnable = scheduler.detached();
        assert!(!runnable.register(|task| scheduler.registry.insert(task, shard)));
        assert_eq!(runnable.as_task().unwrap().registry_key(), None);
        runnable.cancel();
    }
    assert_eq!(scheduler.registry.snapshot().len(), 1);
    before.run();
    assert!(scheduler.registry.snapshot().is_empty());
}

#[test]
fn whoever_is_queued_waits_or_runs_at_the_closing_is_cancelled() {
    let scheduler = ToyScheduler::new();
    let mut waiting = waiting(&scheduler);
    let (polled, _) = scheduler.born(
        {
            let scheduler = Arc::clone(&scheduler);
            poll_fn(move |_| {
                scheduler.registry.census.close();
                Poll::<()>::Pending
            })
        },
        (),
        Birth::default(),
    );
    let mut running = JoinHandle::of(polled.output);
    let mut queued = scheduler.spawn(async {});
    // It would wait now, where nobody would find it.
    polled.runnable.run();
    assert!(scheduler.run_one());
    for task in scheduler.registry.snapshot() {
        task.abort();
    }
    assert!(scheduler.run_one());
    for handle in [&mut waiting, &mut running, &mut queued] {
        assert!(super::cell::output_of(handle).unwrap_err().is_cancelled());
    }
    assert_eq!(scheduler.live(), 0);
}
