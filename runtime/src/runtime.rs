//! The owner of a runtime.

use std::future::Future;
use std::io;
use std::panic::Location;
use std::thread::JoinHandle as Thread;
use std::time::Duration;

use crate::block_on;
use crate::blocking::spawn_blocking_on;
use crate::builder::Builder;
use crate::handle::{EnterGuard, Handle};
use crate::metrics::Metrics;
use crate::shutdown::{Patience, ShutdownReport, shut_down};
use crate::spawn::spawn_on;
use crate::task::JoinHandle;

/// A runtime: its workers, its reactor, its tasks.
///
/// Dropping it cancels every task that is left, each future dropped on a worker, and joins the worker threads.
/// It waits for polls that are under way, and not for blocking jobs that have begun. Dropped on a worker of any
/// runtime (inside a task) it does not wait: the rest happens in the background.
///
/// ```
/// let rt = runtime::Runtime::new()?;
/// let answer = rt.block_on(async { runtime::spawn(async { 42 }).await });
/// assert_eq!(answer.unwrap(), 42);
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Debug)]
pub struct Runtime {
    handle: Handle,
    threads: Vec<Thread<()>>,
    is_shut_down: bool,
}

impl Runtime {
    /// A runtime with the defaults of [`Builder::new`].
    ///
    /// # Errors
    ///
    /// Those of [`Builder::build`].
    pub fn new() -> io::Result<Self> {
        Builder::new().build()
    }

    pub(crate) fn new_with(handle: Handle) -> Self {
        Self {
            handle,
            threads: Vec::new(),
            is_shut_down: false,
        }
    }

    pub(crate) fn add_thread(&mut self, thread: Thread<()>) {
        self.threads.push(thread);
    }

    /// Runs `future` to its end on this thread, which takes a worker's seat meanwhile: it runs other tasks,
    /// drives I/O and fires timers whenever `future` waits. Tasks that are left go on if there are background
    /// threads.
    ///
    /// # Panics
    ///
    /// With the panic of `future`. On a worker of a runtime, where blocking would hold up tasks: use `.await`
    /// there, or [`spawn_blocking`](crate::spawn_blocking), whose threads may call this.
    #[track_caller]
    pub fn block_on<F: Future>(&self, future: F) -> F::Output {
        block_on::block_on(self.handle.scheduler(), future)
    }

    /// [`spawn`](crate::spawn) on this runtime.
    #[track_caller]
    pub fn spawn<F>(&self, future: F) -> JoinHandle<F::Output>
    where
        F: Future + Send + 'static,
        F::Output: Send + 'static,
    {
        spawn_on(self.handle.scheduler(), future, (), Location::caller())
    }

    /// [`spawn_blocking`](crate::spawn_blocking) on this runtime.
    #[track_caller]
    pub fn spawn_blocking<F, T>(&self, job: F) -> JoinHandle<T>
    where
        F: FnOnce() -> T + Send + 'static,
        T: Send + 'static,
    {
        spawn_blocking_on(self.handle.scheduler(), job, Location::caller())
    }

    /// The handle to this runtime, to be cloned and taken elsewhere.
    pub fn handle(&self) -> &Handle {
        &self.handle
    }

    /// Makes this the current runtime of the thread, until the guard is dropped.
    pub fn enter(&self) -> EnterGuard<'_> {
        self.handle.enter()
    }

    /// As [`Handle::metrics`].
    pub fn metrics(&self) -> Metrics {
        self.handle.metrics()
    }

    /// Waits until every task and blocking job has finished, for `limit` at most; then cancels what is left, and
    /// reports. Spawning goes on working until the time is up.
    ///
    /// A poll that does not return, or a blocking job that goes on, cannot be stopped: the report says where it
    /// was spawned, and its thread is left to end on its own. Without background threads this thread does the
    /// tasks' work, and cannot return in the middle of a poll. On a worker of a runtime it does not wait at all.
    pub fn shutdown_timeout(mut self, limit: Duration) -> ShutdownReport {
        self.end(Patience::Limited(limit))
    }

    /// Cancels every task and returns at once; the rest happens in the background. Without background threads this
    /// thread does it before it returns.
    pub fn shutdown_background(mut self) {
        self.end(Patience::None);
    }

    fn end(&mut self, patience: Patience) -> ShutdownReport {
        self.is_shut_down = true;
        let threads = std::mem::take(&mut self.threads);
        shut_down(self.handle.scheduler(), threads, patience)
    }
}

impl Drop for Runtime {
    fn drop(&mut self) {
        if !self.is_shut_down {
            self.end(Patience::Unlimited);
        }
    }
}
