//! Waiting for something that another thread or task does.

use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::task::{Context, Poll, Waker};
use std::thread;
use std::time::{Duration, Instant};

/// Something that happens once, for threads to wait for: no runtime is involved. Clones share it.
#[derive(Clone, Debug, Default)]
pub struct Event(Arc<(Mutex<bool>, Condvar)>);

impl Event {
    /// Has not happened.
    pub fn new() -> Self {
        Self::default()
    }

    /// It happens.
    pub fn set(&self) {
        *self.0.0.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.0.1.notify_all();
    }

    /// Whether it has happened.
    pub fn is_set(&self) -> bool {
        *self.0.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Blocks the thread until it happens.
    pub fn wait(&self) {
        let happened = self.0.0.lock().unwrap_or_else(PoisonError::into_inner);
        let waited = self.0.1.wait_while(happened, |happened| !*happened);
        drop(waited.unwrap_or_else(PoisonError::into_inner));
    }
}

/// Blocks the thread until `condition` holds; false if it does not for half a minute.
pub fn eventually(mut condition: impl FnMut() -> bool) -> bool {
    let end = Instant::now() + Duration::from_secs(30);
    while !condition() {
        if Instant::now() > end {
            return false;
        }
        thread::sleep(Duration::from_millis(1));
    }
    true
}

/// Yields until `condition` holds; the watchdog ends it if that never happens.
pub async fn until(mut condition: impl FnMut() -> bool) {
    while !condition() {
        runtime::task::yield_now().await;
    }
}

/// Polls once with a waker that does nothing.
pub fn ready_now<F: Future + ?Sized>(future: Pin<&mut F>) -> Poll<F::Output> {
    future.poll(&mut Context::from_waker(Waker::noop()))
}
