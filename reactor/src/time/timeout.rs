//! Limits for how long a future may take.

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use pin_project_lite::pin_project;

use self::error::Elapsed;
use super::{Instant, Sleep, sleep_until};
use crate::{budget, context};

/// Waits for `future`, but no longer than `duration`.
///
/// The time counts from the first poll that finds `future` not ready, so a future that is ready at
/// once costs no timer and no look at the clock. (With `timeout(..).await` that is the moment of the
/// `.await`.) `future` is polled before the time is looked at: when both are ready, its output
/// counts, and even with `Duration::ZERO` it is polled once. The limit holds also for a future that
/// keeps its task busy from poll to poll; it cannot interrupt one that does not return from a poll.
///
/// # Errors
///
/// [`Elapsed`](error::Elapsed) if the time is over first. `future` is dropped with the [`Timeout`].
///
/// # Panics
///
/// As [`sleep`](super::sleep), and only if `future` has to wait.
///
/// # Cancel safety
///
/// Dropping it drops `future`; otherwise it is what `future` is.
///
/// ```no_run
/// use runtime::{net::TcpStream, time};
///
/// # runtime::block_on(async {
/// let limit = time::Duration::from_secs(5);
/// let stream = time::timeout(limit, TcpStream::connect("localhost:7000")).await??;
/// # drop(stream);
/// # std::io::Result::Ok(())
/// # }).unwrap();
/// ```
#[inline]
pub fn timeout<F: IntoFuture>(duration: Duration, future: F) -> Timeout<F::IntoFuture> {
    Timeout {
        future: future.into_future(),
        limit: Limit::After(duration),
    }
}

/// Waits for `future`, but not beyond `deadline`. The other rules are those of [`timeout`].
///
/// # Errors
///
/// As for [`timeout`].
///
/// # Panics
///
/// As for [`timeout`].
#[inline]
pub fn timeout_at<F: IntoFuture>(deadline: Instant, future: F) -> Timeout<F::IntoFuture> {
    Timeout {
        future: future.into_future(),
        limit: Limit::At(sleep_until(deadline)),
    }
}

pin_project! {
    /// The future of [`timeout`] and [`timeout_at`].
    #[derive(Debug)]
    #[must_use = "futures do nothing unless you `.await` or poll them"]
    pub struct Timeout<F> {
        #[pin]
        future: F,
        limit: Limit,
    }
}

#[derive(Debug)]
enum Limit {
    /// So long after the first poll that finds the future not ready.
    After(Duration),
    At(Sleep),
}

impl<F> Timeout<F> {
    /// The future that is limited.
    pub fn get_ref(&self) -> &F {
        &self.future
    }

    /// The future that is limited, to be changed.
    pub fn get_mut(&mut self) -> &mut F {
        &mut self.future
    }

    /// The future, without its limit.
    pub fn into_inner(self) -> F {
        self.future
    }
}

impl<F: Future> Future for Timeout<F> {
    type Output = Result<F::Output, Elapsed>;

    #[inline]
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.project();
        if let Poll::Ready(output) = this.future.poll(cx) {
            return Poll::Ready(Ok(output));
        }
        this.limit.poll(cx).map(|()| Err(Elapsed::new()))
    }
}

impl Limit {
    /// The budget of the task, which the future may have used up, has no say in this (case R30c).
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        budget::unconstrained(|| match self {
            Limit::At(sleep) => Pin::new(sleep).poll(cx),
            Limit::After(duration) => {
                let now = context::expect(|reactor, _| reactor.clock().now());
                let mut sleep = sleep_until(now + *duration);
                let polled = sleep.start(now, cx);
                *self = Limit::At(sleep);
                polled
            }
        })
    }
}

/// Errors of this module.
pub mod error {
    use std::error::Error;
    use std::fmt;
    use std::io;

    /// The time that [`timeout`](super::timeout) allows was over before the future was ready.
    ///
    /// It converts into an [`io::Error`] of kind [`TimedOut`](io::ErrorKind::TimedOut), so that `?`
    /// does what one expects among I/O.
    #[derive(Debug, PartialEq, Eq)]
    pub struct Elapsed {
        _private: (),
    }

    impl Elapsed {
        pub(super) fn new() -> Elapsed {
            Elapsed { _private: () }
        }
    }

    impl fmt::Display for Elapsed {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("the time limit was reached")
        }
    }

    impl Error for Elapsed {}

    impl From<Elapsed> for io::Error {
        fn from(elapsed: Elapsed) -> io::Error {
            io::Error::new(io::ErrorKind::TimedOut, elapsed)
        }
    }
}
