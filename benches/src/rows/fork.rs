//! Tasks that spawn tasks: a chain, and the tree of Fibonacci calls.
//!
//! The trees have no cut-off: a branch is all overhead, which is the point.

use std::hint::black_box;
use std::time::{Duration, Instant};

use super::{
    AsyncRow, ClosureRow, JoinRow, Row, async_programs, join_programs, mixed_programs, timed_row,
};
use crate::countdown::Countdown;
use crate::peers::{AsyncPeer, ClosurePeer, ClosureSpawner, JoinPeer, Spawner, in_task};

const DEPTH: u64 = 1000;
const TASK_FIB: u32 = 25;
const JOIN_FIB: u32 = 30;

/// A task spawns the next and ends, 1000 deep; until the last has run.
pub(super) struct Chained;

/// fib(25) with a task for each of the two branches; per task.
pub(super) struct TaskFib;

/// fib(30) by joining two closures; per join.
pub(super) struct JoinFib;

pub(super) fn rows() -> Vec<Row> {
    vec![
        timed_row(
            "chained",
            "a task spawns the next, 1000 deep",
            mixed_programs::<Chained>,
        ),
        timed_row(
            "fib",
            "fib(25), a task for each branch; per task",
            async_programs::<TaskFib>,
        ),
        Row {
            beside: &["rayon"],
            ..timed_row(
                "join_fib",
                "fib(30) by join of closures, no cut-off; per fork",
                join_programs::<JoinFib>,
            )
        },
    ]
}

impl AsyncRow for Chained {
    const OPERATIONS: u64 = DEPTH;

    fn run<P: AsyncPeer>(peer: &P, repetitions: u64) -> Duration {
        let spawner = peer.inside();
        in_task(peer, async move {
            let start = Instant::now();
            for _ in 0..repetitions {
                let end = Countdown::leak(1);
                task_link(&spawner, DEPTH, end);
                end.wait().await;
            }
            start.elapsed()
        })
    }
}

impl ClosureRow for Chained {
    const OPERATIONS: u64 = DEPTH;

    fn run<P: ClosurePeer>(peer: &P, repetitions: u64) -> Duration {
        // One long chain, so that a thread from outside is woken once, not once for each thousand.
        let start = Instant::now();
        let end = Countdown::leak(1);
        let spawner = peer.inside();
        peer.outside()
            .run(move || closure_link(&spawner, DEPTH * repetitions, end));
        futures::executor::block_on(end.wait());
        start.elapsed()
    }
}

impl AsyncRow for TaskFib {
    const OPERATIONS: u64 = 2 * forks(TASK_FIB);

    fn run<P: AsyncPeer>(peer: &P, repetitions: u64) -> Duration {
        let spawner = peer.inside();
        in_task(peer, async move {
            let start = Instant::now();
            for _ in 0..repetitions {
                assert_eq!(task_fib(&spawner, black_box(TASK_FIB)).await, fib(TASK_FIB));
            }
            start.elapsed()
        })
    }
}

impl JoinRow for JoinFib {
    const OPERATIONS: u64 = forks(JOIN_FIB);

    fn run<P: JoinPeer>(peer: &P, repetitions: u64) -> Duration {
        peer.install(move || {
            let start = Instant::now();
            for _ in 0..repetitions {
                assert_eq!(join_fib::<P>(black_box(JOIN_FIB)), fib(JOIN_FIB));
            }
            start.elapsed()
        })
    }
}

fn task_link<S: Spawner>(spawner: &S, left: u64, end: &'static Countdown) {
    let next = spawner.clone();
    spawner.detach(async move {
        match left - 1 {
            0 => end.count(),
            left => task_link(&next, left, end),
        }
    });
}

fn closure_link<S: ClosureSpawner>(spawner: &S, left: u64, end: &'static Countdown) {
    let next = spawner.clone();
    spawner.run(move || match left - 1 {
        0 => end.count(),
        left => closure_link(&next, left, end),
    });
}

/// Not an async function: that the type of the handle is named here is what lets the future contain
/// itself without a box.
fn task_fib<S: Spawner>(spawner: &S, n: u32) -> S::Join<u64> {
    let inner = spawner.clone();
    spawner.spawn(async move {
        if n < 2 {
            return u64::from(n);
        }
        let left = task_fib(&inner, n - 1);
        let right = task_fib(&inner, n - 2);
        left.await + right.await
    })
}

fn join_fib<P: JoinPeer>(n: u32) -> u64 {
    if n < 2 {
        return u64::from(n);
    }
    let (left, right) = P::join(|| join_fib::<P>(n - 1), || join_fib::<P>(n - 2));
    left + right
}

/// How many calls of the tree call further.
const fn forks(n: u32) -> u64 {
    fib(n + 1) - 1
}

const fn fib(n: u32) -> u64 {
    let (mut this, mut next, mut left) = (0, 1, n);
    while left > 0 {
        (this, next) = (next, this + next);
        left -= 1;
    }
    this
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forks_are_the_calls_that_are_no_leaves() {
        fn counted(n: u32) -> u64 {
            if n < 2 {
                0
            } else {
                1 + counted(n - 1) + counted(n - 2)
            }
        }
        for n in 0..20 {
            assert_eq!(forks(n), counted(n), "fib({n})");
        }
    }
}
