//! The panic policy, in one place (I9): user code that panics is caught and stored, wakers and destructors
//! are contained, and a panic of the scheduler itself aborts the process rather than hang it.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// What a panic carries.
pub(crate) type Payload = Box<dyn Any + Send>;

/// Runs user code; `Err` is its panic. Unwind safety is asserted because nothing that the code could have
/// left half done is looked at again: the future is dropped and the panic delivered.
pub(crate) fn catch<R>(code: impl FnOnce() -> R) -> Result<R, Payload> {
    catch_unwind(AssertUnwindSafe(code))
}

/// Runs a waker or a destructor whose panic concerns nobody: the message has been printed by the hook, and
/// the worker goes on.
pub(crate) fn contained(code: impl FnOnce()) {
    discard(catch(code));
}

/// Forgets about a panic. The payload's own destructor may panic too, with a payload that is then leaked rather
/// than dropped in turn.
pub(crate) fn discard(outcome: Result<(), Payload>) {
    if let Err(payload) = outcome {
        let _ = catch(move || drop(payload)).map_err(std::mem::forget);
    }
}

/// A broken invariant of ours: say which, and stop loudly.
#[cold]
#[inline(never)]
pub(crate) fn scheduler_bug(what: &str) -> ! {
    eprintln!(
        "runtime: scheduler bug: {what}. Aborting: please report this with a way to repeat it."
    );
    std::process::abort()
}

/// Aborts if it is dropped: put one beside code of ours that must not unwind, and [`Bomb::defuse`] it after.
pub(crate) struct Bomb(pub(crate) &'static str);

impl Bomb {
    /// The code has come to its end.
    pub(crate) fn defuse(self) {
        std::mem::forget(self);
    }
}

impl Drop for Bomb {
    fn drop(&mut self) {
        scheduler_bug(self.0);
    }
}
