//! Looking up host names. The system's resolver blocks, so each lookup has a short-lived thread.
//!
//! The reactor knows no thread pool (I7). Should lookups ever be frequent enough to matter,
//! [`lookup`] is the one place to hand them to the runtime's.

use std::io;
use std::net::{SocketAddr, ToSocketAddrs};
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::thread;

/// Addresses, or why there are none.
type Answer = io::Result<Vec<SocketAddr>>;

/// Where a lookup leaves its answer, and who waits for it.
#[derive(Debug, Default)]
struct AnswerSlot(Mutex<(Option<Answer>, Option<Waker>)>);

/// Waits for the answer. Dropping it abandons the lookup.
struct Lookup(Arc<AnswerSlot>);

/// All addresses of `host`, with `port`.
pub(crate) async fn lookup(host: String, port: u16) -> Answer {
    let slot = Arc::new(AnswerSlot::default());
    let answer_to = Arc::clone(&slot);
    thread::Builder::new()
        .name("runtime-resolver".to_owned())
        .spawn(move || answer_to.put(ask_system(&host, port)))
        .map_err(|error| {
            io::Error::new(
                error.kind(),
                format!("cannot start a thread for a lookup: {error}"),
            )
        })?;
    Lookup(slot).await
}

fn ask_system(host: &str, port: u16) -> Answer {
    let failed = |kind, why: &dyn std::fmt::Display| {
        io::Error::new(kind, format!("cannot resolve host name {host:?}: {why}"))
    };
    match (host, port).to_socket_addrs() {
        Ok(found) if found.len() == 0 => Err(failed(io::ErrorKind::NotFound, &"it has no address")),
        Ok(found) => Ok(found.collect()),
        Err(error) => Err(failed(error.kind(), &error)),
    }
}

impl AnswerSlot {
    fn put(&self, answer: Answer) {
        let mut slot = self.lock();
        slot.0 = Some(answer);
        let waker = slot.1.take();
        drop(slot);
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    fn lock(&self) -> MutexGuard<'_, (Option<Answer>, Option<Waker>)> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Future for Lookup {
    type Output = Answer;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Answer> {
        // Cloned here and dropped at the end, outside of the lock (I6).
        let waker = cx.waker().clone();
        let mut slot = self.0.lock();
        if let Some(answer) = slot.0.take() {
            return Poll::Ready(answer);
        }
        let replaced = slot.1.replace(waker);
        drop(slot);
        drop(replaced);
        Poll::Pending
    }
}

impl Drop for Lookup {
    fn drop(&mut self) {
        let left = self.0.lock().1.take();
        drop(left);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures::executor::block_on;

    #[test]
    fn a_local_name_is_found() {
        let found = block_on(lookup("localhost".to_owned(), 7)).unwrap();
        assert!(
            found
                .iter()
                .any(|addr| addr.ip().is_loopback() && addr.port() == 7),
            "{found:?}"
        );
    }

    #[test]
    fn an_unknown_name_is_named() {
        // A name that no resolver passes on: it is not a valid one.
        let error = block_on(lookup("no such host".to_owned(), 7)).unwrap_err();
        assert!(error.to_string().contains("\"no such host\""), "{error}");
    }

    #[test]
    fn an_abandoned_lookup_keeps_no_waker() {
        let slot = Arc::new(AnswerSlot::default());
        let mut lookup = Lookup(Arc::clone(&slot));
        let mut cx = Context::from_waker(Waker::noop());
        assert!(Pin::new(&mut lookup).poll(&mut cx).is_pending());
        assert!(slot.lock().1.is_some());
        drop(lookup);
        assert!(slot.lock().1.is_none());
        slot.put(Ok(Vec::new()));
    }
}
