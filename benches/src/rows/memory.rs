//! Memory: what a task that waits for ever costs.
//!
//! In a process of its own for each sample: this one's heap has holes from earlier rows, which new
//! tasks would fill unseen.

use std::future::pending;
use std::sync::atomic::{AtomicU64, Ordering};

use super::{Metric, Program, Row, less, timed_row};
use crate::child;
use crate::harness::Sample;
use crate::peers::{AsyncPeer, PerAsyncPeer, Spawner, each_async, in_task};
use crate::usage::resident_bytes;

/// Tasks that are spawned before the next ones: few enough for every run queue to keep its size.
const BATCH: u64 = 100;

/// Asks a process of its own for the figure.
pub(super) struct MemorySample;

/// The part within that process: takes the number of tasks, gives bytes per task.
pub(crate) struct MemoryReport;

const BYTES: &[Metric] = &[less("", "bytes")];

pub(super) fn rows() -> Vec<Row> {
    vec![Row {
        metrics: BYTES,
        max_rounds: 3,
        ..timed_row(
            "memory",
            "resident bytes for each of 1,000,000 pending tasks",
            each_async::<MemorySample>,
        )
    }]
}

impl PerAsyncPeer for MemorySample {
    type Item = Program;

    fn make<P: AsyncPeer>() -> Program {
        |plan, _| {
            let tasks: u64 = if plan.quick { 100_000 } else { 1_000_000 };
            let mut process = child::start(&["memory", &P::name(), &tasks.to_string()]);
            let bytes = process.line().parse().expect("a number of bytes");
            Sample::of(vec![bytes])
        }
    }
}

impl PerAsyncPeer for MemoryReport {
    type Item = fn(u64) -> f64;

    fn make<P: AsyncPeer>() -> fn(u64) -> f64 {
        |tasks| {
            let peer = P::start();
            in_task(&peer, fill::<P>(peer.inside(), BATCH * 10));
            let before = resident_bytes();
            in_task(&peer, fill::<P>(peer.inside(), tasks));
            let bytes = (resident_bytes() - before) as f64 / tasks as f64;
            // The process ends without it: to cancel a million tasks is not what is measured.
            std::mem::forget(peer);
            bytes
        }
    }
}

/// Spawns tasks that pend for ever, and sees each polled.
async fn fill<P: AsyncPeer>(spawner: P::Inside, tasks: u64) {
    let polled: &'static AtomicU64 = Box::leak(Box::new(AtomicU64::new(0)));
    for first in (0..tasks).step_by(BATCH as usize) {
        for _ in 0..BATCH {
            spawner.detach(async move {
                polled.fetch_add(1, Ordering::Relaxed);
                pending::<()>().await;
            });
        }
        while polled.load(Ordering::Relaxed) < first + BATCH {
            P::yield_now().await;
        }
    }
}
