//! Little work for many workers: one short task at a time, again and again, from an outside thread.
//!
//! Each wakes a runtime that is idle. What counts is that it wakes no more than the one worker that the
//! task needs: workers that were woken and found nothing, the system's own counters tell, and so does
//! the processor time.

use std::thread;
use std::time::{Duration, Instant};

use super::{Metric, Program, Row, less, timed_row};
use crate::countdown::Countdown;
use crate::harness::{Plan, Sample};
use crate::pace::{every, spin};
use crate::peers::{
    AsyncPeer, CountingPeer, PerAsyncPeer, PerCountingPeer, Spawner, each_counting, each_scaled,
};
use crate::usage::Usage;

/// How long each task works.
const WORK: Duration = Duration::from_micros(1);
/// From one task to the next, but for the slow events of [`Rare`].
const PERIOD: Duration = Duration::from_micros(500);
const RARE_PERIOD: Duration = Duration::from_millis(10);
/// Until the threads of a runtime have started and parked, 64 of them on a machine that is not idle too.
const SETTLE: Duration = Duration::from_millis(100);

/// Unparks that found nothing, per park.
pub(super) struct Churn;

/// Processor time, on every system.
pub(super) struct ChurnCpu;

/// The figures of all scaling rows, for the same work.
pub(super) struct ScaleChurn;

/// One event every 10 ms for 64 workers.
pub(super) struct Rare;

const EMPTY: &[Metric] = &[less("", "empty/park")];
const CPU: &[Metric] = &[less("", "us/task")];
const SCALE: &[Metric] = &[
    less("cpu", "ns/task"),
    less("steals", "per task"),
    less("empty", "per park"),
];
const RARE: &[Metric] = &[less("cpu", "% of core"), less("unparks", "per event")];

pub(super) fn rows() -> Vec<Row> {
    vec![
        Row {
            metrics: EMPTY,
            workers: Some(4),
            ..timed_row(
                "idle_churn",
                "4 workers, a 1-us task every 500 us: unparks that found nothing",
                each_counting::<Churn>,
            )
        },
        Row {
            metrics: CPU,
            workers: Some(4),
            ..timed_row(
                "idle_churn_cpu",
                "4 workers, a 1-us task every 500 us: processor time",
                each_scaled::<ChurnCpu>,
            )
        },
    ]
}

/// Those of the scaling rows that are churn.
pub(super) fn scale_rows() -> Vec<Row> {
    vec![
        Row {
            metrics: SCALE,
            ..timed_row(
                "scale_churn",
                "1 to 64 workers, a 1-us task every 500 us",
                each_counting::<ScaleChurn>,
            )
        },
        Row {
            metrics: RARE,
            workers: Some(64),
            ..timed_row(
                "scale_idle_64",
                "64 workers, an event every 10 ms",
                each_counting::<Rare>,
            )
        },
    ]
}

impl PerCountingPeer for Churn {
    type Item = Program;

    fn make<P: CountingPeer>() -> Program {
        |plan, _| {
            let peer = P::start();
            let before = peer.counts();
            churn(&peer, PERIOD, tasks(plan, PERIOD, 2000));
            Sample::of(vec![peer.counts().since(before).empty_per_park()])
        }
    }
}

impl PerAsyncPeer for ChurnCpu {
    type Item = Program;

    fn make<P: AsyncPeer>() -> Program {
        |plan, _| {
            let peer = P::start();
            let tasks = tasks(plan, PERIOD, 1000);
            let cpu = churn(&peer, PERIOD, tasks).cpu;
            Sample::of(vec![cpu.as_nanos() as f64 / 1e3 / f64::from(tasks)])
        }
    }
}

impl PerCountingPeer for ScaleChurn {
    type Item = Program;

    fn make<P: CountingPeer>() -> Program {
        |plan, _| {
            let peer = P::start();
            let tasks = tasks(plan, PERIOD, 500);
            let before = peer.counts();
            let cpu = churn(&peer, PERIOD, tasks).cpu;
            let counts = peer.counts().since(before);
            Sample::of(vec![
                cpu.as_nanos() as f64 / f64::from(tasks),
                counts.steals as f64 / f64::from(tasks),
                counts.empty_per_park(),
            ])
        }
    }
}

impl PerCountingPeer for Rare {
    type Item = Program;

    fn make<P: CountingPeer>() -> Program {
        |plan, _| {
            let peer = P::start();
            let events = tasks(plan, RARE_PERIOD, 2000);
            let before = peer.counts();
            let spent = churn(&peer, RARE_PERIOD, events);
            let counts = peer.counts().since(before);
            Sample::of(vec![
                100.0 * spent.cpu.as_secs_f64() / spent.time.as_secs_f64(),
                counts.unparks as f64 / f64::from(events),
            ])
        }
    }
}

/// How many tasks there are in so many milliseconds, or a fifth of them in a quick run.
fn tasks(plan: &Plan, period: Duration, millis: u64) -> u32 {
    let time = Duration::from_millis(if plan.quick { millis / 5 } else { millis });
    (time.as_nanos() / period.as_nanos()) as u32
}

/// What churn took.
struct Spent {
    cpu: Duration,
    time: Duration,
}

/// So many tasks, one each period, from an outside thread. The caller waits in `block_on` meanwhile.
fn churn<P: AsyncPeer>(peer: &P, period: Duration, tasks: u32) -> Spent {
    peer.block_on(P::sleep(SETTLE));
    let countdown = Countdown::leak(tasks.into());
    let spawner = peer.outside();
    let (usage, start) = (Usage::now(), Instant::now());
    let pacer = thread::spawn(move || {
        every(period, tasks, || {
            spawner.detach(async {
                spin(WORK);
                countdown.count();
            });
        });
    });
    peer.block_on(countdown.wait());
    let spent = Spent {
        cpu: usage.spent().cpu,
        time: start.elapsed(),
    };
    pacer.join().expect("the pacing thread does not panic");
    spent
}
