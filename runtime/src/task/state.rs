//! (3) The atomic state of a task: flags and a reference count in one word, one named method per edge.
//!
//! ```text
//!                 start                     complete
//!   SCHEDULED ─────────────▶ RUNNING ─────────────────────▶ COMPLETE
//!       ▲                    │     ▲
//!       │ wake               │idle │ a wake while RUNNING sets SCHEDULED beside it;
//!       └───── (neither) ◀───┘     │ `idle` then answers Requeue and the poller keeps the permit
//! ```
//!
//! | bit | meaning | set by | cleared by | never together with |
//! |---|---|---|---|---|
//! | `SCHEDULED` | somebody holds the run permit, or the poller will | wake, abort, birth | `start` | means nothing beside `COMPLETE` |
//! | `RUNNING` | a thread is polling or dropping the future | `start` | `idle`, `complete` | `COMPLETE` |
//! | `COMPLETE` | the future is gone, the output is there | `complete` | never | `RUNNING` |
//! | `ABORTED` | the next `start` must cancel | `abort` | never | |
//! | `JOIN_INTEREST` | a `JoinHandle` lives | birth | handle drop before completion | |
//! | `JOIN_WAKER` | the join waker is in place, readable by the completer | handle | handle, before completion only | |
//! | `COUNTED` | the task counts against the backlog's capacity | birth | first `start` | |
//!
//! The permit itself has no count: while the task is not `COMPLETE` the scheduler's reference keeps the cell
//! alive, wherever that is (T2), and only the holder of the permit can complete it.

use std::fmt;

use crate::sync::atomic::AtomicUsize;
use crate::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};

const SCHEDULED: usize = 1 << 0;
const RUNNING: usize = 1 << 1;
const COMPLETE: usize = 1 << 2;
const ABORTED: usize = 1 << 3;
const JOIN_INTEREST: usize = 1 << 4;
const JOIN_WAKER: usize = 1 << 5;
const COUNTED: usize = 1 << 6;
const REF: usize = 1 << 7;

/// The state word of one task. It changes only through the methods here (I3).
pub(crate) struct State(AtomicUsize);

/// What a wake, or an abort, asks its caller to do.
#[must_use = "on Enqueue the caller holds the run permit and must queue the task"]
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Wake {
    /// The caller now holds the run permit (I1).
    Enqueue,
    /// Somebody else holds it, or will requeue the task, or the task is complete.
    Nothing,
    /// As `Nothing`, and the reference that was consumed was the last one.
    Dealloc,
}

/// How a run begins. The caller has turned its permit into the right to touch the future (I2).
#[must_use]
#[derive(Debug)]
pub(crate) struct Start {
    /// The task was aborted: drop the future instead of polling it.
    pub(crate) cancel: bool,
    /// This is the first run of a task that counts against the backlog's capacity.
    pub(crate) counted: bool,
}

/// How a poll that was not ready ends.
#[must_use]
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Idle {
    /// The permit is gone; the caller must not touch the task again.
    Waiting,
    /// A wake came during the poll (I4): the caller holds the permit again and must requeue.
    Requeue,
}

/// What the completer owes.
#[must_use]
#[derive(Debug)]
pub(crate) struct Completion {
    /// No handle lives: the output is the completer's to drop.
    pub(crate) drop_output: bool,
    /// The join waker is the completer's to take and wake; it has moved out from here on.
    pub(crate) take_join_waker: bool,
}

/// What the drop of a `JoinHandle` still has to do.
#[must_use]
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Detach {
    /// The handle's interest and its reference are gone.
    Done,
    /// The task is complete: the output is the handle's to drop, then its reference.
    OwnsOutput,
    /// The handle owns a join waker that nobody will take: drop it, then detach again.
    OwnsWaker,
}

impl State {
    /// A new task: its permit in the spawner's hand, one reference for the scheduler, which goes with the permit
    /// until the task is registered, and one for the handle.
    pub(crate) fn new(counted: bool) -> Self {
        let counted = if counted { COUNTED } else { 0 };
        Self(AtomicUsize::new(
            SCHEDULED | JOIN_INTEREST | counted | (2 * REF),
        ))
    }

    /// Wakes without consuming a reference. Always a release operation, also when the task is already
    /// scheduled: the poll that follows must see what was written before this call. The Release half pairs
    /// with the Acquire half of [`State::start`] (poll sees the writes) and of [`State::idle`] (the requeue
    /// carries them on); the Acquire half orders the enqueue after the poller's last writes.
    pub(crate) fn wake_by_ref(&self) -> Wake {
        Self::permit_from(self.0.fetch_or(SCHEDULED, AcqRel))
    }

    /// Wakes and gives up one reference, in one step. Orderings as in [`State::wake_by_ref`].
    pub(crate) fn wake_by_val(&self) -> Wake {
        let previous = self
            .update(|word| Some((word | SCHEDULED) - REF))
            .expect("the edge is always open");
        match Self::permit_from(previous) {
            Wake::Nothing if previous / REF == 1 => Wake::Dealloc,
            wake => wake,
        }
    }

    /// Asks for cancellation: the next `start` answers `cancel`. Orderings as in [`State::wake_by_ref`].
    pub(crate) fn abort(&self) -> Wake {
        Self::permit_from(self.0.fetch_or(SCHEDULED | ABORTED, AcqRel))
    }

    fn permit_from(previous: usize) -> Wake {
        if previous & (SCHEDULED | RUNNING | COMPLETE) == 0 {
            Wake::Enqueue
        } else {
            Wake::Nothing
        }
    }

    /// Permit holder: SCHEDULED becomes RUNNING. Acquire pairs with the Release of every wake, and with
    /// `idle` of the previous poller. `unregistered`: as for [`State::flip`].
    pub(crate) fn start(&self, unregistered: bool) -> Start {
        let previous = self.flip(SCHEDULED | RUNNING, unregistered);
        debug_assert!(
            previous & (SCHEDULED | RUNNING | COMPLETE) == SCHEDULED,
            "a task was started without its permit: {:?}",
            Decoded(previous)
        );
        let counted = previous & COUNTED != 0;
        if counted {
            // Nothing is ordered by this bit: only the permit holder looks at it.
            self.0.fetch_and(!COUNTED, Relaxed);
        }
        Start {
            cancel: previous & ABORTED != 0,
            counted,
        }
    }

    /// Poller: was the task woken during this poll? If so it stays so, and [`State::idle`] will answer `Requeue`.
    pub(crate) fn is_scheduled(&self) -> bool {
        self.0.load(Relaxed) & SCHEDULED != 0
    }

    /// Poller: the future is pending. Release pairs with the Acquire of the next `start`, which may be on
    /// another thread; Acquire pairs with the wakes that came during the poll.
    pub(crate) fn idle(&self) -> Idle {
        let previous = self.0.fetch_and(!RUNNING, AcqRel);
        debug_assert!(
            previous & RUNNING != 0,
            "idle without a poll: {:?}",
            Decoded(previous)
        );
        if previous & SCHEDULED != 0 {
            Idle::Requeue
        } else {
            Idle::Waiting
        }
    }

    /// Poller: the output is in place. Release hands it to the handle (Acquire in [`State::is_complete`] and
    /// in [`State::detach`]); Acquire pairs with [`State::set_join_waker`], whose waker is taken next.
    /// `unregistered`: as for [`State::flip`].
    pub(crate) fn complete(&self, unregistered: bool) -> Completion {
        let previous = self.flip(RUNNING | COMPLETE, unregistered);
        debug_assert!(
            previous & (RUNNING | COMPLETE) == RUNNING,
            "completed without running: {:?}",
            Decoded(previous)
        );
        Completion {
            drop_output: previous & JOIN_INTEREST == 0,
            take_join_waker: previous & JOIN_WAKER != 0,
        }
    }

    /// Permit holder or poller: turns `bits` over, and gives the word before. If the task is in no registry, the
    /// scheduler's reference is the caller's; if that is the only one, as it is of a task whose handle is gone and that
    /// nobody can wake, then nobody else can reach the word, and a store does. The load's Acquire pairs with the
    /// Release of whoever gave up the last other reference.
    fn flip(&self, bits: usize, unregistered: bool) -> usize {
        if unregistered {
            let word = self.0.load(Acquire);
            if word / REF == 1 {
                self.0.store(word ^ bits, Release);
                return word;
            }
        }
        self.0.fetch_xor(bits, AcqRel)
    }

    /// Acquire pairs with the Release of [`State::complete`]: on true the output may be read.
    pub(crate) fn is_complete(&self) -> bool {
        self.0.load(Acquire) & COMPLETE != 0
    }

    /// Handle: is the waker that this handle stored still in place? Only the handle changes this bit before
    /// completion, so its own view is exact until COMPLETE.
    pub(crate) fn has_join_waker(&self) -> bool {
        self.0.load(Relaxed) & JOIN_WAKER != 0
    }

    /// Handle: publishes the join waker it has just written. False if the task completed first; the waker is
    /// then still the handle's. Release pairs with the Acquire of [`State::complete`].
    #[must_use]
    pub(crate) fn set_join_waker(&self) -> bool {
        self.update(|word| (word & COMPLETE == 0).then_some(word | JOIN_WAKER))
            .is_ok()
    }

    /// Handle: takes its waker back. False if the task completed first; with COMPLETE and JOIN_WAKER both
    /// set the waker has moved out to the completer.
    #[must_use]
    pub(crate) fn unset_join_waker(&self) -> bool {
        self.update(|word| (word & COMPLETE == 0).then_some(word & !JOIN_WAKER))
            .is_ok()
    }

    /// Handle: goes away. One step in the usual case of a task that is still at work; never the last
    /// reference then, since the scheduler's is there until completion.
    pub(crate) fn detach(&self) -> Detach {
        let step = self.update(|word| {
            let busy = word & (COMPLETE | JOIN_WAKER) == 0;
            busy.then(|| word - JOIN_INTEREST - REF)
        });
        match step {
            Ok(_) => Detach::Done,
            Err(word) if word & COMPLETE != 0 => Detach::OwnsOutput,
            Err(_) if self.unset_join_waker() => Detach::OwnsWaker,
            Err(_) => Detach::OwnsOutput,
        }
    }

    /// One more reference. Relaxed: it is made from a reference that the caller already holds.
    pub(crate) fn ref_inc(&self) {
        let previous = self.0.fetch_add(REF, Relaxed);
        if previous > isize::MAX as usize {
            // 2^56 wakers leaked (2^24 where a word has 32 bits): as `Arc` does, stop before the count wraps into a
            // use after free.
            std::process::abort();
        }
    }

    /// One less; true if it was the last and the caller must free the cell. Release orders this holder's
    /// accesses before the free; Acquire, on the last one, pairs with those of all the others.
    #[must_use]
    pub(crate) fn ref_dec(&self) -> bool {
        // The only one is ours: nobody else can make another.
        if self.0.load(Acquire) / REF == 1 {
            return true;
        }
        let previous = self.0.fetch_sub(REF, AcqRel);
        debug_assert!(
            previous / REF > 0,
            "reference count underflow: {:?}",
            Decoded(previous)
        );
        previous / REF == 1
    }

    /// The one compare-and-swap loop. Success is AcqRel for every edge, so that no edge has to argue a
    /// weaker one; failure is Acquire, since a caller that is refused for COMPLETE reads the output next.
    fn update(&self, mut edge: impl FnMut(usize) -> Option<usize>) -> Result<usize, usize> {
        let mut word = self.0.load(Acquire);
        loop {
            let Some(next) = edge(word) else {
                return Err(word);
            };
            match self.0.compare_exchange_weak(word, next, AcqRel, Acquire) {
                Ok(previous) => return Ok(previous),
                Err(seen) => word = seen,
            }
        }
    }
}

impl fmt::Debug for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Decoded(self.0.load(Relaxed)).fmt(f)
    }
}

/// A state word spelled out, for assertions and dumps.
struct Decoded(usize);

impl fmt::Debug for Decoded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = [
            (SCHEDULED, "scheduled"),
            (RUNNING, "running"),
            (COMPLETE, "complete"),
            (ABORTED, "aborted"),
            (JOIN_INTEREST, "join_interest"),
            (JOIN_WAKER, "join_waker"),
            (COUNTED, "counted"),
        ];
        for (bit, name) in names {
            if self.0 & bit != 0 {
                write!(f, "{name} ")?;
            }
        }
        write!(f, "refs={}", self.0 / REF)
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn a_wake_during_the_poll_is_requeued_by_the_poller() {
        let state = State::new(false);
        assert!(!state.start(false).cancel);
        assert_eq!(state.wake_by_ref(), Wake::Nothing);
        assert_eq!(state.idle(), Idle::Requeue);
        assert!(!state.start(false).cancel);
        assert_eq!(state.idle(), Idle::Waiting);
        assert_eq!(state.wake_by_ref(), Wake::Enqueue);
        assert_eq!(state.wake_by_ref(), Wake::Nothing, "one permit at a time");
    }

    #[test]
    fn an_abort_of_a_waiting_task_gives_the_permit_to_the_aborter() {
        let state = State::new(true);
        let first = state.start(false);
        assert!(first.counted && !first.cancel);
        assert_eq!(state.idle(), Idle::Waiting);
        assert_eq!(state.abort(), Wake::Enqueue);
        let second = state.start(false);
        assert!(second.cancel && !second.counted, "counted once only");
    }

    #[test]
    fn the_last_waker_frees_a_complete_task() {
        let state = State::new(false);
        state.ref_inc();
        let _ = state.start(false);
        assert_eq!(state.detach(), Detach::Done);
        assert!(state.complete(false).drop_output);
        assert!(!state.ref_dec(), "the waker still refers to it");
        assert_eq!(state.wake_by_val(), Wake::Dealloc);
    }

    #[test]
    fn a_task_that_nobody_else_can_reach_goes_the_same_way() {
        let state = State::new(true);
        assert_eq!(state.detach(), Detach::Done);
        assert!(state.start(true).counted);
        let completion = state.complete(true);
        assert!(completion.drop_output && !completion.take_join_waker);
        assert!(state.is_complete() && state.ref_dec());
    }

    #[test]
    fn a_join_waker_belongs_to_one_side_at_a_time() {
        let state = State::new(false);
        assert!(state.set_join_waker());
        assert_eq!(state.detach(), Detach::OwnsWaker);
        assert!(!state.has_join_waker());
        assert!(state.set_join_waker());
        let _ = state.start(false);
        assert!(state.complete(false).take_join_waker);
        assert!(!state.unset_join_waker(), "it has moved out");
        assert_eq!(state.detach(), Detach::OwnsOutput);
    }
}
