//! A moment on the runtime's clock.

use std::fmt;
use std::ops::{Add, AddAssign, Sub, SubAssign};
use std::time::Duration;

use crate::context;

/// A moment in time, as the runtime's clock tells it: what deadlines are.
///
/// Other than [`std::time::Instant`] its arithmetic does not panic: adding more than the system can
/// represent gives the latest moment that it can, hundreds of years from now, and subtracting too
/// much the earliest. A deadline of `Instant::now() + Duration::MAX` is simply never reached.
///
/// ```
/// use runtime::time::{Duration, Instant};
///
/// let start = Instant::now();
/// let never = start + Duration::MAX;
/// assert!(never > start + Duration::from_secs(100 * 365 * 24 * 60 * 60));
/// assert_eq!(start - never, Duration::ZERO);
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Instant(std::time::Instant);

impl Instant {
    /// The present moment, by the clock of this thread's runtime; by the system's clock if there is
    /// none.
    #[inline]
    pub fn now() -> Instant {
        context::with(|current| match current {
            Some((reactor, _)) => reactor.clock().now(),
            None => Instant(std::time::Instant::now()),
        })
    }

    /// The same moment as an instant of the standard library.
    #[inline]
    pub fn into_std(self) -> std::time::Instant {
        self.0
    }

    /// The moment that an instant of the standard library names.
    #[inline]
    pub fn from_std(std: std::time::Instant) -> Instant {
        Instant(std)
    }

    /// How long ago this moment was; zero if it has not come yet.
    pub fn elapsed(&self) -> Duration {
        Instant::now().saturating_duration_since(*self)
    }

    /// The time from `earlier` to this moment; zero if `earlier` is the later one.
    pub fn duration_since(&self, earlier: Instant) -> Duration {
        self.0.saturating_duration_since(earlier.0)
    }

    /// The time from `earlier` to this moment; `None` if `earlier` is the later one.
    pub fn checked_duration_since(&self, earlier: Instant) -> Option<Duration> {
        self.0.checked_duration_since(earlier.0)
    }

    /// The same as [`duration_since`](Self::duration_since), by the name that says so.
    #[inline]
    pub fn saturating_duration_since(&self, earlier: Instant) -> Duration {
        self.0.saturating_duration_since(earlier.0)
    }

    /// The moment `duration` after this one; `None` if the system cannot represent it.
    pub fn checked_add(&self, duration: Duration) -> Option<Instant> {
        self.0.checked_add(duration).map(Instant)
    }

    /// The moment `duration` before this one; `None` if the system cannot represent it.
    pub fn checked_sub(&self, duration: Duration) -> Option<Instant> {
        self.0.checked_sub(duration).map(Instant)
    }
}

/// Saturates: see [`Instant`].
impl Add<Duration> for Instant {
    type Output = Instant;

    #[inline]
    fn add(self, duration: Duration) -> Instant {
        self.checked_add(duration)
            .unwrap_or_else(|| furthest(self, duration, Instant::checked_add))
    }
}

/// Saturates: see [`Instant`].
impl AddAssign<Duration> for Instant {
    fn add_assign(&mut self, duration: Duration) {
        *self = *self + duration;
    }
}

/// Saturates: see [`Instant`].
impl Sub<Duration> for Instant {
    type Output = Instant;

    fn sub(self, duration: Duration) -> Instant {
        self.checked_sub(duration)
            .unwrap_or_else(|| furthest(self, duration, Instant::checked_sub))
    }
}

/// Saturates: see [`Instant`].
impl SubAssign<Duration> for Instant {
    fn sub_assign(&mut self, duration: Duration) {
        *self = *self - duration;
    }
}

/// The same as [`Instant::duration_since`].
impl Sub<Instant> for Instant {
    type Output = Duration;

    fn sub(self, earlier: Instant) -> Duration {
        self.duration_since(earlier)
    }
}

impl From<std::time::Instant> for Instant {
    fn from(std: std::time::Instant) -> Instant {
        Instant(std)
    }
}

impl From<Instant> for std::time::Instant {
    fn from(instant: Instant) -> std::time::Instant {
        instant.0
    }
}

impl fmt::Debug for Instant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The last moment that `step` reaches on the way of `duration` from `start`. The system does not
/// tell where its time ends, so this goes as far as it can in ever smaller steps.
#[cold]
fn furthest(
    start: Instant,
    duration: Duration,
    step: fn(&Instant, Duration) -> Option<Instant>,
) -> Instant {
    let (mut reached, mut stride) = (start, duration);
    while stride > Duration::ZERO {
        match step(&reached, stride) {
            Some(further) => reached = further,
            None => stride /= 2,
        }
    }
    reached
}

#[cfg(test)]
mod tests {
    use super::*;

    const YEAR: Duration = Duration::from_secs(365 * 24 * 60 * 60);
    const NANO: Duration = Duration::from_nanos(1);

    #[test]
    fn sums_that_do_not_fit_are_the_last_moment_there_is() {
        let start = Instant::now();
        let last = start + Duration::MAX;
        assert!(last > start + YEAR * 500);
        assert_eq!(last.checked_add(NANO), None, "there is none after it");
        assert_eq!(last + NANO, last);
        assert_eq!(last + Duration::MAX, last);
        assert_eq!(start + YEAR + Duration::MAX, last);
        assert!(last - NANO < last);
        let mut sum = start;
        sum += Duration::MAX;
        assert_eq!(sum, last);
    }

    #[test]
    fn differences_that_do_not_fit_are_the_first_moment_there_is() {
        let start = Instant::now();
        let first = start - Duration::MAX;
        assert!(first < start);
        assert_eq!(first.checked_sub(NANO), None);
        assert_eq!(first - Duration::MAX, first);
        let mut difference = start;
        difference -= Duration::MAX;
        assert_eq!(difference, first);
        assert!((start + Duration::MAX).duration_since(first) > Duration::ZERO);
    }

    #[test]
    fn ordinary_arithmetic_is_exact() {
        let start = Instant::now();
        let later = start + YEAR;
        assert_eq!((later - start, start - later), (YEAR, Duration::ZERO));
        assert_eq!(later - YEAR, start);
        assert_eq!(later.checked_duration_since(start), Some(YEAR));
        assert_eq!(start.checked_duration_since(later), None);
        assert_eq!(start.saturating_duration_since(later), Duration::ZERO);
        assert_eq!(later.elapsed(), Duration::ZERO);
        assert_eq!(Instant::from(start.into_std()), start);
    }
}
