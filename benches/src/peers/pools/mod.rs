//! Closure pools after the published designs that this runtime starts from, each as plain as its
//! description: what is measured is the design, not how well it was polished.
//!
//! They run bare closures, without a handle, a waker or cancellation: a floor for what a task may cost,
//! not an alternative to a runtime. Start with [`Design`], which is all that they differ in; the files
//! are in the order of the designs:
//! - [`one_queue`] (a): one queue for all;
//! - [`locked_deques`] (b): a locked deque for each worker, who steal from one another;
//! - [`bounded_deques`] (c): bounded deques for each worker under one lock, dealt out in turn;
//! - [`chase_lev`] (d): a lock-free deque for each worker, and a backlog.

mod bounded_deques;
mod chase_lev;
mod locked_deques;
mod one_queue;
#[cfg(test)]
mod tests;

use std::thread::JoinHandle;

pub(crate) use self::bounded_deques::BoundedDeques;
pub(crate) use self::chase_lev::ChaseLev;
pub(crate) use self::locked_deques::LockedDeques;
pub(crate) use self::one_queue::OneQueue;
use super::{ClosurePeer, ClosureSpawner, Peer};

/// What waits in the queues.
type Job = Box<dyn FnOnce() + Send>;

/// How jobs reach the workers. Threads, and their end, are the same for all.
pub(crate) trait Design: Sized + Send + Sync + 'static {
    /// What the pool is called by, as in `pool-a-2`.
    const LETTER: char;

    /// What a worker has to itself.
    type Local: Send;

    /// The queues for so many workers, and what each worker has to itself.
    fn new(workers: usize) -> (Self, Vec<Self::Local>);

    /// Has `job` run some time; from within a job or from any other thread.
    fn submit(&self, job: Job);

    /// Runs jobs as worker number `index`; returns once [`stop`](Design::stop) was called and no job
    /// is left that this worker could run.
    fn work(&self, index: usize, local: Self::Local);

    /// No job comes from outside any more: the workers run what is left, and end.
    fn stop(&self);
}

/// `W` threads after design `D`. What they share is leaked, so that jobs reach it by a plain
/// reference, as they reach a static one.
pub(crate) struct Pool<D: Design, const W: usize> {
    shared: &'static D,
    threads: Vec<JoinHandle<()>>,
}

/// Submits to a pool; from within a job, the design finds the worker by a thread-local.
pub(crate) struct PoolSpawner<D: Design>(&'static D);

impl<D: Design, const W: usize> Peer for Pool<D, W> {
    const WORKERS: usize = W;

    fn name() -> String {
        format!("pool-{}-{W}", D::LETTER)
    }

    fn start() -> Self {
        let (shared, locals) = D::new(W);
        let shared: &'static D = Box::leak(Box::new(shared));
        let thread = |(index, local)| std::thread::spawn(move || shared.work(index, local));
        Pool {
            shared,
            threads: locals.into_iter().enumerate().map(thread).collect(),
        }
    }
}

impl<D: Design, const W: usize> Drop for Pool<D, W> {
    fn drop(&mut self) {
        self.shared.stop();
        for thread in self.threads.drain(..) {
            thread.join().expect("no job panics");
        }
    }
}

impl<D: Design, const W: usize> ClosurePeer for Pool<D, W> {
    type Inside = PoolSpawner<D>;
    type Outside = PoolSpawner<D>;

    fn inside(&self) -> PoolSpawner<D> {
        PoolSpawner(self.shared)
    }

    fn outside(&self) -> PoolSpawner<D> {
        PoolSpawner(self.shared)
    }
}

impl<D: Design> ClosureSpawner for PoolSpawner<D> {
    fn run(&self, job: impl FnOnce() + Send + 'static) {
        self.0.submit(Box::new(job));
    }
}

impl<D: Design> Clone for PoolSpawner<D> {
    fn clone(&self) -> Self {
        PoolSpawner(self.0)
    }
}
