//! Counts durations in buckets of growing width, to tell percentiles in constant memory.

use std::fmt;
use std::time::Duration;

/// Every power of two is cut into this many buckets, so a value read back is off by under 2 %.
const STEPS: usize = 64;
const STEPS_LOG2: u32 = STEPS.trailing_zeros();

/// A histogram of durations; prints as a line of percentiles.
#[derive(Debug)]
pub struct Histogram {
    buckets: Vec<u64>,
    count: u64,
    longest: u64,
}

impl Histogram {
    /// An empty histogram.
    pub fn new() -> Self {
        Histogram {
            buckets: vec![0; bucket_of(u64::MAX) + 1],
            count: 0,
            longest: 0,
        }
    }

    /// Counts one duration of so many nanoseconds.
    pub fn record(&mut self, nanos: u64) {
        self.buckets[bucket_of(nanos)] += 1;
        self.count += 1;
        self.longest = self.longest.max(nanos);
    }

    /// How many durations were counted.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// The duration that `percent` of all durations do not exceed, rounded up to its bucket.
    pub fn percentile(&self, percent: f64) -> Duration {
        let rank = (self.count as f64 * percent / 100.0).ceil().max(1.0) as u64;
        let mut seen = 0;
        for (bucket, count) in self.buckets.iter().enumerate() {
            seen += count;
            if seen >= rank {
                return Duration::from_nanos(upper_bound(bucket).min(self.longest));
            }
        }
        Duration::from_nanos(self.longest)
    }
}

impl Default for Histogram {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Display for Histogram {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (name, percent) in [("p50", 50.0), ("p90", 90.0), ("p99", 99.0), ("p99.9", 99.9)] {
            write!(f, "{name} {}  ", in_units(self.percentile(percent)))?;
        }
        write!(f, "max {}", in_units(Duration::from_nanos(self.longest)))
    }
}

fn bucket_of(nanos: u64) -> usize {
    let steps = STEPS as u64;
    if nanos < steps {
        return nanos as usize;
    }
    let shift = nanos.ilog2() - STEPS_LOG2;
    // `nanos >> shift` lies between STEPS and 2 * STEPS: its place within the power of two.
    (shift as usize) * STEPS + (nanos >> shift) as usize
}

fn upper_bound(bucket: usize) -> u64 {
    if bucket < STEPS {
        return bucket as u64;
    }
    let shift = bucket / STEPS - 1;
    let step = (STEPS + bucket % STEPS) as u128;
    u64::try_from(((step + 1) << shift) - 1).unwrap_or(u64::MAX)
}

/// Three digits or so, in the unit that suits the size.
fn in_units(duration: Duration) -> String {
    let micros = duration.as_secs_f64() * 1e6;
    if micros < 1000.0 {
        format!("{micros:.1} us")
    } else if micros < 1_000_000.0 {
        format!("{:.2} ms", micros / 1e3)
    } else {
        format!("{:.2} s", micros / 1e6)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_value_lies_within_its_bucket() {
        let edges = (0..64).flat_map(|bit| {
            let power = 1u64 << bit;
            [power - 1, power, power + 1, power + power / 3]
        });
        for nanos in edges.chain([u64::MAX]) {
            let bucket = bucket_of(nanos);
            assert!(nanos <= upper_bound(bucket), "{nanos}");
            assert!(bucket == 0 || nanos > upper_bound(bucket - 1), "{nanos}");
            assert!(
                upper_bound(bucket) - nanos <= nanos / STEPS as u64,
                "{nanos}"
            );
        }
    }

    #[test]
    fn percentiles_of_a_uniform_spread() {
        let mut histogram = Histogram::new();
        for micros in 1..=1000 {
            histogram.record(micros * 1000);
        }
        for (percent, micros) in [(50.0, 500.0), (99.0, 990.0), (99.9, 999.0)] {
            let found = histogram.percentile(percent).as_secs_f64() * 1e6;
            assert!(
                found >= micros && found < micros * 1.02,
                "{percent}: {found}"
            );
        }
        assert_eq!(histogram.percentile(100.0), Duration::from_millis(1));
        assert_eq!(histogram.count(), 1000);
    }

    #[test]
    fn an_empty_histogram_prints() {
        assert_eq!(
            Histogram::new().to_string(),
            "p50 0.0 us  p90 0.0 us  p99 0.0 us  p99.9 0.0 us  max 0.0 us"
        );
    }
}
