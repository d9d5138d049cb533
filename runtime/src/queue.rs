//! The queues of one worker seat: a next slot and two lanes. Owner's half ([`Lanes`]) and everybody's
//! ([`Shelf`]).
//!
//! - The **slot** holds the task last spawned or woken here; it runs next, while its data are in cache.
//! - The **fork lane** holds spawned tasks that were displaced from the slot. Its owner takes the newest, so a
//!   recursion runs depth first and keeps few tasks alive; thieves take the oldest, the largest subtree.
//! - The **fair lane** holds woken and yielded tasks, and those that came from the backlog, oldest first.
//!
//! Newest first starves old requests when more is spawned than can be served. So the fork lane turns over,
//! to **late mode**, when it is late and the load is not fork-join:
//!
//! 1. a displaced spawn is stamped with the worker's coarse time;
//! 2. when [`LATE`] has passed since the last look, the oldest task is taken; if it is older than `LATE` the
//!    lane enters late mode;
//! 3. in late mode the lane is served oldest first, until the oldest is younger than `LATE`,
//! 4. or until the oldest task just run has spawned children while the lane holds fewer than
//!    [`FAN_OUT`] tasks: then the load is fork-join, where the oldest is always old.

use std::cell::Cell;

use crossbeam_deque::{Steal, Stealer, Worker};

use crate::metrics::Counter;
use crate::task::raw::Kind;
use crate::task::refs::Runnable;
use crate::task::slot::{Origin, Slot};

/// Age, in the units of [`stamp_of`], at which a task of the fork lane is late: about a millisecond.
const LATE: u32 = 976;

/// A fork lane that is longer than this is a flood even if its tasks have children.
const FAN_OUT: usize = 4096;

/// Runs of the slot in a row before the lanes are served.
const SLOT_RUNS: u8 = 3;

/// A coarse time, in units of 1024 ns, that wraps after 73 minutes; only differences are used.
pub(crate) fn stamp_of(nanos: u64) -> u32 {
    (nanos >> 10) as u32
}

/// The owner's half.
pub(crate) struct Lanes {
    pub(crate) fork: Worker<Runnable>,
    pub(crate) fair: Worker<Runnable>,
    /// The owner's way to the old end of its own fork lane.
    fork_oldest: Stealer<Runnable>,
    slot_runs: Cell<u8>,
    /// Which lane is served first next time; they take turns.
    fair_first: Cell<bool>,
    late: Cell<bool>,
    /// Spawns from here so far; and, while the oldest task of late mode runs, what it was before.
    spawned: Cell<u64>,
    spawned_before_oldest: Cell<Option<u64>>,
    looked_at: Cell<u32>,
}

/// What other workers can reach of a seat's queues.
pub(crate) struct Shelf {
    pub(crate) slot: Slot,
    pub(crate) fork: Stealer<Runnable>,
    pub(crate) fair: Stealer<Runnable>,
    /// Tasks that the owner has taken out of the fair lane.
    pub(crate) fair_served: Counter,
}

impl Lanes {
    pub(crate) fn new() -> (Self, Shelf) {
        let (fork, fair) = (Worker::new_lifo(), Worker::new_fifo());
        let shelf = Shelf {
            slot: Slot::new(),
            fork: fork.stealer(),
            fair: fair.stealer(),
            fair_served: Counter::default(),
        };
        let lanes = Self {
            fork_oldest: fork.stealer(),
            fork,
            fair,
            slot_runs: Cell::new(0),
            fair_first: Cell::new(false),
            late: Cell::new(false),
            spawned: Cell::new(0),
            spawned_before_oldest: Cell::new(None),
            looked_at: Cell::new(0),
        };
        (lanes, shelf)
    }

    /// Puts a task that was spawned or woken here into the slot. True if that made work visible to others:
    /// it displaced one.
    pub(crate) fn push(&self, shelf: &Shelf, task: Runnable, origin: Origin, now: u32) -> bool {
        if origin == Origin::Spawned {
            self.spawned.set(self.spawned.get() + 1);
        }
        match shelf.slot.put(task, origin) {
            None => false,
            Some((displaced, origin)) => {
                self.push_to_lane(displaced, origin, now);
                true
            }
        }
    }

    fn push_to_lane(&self, task: Runnable, origin: Origin, now: u32) {
        match origin {
            Origin::Spawned => {
                task.set_stamp(now);
                self.fork.push(task);
            }
            Origin::Woken => self.fair.push(task),
        }
    }

    /// Whether both lanes are. For the owner.
    pub(crate) fn are_empty(&self) -> bool {
        self.fork.is_empty() && self.fair.is_empty()
    }

    /// Empties the slot into its lane.
    pub(crate) fn flush_slot(&self, shelf: &Shelf, now: u32) {
        if let Some((task, origin)) = shelf.slot.take() {
            self.push_to_lane(task, origin, now);
        }
    }

    /// The next task of this seat's own, if any: the slot, then the lanes in turn.
    pub(crate) fn pop(&self, shelf: &Shelf, now: u32) -> Option<Runnable> {
        if self.slot_runs.get() < SLOT_RUNS
            && let Some((task, _)) = shelf.slot.take()
        {
            self.slot_runs.set(self.slot_runs.get() + 1);
            return Some(task);
        }
        self.slot_runs.set(0);
        let fair_first = self.fair_first.get();
        self.fair_first.set(!fair_first);
        let task = if fair_first {
            self.pop_fair(shelf).or_else(|| self.pop_fork(now))
        } else {
            self.pop_fork(now).or_else(|| self.pop_fair(shelf))
        };
        task.or_else(|| shelf.slot.take().map(|(task, _)| task))
    }

    fn pop_fair(&self, shelf: &Shelf) -> Option<Runnable> {
        let task = self.fair.pop()?;
        shelf.fair_served.add(1);
        Some(task)
    }

    fn pop_fork(&self, now: u32) -> Option<Runnable> {
        if let Some(before) = self.spawned_before_oldest.take()
            && self.spawned.get() > before
            && self.fork.len() < FAN_OUT
        {
            self.late.set(false);
        }
        let look = now.wrapping_sub(self.looked_at.get()) > LATE;
        if !look && !self.late.get() {
            return self.fork.pop();
        }
        self.looked_at.set(now);
        let Some(oldest) = take(&self.fork_oldest) else {
            self.late.set(false);
            return None;
        };
        let age = now.wrapping_sub(oldest.stamp());
        let late = oldest.kind() == Kind::Task && age > LATE;
        self.late.set(late);
        if late {
            self.spawned_before_oldest.set(Some(self.spawned.get()));
        }
        Some(oldest)
    }

    /// Everything in the queues of this seat, for handing it over.
    pub(crate) fn drain(&self, shelf: &Shelf, mut to: impl FnMut(Runnable)) {
        if let Some((task, _)) = shelf.slot.take() {
            to(task);
        }
        while let Some(task) = self.fair.pop() {
            to(task);
        }
        while let Some(task) = take(&self.fork_oldest) {
            to(task);
        }
    }
}

impl Shelf {
    /// Whether a lane has work that anybody may take. The slot does not count: its owner is awake.
    pub(crate) fn has_visible_work(&self) -> bool {
        !self.fork.is_empty() || !self.fair.is_empty()
    }

    pub(crate) fn lanes_len(&self) -> usize {
        self.fork.len() + self.fair.len()
    }
}

fn take(from: &Stealer<Runnable>) -> Option<Runnable> {
    loop {
        match from.steal() {
            Steal::Success(task) => return Some(task),
            Steal::Empty => return None,
            Steal::Retry => std::hint::spin_loop(),
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests;
