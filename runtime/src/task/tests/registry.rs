//! The registry: exact counts, keys that are used again, closing, and the watch for emptiness.

use std::task::Waker;

use super::toy::{Birth, ToyScheduler, WakeCount};
use crate::sync::Arc;
use crate::task::JoinHandle;
use crate::task::raw::NewTask;
use crate::task::refs::Runnable;
use crate::task::registry::{Registry, Scope};

/// A task in `shard`, with its handle dropped.
fn task_in(scheduler: &Arc<ToyScheduler>, shard: u32) -> Runnable {
    let NewTask {
        registered,
        runnable,
        output,
    } = scheduler.unregistered(
        async {},
        (),
        Birth {
            shard,
            ..Birth::default()
        },
    );
    drop(JoinHandle::of(output));
    scheduler
        .registry
        .insert(registered)
        .expect("the registry is open");
    runnable
}

#[test]
fn it_counts_each_task_until_it_is_complete() {
    let scheduler = ToyScheduler::new();
    let registry = &scheduler.registry;
    let mut tasks: Vec<_> = (0..10).map(|at| task_in(&scheduler, at % 3)).collect();
    assert_eq!(registry.live(Scope::All), 10);
    assert_eq!(registry.snapshot().len(), 10);
    // From the middle, so that keys are freed out of order and used again.
    for left in [9, 8, 7] {
        tasks.remove(3).run();
        assert_eq!(registry.live(Scope::All), left);
    }
    tasks.extend((0..5).map(|at| task_in(&scheduler, at % 3)));
    assert_eq!(registry.live(Scope::All), 12);
    assert_eq!(registry.snapshot().len(), 12);
    for task in tasks {
        task.run();
    }
    assert_eq!(registry.live(Scope::All), 0);
    assert!(registry.snapshot().is_empty());
}

#[test]
fn a_key_is_never_two_tasks_at_once() {
    let scheduler = ToyScheduler::new();
    let mut tasks: Vec<Runnable> = Vec::new();
    for round in 0..50 {
        tasks.push(task_in(&scheduler, 0));
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
fn a_closed_registry_gives_the_reference_back() {
    let scheduler = ToyScheduler::new();
    let before = task_in(&scheduler, 0);
    assert!(!scheduler.registry.is_closed());
    scheduler.registry.close();
    assert!(scheduler.registry.is_closed());
    for shard in 0..=scheduler.registry.blocking_shard() {
        let birth = Birth {
            shard,
            ..Birth::default()
        };
        let task = scheduler.unregistered(async {}, (), birth);
        let refused = scheduler.registry.insert(task.registered);
        let reference = refused.expect_err("every shard is closed");
        assert_eq!(reference.registry_key(), None);
        task.runnable.cancel();
    }
    assert_eq!(scheduler.registry.live(Scope::All), 1);
    before.run();
    assert_eq!(scheduler.registry.live(Scope::All), 0);
}

#[test]
fn a_watch_of_an_empty_registry_is_over_at_once() {
    let registry = Registry::new(1);
    let count = WakeCount::new();
    assert!(!registry.watch_empty(Scope::All, Waker::from(Arc::clone(&count))));
    assert_eq!(Arc::strong_count(&count), 1, "the waker is not kept");
    assert_eq!(count.get(), 0);
}

#[test]
fn whoever_is_last_wakes_the_watcher_once() {
    let scheduler = ToyScheduler::new();
    let tasks = [0, 1, 1].map(|shard| task_in(&scheduler, shard));
    let count = WakeCount::new();
    let waker = Waker::from(Arc::clone(&count));
    assert!(scheduler.registry.watch_empty(Scope::Tasks, waker));
    let mut woken = Vec::new();
    for task in tasks {
        task.run();
        woken.push(count.get());
    }
    assert_eq!(woken, [0, 0, 1]);
    assert_eq!(Arc::strong_count(&count), 1);
    task_in(&scheduler, 0).run();
    assert_eq!(count.get(), 1, "called once");
}

#[test]
fn blocking_jobs_count_only_where_asked() {
    let scheduler = ToyScheduler::new();
    let registry = &scheduler.registry;
    let job = task_in(&scheduler, registry.blocking_shard());
    assert_eq!(registry.live(Scope::Tasks), 0);
    assert_eq!(registry.live(Scope::All), 1);
    assert!(!registry.watch_empty(Scope::Tasks, Waker::noop().clone()));

    let count = WakeCount::new();
    assert!(registry.watch_empty(Scope::All, Waker::from(Arc::clone(&count))));
    task_in(&scheduler, 0).run();
    assert_eq!(count.get(), 0, "a job is left");
    job.run();
    assert_eq!(count.get(), 1);
}

#[test]
fn a_second_watch_takes_the_place_of_the_first() {
    let scheduler = ToyScheduler::new();
    let task = task_in(&scheduler, 0);
    let counts = [WakeCount::new(), WakeCount::new()];
    for count in &counts {
        let waker = Waker::from(Arc::clone(count));
        assert!(scheduler.registry.watch_empty(Scope::Tasks, waker));
    }
    assert_eq!(Arc::strong_count(&counts[0]), 1);
    task.run();
    assert_eq!((counts[0].get(), counts[1].get()), (0, 1));
}
