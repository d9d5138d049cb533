//! (4) The worker's loop: take the next task, poll it, park when there is none.
//!
//! One loop for everybody who runs tasks: the background threads, and a thread in `block_on` for as long as it
//! waits, whose root future is polled between tasks when it was woken. One worker is the same code with one
//! seat.

pub(crate) mod steal;

use std::rc::Rc;
use std::time::Duration;

use reactor::Driver;

use crate::context;
use crate::panic;
use crate::park::Parker;
use crate::queue::stamp_of;
use crate::scheduler::Scheduler;
use crate::seat::{Seat, Seated};
use crate::spawn::run_here;
use crate::sync::Arc;
use crate::sync::atomic::AtomicBool;
use crate::sync::atomic::Ordering::{Relaxed, SeqCst};
use crate::task::refs::Runnable;

/// One victim is compared with us once in so many picks.
const REBALANCE_EVERY: u32 = 128;

/// The most picks between two readings of the clock.
const CLOCK_EVERY: u32 = 64;

/// Nanoseconds between two readings that the picks are adapted to: half to twice this.
const CLOCK_AIM: u64 = 50_000;

/// How often a busy worker looks for I/O, in nanoseconds: soon when it will be out of work soon; and rarely when
/// much is queued, which what it finds would only lengthen. A batch that is found is best run while what the driver
/// touched for it is still in the cache.
const IO_EVERY: u64 = 100_000;
const IO_EVERY_WITH_MUCH_QUEUED: u64 = 1_000_000;

/// So many tasks in the lanes are much.
const MUCH: usize = 16;

/// A thread that runs tasks.
pub(crate) struct Worker {
    scheduler: Arc<Scheduler>,
    parker: Arc<Parker>,
    role: Role,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    /// Has a seat only while callers leave one.
    Background,
    /// Is in `block_on`: gets a seat whenever it is awake, a lent one if need be.
    Caller,
}

/// Whether the loop goes on after the root was looked at.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Turn {
    Continue,
    Leave,
}

impl Worker {
    /// For the calling thread, whose `parker` it is.
    pub(crate) fn new(scheduler: &Arc<Scheduler>, parker: &Arc<Parker>, role: Role) -> Self {
        Self {
            scheduler: Arc::clone(scheduler),
            parker: Arc::clone(parker),
            role,
        }
    }

    /// What a background thread does, until the scheduler stops.
    pub(crate) fn run_background(scheduler: &Arc<Scheduler>) {
        let _entered = context::enter(scheduler);
        let worker = Worker::new(scheduler, &scheduler.parker(), Role::Background);
        let never = AtomicBool::new(false);
        worker.run(&never, &mut || Turn::Leave);
    }

    /// The loop. `poll_root` is called whenever `woken` is set, and must clear it. It must not unwind.
    pub(crate) fn run(&self, woken: &AtomicBool, poll_root: &mut dyn FnMut() -> Turn) {
        let bomb = panic::Bomb("a worker panicked outside a task");
        self.run_tasks(woken, poll_root);
        bomb.defuse();
    }

    fn run_tasks(&self, woken: &AtomicBool, poll_root: &mut dyn FnMut() -> Turn) {
        let Some(mut seat) = self.wait_for_seat() else {
            return;
        };
        loop {
            // Relaxed: `poll_root` clears the flag with an Acquire of its own.
            if woken.load(Relaxed) {
                // The root is what this search has found: pushers must not rely on us while it is polled.
                seat.just_unparked.set(false);
                self.stop_searching(&seat);
                if poll_root() == Turn::Leave {
                    return self.leave(seat);
                }
            }
            if self.must_give_way() {
                match self.give_way(seat) {
                    Some(next) => seat = next,
                    None => return,
                }
            }
            let next = match self.next_task(&seat) {
                Some(task) => {
                    self.run_task(&seat, task);
                    Some(seat)
                }
                None if self.must_stop() => return self.leave(seat),
                // Woken meanwhile, by itself perhaps: no need to look as if it parked.
                None if woken.load(Relaxed) => Some(seat),
                None => self.park(seat, woken),
            };
            match next {
                Some(next) => seat = next,
                None => return,
            }
        }
    }

    /// Polls `task` once, or runs a stack job to its end.
    pub(crate) fn run_task(&self, seat: &Seat, task: Runnable) {
        seat.peer.counts.polls.add(1);
        let Some(header) = task.as_task() else {
            return run_here(task, false);
        };
        seat.peer.running.begin(header);
        run_here(task, false);
        seat.peer.running.end();
    }

    /// The one place that chooses what runs next: the seat's own queues, the backlog, then other seats.
    fn next_task(&self, seat: &Seat) -> Option<Runnable> {
        let tick = seat.tick.get().wrapping_add(1);
        seat.tick.set(tick);
        let mut task = None;
        if tick == seat.clock_at.get() {
            self.look_at_clock(seat, tick);
            // Also when there is work here. By the clock, so that what comes from outside waits no longer beside long
            // polls than beside short ones.
            task = self.refill(seat);
        }
        if tick.is_multiple_of(REBALANCE_EVERY) {
            self.rebalance(seat);
        }
        let task = task
            .or_else(|| seat.lanes.pop(&seat.peer.shelf, stamp_of(seat.now.get())))
            .or_else(|| self.refill(seat))
            .or_else(|| self.search(seat))?;
        if seat.searching.get() {
            self.stop_searching(seat);
        }
        seat.just_unparked.set(false);
        Some(task)
    }

    /// Tells others of what has been moved to this seat's lanes. A searcher does so when it stops searching; one
    /// that did not search has taken tasks from where a searcher may just have looked for them, and gone to park.
    fn offer(&self, seat: &Seat) {
        if !seat.searching.get() && seat.peer.shelf.has_visible_work() {
            self.scheduler.notify();
        }
    }

    fn refill(&self, seat: &Seat) -> Option<Runnable> {
        let task = self
            .scheduler
            .backlog
            .refill(&seat.lanes.fair, self.scheduler.workers)?;
        seat.peer.counts.refills.add(1);
        self.offer(seat);
        Some(task)
    }

    /// Reads the time, for the fork lane's late mode, and looks for I/O and due timers if nobody did lately.
    fn look_at_clock(&self, seat: &Seat, tick: u32) {
        let scheduler = &self.scheduler;
        let instant = scheduler.reactor().clock().now();
        let now = scheduler.reactor().clock().nanos(instant);
        let passed = now.saturating_sub(seat.now.replace(now));
        let every = seat.clock_every.get();
        if passed > 2 * CLOCK_AIM {
            seat.clock_every.set((every / 2).max(1));
        } else if passed < CLOCK_AIM / 2 {
            seat.clock_every.set((every * 2).min(CLOCK_EVERY));
        }
        seat.clock_at.set(tick.wrapping_add(seat.clock_every.get()));

        scheduler.check_census();
        let reactor = scheduler.reactor();
        let much = seat.peer.shelf.lanes_len() > MUCH;
        let io_every = if much {
            IO_EVERY_WITH_MUCH_QUEUED
        } else {
            IO_EVERY
        };
        let io_due = now.saturating_sub(scheduler.last_turn.load(Relaxed)) > io_every;
        if (io_due && reactor.has_sources()) || reactor.next_deadline_due(instant) {
            // Taken means that somebody waits in it or is just looking. A worker that parks while we have it waits
            // beside it, and nobody looks again before our next look or park: the monitor's case, once there
            // is one.
            if let Some(mut driver) = scheduler.take_driver() {
                wait_in(&mut driver, Some(Duration::ZERO));
                if !driver.found_many() {
                    scheduler.last_turn.store(now, Relaxed);
                }
                self.dispatch(&mut driver, Some(seat));
                scheduler.put_driver_back(driver);
                // What was found may wait behind a long poll of what is picked first.
                self.offer(seat);
            }
        }
    }

    /// Wakes whoever the driver found, in the order of the events. With a seat the tasks come to its fair lane,
    /// and others are told of them at the end, once: they would take half each time.
    fn dispatch(&self, driver: &mut Driver, seat: Option<&Seat>) {
        let Some(seat) = seat else {
            driver.dispatch();
            return;
        };
        seat.dispatching.set(true);
        driver.dispatch();
        seat.dispatching.set(false);
        if seat.peer.shelf.lanes_len() > 1 {
            self.scheduler.notify();
        }
    }

    /// A search is over, with or without success. If it was the last one, pushers have relied on it: wakes
    /// another worker if there is visible work left.
    fn stop_searching(&self, seat: &Seat) {
        if seat.searching.replace(false)
            && self.scheduler.sleep.stop_search()
            && self.scheduler.has_visible_work()
        {
            self.scheduler.notify();
        }
    }

    /// Steps P1 to P6 of `sleep/README.md`. Gives back a seat, or `None` when the scheduler stops.
    fn park(&self, seat: Rc<Seated>, woken: &AtomicBool) -> Option<Rc<Seated>> {
        let scheduler = &self.scheduler;
        debug_assert!(seat.peer.shelf.slot.is_empty() && !seat.peer.shelf.has_visible_work());
        if seat.just_unparked.take() {
            seat.peer.counts.empty_unparks.add(1);
        }
        scheduler
            .sleep
            .begin_park(&self.parker, seat.searching.take());
        // After the fence of `begin_park`, as C4 asks. What it wakes may be us.
        scheduler.check_census();
        scheduler.registry.tidy(seat.index());
        let work = woken.load(SeqCst) || scheduler.has_visible_work() || self.must_stop();
        if work && scheduler.sleep.cancel_park(&self.parker) {
            seat.searching.set(true);
            return Some(seat);
        }
        seat.peer.counts.parks.add(1);
        scheduler.seats.release(stand_up(seat));

        let mut driver = scheduler.take_driver();
        match &mut driver {
            Some(driver) => {
                if self.parker.enter_driver() {
                    wait_in(driver, None);
                    self.parker.leave_driver();
                }
            }
            None => self.parker.park(),
        }
        scheduler.sleep.end_park(&self.parker);

        // With the seat first, so that what the driver wakes comes into this worker's own queues.
        let seat = self.try_sit();
        if let Some(mut driver) = driver {
            self.dispatch(&mut driver, seat.as_deref().map(|seated| &seated.seat));
            scheduler.put_driver_back(driver);
        }
        match seat {
            Some(seat) => {
                seat.searching.set(true);
                seat.just_unparked.set(true);
                seat.peer.counts.unparks.add(1);
                self.look_at_clock_after_park(&seat);
                Some(seat)
            }
            None => {
                // Displaced. The search that the wake made us owe is over, and the wake must go to somebody
                // else, who also sees to the driver.
                let _ = scheduler.sleep.stop_search();
                scheduler.notify();
                self.wait_for_seat()
            }
        }
    }

    fn look_at_clock_after_park(&self, seat: &Seat) {
        let now = self.scheduler.nanos();
        seat.now.set(now);
        seat.clock_at
            .set(seat.tick.get().wrapping_add(seat.clock_every.get()));
        self.scheduler.last_turn.store(now, Relaxed);
    }

    /// A busy background thread makes room for callers that were lent seats.
    fn must_give_way(&self) -> bool {
        self.role == Role::Background && self.scheduler.seats.has_surplus()
    }

    fn must_stop(&self) -> bool {
        self.role == Role::Background && self.scheduler.is_stopping()
    }

    fn give_way(&self, seat: Rc<Seated>) -> Option<Rc<Seated>> {
        self.leave(seat);
        self.wait_for_seat()
    }

    /// Gives the seat up for good, or for as long as there are too many. What was queued here goes to the
    /// backlog (I11), and somebody is woken for it, and for the driver, which we may have been the one to
    /// look after (I12).
    fn leave(&self, seat: Rc<Seated>) {
        let scheduler = &self.scheduler;
        seat.lanes
            .drain(&seat.peer.shelf, |task| scheduler.backlog.push(task));
        self.stop_searching(&seat);
        scheduler.seats.release(stand_up(seat));
        scheduler.notify();
        // After the fence of `notify`, as C4 asks.
        scheduler.check_census();
    }

    fn try_sit(&self) -> Option<Rc<Seated>> {
        let seat = match self.role {
            Role::Background => self.scheduler.seats.acquire(),
            Role::Caller => self.scheduler.caller_seat(),
        };
        seat.map(|seat| self.sit(seat))
    }

    /// Waits in the line of the displaced, if need be; `None` when the scheduler stops.
    fn wait_for_seat(&self) -> Option<Rc<Seated>> {
        loop {
            if self.role == Role::Caller {
                return self.try_sit();
            }
            let seat = self.scheduler.seats.acquire_or_queue(&self.parker);
            if let Some(seat) = seat {
                return Some(self.sit(seat));
            }
            // After joining the line: `stop` sets its flag before it wakes the line.
            if self.must_stop() {
                return None;
            }
            self.parker.park();
        }
    }

    /// Makes the seat this thread's.
    fn sit(&self, seat: Seat) -> Rc<Seated> {
        let seat = Rc::new(Seated {
            scheduler: Arc::clone(&self.scheduler),
            seat,
        });
        let before = context::set_seat(Some(Rc::clone(&seat)));
        debug_assert!(before.is_none(), "one seat a thread");
        seat
    }
}

/// The reverse of [`Worker::sit`].
fn stand_up(seat: Rc<Seated>) -> Seat {
    drop(context::set_seat(None));
    match Rc::try_unwrap(seat) {
        Ok(seated) => seated.seat,
        Err(_) => panic::scheduler_bug("a seat was kept by somebody"),
    }
}

fn wait_in(driver: &mut Driver, timeout: Option<Duration>) {
    if let Err(error) = driver.wait(timeout) {
        panic::scheduler_bug(&format!("waiting for I/O failed: {error}"));
    }
}
