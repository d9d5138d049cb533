//! Spawning from threads that are not workers, as callbacks and foreign threads do.
//!
//! The threads stand ready before the clock starts; it stops when the last task has run. The calling
//! thread waits in `block_on` meanwhile, which is where systems without threads run their tasks.

use std::sync::Barrier;
use std::thread;
use std::time::{Duration, Instant};

use super::{AsyncRow, ClosureRow, Row, mixed_programs, timed_row};
use crate::countdown::Countdown;
use crate::peers::{AsyncPeer, ClosurePeer, ClosureSpawner, Spawner};

const TASKS: u64 = 50_000;

/// `THREADS` outside threads spawn 50,000 tasks between them.
pub(super) struct Remote<const THREADS: usize>;

pub(super) fn rows() -> Vec<Row> {
    vec![
        timed_row(
            "spawn_remote_1",
            "spawn 50,000 from 1 outside thread",
            mixed_programs::<Remote<1>>,
        ),
        timed_row(
            "spawn_remote_4",
            "spawn 50,000 from 4 outside threads",
            mixed_programs::<Remote<4>>,
        ),
    ]
}

impl<const THREADS: usize> AsyncRow for Remote<THREADS> {
    const OPERATIONS: u64 = TASKS;

    fn run<P: AsyncPeer>(peer: &P, repetitions: u64) -> Duration {
        let one = |countdown: &'static Countdown| {
            let spawner = peer.outside();
            move || spawner.detach(async move { countdown.count() })
        };
        (0..repetitions)
            .map(|_| {
                flood(THREADS, TASKS, one, |countdown| {
                    peer.block_on(countdown.wait())
                })
            })
            .sum()
    }
}

impl<const THREADS: usize> ClosureRow for Remote<THREADS> {
    const OPERATIONS: u64 = TASKS;

    fn run<P: ClosurePeer>(peer: &P, repetitions: u64) -> Duration {
        let one = |countdown: &'static Countdown| {
            let spawner = peer.outside();
            move || spawner.run(|| countdown.count())
        };
        (0..repetitions)
            .map(|_| {
                flood(THREADS, TASKS, one, |countdown| {
                    futures::executor::block_on(countdown.wait())
                })
            })
            .sum()
    }
}

/// How long it takes from the first of `tasks` to the end of the last: `spawn` makes a thread's way to
/// spawn one of them, `wait` waits for all of them.
pub(super) fn flood<S: Fn() + Send>(
    threads: usize,
    tasks: u64,
    spawn: impl Fn(&'static Countdown) -> S,
    wait: impl FnOnce(&'static Countdown),
) -> Duration {
    let share = tasks / threads as u64;
    let countdown = Countdown::leak(share * threads as u64);
    let ready = Barrier::new(threads + 1);
    thread::scope(|scope| {
        for _ in 0..threads {
            let one = spawn(countdown);
            scope.spawn(|| {
                let one = one;
                ready.wait();
                (0..share).for_each(|_| one());
            });
        }
        ready.wait();
        let start = Instant::now();
        wait(countdown);
        start.elapsed()
    })
}
