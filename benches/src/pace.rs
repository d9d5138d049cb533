//! Work by the clock: to be busy for a while, and to do something at fixed times.

use std::thread;
use std::time::{Duration, Instant};

/// Keeps this thread busy for `time`, as a task does that computes. Measured by the clock, so that it
/// is the same on every system and needs no calibration.
pub(crate) fn spin(time: Duration) {
    let until = Instant::now() + time;
    while Instant::now() < until {
        std::hint::spin_loop();
    }
}

/// Calls `act` so many times, each `period` after the one before, from a thread that sleeps in between.
/// What comes late does not move what follows.
pub(crate) fn every(period: Duration, times: u32, mut act: impl FnMut()) {
    let start = Instant::now();
    for number in 1..=times {
        sleep_until(start + period * number);
        act();
    }
}

/// Blocks this thread until then.
pub(crate) fn sleep_until(due: Instant) {
    thread::sleep(due.saturating_duration_since(Instant::now()));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_often_as_asked_and_never_early() {
        let start = Instant::now();
        let mut times = Vec::new();
        every(Duration::from_millis(1), 5, || times.push(start.elapsed()));
        assert_eq!(times.len(), 5);
        for (number, time) in times.iter().enumerate() {
            assert!(*time >= Duration::from_millis(number as u64 + 1));
        }
    }

    #[test]
    fn spinning_takes_the_time() {
        let start = Instant::now();
        spin(Duration::from_micros(50));
        assert!(start.elapsed() >= Duration::from_micros(50));
    }
}
