//! The toy scheduler and the counting fixtures, for the models and unit tests of the task cell and of what
//! handles tasks.

use std::collections::VecDeque;
use std::future::Future;
use std::num::NonZeroU64;
use std::panic::Location;
use std::pin::Pin;
// The counters are std's in the models too: they observe, and must not be a synchronisation of their own.
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::task::{Context, Poll, Wake};

use crate::park::Parker;
use crate::sync::{Arc, Mutex, lock};
use crate::task::census::Scope;
use crate::task::raw::{NewTask, new_task};
use crate::task::refs::{Runnable, TaskRef};
use crate::task::registry::{Key, Registry};
use crate::task::{Extra, Id, JoinHandle, Meta, Schedule};

/// One queue and no threads: whoever calls `run_one` or `run_until` is the worker.
pub(crate) struct ToyScheduler {
    queue: Mutex<VecDeque<Runnable>>,
    pub(crate) registry: Registry,
    /// Of the thread that made it, which may block in `run_until`.
    runner: Arc<Parker>,
    next_id: AtomicUsize,
    /// Calls of `schedule`, `reschedule`, `started` and `release`.
    pub(crate) scheduled: AtomicUsize,
    pub(crate) rescheduled: AtomicUsize,
    pub(crate) started: AtomicUsize,
    pub(crate) released: AtomicUsize,
}

/// What the scheduler's caller decides about a new task.
#[derive(Clone, Copy, Default)]
pub(crate) struct Birth {
    pub(crate) counted: bool,
}

impl ToyScheduler {
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Self {
            queue: Mutex::new(VecDeque::new()),
            registry: Registry::new(1),
            runner: Parker::new(None),
            next_id: AtomicUsize::new(1),
            scheduled: AtomicUsize::new(0),
            rescheduled: AtomicUsize::new(0),
            started: AtomicUsize::new(0),
            released: AtomicUsize::new(0),
        })
    }

    /// Creates, counts and queues a task, as `spawn` does; refused by the census, it is cancelled.
    pub(crate) fn spawn<F>(self: &Arc<Self>, future: F) -> JoinHandle<F::Output>
    where
        F: Future + Send + 'static,
        F::Output: Send + 'static,
    {
        let (runnable, handle) = self.create(future, ());
        if let Some(runnable) = runnable {
            self.push(runnable);
        }
        handle
    }

    /// Creates and counts a task. `None` if the census refused it: it was then cancelled.
    pub(crate) fn create<F, X>(
        self: &Arc<Self>,
        future: F,
        extra: X,
    ) -> (Option<Runnable>, JoinHandle<F::Output>)
    where
        F: Future + Send + 'static,
        F::Output: Send + 'static,
        X: Extra,
    {
        let (task, open) = self.born(future, extra, Birth::default());
        let handle = JoinHandle::of(task.output);
        if open {
            return (Some(task.runnable), handle);
        }
        task.runnable.cancel();
        (None, handle)
    }

    /// Creates a task whose handle is dropped; ids count from one.
    pub(crate) fn detached(self: &Arc<Self>) -> Runnable {
        let (task, _) = self.born(async {}, (), Birth::default());
        drop(JoinHandle::of(task.output));
        task.runnable
    }

    /// Creates and counts a task and nothing else; whether the census is open.
    #[track_caller]
    pub(crate) fn born<F, X>(
        self: &Arc<Self>,
        future: F,
        extra: X,
        kind: Birth,
    ) -> (NewTask<F::Output>, bool)
    where
        F: Future + Send + 'static,
        F::Output: Send + 'static,
        X: Extra,
    {
        let id = NonZeroU64::new(self.next_id.fetch_add(1, SeqCst) as u64);
        let meta = Meta {
            id: Id::from_raw(id.expect("ids start at one")),
            parent: None,
            location: Location::caller(),
            counted: kind.counted,
        };
        let open = self.registry.census.birth_outside();
        (new_task(future, self, meta, extra), open)
    }

    /// How many tasks are alive.
    pub(crate) fn live(&self) -> usize {
        self.registry.census.live(Scope::Tasks, std::iter::empty)
    }

    pub(crate) fn push(&self, task: Runnable) {
        let mut queue = lock(&self.queue);
        assert!(
            !queue.contains(&task),
            "a task may be in the queue once (I1)"
        );
        queue.push_back(task);
        drop(queue);
        self.runner.unpark();
    }

    pub(crate) fn queued(&self) -> usize {
        lock(&self.queue).len()
    }

    pub(crate) fn pop(&self) -> Option<Runnable> {
        lock(&self.queue).pop_front()
    }

    /// Runs the oldest task; false if there is none.
    pub(crate) fn run_one(&self) -> bool {
        match self.pop() {
            Some(task) => {
                task.run();
                true
            }
            None => false,
        }
    }

    /// Runs tasks, and blocks when there is none, until `done`. On the thread that made the scheduler. A wake
    /// that is lost makes it block for ever, which a model reports.
    #[cfg(loom)]
    pub(crate) fn run_until(&self, mut done: impl FnMut() -> bool) {
        while !done() {
            if !self.run_one() {
                self.runner.park();
            }
        }
    }

    /// Makes `run_until` look at its condition again.
    #[cfg(loom)]
    pub(crate) fn nudge(&self) {
        self.runner.unpark();
    }

    /// Permits that were made for tasks so far, births aside.
    pub(crate) fn permits(&self) -> usize {
        self.scheduled.load(SeqCst) + self.rescheduled.load(SeqCst)
    }
}

impl Schedule for ToyScheduler {
    fn schedule(this: &Arc<Self>, task: Runnable) {
        this.scheduled.fetch_add(1, SeqCst);
        this.push(task);
    }

    fn reschedule(this: &Arc<Self>, task: Runnable) {
        this.rescheduled.fetch_add(1, SeqCst);
        this.push(task);
    }

    fn started(this: &Arc<Self>) {
        this.started.fetch_add(1, SeqCst);
    }

    fn is_closing(this: &Arc<Self>) -> bool {
        this.registry.census.is_closed()
    }

    fn register(this: &Arc<Self>, task: TaskRef) -> Result<(), TaskRef> {
        this.registry.insert(task, 0)
    }

    fn release(this: &Arc<Self>, registered: Option<Key>) {
        this.released.fetch_add(1, SeqCst);
        if let Some(key) = registered {
            this.registry.remove(key);
            this.registry.flush();
        }
        this.registry.census.end_outside(std::iter::empty);
    }
}

impl Drop for ToyScheduler {
    fn drop(&mut self) {
        // A permit that is dropped aborts the process, which would hide the message of a test that failed.
        let left = std::mem::take(&mut *lock(&self.queue));
        let count = left.len();
        for task in left {
            let _ = task.into_raw();
        }
        assert!(
            count == 0 || std::thread::panicking(),
            "a test ended with {count} tasks in the queue"
        );
    }
}

/// Counts what happens to one task and what it owns.
#[derive(Default, Debug)]
pub(crate) struct Tally {
    polls: AtomicUsize,
    future_drops: AtomicUsize,
    output_drops: AtomicUsize,
    frees: AtomicUsize,
}

impl Tally {
    pub(crate) fn new() -> Arc<Self> {
        Arc::default()
    }

    pub(crate) fn polls(&self) -> usize {
        self.polls.load(SeqCst)
    }

    pub(crate) fn future_drops(&self) -> usize {
        self.future_drops.load(SeqCst)
    }

    pub(crate) fn output_drops(&self) -> usize {
        self.output_drops.load(SeqCst)
    }

    pub(crate) fn frees(&self) -> usize {
        self.frees.load(SeqCst)
    }

    /// Asserts all that a test can say: polls, drops of the future, drops of the output, frees of the cell.
    #[track_caller]
    pub(crate) fn expect(&self, polls: usize, future: usize, output: usize, frees: usize) {
        let counted = (
            self.polls(),
            self.future_drops(),
            self.output_drops(),
            self.frees(),
        );
        assert_eq!(
            counted,
            (polls, future, output, frees),
            "(polls, drops of the future, drops of the output, frees)"
        );
    }

    /// A future that counts here, and polls with `poll`.
    pub(crate) fn future<T, P>(self: &Arc<Self>, poll: P) -> CountedFuture<P>
    where
        P: FnMut(&mut Context<'_>) -> Poll<T>,
    {
        CountedFuture {
            tally: Arc::clone(self),
            poll,
            _boxed: Box::new(0),
        }
    }

    pub(crate) fn output(self: &Arc<Self>) -> CountedOutput {
        CountedOutput {
            tally: Arc::clone(self),
            _boxed: Box::new(0),
        }
    }

    /// Counts the free of the cell that it is an extra of.
    pub(crate) fn extra(self: &Arc<Self>) -> CountedExtra {
        CountedExtra {
            tally: Arc::clone(self),
        }
    }
}

/// Owns a box, so that a double drop or a leak is one of memory too.
pub(crate) struct CountedFuture<P> {
    tally: Arc<Tally>,
    poll: P,
    _boxed: Box<u64>,
}

impl<P: Unpin, T> Future for CountedFuture<P>
where
    P: FnMut(&mut Context<'_>) -> Poll<T>,
{
    type Output = T;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<T> {
        self.tally.polls.fetch_add(1, SeqCst);
        (self.poll)(cx)
    }
}

impl<P> Drop for CountedFuture<P> {
    fn drop(&mut self) {
        self.tally.future_drops.fetch_add(1, SeqCst);
    }
}

#[derive(Debug)]
pub(crate) struct CountedOutput {
    tally: Arc<Tally>,
    _boxed: Box<u64>,
}

impl Drop for CountedOutput {
    fn drop(&mut self) {
        self.tally.output_drops.fetch_add(1, SeqCst);
    }
}

pub(crate) struct CountedExtra {
    tally: Arc<Tally>,
}

impl Extra for CountedExtra {
    fn name(&self) -> Option<&str> {
        Some("counted")
    }
}

impl Drop for CountedExtra {
    fn drop(&mut self) {
        self.tally.frees.fetch_add(1, SeqCst);
    }
}

/// A waker that counts its wakes, and whose clones can be counted by `Arc::strong_count`.
#[derive(Default)]
pub(crate) struct WakeCount(AtomicUsize);

impl WakeCount {
    pub(crate) fn new() -> Arc<Self> {
        Arc::default()
    }

    pub(crate) fn get(&self) -> usize {
        self.0.load(SeqCst)
    }
}

impl Wake for WakeCount {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.0.fetch_add(1, SeqCst);
    }
}
