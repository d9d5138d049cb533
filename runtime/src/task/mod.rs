//! Tasks: spawned futures, and the handles to them.
//!
//! A task is a future that the runtime polls on whichever worker has time. [`spawn`] gives a
//! [`JoinHandle`]; awaiting it gives the task's output, or a [`JoinError`] if it panicked or was aborted.
//!
//! ```
//! # runtime::block_on(async {
//! let task = runtime::spawn(async { 6 * 7 });
//! assert_eq!(task.await.unwrap(), 42);
//! # });
//! ```
// ## The task contract
//
// A task is one heap block (`raw.rs`), reached through three kinds of owned pointers (`refs.rs`), governed by
// one atomic word (`state.rs`). SAFETY comments cite these rules:
//
// T1 The run permit (`Runnable`) exists exactly while SCHEDULED is set and neither RUNNING nor COMPLETE is, and
//    once (I1). A
//    wake, an abort or the birth creates it; `run` uses it up. A stack job's permit is made by `join`.
// T2 The cell lives while any counted reference does: wakers, `TaskRef`s, the handle, and the scheduler's own
//    reference, which is given up only after completion. That one goes with the permit and the poll until the
//    task first waits, then the registry has it. A permit or a running poll needs no count of its own: only its
//    holder can complete the task.
// T3 Through a `TaskRef` or a waker from any thread only the state word and immutable fields are reached.
// T4 The join waker and the output have one owner at a time:
//    - JOIN_WAKER unset, not COMPLETE: the handle may write or drop the waker;
//    - JOIN_WAKER set, not COMPLETE: both may look at its bits, nobody writes; the handle gets it back by
//      unsetting the bit;
//    - JOIN_WAKER and COMPLETE: it has moved out to the completer (the handle may still compare the bits);
//    - COMPLETE: the output is the handle's, if JOIN_INTEREST was set at that moment, else the completer's.
// T5 The future never moves: it is created in its block's slot, polled there and dropped there (I2).
// T6 The scheduler outlives every task that is not complete: the census must be at zero before the last
//    reference to the scheduler goes (`shutdown.rs`), so that the header need not count one. Whoever queues
//    a task from outside the workers takes a count for the call, since the task can complete under it.

pub(crate) mod census;
pub(crate) mod header;
pub(crate) mod raw;
pub(crate) mod refs;
pub(crate) mod registry;
pub(crate) mod running;
pub(crate) mod slot;
pub(crate) mod state;

mod builder;
mod join;
mod join_futures;
mod yield_now;

use std::fmt;
use std::num::NonZeroU64;
use std::panic::Location;

pub use builder::Builder;
pub use join::{AbortHandle, JoinError, JoinHandle};
pub use join_futures::join;
pub use reactor::budget::consume_budget;
pub use yield_now::yield_now;

pub use crate::blocking::spawn_blocking;
use crate::context;
pub use crate::spawn::spawn;
use crate::sync::Arc;

/// Identifies a task for as long as the process runs: ids are never reused.
///
/// Shown in [`JoinError`]s and dumps; [`id`] tells the current task's.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Id(NonZeroU64);

impl Id {
    pub(crate) fn from_raw(raw: NonZeroU64) -> Self {
        Self(raw)
    }

    pub(crate) fn get(self) -> NonZeroU64 {
        self.0
    }
}

impl fmt::Display for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Debug for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Id({})", self.0)
    }
}

/// The [`Id`] of the task that runs on this thread.
///
/// # Panics
///
/// Outside a task; the future of `block_on` is not a task. [`try_id`] answers `None` there.
#[track_caller]
pub fn id() -> Id {
    try_id()
        .expect("`task::id` was called outside a task: use `task::try_id` where there may be none")
}

/// The [`Id`] of the task that runs on this thread, if one does. Also known in the destructor of the task's future,
/// and of its output if nobody awaits it.
pub fn try_id() -> Option<Id> {
    context::current_task()
}

/// What a task is born with, beside its future.
pub(crate) struct Meta {
    pub(crate) id: Id,
    /// The task that spawned it: context is inherited at spawn.
    pub(crate) parent: Option<Id>,
    pub(crate) location: &'static Location<'static>,
    /// It counts against the backlog's capacity until its first run.
    pub(crate) counted: bool,
}

/// What only some tasks have; kept behind the future, and free for the others.
pub(crate) trait Extra: Send + Sync + 'static {
    fn name(&self) -> Option<&str>;
}

impl Extra for () {
    fn name(&self) -> Option<&str> {
        None
    }
}

impl Extra for Box<str> {
    fn name(&self) -> Option<&str> {
        Some(self)
    }
}

/// What the task cell asks of a scheduler. The real one is [`crate::scheduler::Scheduler`]; the models and
/// unit tests of the cell have small ones.
pub(crate) trait Schedule: Send + Sync + Sized + 'static {
    /// Queues a task that was woken or aborted. May be called on any thread, in any context.
    fn schedule(this: &Arc<Self>, task: refs::Runnable);

    /// Queues, on the thread that has just polled it, a task that was woken during its poll.
    fn reschedule(this: &Arc<Self>, task: refs::Runnable);

    /// A counted task begins its first run.
    fn started(this: &Arc<Self>);

    /// Whether tasks are to be cancelled instead of polled. A hint: [`Schedule::register`] is exact.
    fn is_closing(this: &Arc<Self>) -> bool;

    /// The task waits for the first time: takes the scheduler's reference, so that a shutdown finds it. `Err` gives it
    /// back: the task must be cancelled.
    fn register(this: &Arc<Self>, task: refs::TaskRef) -> Result<(), refs::TaskRef>;

    /// A task, registered so or not at all, is complete: drop the registry's reference to it, and count its end. The
    /// scheduler is not touched for it after this.
    fn release(this: &Arc<Self>, registered: Option<registry::Key>);
}

#[cfg(all(test, loom))]
mod loom_tests;
#[cfg(test)]
pub(crate) mod tests;
