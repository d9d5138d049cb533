//! The timers of one reactor: a wheel for each shard, and the earliest deadline of them all.
//!
//! Each seat of a worker has a shard, so that workers start and cancel timers without meeting each
//! other; any other thread uses one of these as well. Only the driver looks at all of them.
//!
//! # Firing
//!
//! `earliest` is what the poller waits for and what workers look at; it must never be later than the
//! first timer to fire. Whoever starts a timer lowers it. It rises when the driver, one thread at a
//! time, fires what is due:
//!
//! 1. It sets `earliest` to "none".
//! 2. It visits each shard: under the shard's lock it takes out the wakers that are due, and asks
//!    when the shard's next timer fires.
//! 3. It lowers `earliest` to the first of these.
//!
//! The race to prevent is a timer started meanwhile that step 1 erases and step 2 misses. A timer is
//! put into its shard before `earliest` is looked at. If that was before the visit, the visit counts
//! it. If it was after the visit, then by the shard's lock also after step 1: its starter sees
//! "none" or what was written since, and lowers it as far as it has to; step 3 only lowers and cannot
//! undo that.
//!
//! A cancelled timer leaves `earliest` as it is. The driver then looks once for nothing, and step 3
//! puts it right.
//!
//! How a new earliest deadline interrupts a poller that waits for a later one stands at
//! [`Driver`](crate::Driver). Wakers are cloned, woken and dropped while no shard is locked (I6).

use std::fmt;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::SeqCst;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Waker;

use crate::handle::Reactor;
use crate::time::Instant;
use wheel::{TimerKey, Wheel};

mod wheel;

/// All timers of one reactor. Times are nanoseconds since the origin of the reactor's clock.
#[derive(Debug)]
pub(crate) struct Timers {
    shards: Box<[Arc<Shard>]>,
    earliest: AtomicU64,
}

/// A timer that was started. It does not end by being dropped: see [`cancel`](Self::cancel).
#[derive(Debug)]
pub(crate) struct Timer {
    shard: Arc<Shard>,
    key: TimerKey,
}

/// What became of a timer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub(crate) enum TimerState {
    Running,
    Fired,
    /// Its reactor was shut down, and the timer with it, unless it fired before.
    ShutDown,
}

struct Shard {
    /// None after shutdown.
    wheel: Mutex<Option<Wheel>>,
}

impl Timers {
    /// No timers, in `shards` shards; at least one.
    pub(crate) fn new(shards: usize) -> Timers {
        Timers {
            shards: (0..shards).map(|_| Arc::new(Shard::new())).collect(),
            earliest: AtomicU64::new(u64::MAX),
        }
    }

    /// When the first timer fires, `u64::MAX` if there is none. It may be too early, not too late.
    pub(crate) fn earliest(&self) -> u64 {
        // SeqCst for the poller, which reads this after it has said what it waits for: pairs with
        // `lower`, whose caller reads that afterwards.
        self.earliest.load(SeqCst)
    }

    /// Takes out the wakers of all timers that are due at `now`. Only for the driver, one thread at
    /// a time: two at once would undo each other's step 1.
    pub(crate) fn collect_due(&self, now: u64, due: &mut Vec<Waker>) {
        self.earliest.store(u64::MAX, SeqCst);
        let mut next = u64::MAX;
        for shard in &self.shards {
            if let Some(wheel) = &mut *shard.lock() {
                wheel.advance(now, due);
                next = next.min(wheel.next_expiry());
            }
        }
        self.lower(next);
    }

    /// Takes out the wakers of all timers, and lets no other one start.
    pub(crate) fn shutdown(&self, woken: &mut Vec<Waker>) {
        for shard in &self.shards {
            let wheel = shard.lock().take();
            woken.extend(wheel.into_iter().flat_map(Wheel::into_wakers));
        }
    }

    /// Lowers the earliest deadline to `nanos`; whether that was news.
    #[inline]
    fn lower(&self, nanos: u64) -> bool {
        // Mostly there is an earlier one, and a load is all: whoever wrote that one has told the
        // poller, or is the driver and about to look. The load may not be stale beyond what the
        // shard's lock allows, see above.
        // SeqCst, both: pairs with the load in `earliest`; the caller reads the poller's deadline
        // after this, as the poller reads this after writing its own.
        self.earliest.load(SeqCst) > nanos && self.earliest.fetch_min(nanos, SeqCst) > nanos
    }
}

impl Timer {
    /// Starts a timer of `reactor` that wakes `waker` at `deadline`, or a little later if that is far
    /// from `now` (see [`coalesced`]), and interrupts the poller if need be. Runs no user code.
    ///
    /// # Errors
    ///
    /// Gives the waker back if the reactor was shut down.
    #[inline]
    pub(crate) fn start(
        reactor: &Reactor,
        shard: usize,
        now: Instant,
        deadline: Instant,
        waker: Waker,
    ) -> Result<Timer, Waker> {
        let timers = reactor.timers();
        // A thread without a seat, or with one that was lent, has a number past the shards.
        let home = timers.shards.get(shard);
        let shard = home.unwrap_or_else(|| &timers.shards[shard % timers.shards.len()]);
        let clock = reactor.clock();
        let deadline = coalesced(clock.nanos(now), clock.nanos(deadline));
        let (key, fires_at) = match &mut *shard.lock() {
            Some(wheel) => wheel.insert(deadline, waker),
            None => return Err(waker),
        };
        if timers.lower(fires_at) {
            reactor.deadline_moved(fires_at);
        }
        let shard = Arc::clone(shard);
        Ok(Timer { shard, key })
    }

    /// What became of it. While it is running, `waker` is who will be woken.
    pub(crate) fn poll(&self, waker: &Waker) -> TimerState {
        match self.known_to_wake(waker) {
            Ok(true) => return TimerState::Running,
            Ok(false) => {}
            Err(ended) => return ended,
        }
        // Cloning may run user code. The timer may fire meanwhile and wake the old waker: then it is
        // gone, and this poll says so.
        let mut waker = waker.clone();
        let state = match &mut *self.shard.lock() {
            None => TimerState::ShutDown,
            Some(wheel) => match wheel.waker_mut(self.key) {
                None => TimerState::Fired,
                Some(known) => {
                    std::mem::swap(known, &mut waker);
                    TimerState::Running
                }
            },
        };
        drop(waker);
        state
    }

    /// Ends it. Returns its waker, for the caller to drop under no lock; `None` if it has fired.
    #[inline]
    pub(crate) fn cancel(self) -> Option<Waker> {
        self.shard.lock().as_mut()?.remove(self.key)
    }

    /// Whether a running timer wakes the same task as `waker`; or how it ended.
    fn known_to_wake(&self, waker: &Waker) -> Result<bool, TimerState> {
        let mut wheel = self.shard.lock();
        let wheel = wheel.as_mut().ok_or(TimerState::ShutDown)?;
        let known = wheel.waker_mut(self.key).ok_or(TimerState::Fired)?;
        Ok(known.will_wake(waker))
    }
}

/// How far apart the moments are that timers share at most, in nanoseconds: about half a
/// millisecond.
const COARSEST: u64 = 1 << 19;

/// Puts a deadline off to a moment that others near it share, so that thousands of timers need few
/// wake-ups: by a sixteenth of the time there is to wait at most, and by half a millisecond at most.
fn coalesced(now: u64, deadline: u64) -> u64 {
    let patience = deadline.saturating_sub(now) / 16;
    match patience.min(COARSEST).checked_ilog2() {
        Some(bits) => deadline
            .checked_next_multiple_of(1 << bits)
            .unwrap_or(u64::MAX),
        None => deadline,
    }
}

impl Shard {
    fn new() -> Shard {
        Shard {
            wheel: Mutex::new(Some(Wheel::new())),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Option<Wheel>> {
        // Nothing in here runs user code, so nothing panics halfway through a change.
        self.wheel.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Shard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shard").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
