//! Waiting for a moment.

use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use super::Instant;
use crate::timers::{Timer, TimerState};
use crate::{budget, context};

/// Waits until `duration` has passed, counted from this call.
///
/// `Duration::ZERO` is over when it is first polled; `Duration::MAX` never is. The other rules are
/// those of [`sleep_until`].
///
/// ```no_run
/// use runtime::time::{Duration, sleep};
///
/// # runtime::block_on(async {
/// sleep(Duration::from_millis(100)).await;
/// println!("100 ms have passed");
/// # })
/// ```
#[inline]
pub fn sleep(duration: Duration) -> Sleep {
    sleep_until(Instant::now() + duration)
}

/// Waits until `deadline`. Never returns early; if `deadline` has passed, returns at once.
///
/// It may return late by a sixteenth of the time it waits, half a millisecond at most, so that timers near
/// each other share a wake-up; and by what the system and the worker's other tasks take.
///
/// The timer starts when the future is first polled: one that never is costs nothing.
///
/// # Panics
///
/// When it is first polled on a thread without a runtime, or with one that was shut down.
///
/// # Cancel safety
///
/// Dropping it stops the timer. It can be polled by turns with other futures, by reference, as long
/// as need be.
#[inline]
pub fn sleep_until(deadline: Instant) -> Sleep {
    Sleep {
        deadline,
        timer: None,
    }
}

/// The future of [`sleep`] and [`sleep_until`].
///
/// It is `Unpin`: `&mut sleep` is a future too, which suits loops that wait for several things. Once
/// it has completed it is complete whenever it is polled again, until [`reset`](Self::reset).
#[must_use = "futures do nothing unless you `.await` or poll them"]
pub struct Sleep {
    deadline: Instant,
    /// From the first poll until the timer is known to have fired.
    timer: Option<Timer>,
}

impl Sleep {
    /// The moment it waits for.
    pub fn deadline(&self) -> Instant {
        self.deadline
    }

    /// Whether that moment has come.
    pub fn is_elapsed(&self) -> bool {
        Instant::now() >= self.deadline
    }

    /// Makes it wait for `deadline` instead, whether or not it has completed.
    ///
    /// A task that waits for it is woken at the new deadline, unless the timer had fired before: poll it after a
    /// reset, as loops like this one do.
    ///
    /// ```no_run
    /// use std::pin::pin;
    /// use runtime::time::{Duration, Instant, sleep};
    ///
    /// # runtime::block_on(async {
    /// let mut idle = pin!(sleep(Duration::from_secs(30)));
    /// // Something came in: the thirty seconds start again.
    /// idle.as_mut().reset(Instant::now() + Duration::from_secs(30));
    /// idle.await;
    /// # })
    /// ```
    pub fn reset(self: Pin<&mut Self>, deadline: Instant) {
        let this = self.get_mut();
        this.deadline = deadline;
        // Without a waker nobody waits: the timer was never started, or it fired and its task is on
        // the way to poll it.
        let Some(waker) = this.timer.take().and_then(Timer::cancel) else {
            return;
        };
        let restarted = context::with(|current| match current {
            Some((reactor, shard)) => {
                Timer::start(reactor, shard, reactor.clock().now(), deadline, waker)
            }
            None => Err(waker),
        });
        match restarted {
            Ok(timer) => this.timer = Some(timer),
            // There is no reactor here to start it with. The task has one, when it polls.
            Err(waker) => waker.wake(),
        }
    }

    /// Starts the timer, unless the deadline has passed at `now`.
    pub(super) fn start(&mut self, now: Instant, cx: &mut Context<'_>) -> Poll<()> {
        if now >= self.deadline {
            // Ready at once, as a busy socket is: a loop over such sleeps must let others run. Those
            // that had to wait cost no budget.
            return budget::poll_proceed(cx);
        }
        // Cloned, and dropped if need be, outside of the context: that may run user code.
        let waker = cx.waker().clone();
        let started = context::expect(|reactor, shard| {
            Timer::start(reactor, shard, now, self.deadline, waker)
        });
        match started {
            Ok(timer) => self.timer = Some(timer),
            Err(_waker) => panic!("{SHUT_DOWN}"),
        }
        Poll::Pending
    }
}

/// What is said instead of waiting for a timer that nobody would fire.
const SHUT_DOWN: &str = "the runtime of this thread was shut down: its timers fire no more";

impl Future for Sleep {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let this = self.get_mut();
        if let Some(timer) = &this.timer {
            match timer.poll(cx.waker()) {
                TimerState::Running => return Poll::Pending,
                TimerState::Fired => {
                    this.timer = None;
                    return Poll::Ready(());
                }
                // Perhaps there is another runtime to go on with.
                TimerState::ShutDown => this.timer = None,
            }
        }
        let now = context::expect(|reactor, _| reactor.clock().now());
        this.start(now, cx)
    }
}

impl Drop for Sleep {
    #[inline]
    fn drop(&mut self) {
        if let Some(timer) = self.timer.take() {
            // The waker is dropped here, after the shard's lock was let go.
            drop(timer.cancel());
        }
    }
}

impl fmt::Debug for Sleep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sleep")
            .field("deadline", &self.deadline)
            .field("started", &self.timer.is_some())
            .finish()
    }
}
