//! Many independent tasks at once: of nothing, of a microsecond, of 20 microseconds.
//!
//! Tasks of nothing show what a task costs when so many wait that no queue fits in the cache. With work
//! in them, the figure is held against what two cores could do at best: half the work's time. What is
//! above that was lost in making, moving and finding tasks, or because a worker slept.

use std::marker::PhantomData;
use std::time::{Duration, Instant};

use super::remote::flood;
use super::{Program, Row, timed_row};
use crate::countdown::Countdown;
use crate::harness::{Plan, Sample};
use crate::peers::{
    AsyncPeer, ClosurePeer, ClosureSpawner, Entry, PerAsyncPeer, PerClosurePeer, Spawner,
    each_async, each_closure, in_task,
};
use crate::usage::Usage;
use crate::work::spin;

/// With `--quick`, and to warm up, only so large a part of the tasks.
const PART: u64 = 10;

/// One outside thread spawns the tasks, each of `NANOS` of work.
pub(super) struct FromOutside<const NANOS: u64>;

/// A worker spawns the tasks, each of `NANOS` of work, and waits for the last.
pub(super) struct FromWorker<const NANOS: u64>;

/// A number of tasks that makes one sample, too many to be repeated.
pub(super) trait Bulk {
    /// How long `tasks` take, as futures.
    fn tasks<P: AsyncPeer>(peer: &P, tasks: u64) -> Duration;
    /// How long `tasks` take, as closures.
    fn closures<P: ClosurePeer>(peer: &P, tasks: u64) -> Duration;
}

/// A sample of so many tasks.
struct BulkSample<B, const TASKS: u64>(PhantomData<B>);

pub(super) fn rows() -> Vec<Row> {
    vec![
        timed_row(
            "nothing_1m",
            "1,000,000 tasks of nothing from 1 outside thread",
            programs::<FromOutside<0>, 1_000_000>,
        ),
        timed_row(
            "micro_300k",
            "300,000 tasks of 1 us from 1 outside thread; ideal: 500 with 2 workers",
            programs::<FromOutside<1_000>, 300_000>,
        ),
        Row {
            workers: Some(2),
            ..timed_row(
                "coarse_10k",
                "10,000 tasks of 20 us from one worker; ideal: 10,000",
                programs::<FromWorker<20_000>, 10_000>,
            )
        },
    ]
}

impl<const NANOS: u64> Bulk for FromOutside<NANOS> {
    fn tasks<P: AsyncPeer>(peer: &P, tasks: u64) -> Duration {
        let one = |countdown: &'static Countdown| {
            let spawner = peer.outside();
            move || spawner.detach(async { work::<NANOS>(countdown) })
        };
        flood(1, tasks, one, |countdown| peer.block_on(countdown.wait()))
    }

    fn closures<P: ClosurePeer>(peer: &P, tasks: u64) -> Duration {
        let one = |countdown: &'static Countdown| {
            let spawner = peer.outside();
            move || spawner.run(|| work::<NANOS>(countdown))
        };
        flood(1, tasks, one, |countdown| {
            futures::executor::block_on(countdown.wait())
        })
    }
}

impl<const NANOS: u64> Bulk for FromWorker<NANOS> {
    fn tasks<P: AsyncPeer>(peer: &P, tasks: u64) -> Duration {
        let spawner = peer.inside();
        in_task(peer, async move {
            let start = Instant::now();
            let countdown = Countdown::leak(tasks);
            for _ in 0..tasks {
                spawner.detach(async { work::<NANOS>(countdown) });
            }
            countdown.wait().await;
            start.elapsed()
        })
    }

    fn closures<P: ClosurePeer>(peer: &P, tasks: u64) -> Duration {
        let start = Instant::now();
        let countdown = Countdown::leak(tasks);
        let spawner = peer.inside();
        peer.outside().run(move || {
            for _ in 0..tasks {
                spawner.run(|| work::<NANOS>(countdown));
            }
        });
        futures::executor::block_on(countdown.wait());
        start.elapsed()
    }
}

impl<B: Bulk, const TASKS: u64> PerAsyncPeer for BulkSample<B, TASKS> {
    type Item = Program;

    fn make<P: AsyncPeer>() -> Program {
        |plan, _| {
            let peer = P::start();
            sample(plan, TASKS, |tasks| B::tasks(&peer, tasks))
        }
    }
}

impl<B: Bulk, const TASKS: u64> PerClosurePeer for BulkSample<B, TASKS> {
    type Item = Program;

    fn make<P: ClosurePeer>() -> Program {
        |plan, _| {
            let peer = P::start();
            sample(plan, TASKS, |tasks| B::closures(&peer, tasks))
        }
    }
}

fn programs<B: Bulk, const TASKS: u64>() -> Vec<Entry<Program>> {
    let mut programs = each_async::<BulkSample<B, TASKS>>();
    programs.extend(each_closure::<BulkSample<B, TASKS>>());
    programs
}

fn sample(plan: &Plan, tasks: u64, mut run: impl FnMut(u64) -> Duration) -> Sample {
    spin(Duration::ZERO);
    run(tasks / PART);
    let tasks = if plan.quick { tasks / PART } else { tasks };
    let before = Usage::now();
    let time = run(tasks);
    let spent = before.spent();
    Sample {
        values: vec![time.as_nanos() as f64 / tasks as f64],
        per_operation: Some((
            spent.cpu.as_nanos() as f64 / tasks as f64,
            spent.switches as f64 / tasks as f64,
        )),
    }
}

/// What one task does. The time is no part of it, so that a task of nothing carries nothing.
fn work<const NANOS: u64>(countdown: &Countdown) {
    if NANOS > 0 {
        spin(Duration::from_nanos(NANOS));
    }
    countdown.count();
}
