//! How a thread outside a system wakes a task within it, at the same small price on every system.

use std::future::{self, Future};
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::Poll;

use futures::task::AtomicWaker;

/// Rung by anyone, heard by one task. Rung twice before it is heard, it is heard once.
#[derive(Default)]
pub(crate) struct Bell {
    rung: AtomicBool,
    listener: AtomicWaker,
}

impl Bell {
    /// Wakes the listener.
    pub(crate) fn ring(&self) {
        self.rung.store(true, Ordering::Release);
        self.listener.wake();
    }

    /// Ready once the bell was rung since it was last heard. One listener only.
    pub(crate) fn heard(&self) -> impl Future<Output = ()> + Send + '_ {
        future::poll_fn(|cx| {
            self.listener.register(cx.waker());
            // Acquire pairs with the release in `ring`; read after registering, so that a ring either
            // is seen here or sees the waker.
            match self.rung.swap(false, Ordering::Acquire) {
                true => Poll::Ready(()),
                false => Poll::Pending,
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures::FutureExt;

    #[test]
    fn a_ring_is_heard_once() {
        let bell = Bell::default();
        assert!(bell.heard().now_or_never().is_none());
        bell.ring();
        bell.ring();
        assert!(bell.heard().now_or_never().is_some());
        assert!(bell.heard().now_or_never().is_none());
    }
}
