//! Models of the protocol in `README.md`: workers that follow its steps over a queue that is only a count. A
//! lost wake-up leaves a worker parked for ever, which loom reports as a deadlock.

use std::mem;

use super::Sleep;
use crate::loom_tests::check;
use crate::park::Parker;
use crate::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use crate::sync::atomic::{AtomicBool, AtomicUsize};
use crate::sync::{Arc, Mutex, lock, thread};

/// What the workers of a model share.
struct ToyPool {
    sleep: Sleep,
    /// How much visible work there is. As weakly ordered as a queue may be: the fences must do.
    work: AtomicUsize,
    /// How much is not yet done. Whoever does the last stops the pool.
    undone: AtomicUsize,
    stop: AtomicBool,
    /// The driver's place, if the model has one: whoever takes it waits there and not on its parker.
    driver: Option<Mutex<bool>>,
    /// If the model has it: the task that is run first blocks until another has been run.
    dependence: Option<Dependence>,
}

#[derive(Default)]
struct Dependence {
    first: AtomicBool,
    second_done: AtomicBool,
    waiting: Mutex<Option<thread::Thread>>,
}

impl ToyPool {
    fn new(workers: usize, tasks: usize) -> Self {
        Self {
            sleep: Sleep::new(workers),
            work: AtomicUsize::new(0),
            undone: AtomicUsize::new(tasks),
            stop: AtomicBool::new(false),
            driver: None,
            dependence: None,
        }
    }

    fn with_dependence(mut self) -> Self {
        self.dependence = Some(Dependence::default());
        self
    }

    fn with_driver(mut self) -> Self {
        self.driver = Some(Mutex::new(true));
        self
    }

    /// W1 to W5.
    fn push(&self) {
        self.work.fetch_add(1, Release);
        self.sleep.notify_one();
    }

    fn has_work(&self) -> bool {
        self.work.load(Relaxed) > 0
    }

    fn take(&self) -> bool {
        let mut seen = self.work.load(Relaxed);
        while seen > 0 {
            match self.work.compare_exchange(seen, seen - 1, Acquire, Relaxed) {
                Ok(_) => return true,
                Err(now) => seen = now,
            }
        }
        false
    }

    fn run(&self) {
        if let Some(dependence) = &self.dependence {
            dependence.run();
        }
        if self.undone.fetch_sub(1, Relaxed) == 1 {
            self.stop.store(true, Release);
            self.sleep.wake_all();
        }
    }

    /// One worker, until the pool stops.
    fn work(&self) {
        let parker = Parker::new(None);
        let mut searching = false;
        loop {
            if self.take() {
                self.stop_searching(&mut searching);
                self.run();
            } else if !searching && self.sleep.try_search() {
                // S0: look again, as a searcher.
                searching = true;
            } else if self.stop.load(Acquire) {
                return self.stop_searching(&mut searching);
            } else {
                self.park(&parker, mem::take(&mut searching));
                searching = true;
            }
        }
    }

    /// S1 to S3.
    fn stop_searching(&self, searching: &mut bool) {
        if mem::take(searching) && self.sleep.stop_search() && self.has_work() {
            self.sleep.notify_one();
        }
    }

    /// P1 to P6.
    fn park(&self, parker: &Arc<Parker>, searching: bool) {
        self.sleep.begin_park(parker, searching);
        let something = self.has_work() || self.stop.load(Acquire);
        if something && self.sleep.cancel_park(parker) {
            return;
        }
        let driver = self.driver.as_ref();
        match driver.filter(|place| mem::take(&mut *lock(place))) {
            Some(place) => {
                if parker.enter_driver() {
                    // The driver of a model: it waits for nothing but the parker's token.
                    while parker.is_in_driver() {
                        thread::yield_now();
                    }
                    parker.leave_driver();
                }
                *lock(place) = true;
            }
            None => parker.park(),
        }
        self.sleep.end_park(parker);
    }

    /// What must hold when all have left.
    fn assert_quiet(&self) {
        assert_eq!(self.work.load(Relaxed), 0, "work was left");
        assert_eq!(format!("{:?}", self.sleep), "0 searching, 0 parked");
    }
}

impl Dependence {
    fn run(&self) {
        if self.first.swap(true, Relaxed) {
            self.second_done.store(true, Release);
            if let Some(thread) = lock(&self.waiting).take() {
                thread.unpark();
            }
            return;
        }
        *lock(&self.waiting) = Some(thread::current());
        while !self.second_done.load(Acquire) {
            thread::park();
        }
    }
}

/// `workers` threads, and this one as the pusher of all `tasks`.
fn one_pusher(pool: ToyPool, workers: usize, tasks: usize) {
    let pool = Arc::new(pool);
    let threads: Vec<_> = (0..workers)
        .map(|_| {
            let pool = Arc::clone(&pool);
            thread::spawn(move || pool.work())
        })
        .collect();
    for _ in 0..tasks {
        pool.push();
    }
    for thread in threads {
        thread.join().unwrap();
    }
    pool.assert_quiet();
}

#[test]
fn a_push_against_one_worker_that_parks() {
    check(3, || one_pusher(ToyPool::new(1, 1), 1, 1));
}

#[test]
fn two_pushes_against_one_worker_that_parks() {
    check(3, || one_pusher(ToyPool::new(1, 2), 1, 2));
}

#[test]
fn a_push_against_two_workers_that_park() {
    check(2, || one_pusher(ToyPool::new(2, 1), 2, 1));
}

#[test]
fn two_pushes_against_two_workers_that_park() {
    check(2, || one_pusher(ToyPool::new(2, 2), 2, 2));
}

/// It is not enough that a running worker comes to the second task by and by: somebody is woken for it, by its
/// pusher or by the last searcher, though that one has found something to run.
#[test]
fn a_task_that_waits_for_another_worker_to_run_the_next() {
    check(2, || one_pusher(ToyPool::new(2, 2).with_dependence(), 2, 2));
}

#[test]
fn a_push_against_a_worker_that_waits_in_the_driver() {
    check(3, || one_pusher(ToyPool::new(1, 1).with_driver(), 1, 1));
}

#[test]
fn a_push_against_one_worker_in_the_driver_and_one_beside_it() {
    check(2, || one_pusher(ToyPool::new(2, 1).with_driver(), 2, 1));
}

#[test]
fn two_pushers_against_one_worker() {
    check(3, || {
        let pool = Arc::new(ToyPool::new(1, 2));
        let worker = thread::spawn({
            let pool = Arc::clone(&pool);
            move || pool.work()
        });
        let pusher = thread::spawn({
            let pool = Arc::clone(&pool);
            move || pool.push()
        });
        pool.push();
        pusher.join().unwrap();
        worker.join().unwrap();
        pool.assert_quiet();
    });
}

/// Where two words for the counts would break: a notifier that gives up between two pushes, with a worker asleep.
#[test]
fn two_pushers_against_two_workers() {
    check(2, || {
        let pool = Arc::new(ToyPool::new(2, 2));
        let worker = thread::spawn({
            let pool = Arc::clone(&pool);
            move || pool.work()
        });
        let pusher = thread::spawn({
            let pool = Arc::clone(&pool);
            move || pool.push()
        });
        pool.push();
        pool.work();
        pusher.join().unwrap();
        worker.join().unwrap();
        pool.assert_quiet();
    });
}

/// A worker that has found work by its re-scan and cannot take itself out of the list any more has a token,
/// and uses it up: nothing is left of it for the next time.
#[test]
fn a_park_that_is_cancelled_too_late_consumes_its_token() {
    check(3, || {
        let sleep = Arc::new(Sleep::new(1));
        let parker = Parker::new(None);
        sleep.begin_park(&parker, false);
        let notifier = thread::spawn({
            let sleep = Arc::clone(&sleep);
            move || sleep.notify_one()
        });
        let in_time = sleep.cancel_park(&parker);
        if !in_time {
            parker.park();
            assert!(sleep.end_park(&parker), "a notifier chose it");
        }
        let chosen = notifier.join().unwrap();
        assert_ne!(chosen, in_time, "either taken back or chosen");
        assert_eq!(format!("{sleep:?}"), "1 searching, 0 parked");
        assert!(sleep.stop_search());
        assert!(parker.enter_driver(), "no token is left");
        parker.leave_driver();
    });
}

/// A token that comes before the thread blocks, while it blocks or after: kept until it is consumed.
#[test]
fn a_token_is_never_lost() {
    check(3, || {
        let parker = Parker::new(None);
        let written = Arc::new(AtomicUsize::new(0));
        let others = [1, 1].map(|add| {
            let (parker, written) = (Arc::clone(&parker), Arc::clone(&written));
            thread::spawn(move || {
                written.fetch_add(add, Relaxed);
                parker.unpark();
            })
        });
        while written.load(Relaxed) < 2 {
            parker.park();
        }
        for other in others {
            other.join().unwrap();
        }
    });
}
