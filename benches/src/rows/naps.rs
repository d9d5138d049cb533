//! Short sleeps: how near to 200 microseconds a sleep of 200 microseconds ends.
//!
//! A clock that ticks in milliseconds makes each take one or two. Pacing, polling of devices and retries
//! are made of such sleeps.

use std::time::{Duration, Instant};

use super::{Metric, Program, Row, less, timed_row};
use crate::harness::Sample;
use crate::peers::{AsyncPeer, PerAsyncPeer, each_async, in_task};
use crate::statistics::percentile;

const NAP: Duration = Duration::from_micros(200);

/// 1000 sleeps (200 with `--quick`) one after another; how late the median one ends.
pub(super) struct Naps;

const LATE: &[Metric] = &[less("", "us late")];

pub(super) fn rows() -> Vec<Row> {
    vec![Row {
        metrics: LATE,
        ..timed_row(
            "sleep_200us",
            "1000 sleeps of 200 us one after another: median lateness",
            each_async::<Naps>,
        )
    }]
}

impl PerAsyncPeer for Naps {
    type Item = Program;

    fn make<P: AsyncPeer>() -> Program {
        |plan, _| {
            let naps = if plan.quick { 200 } else { 1000 };
            let peer = P::start();
            let mut late = in_task(&peer, naps_of::<P>(naps));
            late.sort_unstable();
            Sample::of(vec![f64::from(percentile(&late, 0.5)) / 1e3])
        }
    }
}

/// Nanoseconds that each was late.
async fn naps_of<P: AsyncPeer>(naps: usize) -> Vec<u32> {
    let mut late = Vec::with_capacity(naps);
    for _ in 0..naps {
        let due = Instant::now() + NAP;
        P::sleep(NAP).await;
        let now = Instant::now();
        assert!(now >= due, "a sleep ended {:?} too early", due - now);
        late.push((now - due).as_nanos() as u32);
    }
    late
}
