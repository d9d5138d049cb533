//! Growth: the same work with 1, 2, 4, 8, 16, 32 and 64 workers, on whatever cores there are.
//!
//! A machine with few cores cannot show how fast many workers are. It does show what they cost: each
//! that looks for work in vain takes time from one that has some. So besides the cost of a task these
//! rows watch the counters, which do not depend on the machine: steals per task, and how many unparks
//! found nothing. Only systems whose counters are stable API can take part; two more rows set the cost
//! alone beside that of the others.

use std::marker::PhantomData;
use std::time::{Duration, Instant};

use super::remote::Remote;
use super::{AsyncRow, Metric, Program, Row, Timed, churn, less, timed_row};
use crate::countdown::Countdown;
use crate::harness::timed;
use crate::pace::spin;
use crate::peers::{
    AsyncPeer, CountingPeer, PerCountingPeer, Spawner, each_counting, each_scaled, in_task,
};

const TASKS: u64 = 10_000;
/// Long enough to be worth stealing.
const WORK: Duration = Duration::from_micros(2);

/// One task spawns 10,000 tasks of 2 us: all but its own worker must steal what they run.
pub(super) struct Steal;

/// The cost of a row's operation, with what the system counted meanwhile.
pub(super) struct Counted<R>(PhantomData<R>);

const SCALE: &[Metric] = &[
    less("cost", "ns/task"),
    less("steals", "per task"),
    less("empty", "per park"),
];

pub(super) fn rows() -> Vec<Row> {
    let counted = |name, about, programs| Row {
        metrics: SCALE,
        ..timed_row(name, about, programs)
    };
    let mut rows = vec![
        counted(
            "scale_remote",
            "1 to 64 workers, spawn 50,000 from an outside thread",
            each_counting::<Counted<Remote<1>>>,
        ),
        counted(
            "scale_steal",
            "1 to 64 workers, 10,000 tasks of 2 us from one worker",
            each_counting::<Counted<Steal>>,
        ),
    ];
    rows.extend(churn::scale_rows());
    rows.extend([
        timed_row(
            "scale_cost_remote",
            "scale_remote, the cost on every system",
            each_scaled::<Timed<Remote<1>>>,
        ),
        timed_row(
            "scale_cost_steal",
            "scale_steal, the cost on every system",
            each_scaled::<Timed<Steal>>,
        ),
    ]);
    rows
}

impl AsyncRow for Steal {
    const OPERATIONS: u64 = TASKS;

    fn run<P: AsyncPeer>(peer: &P, repetitions: u64) -> Duration {
        let spawner = peer.inside();
        in_task(peer, async move {
            let start = Instant::now();
            for _ in 0..repetitions {
                let countdown = Countdown::leak(TASKS);
                for _ in 0..TASKS {
                    spawner.detach(async {
                        spin(WORK);
                        countdown.count();
                    });
                }
                countdown.wait().await;
            }
            start.elapsed()
        })
    }
}

impl<R: AsyncRow> PerCountingPeer for Counted<R> {
    type Item = Program;

    fn make<P: CountingPeer>() -> Program {
        |plan, repetitions| {
            let peer = P::start();
            let mut figures = Vec::new();
            let mut sample = timed(plan, repetitions, R::OPERATIONS, |count| {
                let before = peer.counts();
                let time = R::run(&peer, count);
                let counts = peer.counts().since(before);
                // Each run overwrites what the ones before, which warm up, counted.
                let tasks = count * R::OPERATIONS;
                figures = vec![counts.steals as f64 / tasks as f64, counts.empty_per_park()];
                time
            });
            sample.values.append(&mut figures);
            sample
        }
    }
}
