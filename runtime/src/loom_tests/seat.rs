//! Models of the seats, with callers in `block_on` and background threads that follow the steps of
//! `worker.rs`, over work that is only a count.

use std::mem;

use super::check;
use crate::park::Parker;
use crate::seat::Seats;
use crate::sleep::Sleep;
use crate::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};
use crate::sync::atomic::{AtomicBool, AtomicUsize};
use crate::sync::{Arc, Mutex, lock, thread};

/// The workers' seats, background threads and callers.
struct House {
    workers: usize,
    seats: Seats<usize>,
    sleep: Sleep,
    work: AtomicUsize,
    stop: AtomicBool,
    /// What must happen before the house stops: each task run, each caller gone.
    open: AtomicUsize,
    /// The root that the next task to run wakes, as a task that `block_on` awaits does.
    awaited_by: Mutex<Option<Arc<ToyRoot>>>,
}

/// The root future of a caller.
struct ToyRoot {
    woken: AtomicBool,
    written: AtomicUsize,
    parker: Arc<Parker>,
    thread: thread::ThreadId,
}

impl House {
    fn new(workers: usize, open: usize) -> Arc<Self> {
        Arc::new(Self {
            workers,
            seats: Seats::new((0..workers).collect(), 2),
            sleep: Sleep::new(workers),
            work: AtomicUsize::new(0),
            stop: AtomicBool::new(false),
            open: AtomicUsize::new(open),
            awaited_by: Mutex::new(None),
        })
    }

    fn push(&self) {
        self.work.fetch_add(1, Release);
        self.sleep.notify_one();
    }

    fn run(&self) {
        let root = lock(&self.awaited_by).take();
        if let Some(root) = root {
            root.wake();
        }
        self.done();
    }

    fn done(&self) {
        if self.open.fetch_sub(1, Relaxed) == 1 {
            self.stop.store(true, Release);
            self.sleep.wake_all();
            self.seats.wake_displaced();
        }
    }

    fn has_work(&self) -> bool {
        self.work.load(Relaxed) > 0
    }

    fn take(&self) -> bool {
        let step = |seen: usize| seen.checked_sub(1);
        self.work.fetch_update(Acquire, Relaxed, step).is_ok()
    }

    fn stop_searching(&self, searching: &mut bool) {
        if mem::take(searching) && self.sleep.stop_search() && self.has_work() {
            self.sleep.notify_one();
        }
    }

    /// `Worker::leave`: the seat is given up, and somebody is told.
    fn leave(&self, seat: usize, searching: &mut bool) {
        self.stop_searching(searching);
        self.seats.release(seat);
        self.sleep.notify_one();
    }

    /// `Worker::wait_for_seat` of a background thread.
    fn wait_for_seat(&self, parker: &Arc<Parker>) -> Option<usize> {
        loop {
            let seat = self.seats.acquire_or_queue(parker);
            if seat.is_some() {
                return seat;
            }
            if self.stop.load(Acquire) {
                return None;
            }
            parker.park();
        }
    }

    /// `Worker::run` of a background thread.
    fn background(&self) {
        let parker = Parker::new(None);
        let mut searching = false;
        let mut next = self.wait_for_seat(&parker);
        while let Some(seat) = next {
            next = if self.seats.has_surplus() {
                self.leave(seat, &mut searching);
                self.wait_for_seat(&parker)
            } else if self.take() {
                self.stop_searching(&mut searching);
                self.run();
                Some(seat)
            } else if self.stop.load(Acquire) {
                return self.leave(seat, &mut searching);
            } else {
                self.background_park(seat, &parker, &mut searching)
            };
        }
    }

    fn background_park(
        &self,
        seat: usize,
        parker: &Arc<Parker>,
        searching: &mut bool,
    ) -> Option<usize> {
        self.sleep.begin_park(parker, mem::take(searching));
        let something = self.has_work() || self.stop.load(Acquire);
        if something && self.sleep.cancel_park(parker) {
            *searching = true;
            return Some(seat);
        }
        self.seats.release(seat);
        parker.park();
        self.sleep.end_park(parker);
        let seat = self.seats.acquire();
        if seat.is_some() {
            *searching = true;
            return seat;
        }
        // Displaced: the search that came with the wake goes on to somebody else.
        let _ = self.sleep.stop_search();
        self.sleep.notify_one();
        self.wait_for_seat(parker)
    }

    /// `run_as_caller` of a root that is ready when it sees what was written before its wake.
    fn caller(&self, root: &ToyRoot) {
        self.call(root, || root.written.load(Relaxed) == 1);
    }

    /// `run_as_caller`, until `poll` says that the root is ready.
    fn call(&self, root: &ToyRoot, mut poll: impl FnMut() -> bool) {
        assert!(self.seats.add_caller(&root.parker));
        let mut searching = false;
        let mut seat = self.caller_seat();
        loop {
            if root.woken.load(Relaxed) {
                self.stop_searching(&mut searching);
                root.woken.swap(false, Acquire);
                if poll() {
                    break self.leave(seat, &mut searching);
                }
            }
            if self.take() {
                self.stop_searching(&mut searching);
                self.run();
            } else if !root.woken.load(Relaxed) {
                seat = self.caller_park(seat, root, mem::take(&mut searching));
                searching = true;
            }
        }
        self.seats.remove_caller();
        self.done();
    }

    fn caller_seat(&self) -> usize {
        self.seats
            .acquire_or_lend(|| Some(self.workers))
            .expect("lent")
    }

    fn caller_park(&self, seat: usize, root: &ToyRoot, searching: bool) -> usize {
        self.sleep.begin_park(&root.parker, searching);
        let something = root.woken.load(Relaxed) || self.has_work();
        if something && self.sleep.cancel_park(&root.parker) {
            return seat;
        }
        self.seats.release(seat);
        root.parker.park();
        self.sleep.end_park(&root.parker);
        self.caller_seat()
    }

    /// What must hold when all have left.
    fn assert_quiet(&self) {
        assert_eq!(self.work.load(Relaxed), 0, "work was left");
        assert!(!self.seats.has_surplus(), "a lent seat is in circulation");
        assert_eq!(format!("{:?}", self.sleep), "0 searching, 0 parked");
        let free = std::iter::from_fn(|| self.seats.acquire()).count();
        assert_eq!(free, self.workers, "as many seats as workers are free");
    }
}

impl ToyRoot {
    /// Of this thread.
    fn new() -> Arc<Self> {
        Arc::new(Self {
            woken: AtomicBool::new(true),
            written: AtomicUsize::new(0),
            parker: Parker::new(None),
            thread: thread::current().id(),
        })
    }

    /// `Root::wake_by_ref` of `block_on.rs`, by a thread that has just written something.
    fn wake(&self) {
        self.written.store(1, Relaxed);
        let woken = self.woken.swap(true, AcqRel);
        if !woken && thread::current().id() != self.thread {
            self.parker.unpark();
        }
    }
}

/// A root is woken by another thread while its caller polls it, parks or is parked.
#[test]
fn a_root_wake_is_not_lost() {
    check(3, || {
        let house = House::new(1, 1);
        let root = ToyRoot::new();
        let waker = thread::spawn({
            let root = Arc::clone(&root);
            move || root.wake()
        });
        house.caller(&root);
        waker.join().unwrap();
        house.assert_quiet();
    });
}

/// The background thread is displaced by the caller, and comes back when it leaves.
#[test]
fn a_displaced_thread_comes_back() {
    check(2, || {
        let house = House::new(1, 2);
        let background = thread::spawn({
            let house = Arc::clone(&house);
            move || house.background()
        });
        let root = ToyRoot::new();
        root.wake();
        house.caller(&root);
        // Only the background thread is left to run this.
        house.push();
        background.join().unwrap();
        house.assert_quiet();
    });
}

/// A foreign thread pushes a task and wakes the root, against a caller and a background thread that sit down,
/// park and leave.
#[test]
fn work_that_is_pushed_meanwhile_is_done() {
    check(2, || {
        let house = House::new(1, 2);
        let background = thread::spawn({
            let house = Arc::clone(&house);
            move || house.background()
        });
        let root = ToyRoot::new();
        let foreign = thread::spawn({
            let (house, root) = (Arc::clone(&house), Arc::clone(&root));
            move || {
                house.push();
                root.wake();
            }
        });
        house.caller(&root);
        foreign.join().unwrap();
        background.join().unwrap();
        house.assert_quiet();
    });
}

/// The caller awaits the task that is pushed: a background thread that is woken for it and gets no seat must pass
/// the wake on to the caller, which may be parked.
#[test]
fn a_task_that_the_root_awaits_is_run() {
    check(2, || {
        let house = House::new(1, 2);
        let background = thread::spawn({
            let house = Arc::clone(&house);
            move || house.background()
        });
        let root = ToyRoot::new();
        *lock(&house.awaited_by) = Some(Arc::clone(&root));
        let foreign = thread::spawn({
            let house = Arc::clone(&house);
            move || house.push()
        });
        house.caller(&root);
        foreign.join().unwrap();
        background.join().unwrap();
        house.assert_quiet();
    });
}

/// A root that was woken pushes a task and blocks until another worker has run it: while it is polled, its thread
/// must not count as one that searches, though its wake made it a searcher.
#[test]
fn a_root_that_is_polled_does_not_count_as_searching() {
    check(2, || {
        let house = House::new(2, 2);
        let background = thread::spawn({
            let house = Arc::clone(&house);
            move || house.background()
        });
        let (root, inner) = (ToyRoot::new(), ToyRoot::new());
        inner.woken.store(false, Relaxed);
        let foreign = thread::spawn({
            let root = Arc::clone(&root);
            move || root.wake()
        });
        house.call(&root, || {
            if root.written.load(Relaxed) == 0 {
                return false;
            }
            *lock(&house.awaited_by) = Some(Arc::clone(&inner));
            house.push();
            while inner.written.load(Relaxed) == 0 {
                inner.parker.park();
            }
            true
        });
        foreign.join().unwrap();
        background.join().unwrap();
        house.assert_quiet();
    });
}

/// Two callers on one seat: one of them is lent an extra one, and the surplus goes back to zero.
#[test]
fn two_callers_give_the_lent_seat_back() {
    check(2, || {
        let house = House::new(1, 3);
        let other = thread::spawn({
            let house = Arc::clone(&house);
            move || {
                let root = ToyRoot::new();
                root.wake();
                house.caller(&root);
            }
        });
        let root = ToyRoot::new();
        house.push();
        root.wake();
        house.caller(&root);
        other.join().unwrap();
        // Both may have left before either looked for work: then it is left to the next one.
        if house.take() {
            house.done();
        }
        house.assert_quiet();
    });
}
