//! The tree of Fibonacci calls with a cut-off: below it a branch is computed, not forked.
//!
//! As divide and conquer is written by those who care: tasks large enough to be worth one, few enough to
//! be counted. Futures await their branches; closures cannot, so their leaves add to a common sum and the
//! last one ends the sample.

use std::hint::black_box;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use super::{AsyncRow, ClosureRow, Row, mixed_programs, timed_row};
use crate::countdown::Countdown;
use crate::peers::{AsyncPeer, ClosurePeer, ClosureSpawner, Spawner, in_task};

const FIB: u32 = 30;
const RESULT: u64 = 832_040;

/// The largest call that is computed within its task.
const CUT_OFF: u32 = 10;

/// fib(30) with a task for each of the two branches above the cut-off; per task.
pub(super) struct CutOff;

/// Where the leaves of closures meet.
struct Sum {
    total: AtomicU64,
    leaves: &'static Countdown,
}

pub(super) fn rows() -> Vec<Row> {
    vec![timed_row(
        "fork_cutoff",
        "fib(30) cut off at 10, a task for each branch; per task",
        mixed_programs::<CutOff>,
    )]
}

impl AsyncRow for CutOff {
    const OPERATIONS: u64 = 2 * leaves(FIB) - 1;

    fn run<P: AsyncPeer>(peer: &P, repetitions: u64) -> Duration {
        let spawner = peer.inside();
        in_task(peer, async move {
            let start = Instant::now();
            for _ in 0..repetitions {
                assert_eq!(task_fib(&spawner, black_box(FIB)).await, RESULT);
            }
            start.elapsed()
        })
    }
}

impl ClosureRow for CutOff {
    const OPERATIONS: u64 = 2 * leaves(FIB) - 1;

    fn run<P: ClosurePeer>(peer: &P, repetitions: u64) -> Duration {
        let start = Instant::now();
        for _ in 0..repetitions {
            let sum: &'static Sum = Box::leak(Box::new(Sum {
                total: AtomicU64::new(0),
                leaves: Countdown::leak(leaves(FIB)),
            }));
            let spawner = peer.inside();
            peer.outside()
                .run(move || closure_fib(&spawner, black_box(FIB), sum));
            futures::executor::block_on(sum.leaves.wait());
            assert_eq!(sum.total.load(Ordering::Relaxed), RESULT);
        }
        start.elapsed()
    }
}

/// Not an async function: that the type of the handle is named here is what lets the future contain
/// itself without a box.
fn task_fib<S: Spawner>(spawner: &S, n: u32) -> S::Join<u64> {
    let inner = spawner.clone();
    spawner.spawn(async move {
        if n <= CUT_OFF {
            return computed(n);
        }
        let left = task_fib(&inner, n - 1);
        let right = task_fib(&inner, n - 2);
        left.await + right.await
    })
}

fn closure_fib<S: ClosureSpawner>(spawner: &S, n: u32, sum: &'static Sum) {
    if n <= CUT_OFF {
        // Relaxed: the countdown orders it before the one who waits.
        sum.total.fetch_add(computed(n), Ordering::Relaxed);
        return sum.leaves.count();
    }
    for branch in [n - 1, n - 2] {
        let inner = spawner.clone();
        spawner.run(move || closure_fib(&inner, branch, sum));
    }
}

/// By calls all the way down; the compiler sees no shorter way.
fn computed(n: u32) -> u64 {
    if black_box(n) < 2 {
        u64::from(n)
    } else {
        computed(n - 1) + computed(n - 2)
    }
}

/// How many calls of the tree are computed; each of the others has two branches.
const fn leaves(n: u32) -> u64 {
    if n <= CUT_OFF {
        1
    } else {
        leaves(n - 1) + leaves(n - 2)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_result_and_the_number_of_leaves_are_right() {
        assert_eq!(computed(FIB), RESULT);
        assert_eq!([9, 10, 11, 12, 13].map(leaves), [1, 1, 2, 3, 5]);
    }
}
