//! Spawning from within: one after another, many at once, and without waiting.
//!
//! The tasks do nothing, so that what is measured is the making, scheduling, running and freeing of
//! a task, and the way back of its output where somebody waits for it.

use std::hint::black_box;
use std::time::{Duration, Instant};

use super::{AsyncRow, ClosureRow, Row, async_programs, mixed_programs, timed_row};
use crate::countdown::Countdown;
use crate::peers::{AsyncPeer, ClosurePeer, ClosureSpawner, Spawner, in_task};

const MANY: u64 = 10_000;
const DETACHED: u64 = 100_000;

/// Spawn, await, again: from a task, which is where most programs spend their time.
pub(super) struct AwaitInTask;

/// The same from the root future, that is from `main`.
pub(super) struct AwaitInRoot;

/// Spawn 10,000 and keep their handles, then await these in order.
pub(super) struct Many;

/// Spawn 100,000 that nobody waits for; until the last has run.
pub(super) struct Detached;

pub(super) fn rows() -> Vec<Row> {
    vec![
        timed_row(
            "spawn_await",
            "spawn a task and await it, one after another, from a task",
            async_programs::<AwaitInTask>,
        ),
        timed_row(
            "spawn_await_root",
            "the same from the root future",
            async_programs::<AwaitInRoot>,
        ),
        timed_row(
            "spawn_many",
            "spawn 10,000, then await all",
            async_programs::<Many>,
        ),
        timed_row(
            "spawn_detached",
            "spawn 100,000 from a task, nobody awaits them",
            mixed_programs::<Detached>,
        ),
    ]
}

impl AsyncRow for AwaitInTask {
    const OPERATIONS: u64 = 100;

    fn run<P: AsyncPeer>(peer: &P, repetitions: u64) -> Duration {
        in_task(
            peer,
            spawn_and_await(peer.inside(), repetitions * Self::OPERATIONS),
        )
    }
}

impl AsyncRow for AwaitInRoot {
    const OPERATIONS: u64 = 100;

    fn run<P: AsyncPeer>(peer: &P, repetitions: u64) -> Duration {
        peer.block_on(spawn_and_await(
            peer.inside(),
            repetitions * Self::OPERATIONS,
        ))
    }
}

impl AsyncRow for Many {
    const OPERATIONS: u64 = MANY;

    fn run<P: AsyncPeer>(peer: &P, repetitions: u64) -> Duration {
        let spawner = peer.inside();
        in_task(peer, async move {
            let start = Instant::now();
            for _ in 0..repetitions {
                let mut tasks = Vec::with_capacity(MANY as usize);
                for number in 0..MANY {
                    tasks.push(spawner.spawn(async move { black_box(number) }));
                }
                for task in tasks {
                    task.await;
                }
            }
            start.elapsed()
        })
    }
}

impl AsyncRow for Detached {
    const OPERATIONS: u64 = DETACHED;

    fn run<P: AsyncPeer>(peer: &P, repetitions: u64) -> Duration {
        let spawner = peer.inside();
        in_task(peer, async move {
            let start = Instant::now();
            for _ in 0..repetitions {
                let countdown = Countdown::leak(DETACHED);
                for _ in 0..DETACHED {
                    spawner.detach(async move { countdown.count() });
                }
                countdown.wait().await;
            }
            start.elapsed()
        })
    }
}

impl ClosureRow for Detached {
    const OPERATIONS: u64 = DETACHED;

    fn run<P: ClosurePeer>(peer: &P, repetitions: u64) -> Duration {
        let start = Instant::now();
        for _ in 0..repetitions {
            let countdown = Countdown::leak(DETACHED);
            let spawner = peer.inside();
            peer.outside().run(move || {
                for _ in 0..DETACHED {
                    spawner.run(|| countdown.count());
                }
            });
            futures::executor::block_on(countdown.wait());
        }
        start.elapsed()
    }
}

async fn spawn_and_await<S: Spawner>(spawner: S, count: u64) -> Duration {
    let start = Instant::now();
    for number in 0..count {
        spawner.spawn(async move { black_box(number) }).await;
    }
    start.elapsed()
}
