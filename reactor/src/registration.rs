//! How an operation that would block becomes a waiting waker.

use std::future::poll_fn;
use std::io;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use mio::event::Source;
use mio::{Interest, Token};

use crate::handle::Reactor;
use crate::readiness::{Direction, Flags, ReadyEvent};
use crate::registry::SourceToken;
use crate::source::SourceState;
use crate::{budget, context};

/// A source's place in a reactor: knows what the source is ready for, and wakes who waits for it.
///
/// It does not hold the source itself; sockets keep the two side by side. Call
/// [`deregister`](Self::deregister) before the source goes, so that the system forgets it too.
#[derive(Debug)]
pub struct Registration {
    reactor: Reactor,
    source: Arc<SourceState>,
    token: SourceToken,
}

/// Whether a transfer of less than was asked for shows that there is no more for now: true where
/// `mio` reports edges (by epoll or kqueue). Elsewhere only `WouldBlock` says so, and asks for the next event as well.
const SHORT_MEANS_DRAINED: bool = cfg!(any(
    target_os = "linux",
    target_os = "android",
    target_vendor = "apple",
    target_os = "freebsd",
    target_os = "netbsd",
    target_os = "openbsd",
    target_os = "dragonfly",
));

impl Registration {
    /// Registers `source` with the current thread's reactor.
    ///
    /// # Errors
    ///
    /// If there is no runtime on this thread or it was shut down, or the system refuses the source.
    pub fn new(source: &mut impl Source, interest: Interest) -> io::Result<Registration> {
        Registration::with(&context::current()?, source, interest)
    }

    /// Registers `source` with `reactor`.
    ///
    /// # Errors
    ///
    /// If the reactor was shut down, or the system refuses the source.
    pub fn with(
        reactor: &Reactor,
        source: &mut impl Source,
        interest: Interest,
    ) -> io::Result<Registration> {
        Registration::with_initial(reactor, source, interest, Flags::NONE)
    }

    /// The same, for a source that is probably ready for `initial`: the first operation is tried
    /// without waiting for an event.
    pub(crate) fn with_initial(
        reactor: &Reactor,
        source: &mut impl Source,
        interest: Interest,
        initial: Flags,
    ) -> io::Result<Registration> {
        let (state, token) = reactor.sources().add(initial)?;
        // Owns the slot from here on, also when the system refuses.
        let registration = Registration {
            reactor: reactor.clone(),
            source: state,
            token,
        };
        reactor
            .system()
            .register(source, Token::from(token), interest)?;
        Ok(registration)
    }

    /// The reactor the source is registered with.
    pub fn reactor(&self) -> &Reactor {
        &self.reactor
    }

    /// Ready when an operation in `direction` is worth trying; otherwise the task is woken when it
    /// is. Takes a unit of the poll's [`budget`].
    ///
    /// # Errors
    ///
    /// If the runtime was shut down.
    pub fn poll_ready(
        &self,
        cx: &mut Context<'_>,
        direction: Direction,
    ) -> Poll<io::Result<ReadyEvent>> {
        ready!(budget::poll_proceed(cx));
        let outcome = self.source.poll_ready(cx, direction);
        if outcome.is_pending() {
            budget::refund();
        }
        outcome
    }

    /// Waits until an operation in `direction` is worth trying. Any number of tasks may wait.
    ///
    /// Cancel safe: nothing is lost by dropping it.
    ///
    /// # Errors
    ///
    /// If the runtime was shut down.
    pub async fn ready(&self, direction: Direction) -> io::Result<ReadyEvent> {
        self.source.ready(direction).await
    }

    /// Says that an operation started from `event` found nothing: only a new event makes the source
    /// ready again. Forgetting to say so costs another try; saying so although more was there would
    /// wait for ever. An event that has come since is kept.
    pub fn clear_ready(&self, event: ReadyEvent) {
        self.source.clear(event);
    }

    /// Tries `operation` if the source counts as ready, and clears the readiness if it finds
    /// nothing.
    ///
    /// # Errors
    ///
    /// `WouldBlock` if the source is not ready, or the operation says so; it should only if the
    /// system did. What else the operation fails with, or that the runtime was shut down.
    pub fn try_io<R>(
        &self,
        direction: Direction,
        operation: impl FnOnce() -> io::Result<R>,
    ) -> io::Result<R> {
        self.try_with_event(direction, operation)
            .map(|(_, result)| result)
    }

    /// [`try_io`](Self::try_io) for an operation that moves up to `wanted` bytes.
    pub(crate) fn try_transfer(
        &self,
        direction: Direction,
        wanted: usize,
        operation: impl FnOnce() -> io::Result<usize>,
    ) -> io::Result<usize> {
        let (event, moved) = self.try_with_event(direction, operation)?;
        self.clear_if_drained(event, moved, wanted);
        Ok(moved)
    }

    /// Performs `operation` as soon as the source is ready: until then the task is woken when it is
    /// worth polling again. `operation` runs again when it was interrupted or found nothing.
    ///
    /// # Errors
    ///
    /// What `operation` fails with, or that the runtime was shut down.
    pub fn poll_io<R>(
        &self,
        cx: &mut Context<'_>,
        direction: Direction,
        operation: impl FnMut() -> io::Result<R>,
    ) -> Poll<io::Result<R>> {
        self.poll_with_event(cx, direction, operation)
            .map_ok(|(_, result)| result)
    }

    /// [`poll_io`](Self::poll_io) for an operation that moves up to `wanted` bytes.
    pub(crate) fn poll_transfer(
        &self,
        cx: &mut Context<'_>,
        direction: Direction,
        wanted: usize,
        operation: impl FnMut() -> io::Result<usize>,
    ) -> Poll<io::Result<usize>> {
        let (event, moved) = ready!(self.poll_with_event(cx, direction, operation))?;
        self.clear_if_drained(event, moved, wanted);
        Poll::Ready(Ok(moved))
    }

    /// [`poll_io`](Self::poll_io) as a future; any number of tasks may wait.
    ///
    /// Cancel safe if a call of `operation` is: nothing happens between it and the result.
    ///
    /// # Errors
    ///
    /// What `operation` fails with, or that the runtime was shut down.
    pub async fn async_io<R>(
        &self,
        direction: Direction,
        mut operation: impl FnMut() -> io::Result<R>,
    ) -> io::Result<R> {
        loop {
            let event = self.source.ready(direction).await?;
            let result = operation();
            if would_block(&result) {
                budget::refund();
                if self.source.clear(event) {
                    yield_once().await;
                }
            } else if !interrupted(&result) {
                return result;
            }
        }
    }

    /// Makes the system and the reactor forget `source`, which must be the registered one. Waiters
    /// are not woken, and who waits from here on waits for ever.
    ///
    /// # Errors
    ///
    /// If the system does not know the source.
    pub fn deregister(&mut self, source: &mut impl Source) -> io::Result<()> {
        // In this order: once the slot is given up no event for it can be collected any more (I8).
        let result = self.reactor.system().deregister(source);
        self.reactor.sources().remove(self.token);
        result
    }

    pub(crate) fn source(&self) -> &Arc<SourceState> {
        &self.source
    }

    fn try_with_event<R>(
        &self,
        direction: Direction,
        operation: impl FnOnce() -> io::Result<R>,
    ) -> io::Result<(ReadyEvent, R)> {
        let Some(event) = self.source.ready_now(direction) else {
            return Err(io::ErrorKind::WouldBlock.into());
        };
        let event = event?;
        let result = operation();
        if would_block(&result) {
            self.source.clear(event);
        }
        result.map(|result| (event, result))
    }

    fn poll_with_event<R>(
        &self,
        cx: &mut Context<'_>,
        direction: Direction,
        mut operation: impl FnMut() -> io::Result<R>,
    ) -> Poll<io::Result<(ReadyEvent, R)>> {
        ready!(budget::poll_proceed(cx));
        loop {
            let Poll::Ready(event) = self.source.poll_ready(cx, direction) else {
                budget::refund();
                return Poll::Pending;
            };
            let event = event?;
            let result = operation();
            if would_block(&result) {
                if self.source.clear(event) {
                    // Closed, and yet nothing to be had: do not spin in here.
                    cx.waker().wake_by_ref();
                    return Poll::Pending;
                }
            } else if !interrupted(&result) {
                return Poll::Ready(result.map(|result| (event, result)));
            }
        }
    }

    /// After a transfer that moved less than was wanted: saves the call that would only find
    /// nothing. If the peer closed behind the last byte, no further event will come; that is why
    /// `clear` leaves READ_CLOSED in place. And a read stops at the mark of urgent data, whatever is behind it.
    fn clear_if_drained(&self, event: ReadyEvent, moved: usize, wanted: usize) {
        if SHORT_MEANS_DRAINED && 0 < moved && moved < wanted && !event.is_urgent() {
            self.source.clear(event);
        }
    }
}

impl Drop for Registration {
    fn drop(&mut self) {
        self.reactor.sources().remove(self.token);
    }
}

impl From<SourceToken> for Token {
    fn from(token: SourceToken) -> Token {
        token.for_system()
    }
}

fn would_block<R>(result: &io::Result<R>) -> bool {
    matches!(result, Err(error) if error.kind() == io::ErrorKind::WouldBlock)
}

fn interrupted<R>(result: &io::Result<R>) -> bool {
    matches!(result, Err(error) if error.kind() == io::ErrorKind::Interrupted)
}

/// Lets others run once.
async fn yield_once() {
    let mut yielded = false;
    poll_fn(|cx| {
        if std::mem::replace(&mut yielded, true) {
            return Poll::Ready(());
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}
