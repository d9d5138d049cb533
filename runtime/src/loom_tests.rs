//! Models of protocols that span several files, and how all models are run.
//!
//! `RUSTFLAGS="--cfg loom" cargo test -p runtime --lib --release loom` runs them all. A model explores the
//! schedules with a few preemptions; `LOOM_MAX_PREEMPTIONS` sets another bound. A lost wake-up shows as a
//! deadlock, which loom reports.

mod seat;
mod shutdown;

use std::task::Wake;

use crate::park::Parker;
use crate::sync::Arc;

/// Runs `model` under every schedule with at most `preemptions` preemptions, or as many as the environment says.
pub(crate) fn check(preemptions: usize, model: impl Fn() + Send + Sync + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound.get_or_insert(preemptions);
    builder.check(model);
}

/// Wakes the thread that waits on the parker.
pub(crate) struct Unpark(pub(crate) Arc<Parker>);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.0.unpark();
    }
}
