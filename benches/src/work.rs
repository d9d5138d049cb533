//! Work for a processor that takes a known time.
//!
//! By the clock, not by a number of rounds: the speed of a core on a shared machine changes by a tenth
//! from one moment to the next, and figures that are held against an ideal would change with it. A task
//! that loses the processor finds its time passed when it comes back; that is one task for each switch,
//! of the hundreds or thousands in between.

use std::sync::OnceLock;
use std::time::{Duration, Instant};

/// What is measured to find the cost of the clock.
const PROBE: Duration = Duration::from_micros(1);

/// Probes in a row; few, so that most rows are not disturbed.
const PROBES: u32 = 100;

/// Rows, of which the shortest counts.
const ROWS: u32 = 50;

/// How much longer than asked for a spin takes, because it has to read the clock.
static OVERHEAD: OnceLock<Duration> = OnceLock::new();

/// Keeps the processor busy for so long, reading the clock included. The first call measures what
/// that costs, for some milliseconds.
pub(crate) fn spin(time: Duration) {
    let overhead = *OVERHEAD.get_or_init(measured_overhead);
    spin_by_clock(time.saturating_sub(overhead));
}

fn measured_overhead() -> Duration {
    let row = |_| {
        let start = Instant::now();
        (0..PROBES).for_each(|_| spin_by_clock(PROBE));
        start.elapsed() / PROBES
    };
    let shortest = (0..ROWS).map(row).min().unwrap_or(PROBE);
    shortest.saturating_sub(PROBE)
}

fn spin_by_clock(time: Duration) {
    let start = Instant::now();
    while start.elapsed() < time {}
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spins_take_their_time_and_hardly_more() {
        let row = |_| {
            let start = Instant::now();
            (0..100).for_each(|_| spin(Duration::from_micros(5)));
            start.elapsed()
        };
        let shortest = (0..50).map(row).min().unwrap();
        // A debug build and a busy machine allow no more than this.
        assert!(shortest > Duration::from_micros(450), "{shortest:?}");
        assert!(shortest < Duration::from_micros(750), "{shortest:?}");
    }
}
