//! The one clock of a reactor.

use crate::time::Instant;

/// Tells the time, for everything that belongs to one runtime.
///
/// Timers, intervals, time limits, metrics and the scheduler all read time here and nowhere else,
/// so whoever replaces the clock replaces time itself.
#[derive(Debug)]
pub struct Clock {
    origin: Instant,
    kind: ClockKind,
}

/// Where time comes from. Closed: a reading costs a predicted branch, no indirect call.
#[derive(Debug)]
enum ClockKind {
    /// The system's monotonic clock.
    Real,
}

impl Clock {
    /// The system's monotonic clock. Its origin is now.
    #[expect(
        clippy::new_without_default,
        reason = "which clock is a decision, not a default"
    )]
    pub fn new() -> Clock {
        Clock {
            origin: Instant::from_std(std::time::Instant::now()),
            kind: ClockKind::Real,
        }
    }

    /// The present moment.
    #[inline]
    pub fn now(&self) -> Instant {
        match self.kind {
            ClockKind::Real => Instant::from_std(std::time::Instant::now()),
        }
    }

    /// The moment from which [`nanos`](Self::nanos) counts.
    pub fn origin(&self) -> Instant {
        self.origin
    }

    /// Nanoseconds from the origin to `instant`: 0 for what lies before the origin, `u64::MAX` for
    /// what lies more than 584 years after it. In between it is exact, since an instant counts whole
    /// nanoseconds; a deadline is rounded up only where it meets the coarser ticks of the timers.
    #[inline]
    pub fn nanos(&self, instant: Instant) -> u64 {
        let since_origin = instant.saturating_duration_since(self.origin);
        u64::try_from(since_origin.as_nanos()).unwrap_or(u64::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn nanos_are_exact_and_saturate_at_both_ends() {
        let clock = Clock::new();
        let origin = clock.origin();
        let nanos = |since| clock.nanos(origin + since);
        assert_eq!(nanos(Duration::ZERO), 0);
        assert_eq!(nanos(Duration::from_nanos(1)), 1);
        assert_eq!(nanos(Duration::from_nanos(u64::MAX - 1)), u64::MAX - 1);
        assert_eq!(nanos(Duration::from_nanos(u64::MAX)), u64::MAX);
        assert_eq!(nanos(Duration::from_secs(u64::MAX / 10)), u64::MAX);
        assert_eq!(nanos(Duration::MAX), u64::MAX);
        assert_eq!(clock.nanos(origin - Duration::from_secs(1)), 0);
        assert_eq!(clock.nanos(origin - Duration::MAX), 0);
    }

    #[test]
    fn it_goes_forward_from_its_origin() {
        let clock = Clock::new();
        let first = clock.now();
        let second = clock.now();
        assert!(clock.origin() <= first && first <= second);
        assert!(clock.nanos(first) <= clock.nanos(second));
    }
}
