//! How many workers search and how many are parked, packed into one word.
//!
//! One word and not two: with two a notifier can take a search place, find nobody parked and give it back,
//! and a pusher in between sees a searcher and skips its wake; the task is then nobody's.

use std::fmt;

use crate::sync::atomic::AtomicUsize;
use crate::sync::atomic::Ordering::SeqCst;

const PARKED: usize = 1;
const SEARCHING: usize = 1 << 16;
const MASK: usize = SEARCHING - 1;

/// The packed word. All accesses are SeqCst: each is a step in an argument between two threads that have
/// written one place and read another (README.md beside this file).
pub(crate) struct Counters(AtomicUsize);

/// One reading of the word.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Counts(usize);

impl Counters {
    pub(crate) fn new() -> Self {
        Self(AtomicUsize::new(0))
    }

    pub(crate) fn load(&self) -> Counts {
        Counts(self.0.load(SeqCst))
    }

    /// A worker parks; a searcher stops searching in the same step.
    pub(crate) fn park(&self, searching: bool) {
        let delta = if searching {
            PARKED.wrapping_sub(SEARCHING)
        } else {
            PARKED
        };
        let before = Counts(self.0.fetch_add(delta, SeqCst));
        debug_assert!(
            !searching || before.searching() > 0,
            "searching underflow: {before:?}"
        );
    }

    /// A parked worker is woken, or wakes by itself: it searches from here on.
    pub(crate) fn unpark(&self) {
        let before = Counts(self.0.fetch_add(SEARCHING.wrapping_sub(PARKED), SeqCst));
        debug_assert!(before.parked() > 0, "parked underflow: {before:?}");
    }

    /// A running worker begins to search, if fewer than `limit` do.
    pub(crate) fn try_search(&self, limit: usize) -> bool {
        let mut seen = self.0.load(SeqCst);
        while Counts(seen).searching() < limit {
            match self
                .0
                .compare_exchange_weak(seen, seen + SEARCHING, SeqCst, SeqCst)
            {
                Ok(_) => return true,
                Err(now) => seen = now,
            }
        }
        false
    }

    /// A searcher goes on to run what it found (or gives up its search); true if it was the last one.
    pub(crate) fn stop_search(&self) -> bool {
        let before = Counts(self.0.fetch_sub(SEARCHING, SeqCst));
        debug_assert!(before.searching() > 0, "searching underflow: {before:?}");
        before.searching() == 1
    }
}

impl Counts {
    pub(crate) fn searching(self) -> usize {
        self.0 >> 16
    }

    pub(crate) fn parked(self) -> usize {
        self.0 & MASK
    }

    /// New work needs a wake: nobody looks for it, and somebody could.
    pub(crate) fn wants_wake(self) -> bool {
        self.searching() == 0 && self.parked() > 0
    }
}

impl fmt::Debug for Counts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} searching, {} parked",
            self.searching(),
            self.parked()
        )
    }
}

impl fmt::Debug for Counters {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.load().fmt(f)
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn one_word_keeps_both_counts() {
        let counters = Counters::new();
        assert!(counters.try_search(1));
        assert!(!counters.try_search(1), "the limit holds");
        assert!(!counters.load().wants_wake());
        counters.park(true);
        assert_eq!(
            (counters.load().searching(), counters.load().parked()),
            (0, 1)
        );
        assert!(counters.load().wants_wake());
        counters.unpark();
        assert_eq!(format!("{counters:?}"), "1 searching, 0 parked");
        assert!(counters.stop_search());
    }
}
