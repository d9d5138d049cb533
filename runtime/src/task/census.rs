//! How many tasks are alive: exact where it must be, and without a lock or a read-modify-write where tasks are
//! spawned and end most, on a worker.
//!
//! Births and ends are counted apart, each worker seat for itself ([`Tally`]), and in a few shared tallies for
//! everybody else. Who ends need not be who was born.
//!
//! ## Why nobody is missed
//!
//! - C1 A birth is counted before the task is queued, an end when nothing of the task can touch the scheduler any
//!   more (T6).
//! - C2 [`Census::live`] adds up all ends first, then all births. An end that it sees was preceded by the births
//!   of everything that task spawned (Release in `count_end`, Acquire in `live`), so it sees those births too: the
//!   sum of births is never the smaller one. If both are equal, then at the moment between the two passes nobody
//!   was alive but tasks from outside that were not counted yet.
//! - C3 A birth in the midst of a task of this runtime needs no more: as long as the spawner is alive, nobody sees
//!   zero. Any other birth ([`Census::birth_outside`]) looks, after it has counted, whether the census is closed, and
//!   whoever closes it counts after that, each with a full fence between: one of the two sees the other. So after
//!   zero nobody is queued any more; one that is refused is counted until its spawner has cancelled it.
//! - C4 Whoever waits for zero raises a flag, then counts. Whoever may have counted the last end looks for the
//!   flag after a fence: at once outside the workers, and a worker before it blocks or leaves ([`Census::check`]),
//!   which it does after its last task. One of the two sees the other, and the flag is raised seldom, so that an
//!   end costs no fence.
//!
//! Blocking jobs have a tally of their own, since a shutdown does not wait for them.

use std::task::Waker;

use crate::context;
use crate::sync::atomic::Ordering::{self, Acquire, Relaxed, Release, SeqCst};
use crate::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, fence};
use crate::sync::{CachePadded, Mutex, fence_in_models, lock};

/// Tallies for those who are no workers; few in the models, where each is more to explore.
const OUTSIDE: usize = if cfg!(loom) { 1 } else { 4 };

/// Births and ends counted in one place.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    born: AtomicU64,
    ended: AtomicU64,
}

pub(crate) struct Census {
    outside: [CachePadded<Tally>; OUTSIDE],
    jobs: CachePadded<Tally>,
    closed: AtomicBool,
    /// Somebody waits for zero: 0, or a [`Scope`].
    watched: AtomicU8,
    on_zero: Mutex<Option<Waker>>,
}

/// Which tasks count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Scope {
    /// All but blocking jobs.
    Tasks = 1,
    /// Blocking jobs too.
    All = 2,
}

impl Tally {
    /// By the one thread that has the seat, in the midst of a task (C3).
    pub(crate) fn count_birth(&self) {
        // Relaxed: whoever sees an end of what this leads to sees it by that (C2).
        add_one(&self.born, Relaxed);
    }

    /// By the one thread that has the seat, which calls [`Census::check`] before it blocks (C4). Release pairs with
    /// the Acquire in [`Census::live`].
    pub(crate) fn count_end(&self) {
        add_one(&self.ended, Release);
    }
}

/// By the counter's only writer. In the models a read-modify-write: loom looks at the last access to a place alone,
/// and our own load would hide from it that the store meets others' loads.
fn add_one(counter: &AtomicU64, order: Ordering) {
    if cfg!(loom) {
        counter.fetch_add(1, order);
    } else {
        counter.store(counter.load(Relaxed) + 1, order);
    }
}

impl Census {
    pub(crate) fn new() -> Self {
        Self {
            outside: std::array::from_fn(|_| CachePadded::default()),
            jobs: CachePadded::default(),
            closed: AtomicBool::new(false),
            watched: AtomicU8::new(0),
            on_zero: Mutex::new(None),
        }
    }

    /// Counts a task that is spawned anywhere but in the midst of another. False if the census is closed: the task is
    /// counted all the same, and must be cancelled.
    #[must_use]
    pub(crate) fn birth_outside(&self) -> bool {
        // (C3) SeqCst, both: they pair with the fence in `live`, after `close`.
        self.shared().born.fetch_add(1, SeqCst);
        fence_in_models();
        !self.closed.load(SeqCst)
    }

    /// Counts the end of a task anywhere but on a worker.
    pub(crate) fn end_outside<'a, I>(&self, seats: impl Fn() -> I)
    where
        I: Iterator<Item = &'a Tally>,
    {
        // (C4) SeqCst, as the load in `check`: they pair with the fence in `live`, after `watch`. And Release as in
        // `count_end`.
        self.shared().ended.fetch_add(1, SeqCst);
        fence_in_models();
        self.check(seats);
    }

    /// Counts a blocking job, which the registry has taken in: nobody waits for jobs once that is closed, so C3 asks
    /// nothing here.
    pub(crate) fn job_birth(&self) {
        self.jobs.born.fetch_add(1, Relaxed);
    }

    /// Counts the end of a blocking job. As [`Census::end_outside`].
    pub(crate) fn job_end<'a, I>(&self, seats: impl Fn() -> I)
    where
        I: Iterator<Item = &'a Tally>,
    {
        // (C4) As in `end_outside`.
        self.jobs.ended.fetch_add(1, SeqCst);
        fence_in_models();
        self.check(seats);
    }

    /// From here on nobody is born but to be cancelled.
    pub(crate) fn close(&self) {
        // Relaxed: the fence in `live` orders it (C3), and the registry's locks do for its insertions.
        self.closed.store(true, Relaxed);
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.closed.load(Relaxed)
    }

    /// How many are alive, of those that `seats` and the shared tallies have counted.
    pub(crate) fn live<'a, I>(&self, scope: Scope, seats: impl Fn() -> I) -> usize
    where
        I: Iterator<Item = &'a Tally>,
    {
        // (C3, C4) Pairs with births and ends outside and with the fences of workers: what they counted is seen here, or
        // they see the flag that was raised before this.
        fence(SeqCst);
        let ended = self.sum(scope, &seats, |tally| tally.ended.load(Acquire));
        let born = self.sum(scope, &seats, |tally| tally.born.load(Relaxed));
        usize::try_from(born.saturating_sub(ended)).unwrap_or(usize::MAX)
    }

    /// How many have ended so far.
    pub(crate) fn ended<'a, I>(&self, scope: Scope, seats: impl Fn() -> I) -> u64
    where
        I: Iterator<Item = &'a Tally>,
    {
        self.sum(scope, &seats, |tally| tally.ended.load(Acquire))
    }

    /// If somebody waits for zero and it is reached: wakes it. By a worker after a fence (C4).
    pub(crate) fn check<'a, I>(&self, seats: impl Fn() -> I)
    where
        I: Iterator<Item = &'a Tally>,
    {
        // SeqCst for those who come from `end_outside`.
        let watched = match self.watched.load(SeqCst) {
            0 => return,
            1 => Scope::Tasks,
            _ => Scope::All,
        };
        if self.live(watched, seats) == 0 {
            let waker = lock(&self.on_zero).take();
            if let Some(waker) = waker {
                waker.wake();
            }
        }
    }

    /// Calls `waker` once when nobody of `scope` is alive; false if nobody is now, and it will not be called.
    #[must_use]
    pub(crate) fn watch<'a, I>(&self, scope: Scope, waker: Waker, seats: impl Fn() -> I) -> bool
    where
        I: Iterator<Item = &'a Tally>,
    {
        let previous = lock(&self.on_zero).replace(waker);
        drop(previous);
        // Relaxed: the fence in `live` orders it (C4).
        self.watched.store(scope as u8, Relaxed);
        let waits = self.live(scope, seats) != 0;
        if !waits {
            let waker = lock(&self.on_zero).take();
            drop(waker);
        }
        waits
    }

    fn shared(&self) -> &Tally {
        &self.outside[context::thread_number() % OUTSIDE]
    }

    fn sum<'a, I>(&self, scope: Scope, seats: &impl Fn() -> I, of: impl Fn(&Tally) -> u64) -> u64
    where
        I: Iterator<Item = &'a Tally>,
    {
        let jobs = match scope {
            Scope::Tasks => 0,
            Scope::All => of(&self.jobs),
        };
        let outside: u64 = self.outside.iter().map(|tally| of(tally)).sum();
        jobs + outside + seats().map(of).sum::<u64>()
    }
}
