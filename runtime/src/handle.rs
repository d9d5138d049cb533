//! A handle to a runtime, and bounded submission through it.

use std::fmt;
use std::future::Future;
use std::marker::PhantomData;
use std::panic::Location;

use crate::block_on;
use crate::blocking::spawn_blocking_on;
use crate::context;
use crate::metrics::Metrics;
use crate::scheduler::Scheduler;
use crate::spawn::{NO_RUNTIME, spawn_on, submit_counted, submit_or_run};
use crate::sync::Arc;
use crate::task::JoinHandle;

/// Refers to a runtime without keeping it at work: after its [`Runtime`](crate::Runtime) was dropped, what is
/// spawned through a handle is cancelled.
#[derive(Clone)]
pub struct Handle {
    scheduler: Arc<Scheduler>,
}

/// While it lives, a runtime is the thread's current one; see [`Handle::enter`]. It stays on its thread.
///
/// ```compile_fail,E0277
/// fn send<T: Send>(_: T) {}
/// let rt = runtime::Runtime::new().unwrap();
/// send(rt.enter());
/// ```
#[must_use = "the runtime is left when the guard is dropped"]
pub struct EnterGuard<'a> {
    // The guard itself has no `Drop`: `builder.build()?.enter()` borrows from a temporary.
    _entered: context::Entered,
    _handle: PhantomData<&'a Handle>,
    // What it restores belongs to this thread: it must not travel, as it would in a task that holds it across
    // an await.
    _not_send: PhantomData<*mut ()>,
}

/// There is no runtime on this thread; see [`Handle::try_current`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TryCurrentError(());

/// A future that [`Handle::try_spawn`] did not take, and why.
pub struct TrySpawnError<F> {
    pub(crate) future: F,
    pub(crate) full: bool,
}

impl Handle {
    pub(crate) fn of(scheduler: Arc<Scheduler>) -> Self {
        Self { scheduler }
    }

    pub(crate) fn scheduler(&self) -> &Arc<Scheduler> {
        &self.scheduler
    }

    /// The runtime of this thread.
    ///
    /// # Panics
    ///
    /// If there is none; [`Handle::try_current`] gives an error instead.
    #[track_caller]
    pub fn current() -> Self {
        match Self::try_current() {
            Ok(handle) => handle,
            Err(error) => panic!("{error}"),
        }
    }

    /// The runtime of this thread, if there is one.
    ///
    /// # Errors
    ///
    /// If this thread is not inside a runtime.
    pub fn try_current() -> Result<Self, TryCurrentError> {
        context::current().map(Self::of).ok_or(TryCurrentError(()))
    }

    /// As [`Runtime::block_on`](crate::Runtime::block_on); drives I/O and timers from any thread.
    ///
    /// # Panics
    ///
    /// As there.
    #[track_caller]
    pub fn block_on<F: Future>(&self, future: F) -> F::Output {
        block_on::block_on(&self.scheduler, future)
    }

    /// [`spawn`](crate::spawn) on this runtime.
    #[track_caller]
    pub fn spawn<F>(&self, future: F) -> JoinHandle<F::Output>
    where
        F: Future + Send + 'static,
        F::Output: Send + 'static,
    {
        spawn_on(&self.scheduler, future, (), Location::caller())
    }

    /// [`spawn_blocking`](crate::spawn_blocking) on this runtime.
    #[track_caller]
    pub fn spawn_blocking<F, T>(&self, job: F) -> JoinHandle<T>
    where
        F: FnOnce() -> T + Send + 'static,
        T: Send + 'static,
    {
        spawn_blocking_on(&self.scheduler, job, Location::caller())
    }

    /// Makes this the current runtime of the thread, so that `spawn`, sockets and timers find it, until the guard
    /// is dropped. Guards must be dropped in the reverse of the order in which they were made.
    pub fn enter(&self) -> EnterGuard<'_> {
        EnterGuard {
            _entered: context::enter(&self.scheduler),
            _handle: PhantomData,
            _not_send: PhantomData,
        }
    }

    /// A snapshot of the runtime's counters and queue lengths.
    pub fn metrics(&self) -> Metrics {
        Metrics::of(&self.scheduler)
    }

    /// Submits `future` to the backlog if there is room: see
    /// [`Builder::backlog_capacity`](crate::Builder::backlog_capacity), without which there always is.
    ///
    /// # Errors
    ///
    /// Gives the future back if the backlog is full, or the runtime was shut down.
    ///
    /// ```
    /// let rt = runtime::Builder::new_current_thread().backlog_capacity(1).build()?;
    /// let first = rt.handle().try_spawn(async { 1 }).unwrap();
    /// let refused = rt.handle().try_spawn(async { 2 }).unwrap_err();
    /// assert!(refused.is_full());
    /// assert_eq!(rt.block_on(first).unwrap(), 1);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    #[track_caller]
    pub fn try_spawn<F>(&self, future: F) -> Result<JoinHandle<F::Output>, TrySpawnError<F>>
    where
        F: Future + Send + 'static,
        F::Output: Send + 'static,
    {
        if self.scheduler.registry.census.is_closed() {
            return Err(TrySpawnError {
                future,
                full: false,
            });
        }
        match self.scheduler.backlog.admission() {
            Some(admission) if !admission.try_acquire() => {
                Err(TrySpawnError { future, full: true })
            }
            _ => Ok(submit_counted(&self.scheduler, future, Location::caller())),
        }
    }

    /// Waits until the backlog has room, then submits `future` to it. Waiters are served in turn. After a
    /// shutdown the handle says *cancelled*.
    ///
    /// Cancel safety: dropped while it waits, it drops `future`, which was not spawned.
    #[track_caller]
    #[expect(
        clippy::async_yields_async,
        reason = "the wait gives a handle, which can be awaited in turn"
    )]
    pub fn spawn_when_free<F>(
        &self,
        future: F,
    ) -> impl Future<Output = JoinHandle<F::Output>> + Send + use<F>
    where
        F: Future + Send + 'static,
        F::Output: Send + 'static,
    {
        let scheduler = Arc::clone(&self.scheduler);
        let location = Location::caller();
        async move {
            if let Some(admission) = scheduler.backlog.admission() {
                admission.acquire().await;
            }
            submit_counted(&scheduler, future, location)
        }
    }

    /// Submits `future` to the backlog if there is room; if not, the calling thread runs it, until it completes or
    /// first waits for something (from then on it is a task like any other). Tasks that submit tasks in this way
    /// run inside each other, 32 deep at most; beyond that they are queued as by [`Handle::spawn`]. So a producer that outruns the
    /// workers is slowed down to their pace by doing their work.
    #[track_caller]
    pub fn spawn_or_run<F>(&self, future: F) -> JoinHandle<F::Output>
    where
        F: Future + Send + 'static,
        F::Output: Send + 'static,
    {
        submit_or_run(&self.scheduler, future, Location::caller())
    }
}

impl fmt::Debug for Handle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Handle")
            .field("workers", &self.scheduler.workers)
            .field("sleep", &*self.scheduler.sleep)
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for EnterGuard<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EnterGuard").finish_non_exhaustive()
    }
}

impl fmt::Display for TryCurrentError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(NO_RUNTIME)
    }
}

impl std::error::Error for TryCurrentError {}

impl<F> TrySpawnError<F> {
    /// The backlog is full: try again later, or use [`Handle::spawn_when_free`] or [`Handle::spawn_or_run`].
    pub fn is_full(&self) -> bool {
        self.full
    }

    /// The runtime was shut down: it takes no more tasks.
    pub fn is_shut_down(&self) -> bool {
        !self.full
    }

    /// The future, never polled.
    pub fn into_inner(self) -> F {
        self.future
    }
}

impl<F> fmt::Debug for TrySpawnError<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TrySpawnError")
            .field("full", &self.full)
            .finish_non_exhaustive()
    }
}

impl<F> fmt::Display for TrySpawnError<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.full {
            true => {
                "the runtime's backlog is full: try again later, or wait with `spawn_when_free`"
            }
            false => "the runtime was shut down: it takes no more tasks",
        })
    }
}

impl<F> std::error::Error for TrySpawnError<F> {}
