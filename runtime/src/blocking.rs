//! The blocking pool: threads for code that must block.
//!
//! A job is a task cell whose future runs the closure in its only poll, so its handle behaves as any other. One
//! lock holds the queue and all accounts of the threads: every count changes together with what it counts.
//!
//! - A submitter queues the job and, if more jobs are queued than threads are idle or starting, starts one
//!   more, up to the cap. If the system gives no thread the job stays queued for those that are there; if there
//!   are none it is cancelled, so that its handle does not wait for ever.
//! - A thread that has been idle for the keep-alive goes.
//! - At shutdown queued jobs are cancelled. Started ones cannot be interrupted: they end when they end, on
//!   threads that nobody waits for.

use std::collections::VecDeque;
use std::future::Future;
use std::io;
use std::panic::Location;
use std::pin::Pin;
use std::sync::{Condvar, Mutex, MutexGuard};
use std::task::{Context, Poll};
use std::time::Duration;

use crate::builder::Config;
use crate::context;
use crate::scheduler::Scheduler;
use crate::spawn::{NO_RUNTIME, create, run_here};
use crate::sync::Arc;
use crate::task::JoinHandle;
use crate::task::refs::Runnable;

/// Runs `job` on a thread where blocking is allowed, and returns at once.
///
/// For file access, name resolution, long computations: whatever would hold up a worker. A started job cannot
/// be aborted: [`JoinHandle::abort`] only reaches one that still waits for a thread. Dropping the runtime
/// does not wait for started jobs; nor does the end of the process.
///
/// # Panics
///
/// If there is no runtime on this thread.
///
/// ```
/// # runtime::block_on(async {
/// let text = runtime::spawn_blocking(|| std::fs::read_to_string("/etc/hostname")).await.unwrap();
/// # let _ = text;
/// # });
/// ```
#[track_caller]
pub fn spawn_blocking<F, T>(job: F) -> JoinHandle<T>
where
    F: FnOnce() -> T + Send + 'static,
    T: Send + 'static,
{
    let Some(scheduler) = context::current() else {
        panic!("{NO_RUNTIME}")
    };
    spawn_blocking_on(&scheduler, job, Location::caller())
}

pub(crate) fn spawn_blocking_on<F, T>(
    scheduler: &Arc<Scheduler>,
    job: F,
    location: &'static Location<'static>,
) -> JoinHandle<T>
where
    F: FnOnce() -> T + Send + 'static,
    T: Send + 'static,
{
    let task = create(scheduler, None, Job(Some(job)), (), location, false);
    let handle = JoinHandle::of(task.output);
    let registry = &scheduler.registry;
    let shard = registry.blocking_shard();
    if task.runnable.register(|job| registry.insert(job, shard)) {
        registry.census.job_birth();
        for refused in scheduler.blocking.submit(scheduler, task.runnable) {
            refused.cancel();
        }
    } else {
        // In the registry of none, it ends as a task does.
        let _ = registry.census.birth_outside();
        task.runnable.cancel();
    }
    handle
}

/// A closure as a future that is ready at its first poll.
struct Job<F>(Option<F>);

// The closure is moved out before it is called, never pinned.
impl<F> Unpin for Job<F> {}

impl<F: FnOnce() -> T, T> Future for Job<F> {
    type Output = T;

    fn poll(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<T> {
        Poll::Ready(self.0.take().expect("a blocking job runs once")())
    }
}

pub(crate) struct BlockingPool {
    state: Mutex<Accounts>,
    work: Condvar,
    most_threads: usize,
    keep_alive: Duration,
    thread_name: String,
}

#[derive(Default)]
struct Accounts {
    jobs: VecDeque<Runnable>,
    /// All threads; those that wait for a job; those that were started and have not looked for one yet.
    threads: usize,
    idle: usize,
    starting: usize,
    closed: bool,
}

impl BlockingPool {
    pub(crate) fn new(config: &Config) -> Self {
        Self {
            state: Mutex::default(),
            work: Condvar::new(),
            most_threads: config.most_blocking_threads,
            keep_alive: config.keep_alive,
            thread_name: format!("{}-blocking", config.thread_name),
        }
    }

    /// Queues a job; gives back those that no thread can run, for the caller to cancel.
    #[must_use]
    fn submit(&self, scheduler: &Arc<Scheduler>, job: Runnable) -> VecDeque<Runnable> {
        let mut pool = self.lock();
        if pool.closed {
            return VecDeque::from([job]);
        }
        pool.jobs.push_back(job);
        if pool.jobs.len() <= pool.idle + pool.starting {
            drop(pool);
            self.work.notify_one();
            return VecDeque::new();
        }
        if pool.threads == self.most_threads {
            return VecDeque::new();
        }
        pool.threads += 1;
        pool.starting += 1;
        drop(pool);
        match self.start_thread(scheduler) {
            Ok(()) => VecDeque::new(),
            Err(_) => self.thread_was_refused(),
        }
    }

    /// The system gives no more threads now. What is queued waits for those that are there; if none is, nobody would
    /// come for it, also for what others have queued meanwhile in the hope of the thread that was to start.
    fn thread_was_refused(&self) -> VecDeque<Runnable> {
        let mut pool = self.lock();
        pool.threads -= 1;
        pool.starting -= 1;
        if pool.threads == 0 {
            std::mem::take(&mut pool.jobs)
        } else {
            VecDeque::new()
        }
    }

    fn start_thread(&self, scheduler: &Arc<Scheduler>) -> io::Result<()> {
        let scheduler = Arc::clone(scheduler);
        let thread = std::thread::Builder::new().name(self.thread_name.clone());
        thread
            .spawn(move || scheduler.blocking.run(&scheduler))
            .map(drop)
    }

    /// What a thread of the pool does.
    fn run(&self, scheduler: &Arc<Scheduler>) {
        let _entered = context::enter(scheduler);
        let mut pool = self.lock();
        pool.starting -= 1;
        loop {
            if let Some(job) = pool.jobs.pop_front() {
                drop(pool);
                run_here(job, true);
                pool = self.lock();
                continue;
            }
            if pool.closed {
                break;
            }
            pool.idle += 1;
            let (next, waited) = self
                .work
                .wait_timeout_while(pool, self.keep_alive, |pool| {
                    pool.jobs.is_empty() && !pool.closed
                })
                .unwrap_or_else(|poisoned| poisoned.into_inner());
            pool = next;
            pool.idle -= 1;
            if waited.timed_out() && pool.jobs.is_empty() {
                break;
            }
        }
        pool.threads -= 1;
    }

    /// No job starts from here on; returns those that had not, for the caller to cancel.
    pub(crate) fn close(&self) -> VecDeque<Runnable> {
        let mut pool = self.lock();
        pool.closed = true;
        let jobs = std::mem::take(&mut pool.jobs);
        drop(pool);
        self.work.notify_all();
        jobs
    }

    /// Threads, and jobs that wait for one.
    pub(crate) fn sizes(&self) -> (usize, usize) {
        let pool = self.lock();
        (pool.threads, pool.jobs.len())
    }

    fn lock(&self) -> MutexGuard<'_, Accounts> {
        self.state
            .lock()
            .unwrap_or_else(|poisoned| poisoned.into_inner())
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::builder::Builder;
    use crate::task::tests::toy::ToyScheduler;

    /// Two submitters that hope for a thread each, and the system refuses both: the second refusal must not leave the
    /// first one's job to nobody.
    #[test]
    fn jobs_of_threads_that_were_refused_together_all_come_back() {
        let toys = ToyScheduler::new();
        let pool = BlockingPool::new(&Builder::new().config);
        for _ in 0..2 {
            let mut accounts = pool.lock();
            accounts.jobs.push_back(toys.detached());
            accounts.threads += 1;
            accounts.starting += 1;
        }
        assert!(pool.thread_was_refused().is_empty(), "one may still come");
        let left = pool.thread_was_refused();
        assert_eq!((left.len(), pool.sizes()), (2, (0, 0)));
        left.into_iter().for_each(Runnable::cancel);
    }
}
