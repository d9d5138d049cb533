//! Producers that outrun the workers: a bounded backlog refuses, makes wait, or makes the caller run.

use std::future::pending;
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Wake, Waker};
use std::thread;

use futures::executor;
use runtime::task::{JoinHandle, yield_now};
use runtime::{Builder, Handle, Runtime};
use tests::{Drops, Event, eventually, ready_now, rounds, until, watchdog};

/// Nothing begins to run in it while nobody is in `block_on`.
fn bounded(capacity: usize) -> Runtime {
    let builder = Builder::new_current_thread().backlog_capacity(capacity);
    builder.build().unwrap()
}

/// A runtime that is full: its places are taken by tasks that have not begun.
fn full(capacity: usize) -> Runtime {
    let rt = bounded(capacity);
    for _ in 0..capacity {
        drop(rt.handle().try_spawn(async {}).unwrap());
    }
    rt
}

fn is_full(handle: &Handle) -> bool {
    match handle.try_spawn(async {}) {
        Ok(task) => {
            drop(task);
            false
        }
        Err(error) => error.is_full(),
    }
}

#[derive(Default)]
struct CountsWakes(AtomicUsize);

impl Wake for CountsWakes {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, SeqCst);
    }
}

/// Polls a future with the waker that counts for it.
fn poll_counted<F: Future>(
    (future, wakes): &mut (Pin<Box<F>>, Arc<CountsWakes>),
) -> Poll<F::Output> {
    let waker = Waker::from(Arc::clone(wakes));
    future.as_mut().poll(&mut Context::from_waker(&waker))
}

#[test]
fn a_full_backlog_gives_the_future_back_and_it_still_works() {
    let _dog = watchdog(60, "a_full_backlog_gives_the_future_back");
    let rt = bounded(2);
    let drops = Drops::new();
    let future = || {
        let guard = drops.counted(5);
        async move {
            let guard = guard;
            guard.value
        }
    };
    let first = rt.handle().try_spawn(future()).unwrap();
    let second = rt.handle().try_spawn(future()).unwrap();
    let refused = rt.handle().try_spawn(future()).unwrap_err();
    assert!(refused.is_full() && !refused.is_shut_down());
    assert!(refused.to_string().contains("full"), "{refused}");
    assert_eq!(drops.count(), 0, "nothing was lost");

    let third = refused.into_inner();
    rt.block_on(async {
        assert_eq!(first.await.unwrap() + second.await.unwrap(), 10);
        assert_eq!(third.await, 5);
    });
    assert_eq!(drops.count(), 3);
    assert!(!is_full(rt.handle()), "there is room again");
}

#[test]
fn plain_spawn_is_never_refused_but_counts() {
    let _dog = watchdog(60, "plain_spawn_is_never_refused");
    let rt = bounded(2);
    let tasks: Vec<_> = (0..10).map(|n| rt.spawn(async move { n })).collect();
    assert!(is_full(rt.handle()));
    rt.block_on(async {
        for (n, task) in tasks.into_iter().enumerate() {
            assert_eq!(task.await.unwrap(), n);
        }
    });
    assert!(!is_full(rt.handle()));
}

#[test]
fn only_tasks_that_have_not_begun_count() {
    let _dog = watchdog(60, "only_tasks_that_have_not_begun_count");
    let rt = bounded(3);
    let mut tasks = Vec::new();
    for _ in 0..5 {
        for _ in 0..3 {
            tasks.push(rt.handle().try_spawn(pending::<()>()).unwrap());
        }
        assert!(is_full(rt.handle()));
        // They begin, and stay.
        rt.block_on(until(|| rt.metrics().backlog_len == 0));
        rt.block_on(yield_now());
    }
    assert_eq!(rt.metrics().live_tasks, 15);

    // A task that is woken from outside comes into the same queue, and does not count there.
    let woken: Vec<_> = (0..10).map(|_| rt.spawn(yield_now())).collect();
    rt.block_on(async {
        for task in woken {
            task.await.unwrap();
        }
    });
    for task in tasks {
        task.abort();
    }
    assert!(
        rt.metrics().backlog_len >= 15,
        "the aborted wait for their end"
    );
    assert!(!is_full(rt.handle()));
}

#[test]
fn tasks_spawned_by_tasks_do_not_count() {
    let _dog = watchdog(60, "tasks_spawned_by_tasks_do_not_count");
    let rt = bounded(1);
    rt.block_on(async {
        for _ in 0..100 {
            drop(runtime::spawn(async {}));
        }
        assert!(!is_full(rt.handle()));
    });
}

#[test]
fn an_aborted_task_gives_its_place_back() {
    let _dog = watchdog(60, "an_aborted_task_gives_its_place_back");
    let rt = bounded(1);
    let task = rt.handle().try_spawn(pending::<()>()).unwrap();
    assert!(is_full(rt.handle()));
    task.abort();
    assert!(rt.block_on(task).unwrap_err().is_cancelled());
    assert!(!is_full(rt.handle()));
}

#[test]
fn without_a_capacity_there_is_always_room() {
    let _dog = watchdog(60, "without_a_capacity_there_is_always_room");
    let rt = Builder::new_current_thread().build().unwrap();
    let here = thread::current().id();
    let mut tasks: Vec<JoinHandle<thread::ThreadId>> = Vec::new();
    for _ in 0..1000 {
        let ran_on = || async { thread::current().id() };
        tasks.push(rt.handle().try_spawn(ran_on()).unwrap());
        tasks.push(executor::block_on(rt.handle().spawn_when_free(ran_on())));
        tasks.push(rt.handle().spawn_or_run(ran_on()));
    }
    assert!(tasks.iter().all(|task| !task.is_finished()));
    rt.block_on(async {
        for task in tasks {
            assert_eq!(task.await.unwrap(), here);
        }
    });
}

#[test]
fn waiting_for_room_ends_when_a_task_begins() {
    let _dog = watchdog(60, "waiting_for_room_ends_when_a_task_begins");
    let rt = full(1);
    let mut waits = Box::pin(rt.handle().spawn_when_free(async { 8 }));
    assert!(ready_now(waits.as_mut()).is_pending());
    assert!(ready_now(waits.as_mut()).is_pending());
    let task = rt.block_on(waits);
    assert_eq!(rt.block_on(task).unwrap(), 8);
}

#[test]
fn waiters_are_served_in_turn() {
    let _dog = watchdog(60, "waiters_are_served_in_turn");
    let rt = full(1);
    let order = Arc::new(Mutex::new(Vec::new()));
    let mut waiters: Vec<_> = (0..5)
        .map(|n| {
            let order = Arc::clone(&order);
            let wakes = Arc::new(CountsWakes::default());
            let wait = rt
                .handle()
                .spawn_when_free(async move { order.lock().unwrap().push(n) });
            (Box::pin(wait), wakes)
        })
        .collect();
    assert!(
        waiters
            .iter_mut()
            .all(|waiter| poll_counted(waiter).is_pending())
    );
    for n in 0..5 {
        // The one task that fills the backlog begins.
        rt.block_on(yield_now());
        let wakes: Vec<_> = waiters
            .iter()
            .map(|(_, wakes)| wakes.0.load(SeqCst))
            .collect();
        let expected: Vec<_> = (0..5).map(|waiter| usize::from(waiter <= n)).collect();
        assert_eq!(wakes, expected, "one at a time, the oldest first");
        assert!(poll_counted(&mut waiters[n]).is_ready());
    }
    rt.block_on(yield_now());
    assert_eq!(*order.lock().unwrap(), [0, 1, 2, 3, 4]);
}

#[test]
fn nobody_takes_the_place_of_a_waiter_that_is_on_its_way() {
    let _dog = watchdog(60, "nobody_takes_the_place_of_a_waiter");
    let rt = full(1);
    let mut first = Box::pin(rt.handle().spawn_when_free(async {}));
    let mut second = Box::pin(rt.handle().spawn_when_free(async {}));
    assert!(ready_now(first.as_mut()).is_pending());
    assert!(ready_now(second.as_mut()).is_pending());
    rt.block_on(yield_now());
    // The first was chosen and woken, and has not been polled yet.
    assert!(
        ready_now(second.as_mut()).is_pending(),
        "a later one that is polled first"
    );
    assert!(is_full(rt.handle()), "one that did not wait at all");
    assert!(ready_now(first.as_mut()).is_ready());
}

#[test]
fn a_waiter_that_leaves_loses_nothing() {
    let _dog = watchdog(60, "a_waiter_that_leaves_loses_nothing");
    for chosen in [false, true] {
        let rt = full(1);
        let (drops, ran) = (Drops::new(), Event::new());
        let (guard, runs) = (drops.guard(), ran.clone());
        let mut leaves = Box::pin(rt.handle().spawn_when_free(async move {
            let _guard = guard;
            runs.set();
        }));
        let wakes = Arc::new(CountsWakes::default());
        let waker = Waker::from(Arc::clone(&wakes));
        let mut stays = Box::pin(rt.handle().spawn_when_free(async { 3 }));
        assert!(ready_now(leaves.as_mut()).is_pending());
        let polled = stays.as_mut().poll(&mut Context::from_waker(&waker));
        assert!(polled.is_pending());

        if chosen {
            rt.block_on(yield_now());
            assert_eq!(wakes.0.load(SeqCst), 0, "it is the other one's turn");
        }
        drop(leaves);
        assert_eq!(drops.count(), 1);
        if !chosen {
            rt.block_on(yield_now());
        }
        assert_eq!(wakes.0.load(SeqCst), 1, "chosen: {chosen}");
        let Poll::Ready(task) = ready_now(stays.as_mut()) else {
            panic!("the place was lost; chosen: {chosen}");
        };
        assert_eq!(rt.block_on(task).unwrap(), 3);
        assert!(!ran.is_set());
        assert!(!is_full(rt.handle()));
    }
}

#[test]
fn waiters_are_told_when_the_runtime_ends() {
    let _dog = watchdog(60, "waiters_are_told_when_the_runtime_ends");
    let rt = full(1);
    let handle = rt.handle().clone();
    let drops = Drops::new();
    let waits: Vec<_> = (0..4)
        .map(|_| {
            let (handle, guard) = (handle.clone(), drops.guard());
            thread::spawn(move || {
                let task = executor::block_on(handle.spawn_when_free(async move {
                    let _guard = guard;
                    pending::<()>().await;
                }));
                executor::block_on(task).unwrap_err().is_cancelled()
            })
        })
        .collect();
    thread::sleep(std::time::Duration::from_millis(5));
    drop(rt);
    for wait in waits {
        assert!(wait.join().unwrap());
    }
    assert_eq!(drops.count(), 4);
}

#[test]
fn the_caller_runs_the_task_when_there_is_no_room() {
    let _dog = watchdog(60, "the_caller_runs_the_task");
    let rt = full(1);
    let here = thread::current().id();
    let task = rt.handle().spawn_or_run(async {
        assert!(runtime::task::try_id().is_some());
        // It is a task of this runtime in every way.
        let child = Handle::current().try_spawn(async {});
        assert!(child.unwrap_err().is_full());
        thread::current().id()
    });
    assert!(task.is_finished());
    assert_eq!(executor::block_on(task).unwrap(), here);
    assert!(runtime::task::try_id().is_none() && Handle::try_current().is_err());

    // One that waits goes on as a task like any other.
    let (polls, release) = (
        Arc::new(AtomicUsize::new(0)),
        futures::channel::oneshot::channel(),
    );
    let polled = Arc::clone(&polls);
    let waits = rt.handle().spawn_or_run(async move {
        polled.fetch_add(1, SeqCst);
        release.1.await.unwrap()
    });
    assert!(polls.load(SeqCst) == 1 && !waits.is_finished());
    release.0.send(4).unwrap();
    assert_eq!(rt.block_on(waits).unwrap(), 4);

    // A panic goes to the handle, not to the caller.
    let rt = full(1);
    let panics = rt
        .handle()
        .spawn_or_run(async { std::panic::resume_unwind(Box::new(())) });
    let result: Result<(), _> = executor::block_on(panics);
    assert!(result.unwrap_err().is_panic());
    // With room again it is left to the workers.
    rt.block_on(yield_now());
    let left = rt.handle().spawn_or_run(async {});
    assert!(!left.is_finished());
    rt.block_on(left).unwrap();
}

/// Four producers, each of which has `submit` take a task `each` times; every task must run once.
fn produce(name: &str, submit: impl Fn(&Handle, Arc<AtomicUsize>) + Sync) {
    let dog = watchdog(100, name);
    for workers in [1, 2] {
        let rt = Builder::new().worker_threads(workers).backlog_capacity(16);
        let rt = rt.build().unwrap();
        dog.watch(rt.handle());
        let ran = Arc::new(AtomicUsize::new(0));
        let each = rounds(10_000);
        thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| (0..each).for_each(|_| submit(rt.handle(), Arc::clone(&ran))));
            }
        });
        assert!(eventually(|| rt.metrics().live_tasks == 0));
        assert_eq!(ran.load(SeqCst), 4 * each);
        assert_eq!(Arc::strong_count(&ran), 1);
    }
}

#[test]
fn producers_that_wait_lose_nothing() {
    produce("producers_that_wait_lose_nothing", |handle, ran| {
        let task = async move {
            ran.fetch_add(1, SeqCst);
        };
        drop(executor::block_on(handle.spawn_when_free(task)));
    });
}

#[test]
fn producers_that_try_again_lose_nothing() {
    produce("producers_that_try_again_lose_nothing", |handle, ran| {
        let mut task = async move {
            ran.fetch_add(1, SeqCst);
        };
        while let Err(refused) = handle.try_spawn(task) {
            assert!(refused.is_full());
            task = refused.into_inner();
            thread::yield_now();
        }
    });
}

#[test]
fn producers_that_run_tasks_themselves_lose_nothing() {
    produce(
        "producers_that_run_tasks_themselves_lose_nothing",
        |handle, ran| {
            drop(handle.spawn_or_run(async move {
                yield_now().await;
                ran.fetch_add(1, SeqCst);
            }));
        },
    );
}
