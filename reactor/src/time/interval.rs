//! Ticking again and again.

use std::future::poll_fn;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use super::{Instant, Sleep, sleep_until};

/// Ticks every `period`, for the first time at once.
///
/// What happens when a tick is missed is up to
/// [`set_missed_tick_behavior`](Interval::set_missed_tick_behavior). The rules of
/// [`sleep`](super::sleep) about threads without a runtime hold for each tick.
///
/// # Panics
///
/// If `period` is zero.
///
/// ```no_run
/// use runtime::time::{Duration, interval};
///
/// # runtime::block_on(async {
/// let mut ticks = interval(Duration::from_secs(1));
/// for second in 0..10 {
///     ticks.tick().await;
///     println!("{second} s");
/// }
/// # })
/// ```
#[track_caller]
pub fn interval(period: Duration) -> Interval {
    interval_at(Instant::now(), period)
}

/// Ticks every `period`, for the first time at `start`. Otherwise as [`interval`].
///
/// # Panics
///
/// If `period` is zero.
#[track_caller]
pub fn interval_at(start: Instant, period: Duration) -> Interval {
    assert!(
        !period.is_zero(),
        "an interval needs a period longer than zero"
    );
    Interval {
        next: sleep_until(start),
        period,
        missed_tick_behavior: MissedTickBehavior::default(),
    }
}

/// Ticks at a fixed period: see [`interval`].
#[derive(Debug)]
pub struct Interval {
    next: Sleep,
    period: Duration,
    missed_tick_behavior: MissedTickBehavior,
}

/// What an [`Interval`] does when ticks are not asked for in time.
///
/// With a period of 100 ms, and ticks asked for as soon as the last one came, except that the one
/// due at 100 ms is asked for at 250 ms:
///
/// | | ticks come at (ms) |
/// |---|---|
/// | `Burst` | 0, 250, 250, 300, 400 |
/// | `Delay` | 0, 250, 350, 450, 550 |
/// | `Skip` | 0, 250, 300, 400, 500 |
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum MissedTickBehavior {
    /// No tick is lost: those that were missed come one right after the other, until the interval
    /// has caught up.
    #[default]
    Burst,
    /// The next tick comes a whole period after a late one, and all after it are as much later. A
    /// tick is late if it comes more than 5 ms after its time, or more than half a period if that is
    /// less: short delays, which every tick has, do not add up.
    Delay,
    /// Ticks that were missed are left out: the next one comes at the next whole number of periods
    /// after the first.
    Skip,
}

/// More than this after its time, a tick is late, if periods are not shorter still.
const LATE: Duration = Duration::from_millis(5);

impl Interval {
    /// Waits for the next tick. Returns the moment for which the tick was due.
    ///
    /// # Panics
    ///
    /// As [`sleep_until`].
    ///
    /// # Cancel safety
    ///
    /// Dropping the future before it is ready loses no tick.
    pub async fn tick(&mut self) -> Instant {
        poll_fn(|cx| self.poll_tick(cx)).await
    }

    /// The same as [`tick`](Self::tick), for code that polls: while it is pending, the task is woken
    /// at the next tick.
    ///
    /// # Panics
    ///
    /// As [`sleep_until`].
    pub fn poll_tick(&mut self, cx: &mut Context<'_>) -> Poll<Instant> {
        ready!(Pin::new(&mut self.next).poll(cx));
        let due = self.next.deadline();
        let next = self
            .missed_tick_behavior
            .next(due, Instant::now(), self.period);
        self.move_to(next);
        Poll::Ready(due)
    }

    /// Makes the next tick come a period from now.
    pub fn reset(&mut self) {
        self.reset_after(self.period);
    }

    /// Makes the next tick come at once.
    pub fn reset_immediately(&mut self) {
        self.reset_at(Instant::now());
    }

    /// Makes the next tick come `after` from now; the period stays, and counts from there.
    pub fn reset_after(&mut self, after: Duration) {
        self.reset_at(Instant::now() + after);
    }

    /// Makes the next tick come at `deadline`; the period stays, and counts from there.
    pub fn reset_at(&mut self, deadline: Instant) {
        self.move_to(deadline);
    }

    /// What happens when a tick is missed.
    pub fn missed_tick_behavior(&self) -> MissedTickBehavior {
        self.missed_tick_behavior
    }

    /// Decides what happens when a tick is missed. [`Burst`](MissedTickBehavior::Burst) unless
    /// decided.
    pub fn set_missed_tick_behavior(&mut self, behavior: MissedTickBehavior) {
        self.missed_tick_behavior = behavior;
    }

    /// The time between ticks.
    pub fn period(&self) -> Duration {
        self.period
    }

    fn move_to(&mut self, deadline: Instant) {
        Pin::new(&mut self.next).reset(deadline);
    }
}

impl MissedTickBehavior {
    /// When the tick after the one that was `due` is due.
    fn next(self, due: Instant, now: Instant, period: Duration) -> Instant {
        let late = now.saturating_duration_since(due);
        match self {
            MissedTickBehavior::Delay if late > LATE.min(period / 2) => now + period,
            MissedTickBehavior::Burst | MissedTickBehavior::Delay => due + period,
            MissedTickBehavior::Skip => now + (period - remainder(late, period)),
        }
    }
}

/// What is left of `duration` after whole periods.
fn remainder(duration: Duration, period: Duration) -> Duration {
    const NANOS_PER_SEC: u128 = 1_000_000_000;
    let nanos = duration.as_nanos() % period.as_nanos();
    // Both fit: the remainder is no longer than `duration`.
    Duration::new(
        (nanos / NANOS_PER_SEC) as u64,
        (nanos % NANOS_PER_SEC) as u32,
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    /// How long after `due` the next tick is, if this one comes `late` after it.
    fn next(behavior: MissedTickBehavior, late: Duration, period: Duration) -> Duration {
        let due = Instant::now();
        behavior.next(due, due + late, period) - due
    }

    #[test]
    fn a_burst_leaves_out_nothing() {
        for late in [0, 1, 99, 100, 12345] {
            let after = next(MissedTickBehavior::Burst, late * MS, 100 * MS);
            assert_eq!(after, 100 * MS, "{late} ms late");
        }
    }

    #[test]
    fn a_delay_moves_all_that_follow_if_it_counts() {
        let delayed = |late, period| next(MissedTickBehavior::Delay, late, period);
        assert_eq!(delayed(Duration::ZERO, 100 * MS), 100 * MS);
        assert_eq!(delayed(5 * MS, 100 * MS), 100 * MS, "that is not late yet");
        assert_eq!(delayed(6 * MS, 100 * MS), 106 * MS);
        assert_eq!(delayed(150 * MS, 100 * MS), 250 * MS);
        assert_eq!(delayed(MS / 4, MS), MS);
        assert_eq!(delayed(MS, MS), 2 * MS, "of a short period that is much");
    }

    #[test]
    fn a_skip_keeps_to_whole_periods() {
        let skipped = |late| next(MissedTickBehavior::Skip, late, 100 * MS);
        assert_eq!(skipped(Duration::ZERO), 100 * MS);
        assert_eq!(skipped(99 * MS), 100 * MS);
        assert_eq!(skipped(100 * MS), 200 * MS);
        assert_eq!(skipped(250 * MS), 300 * MS);
        assert_eq!(skipped(12345 * MS), 12400 * MS);
    }

    #[test]
    fn no_period_is_too_long() {
        let due = Instant::now();
        let end = due + Duration::MAX;
        for behavior in [
            MissedTickBehavior::Burst,
            MissedTickBehavior::Delay,
            MissedTickBehavior::Skip,
        ] {
            for late in [Duration::ZERO, MS, Duration::from_secs(1 << 40)] {
                let next = behavior.next(due, due + late, Duration::MAX);
                assert_eq!(next, end, "{behavior:?} {late:?}");
            }
            assert_eq!(behavior.next(end, end, Duration::MAX), end);
        }
    }

    #[test]
    fn remainders_keep_their_seconds() {
        let long = Duration::from_secs(u64::MAX / 10);
        assert_eq!(remainder(long + MS, long), MS);
        assert_eq!(remainder(long, long + MS), long);
        assert_eq!(remainder(long, Duration::MAX), long);
    }

    #[test]
    #[should_panic(expected = "a period longer than zero")]
    fn a_period_of_zero_is_refused() {
        let _ = interval(Duration::ZERO);
    }
}
