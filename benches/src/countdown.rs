//! How a row learns that its last detached task has run, at the same small price on every system.

use std::future::{self, Future};
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::Poll;

use futures::task::AtomicWaker;

/// Counts tasks down to none and wakes the one who waits for that.
pub(crate) struct Countdown {
    left: AtomicU64,
    waiter: AtomicWaker,
}

impl Countdown {
    /// A countdown from `tasks`, leaked: tasks carry a plain reference to it, so that no reference
    /// count of ours is measured with them.
    pub(crate) fn leak(tasks: u64) -> &'static Countdown {
        Box::leak(Box::new(Countdown {
            left: AtomicU64::new(tasks),
            waiter: AtomicWaker::new(),
        }))
    }

    /// One task less; to be called exactly as often as the countdown said.
    pub(crate) fn count(&self) {
        if self.left.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.waiter.wake();
        }
    }

    /// Ready once all have counted. One waiter only.
    pub(crate) fn wait(&self) -> impl Future<Output = ()> + Send + '_ {
        future::poll_fn(|cx| {
            self.waiter.register(cx.waker());
            // Acquire pairs with the release half in `count`; read after registering, so that the
            // last count either is seen here or sees the waker.
            match self.left.load(Ordering::Acquire) {
                0 => Poll::Ready(()),
                _ => Poll::Pending,
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures::FutureExt;

    #[test]
    fn ready_only_after_the_last_count() {
        let countdown = Countdown::leak(2);
        assert!(countdown.wait().now_or_never().is_none());
        countdown.count();
        assert!(countdown.wait().now_or_never().is_none());
        countdown.count();
        assert!(countdown.wait().now_or_never().is_some());
    }
}
