//! Who sleeps, who searches, whom to wake. The protocol and its proof are in `README.md` beside this file;
//! change both together.

mod counters;
#[cfg(all(test, loom))]
mod loom_tests;

use counters::Counters;

use crate::park::Parker;
use crate::sync::atomic::Ordering::SeqCst;
use crate::sync::atomic::fence;
use crate::sync::{Arc, Mutex, lock};

pub(crate) struct Sleep {
    counters: Counters,
    /// The parked threads, last parked last. Its length is the parked count, which changes only under this
    /// lock.
    idle: Mutex<Vec<Arc<Parker>>>,
    /// At most this many workers search at once, those aside that a wake made searchers.
    search_limit: usize,
}

impl Sleep {
    pub(crate) fn new(workers: usize) -> Self {
        Self {
            counters: Counters::new(),
            idle: Mutex::new(Vec::new()),
            search_limit: workers.div_ceil(2),
        }
    }

    /// Work has become visible to others: if nobody searches and somebody is parked, wakes one (I5). True if
    /// it did.
    pub(crate) fn notify_one(&self) -> bool {
        // (W2) Pairs with the fence of `begin_park` (P2) and of `stop_search` (S2): either this load sees
        // that worker parked or no longer searching, or that worker's scan sees the work.
        fence(SeqCst);
        if !self.counters.load().wants_wake() {
            return false;
        }
        let sleeper = {
            let mut idle = lock(&self.idle);
            // Another notifier may have been here: its sleeper searches now, and finds our work too.
            if !self.counters.load().wants_wake() {
                return false;
            }
            // A thread that waits in the driver is the last choice: waking it leaves nobody there.
            let beside = idle.iter().rposition(|parker| !parker.is_in_driver());
            let chosen = beside.unwrap_or(idle.len() - 1);
            let sleeper = idle.remove(chosen);
            self.counters.unpark();
            sleeper
        };
        sleeper.unpark();
        true
    }

    /// A running worker with empty queues asks to search. It owes `stop_search` or `begin_park`.
    pub(crate) fn try_search(&self) -> bool {
        self.counters.try_search(self.search_limit)
    }

    /// A searcher has found work, or gives up without parking. True if it was the last: the caller must then
    /// re-check the queues and notify if work is left, since pushers relied on it.
    #[must_use = "the last searcher must re-check every queue"]
    pub(crate) fn stop_search(&self) -> bool {
        let last = self.counters.stop_search();
        // (S2) Pairs with the fence of `notify_one` (W2).
        fence(SeqCst);
        last
    }

    /// (P1) Publishes that this thread parks. The caller must then re-scan every queue, and either
    /// `cancel_park` or block until its token comes and call `end_park`.
    pub(crate) fn begin_park(&self, parker: &Arc<Parker>, searching: bool) {
        {
            let mut idle = lock(&self.idle);
            idle.push(Arc::clone(parker));
            self.counters.park(searching);
        }
        // (P2) Pairs with the fence of `notify_one` (W2).
        fence(SeqCst);
    }

    /// The re-scan found work: takes the publication back, and makes this thread a searcher. False if a
    /// notifier was faster: its token is there or on its way, and the caller must wait for it and then call
    /// `end_park`.
    #[must_use = "if it is too late the token must be consumed"]
    pub(crate) fn cancel_park(&self, parker: &Arc<Parker>) -> bool {
        self.withdraw(parker)
    }

    /// This thread woke up, whatever woke it; it is a searcher from here on. True if a notifier chose it.
    pub(crate) fn end_park(&self, parker: &Arc<Parker>) -> bool {
        !self.withdraw(parker)
    }

    /// Whether [`Sleep::notify_one`] would wake somebody; a hint, unless behind a fence.
    pub(crate) fn wants_wake(&self) -> bool {
        self.counters.load().wants_wake()
    }

    /// Whether anybody is parked; a hint.
    pub(crate) fn anyone_parked(&self) -> bool {
        self.counters.load().parked() > 0
    }

    /// Wakes every parked thread (shutdown, or a change that all must see).
    pub(crate) fn wake_all(&self) {
        let parked = lock(&self.idle).clone();
        for parker in parked {
            parker.unpark();
        }
    }

    fn withdraw(&self, parker: &Arc<Parker>) -> bool {
        let mut idle = lock(&self.idle);
        let Some(at) = idle.iter().position(|other| Arc::ptr_eq(other, parker)) else {
            return false;
        };
        idle.remove(at);
        self.counters.unpark();
        true
    }
}

impl std::fmt::Debug for Sleep {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.counters.fmt(f)
    }
}
