//! The shared side of the reactor: what threads other than the one that waits may do.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::Ordering::{AcqRel, Relaxed, SeqCst};
use std::sync::atomic::{AtomicBool, AtomicU64};

use crate::clock::Clock;
use crate::registry::Sources;
use crate::time::Instant;
use crate::timers::Timers;
use crate::waiters::wake_all;

/// A reference to a reactor: cheap to clone, usable from any thread.
#[derive(Clone)]
pub struct Reactor {
    shared: Arc<Shared>,
}

struct Shared {
    clock: Clock,
    timers: Timers,
    sources: Sources,
    system: mio::Registry,
    wakeup: Wakeup,
}

/// How a wait is interrupted.
///
/// Wakes are coalesced: who finds `pending` set knows that an interruption is on its way and spares
/// the system call. The race to prevent is a wake that relies on an interruption already used up.
/// The driver therefore clears `pending` only after it has seen the interruption, and before its
/// wait returns: a wake that still found it set came before that moment, so the caller of the wait,
/// who looks for work after it, sees whatever was published before the wake.
struct Wakeup {
    system: mio::Waker,
    pending: AtomicBool,
    /// The deadline the poller waits for, in the timers' nanoseconds; see [`Driver`](crate::Driver).
    poller_deadline: AtomicU64,
}

/// The poller is not waiting.
const NOT_WAITING: u64 = 0;

impl Reactor {
    pub(crate) fn new(shards: usize, system: mio::Registry, waker: mio::Waker) -> Reactor {
        let wakeup = Wakeup {
            system: waker,
            pending: AtomicBool::new(false),
            poller_deadline: AtomicU64::new(NOT_WAITING),
        };
        Reactor {
            shared: Arc::new(Shared {
                clock: Clock::new(),
                timers: Timers::new(shards),
                sources: Sources::default(),
                system,
                wakeup,
            }),
        }
    }

    /// Makes the wait that is under way, or else the next one, return at once.
    ///
    /// # Panics
    ///
    /// If the system fails to deliver the interruption: the runtime could only hang.
    pub fn wake(&self) {
        let wakeup = &self.shared.wakeup;
        // Releases what the caller published, to `interruption_seen`.
        if !wakeup.pending.swap(true, AcqRel) {
            wakeup
                .system
                .wake()
                .expect("the reactor's waker works as long as the reactor does");
        }
    }

    /// Whether any source is registered. A hint: the count is read without ordering.
    pub fn has_sources(&self) -> bool {
        self.shared.sources.any()
    }

    /// Whether a timer may be due at `now`. One load; true can be a false alarm (its timer was
    /// cancelled), false cannot.
    pub fn next_deadline_due(&self, now: Instant) -> bool {
        match self.shared.timers.earliest() {
            u64::MAX => false,
            earliest => earliest <= self.shared.clock.nanos(now),
        }
    }

    /// The clock that every reading of time goes through.
    pub fn clock(&self) -> &Clock {
        &self.shared.clock
    }

    /// Ends all waiting: every waiter of every source and of every timer is woken, and operations
    /// on sources fail from now on with an error that says that the runtime was shut down. Wakers
    /// are not kept (nothing they hold outlives the runtime because a socket does).
    pub fn shutdown(&self) {
        let mut woken = Vec::new();
        self.shared.sources.shut_down(&mut woken);
        self.shared.timers.shutdown(&mut woken);
        wake_all(&mut woken);
        self.wake();
    }

    pub(crate) fn timers(&self) -> &Timers {
        &self.shared.timers
    }

    /// To be called by whoever lowered the earliest deadline to `nanos`: interrupts the poller if it
    /// waits for something later. The other half of the protocol stands at [`Driver`](crate::Driver).
    pub(crate) fn deadline_moved(&self, nanos: u64) {
        // SeqCst pairs with the store in `publish_poller_deadline`. A poller that does not wait
        // shows zero, which is later than nothing.
        if self.shared.wakeup.poller_deadline.load(SeqCst) > nanos {
            self.wake();
        }
    }

    /// Says, before the poller waits, for which deadline; `u64::MAX` for none.
    pub(crate) fn publish_poller_deadline(&self, nanos: u64) {
        // SeqCst pairs with the load in `deadline_moved`. Zero is taken, and one as good.
        self.shared
            .wakeup
            .poller_deadline
            .store(nanos.max(1), SeqCst);
    }

    /// Says that the poller waits no more.
    pub(crate) fn retract_poller_deadline(&self) {
        // Relaxed: who still sees the old value interrupts for nothing, no more.
        self.shared
            .wakeup
            .poller_deadline
            .store(NOT_WAITING, Relaxed);
    }

    /// Called by the driver when it sees the interruption; see [`Wakeup`] for why only then.
    pub(crate) fn interruption_seen(&self) {
        // A swap, so that it reads the last wake's swap and acquires what was published before it.
        self.shared.wakeup.pending.swap(false, AcqRel);
    }

    pub(crate) fn sources(&self) -> &Sources {
        &self.shared.sources
    }

    /// Where sources are made known to the system.
    pub(crate) fn system(&self) -> &mio::Registry {
        &self.shared.system
    }

    /// A reactor whose driver is gone, for tests of what needs none.
    #[cfg(test)]
    pub(crate) fn detached(shards: usize) -> Reactor {
        crate::Driver::new(shards).expect("a driver").reactor()
    }
}

impl fmt::Debug for Reactor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reactor")
            .field("sources", &self.shared.sources.any())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn interrupted(reactor: &Reactor) -> bool {
        let pending = reactor.shared.wakeup.pending.load(SeqCst);
        reactor.interruption_seen();
        pending
    }

    #[test]
    fn only_a_poller_that_waits_for_later_is_interrupted() {
        let driver = crate::Driver::new(1).unwrap();
        let reactor = driver.reactor();
        reactor.deadline_moved(5);
        assert!(!interrupted(&reactor), "nobody waits");
        reactor.publish_poller_deadline(100);
        reactor.deadline_moved(200);
        assert!(!interrupted(&reactor), "it wakes before that anyway");
        reactor.deadline_moved(50);
        assert!(interrupted(&reactor));
        reactor.publish_poller_deadline(u64::MAX);
        reactor.deadline_moved(1 << 60);
        assert!(interrupted(&reactor), "it waits for no deadline at all");
        reactor.publish_poller_deadline(0);
        reactor.deadline_moved(0);
        assert!(interrupted(&reactor), "a deadline of zero is one too");
        reactor.retract_poller_deadline();
        reactor.deadline_moved(0);
        assert!(!interrupted(&reactor));
    }
}
