//! Models of the shutdown protocol (`shutdown.rs`): close, snapshot, abort and wait for the registry to be
//! empty, against a spawn, a wake and the completions.

use std::task::{Context, Poll, Wake, Waker};

use super::{Unpark, check};
use crate::park::Parker;
use crate::sync::atomic::AtomicBool;
use crate::sync::atomic::Ordering::{Acquire, Release};
use crate::sync::{Arc, thread};
use crate::task::JoinHandle;
use crate::task::registry::{Registry, Scope};
use crate::task::tests::toy::{Birth, Tally, ToyScheduler};

/// A waiter for the empty registry that may be the runner itself.
struct Emptied {
    is: AtomicBool,
    scheduler: Arc<ToyScheduler>,
}

impl Wake for Emptied {
    fn wake(self: Arc<Self>) {
        self.is.store(true, Release);
        self.scheduler.nudge();
    }
}

/// Steps 2 and 3.
fn close_and_abort(registry: &Registry) {
    registry.close();
    for task in registry.snapshot() {
        task.abort();
    }
}

/// Step 4 on the thread that runs the tasks too, as in a runtime without threads of its own.
fn run_until_empty(scheduler: &Arc<ToyScheduler>) {
    let emptied = Arc::new(Emptied {
        is: AtomicBool::new(false),
        scheduler: Arc::clone(scheduler),
    });
    let waker = Waker::from(Arc::clone(&emptied));
    if scheduler.registry.watch_empty(Scope::Tasks, waker) {
        scheduler.run_until(|| emptied.is.load(Acquire));
    }
}

/// Step 4 on a thread that only waits.
fn wait_until_empty(registry: &Registry) {
    let parker = Parker::new(None);
    let waker = Waker::from(Arc::new(Unpark(Arc::clone(&parker))));
    if registry.watch_empty(Scope::Tasks, waker) {
        parker.park();
    }
}

/// Whether the task was cancelled; it must be complete.
fn was_cancelled<T>(mut handle: JoinHandle<T>) -> bool {
    let mut cx = Context::from_waker(Waker::noop());
    match std::pin::Pin::new(&mut handle).poll(&mut cx) {
        Poll::Ready(output) => output.is_err_and(|error| error.is_cancelled()),
        Poll::Pending => panic!("a handle stayed pending after the shutdown"),
    }
}

/// Either the spawn is refused, and the spawner drops the future, or the shutdown finds the task, also while its
/// permit is still in the spawner's hand.
#[test]
fn a_spawn_against_a_shutdown() {
    check(3, || {
        let (scheduler, tally) = (ToyScheduler::new(), Tally::new());
        let spawner = thread::spawn({
            let (scheduler, tally) = (Arc::clone(&scheduler), Arc::clone(&tally));
            move || {
                let future = tally.future(|_| Poll::<()>::Pending);
                let (runnable, handle) = scheduler.create(future, tally.extra());
                if let Some(runnable) = runnable {
                    scheduler.push(runnable);
                }
                handle
            }
        });
        close_and_abort(&scheduler.registry);
        run_until_empty(&scheduler);
        assert_eq!(scheduler.registry.live(Scope::All), 0);
        let handle = spawner.join().unwrap();
        assert_eq!(scheduler.registry.live(Scope::All), 0);
        assert_eq!(scheduler.queued(), 0);
        assert!(was_cancelled(handle));
        tally.expect(tally.polls(), 1, 0, 1);
    });
}

/// A task that a foreign thread wakes, so that it completes, while another thread shuts down.
#[test]
fn a_wake_and_a_completion_against_a_shutdown() {
    check(2, || {
        let (scheduler, tally) = (ToyScheduler::new(), Tally::new());
        let left = Arc::new(std::sync::Mutex::new(None));
        let future = {
            let left = Arc::clone(&left);
            tally.future(move |cx| {
                let first = left.lock().unwrap().is_none();
                if first {
                    *left.lock().unwrap() = Some(cx.waker().clone());
                    Poll::Pending
                } else {
                    Poll::Ready(())
                }
            })
        };
        let (runnable, handle) = scheduler.create(future, tally.extra());
        runnable.expect("the registry is open").run();
        let waker = left.lock().unwrap().clone().expect("polled once");
        let foreign = thread::spawn(move || waker.wake());

        let stop = Arc::new(AtomicBool::new(false));
        let shutdown = thread::spawn({
            let (scheduler, stop) = (Arc::clone(&scheduler), Arc::clone(&stop));
            move || {
                close_and_abort(&scheduler.registry);
                wait_until_empty(&scheduler.registry);
                stop.store(true, Release);
                scheduler.nudge();
            }
        });
        scheduler.run_until(|| stop.load(Acquire));
        shutdown.join().unwrap();
        foreign.join().unwrap();
        assert_eq!(scheduler.registry.live(Scope::All), 0);
        assert_eq!(
            scheduler.queued(),
            0,
            "an empty registry means empty queues"
        );
        assert_eq!(was_cancelled(handle), tally.polls() == 1);
        assert_eq!(tally.future_drops(), 1);
        *left.lock().unwrap() = None;
        assert_eq!(tally.frees(), 1);
    });
}

/// The last two tasks end on two threads, in two shards, against a waiter: whoever is last wakes it.
#[test]
fn two_last_completions_against_the_waiter() {
    check(2, || {
        let scheduler = ToyScheduler::new();
        let workers = [0, 1].map(|shard| {
            let birth = Birth {
                shard,
                ..Birth::default()
            };
            let task = scheduler.unregistered(async {}, (), birth);
            drop(JoinHandle::of(task.output));
            let inserted = scheduler.registry.insert(task.registered);
            assert!(inserted.is_ok(), "the registry is open");
            let runnable = task.runnable;
            thread::spawn(move || runnable.run())
        });
        wait_until_empty(&scheduler.registry);
        assert_eq!(scheduler.registry.live(Scope::All), 0);
        for worker in workers {
            worker.join().unwrap();
        }
    });
}

/// A task spawns another into a different shard as its last act: a count taken shard by shard could miss both.
#[test]
fn a_count_sees_a_task_or_what_it_spawned() {
    check(3, || {
        let scheduler = ToyScheduler::new();
        let births = [1, 0].map(|shard| Birth {
            shard,
            ..Birth::default()
        });
        let parent = scheduler.unregistered(async {}, (), births[0]);
        drop(JoinHandle::of(parent.output));
        assert!(scheduler.registry.insert(parent.registered).is_ok());
        let worker = thread::spawn({
            let (scheduler, parent) = (Arc::clone(&scheduler), parent.runnable);
            move || {
                let child = scheduler.unregistered(async {}, (), births[1]);
                drop(JoinHandle::of(child.output));
                assert!(scheduler.registry.insert(child.registered).is_ok());
                parent.run();
                child.runnable
            }
        });
        assert_ne!(scheduler.registry.live(Scope::Tasks), 0);
        worker.join().unwrap().run();
        assert_eq!(scheduler.registry.live(Scope::Tasks), 0);
    });
}
