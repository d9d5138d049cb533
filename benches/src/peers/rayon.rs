//! rayon: closures and fork-join, in a pool of its own.

use std::sync::Arc;

use rayon::{ThreadPool, ThreadPoolBuilder};

use super::{ClosurePeer, ClosureSpawner, JoinPeer, Peer};

/// A pool of `W` threads.
pub(crate) struct Rayon<const W: usize>(Arc<ThreadPool>);

/// `rayon::spawn`, which finds the pool of the thread it is called on.
#[derive(Clone)]
pub(crate) struct RayonInside;

impl<const W: usize> Peer for Rayon<W> {
    const WORKERS: usize = W;

    fn name() -> String {
        format!("rayon-{W}")
    }

    fn start() -> Self {
        Rayon(Arc::new(
            ThreadPoolBuilder::new()
                .num_threads(W)
                .build()
                .expect("rayon starts"),
        ))
    }
}

impl<const W: usize> ClosurePeer for Rayon<W> {
    type Inside = RayonInside;
    type Outside = Arc<ThreadPool>;

    fn inside(&self) -> RayonInside {
        RayonInside
    }

    fn outside(&self) -> Arc<ThreadPool> {
        self.0.clone()
    }
}

impl<const W: usize> JoinPeer for Rayon<W> {
    fn install<T: Send + 'static>(&self, job: impl FnOnce() -> T + Send + 'static) -> T {
        self.0.install(job)
    }

    fn join<A: Send, B: Send>(
        left: impl FnOnce() -> A + Send,
        right: impl FnOnce() -> B + Send,
    ) -> (A, B) {
        rayon::join(left, right)
    }
}

impl ClosureSpawner for RayonInside {
    fn run(&self, job: impl FnOnce() + Send + 'static) {
        rayon::spawn(job);
    }
}

impl ClosureSpawner for Arc<ThreadPool> {
    fn run(&self, job: impl FnOnce() + Send + 'static) {
        self.spawn(job);
    }
}
