//! How many tasks are alive at once, at most, while trees of tasks run: what bounds the memory of
//! divide and conquer.
//!
//! A task lives from its spawn until it has run. Depth first, a tree of any size has a few branches
//! alive; breadth first it has its whole width.

use std::hint::black_box;
use std::sync::atomic::{AtomicU64, Ordering};

use super::{Metric, Program, Row, less, timed_row};
use crate::countdown::Countdown;
use crate::harness::Sample;
use crate::peers::{
    AsyncPeer, ClosurePeer, ClosureSpawner, Entry, PerAsyncPeer, PerClosurePeer, Spawner,
    each_async, each_closure, in_task,
};

const FIB: u32 = 25;
const RESULT: u64 = 75_025;

/// fib(25) with a task for each of the two branches, which it awaits.
pub(super) struct FibLive;

/// A tree of detached tasks: each spawns `WIDTH` more, `LEVELS` deep.
pub(super) struct TreeLive<const WIDTH: u64, const LEVELS: u32>;

/// Tasks alive now, and at most.
struct Census {
    alive: AtomicU64,
    peak: AtomicU64,
}

/// A task, counted as long as this is there.
struct Alive(&'static Census);

const PEAK: &[Metric] = &[less("", "tasks")];

pub(super) fn rows() -> Vec<Row> {
    let row = |name, about, programs| Row {
        metrics: PEAK,
        workers: Some(2),
        ..timed_row(name, about, programs)
    };
    vec![
        row(
            "fib_live",
            "most tasks alive in fib(25), a task for each branch",
            each_async::<FibLive>,
        ),
        row(
            "tree_live_detached",
            "most tasks alive in a binary tree of 2^17 detached tasks",
            tree_programs::<2, 16>,
        ),
        row(
            "tree_live_512",
            "most tasks alive when 512 tasks spawn 512 each",
            tree_programs::<512, 2>,
        ),
    ]
}

impl PerAsyncPeer for FibLive {
    type Item = Program;

    fn make<P: AsyncPeer>() -> Program {
        |_, _| {
            let peer = P::start();
            let census = Census::leak();
            let spawner = peer.inside();
            let result = in_task(&peer, async move {
                task_fib(&spawner, black_box(FIB), census).await
            });
            assert_eq!(result, RESULT);
            census.sample()
        }
    }
}

impl<const WIDTH: u64, const LEVELS: u32> PerAsyncPeer for TreeLive<WIDTH, LEVELS> {
    type Item = Program;

    fn make<P: AsyncPeer>() -> Program {
        |_, _| {
            let peer = P::start();
            let (census, left) = (Census::leak(), Countdown::leak(size(WIDTH, LEVELS)));
            let spawner = peer.inside();
            in_task(&peer, async move {
                task_tree::<_, WIDTH>(&spawner, LEVELS, census, left);
                left.wait().await;
            });
            census.sample()
        }
    }
}

impl<const WIDTH: u64, const LEVELS: u32> PerClosurePeer for TreeLive<WIDTH, LEVELS> {
    type Item = Program;

    fn make<P: ClosurePeer>() -> Program {
        |_, _| {
            let peer = P::start();
            let (census, left) = (Census::leak(), Countdown::leak(size(WIDTH, LEVELS)));
            let spawner = peer.inside();
            peer.outside()
                .run(move || closure_tree::<_, WIDTH>(&spawner, LEVELS, census, left));
            futures::executor::block_on(left.wait());
            census.sample()
        }
    }
}

fn tree_programs<const WIDTH: u64, const LEVELS: u32>() -> Vec<Entry<Program>> {
    let mut programs = each_async::<TreeLive<WIDTH, LEVELS>>();
    programs.extend(each_closure::<TreeLive<WIDTH, LEVELS>>());
    programs
}

/// Not an async function: that the type of the handle is named here is what lets the future contain
/// itself without a box.
fn task_fib<S: Spawner>(spawner: &S, n: u32, census: &'static Census) -> S::Join<u64> {
    let inner = spawner.clone();
    let alive = census.born();
    spawner.spawn(async move {
        let _until_the_end = alive;
        if n < 2 {
            return u64::from(n);
        }
        let left = task_fib(&inner, n - 1, census);
        let right = task_fib(&inner, n - 2, census);
        left.await + right.await
    })
}

fn task_tree<S: Spawner, const WIDTH: u64>(
    spawner: &S,
    levels: u32,
    census: &'static Census,
    left: &'static Countdown,
) {
    let inner = spawner.clone();
    let alive = census.born();
    spawner.detach(async move {
        let children = if levels > 0 { WIDTH } else { 0 };
        for _ in 0..children {
            task_tree::<_, WIDTH>(&inner, levels - 1, census, left);
        }
        drop(alive);
        left.count();
    });
}

fn closure_tree<S: ClosureSpawner, const WIDTH: u64>(
    spawner: &S,
    levels: u32,
    census: &'static Census,
    left: &'static Countdown,
) {
    let inner = spawner.clone();
    let alive = census.born();
    spawner.run(move || {
        let children = if levels > 0 { WIDTH } else { 0 };
        for _ in 0..children {
            closure_tree::<_, WIDTH>(&inner, levels - 1, census, left);
        }
        drop(alive);
        left.count();
    });
}

impl Census {
    fn leak() -> &'static Census {
        Box::leak(Box::new(Census {
            alive: AtomicU64::new(0),
            peak: AtomicU64::new(0),
        }))
    }

    fn born(&'static self) -> Alive {
        let alive = self.alive.fetch_add(1, Ordering::Relaxed) + 1;
        // Mostly it is no new peak, and reading is cheaper than to find that out by writing.
        if alive > self.peak.load(Ordering::Relaxed) {
            self.peak.fetch_max(alive, Ordering::Relaxed);
        }
        Alive(self)
    }

    fn sample(&self) -> Sample {
        Sample::of(vec![self.peak.load(Ordering::Relaxed) as f64])
    }
}

impl Drop for Alive {
    fn drop(&mut self) {
        self.0.alive.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Tasks of a whole tree, its root included.
const fn size(width: u64, levels: u32) -> u64 {
    match levels {
        0 => 1,
        levels => 1 + width * size(width, levels - 1),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_peak_stays_when_tasks_go() {
        let census = Census::leak();
        let first = census.born();
        drop([census.born(), census.born()]);
        drop(first);
        let _later = census.born();
        assert_eq!(census.sample().values, [3.0]);
    }

    #[test]
    fn sizes_of_trees() {
        assert_eq!(size(2, 16), (1 << 17) - 1);
        assert_eq!(size(512, 2), 1 + 512 + 512 * 512);
    }
}
