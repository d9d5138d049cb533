//! Models of the shutdown protocol (`shutdown.rs`) and of the census (`task/census.rs`): close, snapshot, abort and
//! wait for zero, against a spawn, a first wait, a wake and the completions.

use std::iter::empty;
use std::task::{Context, Poll, Wake, Waker};

use super::{Unpark, check};
use crate::park::Parker;
use crate::sync::atomic::Ordering::{Acquire, Relaxed, Release, SeqCst};
use crate::sync::atomic::{AtomicBool, fence};
use crate::sync::{Arc, thread};
use crate::task::JoinHandle;
use crate::task::census::{Census, Scope, Tally};
use crate::task::registry::Registry;
use crate::task::tests::toy::{Tally as Tallied, ToyScheduler};

/// A waiter for zero that may be the runner itself.
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
    registry.census.close();
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
    if scheduler.registry.census.watch(Scope::Tasks, waker, empty) {
        scheduler.run_until(|| emptied.is.load(Acquire));
    }
}

/// Step 4 on a thread that only waits.
fn wait_until_zero<'a, I: Iterator<Item = &'a Tally>>(census: &Census, seats: impl Fn() -> I) {
    let parker = Parker::new(None);
    let waker = Waker::from(Arc::new(Unpark(Arc::clone(&parker))));
    if census.watch(Scope::Tasks, waker, &seats) {
        parker.park();
    }
    assert_eq!(census.live(Scope::Tasks, seats), 0);
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
        let (scheduler, tally) = (ToyScheduler::new(), Tallied::new());
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
        assert_eq!(scheduler.queued(), 0);
        let handle = spawner.join().unwrap();
        assert_eq!(scheduler.live(), 0);
        assert_eq!(scheduler.queued(), 0);
        assert!(was_cancelled(handle));
        tally.expect(tally.polls(), 1, 0, 1);
    });
}

/// A task that a foreign thread wakes, so that it completes, while another thread shuts down.
#[test]
fn a_wake_and_a_completion_against_a_shutdown() {
    check(2, || {
        let (scheduler, tally) = (ToyScheduler::new(), Tallied::new());
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
        runnable.expect("the census is open").run();
        let waker = left.lock().unwrap().clone().expect("polled once");
        let foreign = thread::spawn(move || waker.wake());

        let stop = Arc::new(AtomicBool::new(false));
        let shutdown = thread::spawn({
            let (scheduler, stop) = (Arc::clone(&scheduler), Arc::clone(&stop));
            move || {
                close_and_abort(&scheduler.registry);
                wait_until_zero(&scheduler.registry.census, empty);
                stop.store(true, Release);
                scheduler.nudge();
            }
        });
        scheduler.run_until(|| stop.load(Acquire));
        shutdown.join().unwrap();
        foreign.join().unwrap();
        assert_eq!(scheduler.live(), 0);
        assert_eq!(scheduler.queued(), 0, "zero means empty queues");
        assert_eq!(was_cancelled(handle), tally.polls() == 1);
        assert_eq!(tally.future_drops(), 1);
        *left.lock().unwrap() = None;
        assert_eq!(tally.frees(), 1);
    });
}

/// A task that is being polled for the first time, and then waits, while another thread shuts down: either the
/// snapshot finds it, or the registry refuses it and it is cancelled on the spot.
#[test]
fn a_first_wait_against_a_shutdown() {
    check(3, || {
        let (scheduler, tally) = (ToyScheduler::new(), Tallied::new());
        let future = tally.future(|_| Poll::<()>::Pending);
        let (runnable, handle) = scheduler.create(future, tally.extra());
        scheduler.push(runnable.expect("the census is open"));
        let stop = Arc::new(AtomicBool::new(false));
        let shutdown = thread::spawn({
            let (scheduler, stop) = (Arc::clone(&scheduler), Arc::clone(&stop));
            move || {
                close_and_abort(&scheduler.registry);
                wait_until_zero(&scheduler.registry.census, empty);
                stop.store(true, Release);
                scheduler.nudge();
            }
        });
        scheduler.run_until(|| stop.load(Acquire));
        shutdown.join().unwrap();
        assert_eq!((scheduler.live(), scheduler.queued()), (0, 0));
        assert!(was_cancelled(handle));
        tally.expect(tally.polls(), 1, 0, 1);
    });
}

/// The last two tasks end on two threads that are no workers, against a waiter: whoever is last wakes it.
#[test]
fn two_last_completions_against_the_waiter() {
    check(2, || {
        let scheduler = ToyScheduler::new();
        let workers = [(); 2].map(|()| {
            let runnable = scheduler.detached();
            thread::spawn(move || runnable.run())
        });
        wait_until_zero(&scheduler.registry.census, empty);
        for worker in workers {
            worker.join().unwrap();
        }
    });
}

/// Two workers' tallies, as the seats have them.
type Seats = Arc<[Tally; 2]>;

/// What a worker does about the census when it goes to sleep (C4): the fence is that of `Sleep::begin_park`.
fn before_parking(census: &Census, seats: &Seats) {
    fence(SeqCst);
    census.check(|| seats.iter());
}

/// The last task of each of two workers, against a waiter: one that was counted without a fence is told of when its
/// worker goes to sleep.
#[test]
fn workers_that_go_to_sleep_against_the_waiter() {
    check(3, || {
        let (census, seats): (_, Seats) = (Arc::new(Census::new()), Arc::default());
        seats.iter().for_each(Tally::count_birth);
        let workers = [0, 1].map(|own| {
            let (census, seats) = (Arc::clone(&census), Arc::clone(&seats));
            thread::spawn(move || {
                seats[own].count_end();
                before_parking(&census, &seats);
            })
        });
        wait_until_zero(&census, || seats.iter());
        for worker in workers {
            worker.join().unwrap();
        }
    });
}

/// A task spawns another as its last act, which ends in another seat's tally: a count that is not one moment's could
/// miss both, or see the end without the birth.
#[test]
fn a_count_sees_a_task_or_what_it_spawned() {
    check(3, || {
        let (census, seats): (_, Seats) = (Arc::new(Census::new()), Arc::default());
        assert!(census.birth_outside());
        let child_ends = Arc::new(AtomicBool::new(false));
        let workers = thread::spawn({
            let (seats, child_ends) = (Arc::clone(&seats), Arc::clone(&child_ends));
            move || {
                seats[0].count_birth();
                seats[0].count_end();
                child_ends.store(true, Relaxed);
                seats[1].count_end();
            }
        });
        let zero = census.live(Scope::Tasks, || seats.iter()) == 0;
        assert!(!zero || child_ends.load(Relaxed), "the child is alive");
        workers.join().unwrap();
        assert_eq!(census.live(Scope::Tasks, || seats.iter()), 0);
    });
}

/// A spawn from outside against a closing that finds nobody: one of the two sees the other (C3), so that nothing is
/// queued after the workers have gone.
#[test]
fn a_birth_outside_against_the_closing() {
    check(3, || {
        let census = Arc::new(Census::new());
        let outside = thread::spawn({
            let census = Arc::clone(&census);
            move || census.birth_outside()
        });
        census.close();
        let zero = census.live(Scope::Tasks, empty) == 0;
        let queued = outside.join().unwrap();
        assert!(!(zero && queued), "queued, and nobody waits for it");
    });
}
