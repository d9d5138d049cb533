//! How a runtime ends.
//!
//! 1. *Drain* (`shutdown_timeout` only): everything goes on as before, spawns included, since a task that is
//!    asked to finish may need help; until no task is left or the time is up.
//! 2. *Close* the registry and the blocking pool. A spawn after this is refused, its future dropped by the
//!    spawner and its handle says cancelled. A spawn that raced is in the registry, since insertion and closing
//!    take the same lock, and is found by step 3.
//! 3. *Abort* every task in the registry, and cancel blocking jobs that had not begun. An abort queues the task
//!    like a wake, so its future is dropped by a worker in its loop, under no lock; what that destructor wakes,
//!    sends or locks meets a scheduler at work, and what it spawns is refused. A wake from a foreign thread that
//!    is between taking the permit and queueing the task keeps it alive and registered: it is waited for.
//! 4. *Wait* until the registry is empty. Whoever removes the last task wakes the waiter: both sides look under
//!    the shards' locks.
//! 5. *Stop*: set the flag, wake every parked and displaced thread; each leaves its loop when it finds nothing
//!    to run. Queues are empty now, since a queued task would be registered.
//! 6. *Join* the threads, then shut the reactor down: whoever still waits for a socket of this runtime from
//!    elsewhere is woken and told.
//!
//! On a worker or in a task or job of the runtime itself steps 4 to 6 would block it: then steps 1 to 3 are done at
//! once, and whoever removes the last task does step 5 and the rest of 6; the threads end on their own.
//! Without background threads the calling thread is the worker that does it all.

use std::future::poll_fn;
use std::panic::Location;
use std::sync::mpsc::{SyncSender, sync_channel};
use std::task::{Poll, Wake, Waker};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crate::block_on::run_as_caller;
use crate::context;
use crate::scheduler::Scheduler;
use crate::sync::Arc;
use crate::task::Id;
use crate::task::refs::TaskRef;
use crate::task::registry::Scope;

/// After the time is up, how long aborted tasks get to be dropped before they are reported.
const GRACE: Duration = Duration::from_millis(100);

/// What [`Runtime::shutdown_timeout`](crate::Runtime::shutdown_timeout) came to.
#[derive(Debug)]
#[non_exhaustive]
pub struct ShutdownReport {
    /// Tasks and blocking jobs, of those alive at the call, that finished in time.
    pub finished: usize,
    /// Tasks that were aborted when the time was up, and blocking jobs that had not begun. Inside a task of the
    /// runtime itself, where nothing is waited for, all that are left.
    pub aborted: usize,
    /// What could not be stopped: a poll that does not return, a blocking job that goes on. The threads they are
    /// on end when they do.
    pub still_running: Vec<StillRunning>,
}

/// A task that a shutdown could not stop.
#[derive(Debug)]
#[non_exhaustive]
pub struct StillRunning {
    /// Its id.
    pub id: Id,
    /// Its name, if `task::Builder` gave it one.
    pub name: Option<String>,
    /// The task that spawned it, if one did.
    pub parent: Option<Id>,
    /// Where it was spawned.
    pub location: &'static Location<'static>,
}

/// How much time a shutdown is given.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Patience {
    /// To abort at once, and wait for as long as it takes: `drop`.
    Unlimited,
    /// To drain for so long, then abort and wait for a moment.
    Limited(Duration),
    /// To abort at once and not wait.
    None,
}

/// The whole protocol.
pub(crate) fn shut_down(
    scheduler: &Arc<Scheduler>,
    threads: Vec<JoinHandle<()>>,
    patience: Patience,
) -> ShutdownReport {
    let before = scheduler.registry.snapshot();
    // Inside a task or a job of this runtime, on whatever thread, its own end cannot be waited for.
    let inside = on_this_stack(&before) > 0;
    let may_wait = patience != Patience::None && !inside && !context::is_worker();
    // Nobody else would cancel the tasks.
    let inline = threads.is_empty() && !inside && !context::is_worker_of(scheduler);
    let limit = match patience {
        Patience::Limited(limit) => {
            if may_wait {
                wait_for_empty(scheduler, Scope::All, inline, Some(limit));
            }
            Some(GRACE)
        }
        Patience::Unlimited | Patience::None => None,
    };
    let finished = before.iter().filter(|task| task.is_complete()).count();
    drop(before);
    let told_to_stop = close_and_abort(scheduler);

    let waits = may_wait || inline;
    if waits && wait_for_empty(scheduler, Scope::Tasks, inline, limit) {
        scheduler.stop();
        for thread in threads {
            // A worker's panic has aborted the process: there is no error to pass on.
            let _ = thread.join();
        }
        scheduler.registry.flush();
        scheduler.reactor().shutdown();
    } else {
        finish_when_empty(scheduler);
    }
    let still_running = if waits {
        still_running(scheduler)
    } else {
        Vec::new()
    };
    ShutdownReport {
        finished,
        aborted: told_to_stop.saturating_sub(still_running.len()),
        still_running,
    }
}

/// A thread leaves `block_on`, or has run a task, while the runtime ends. Without background threads it may be the
/// only one that can cancel what was aborted, as when the runtime was dropped by a task that it ran.
pub(crate) fn after_caller(scheduler: &Arc<Scheduler>) {
    let alone = !scheduler.background_threads && !context::is_worker();
    if !alone || !scheduler.registry.is_closed() {
        return;
    }
    // Those that this very stack is in the midst of end after us; whoever runs the outermost comes by here too.
    let mut tasks = scheduler.registry.snapshot();
    tasks.retain(|task| task.shard() != scheduler.registry.blocking_shard() as usize);
    let beneath = on_this_stack(&tasks);
    drop(tasks);
    let ours_are_left = || scheduler.registry.live(Scope::Tasks) > beneath;
    if ours_are_left() {
        let empty = poll_fn(|cx| {
            if !ours_are_left() {
                return Poll::Ready(());
            }
            // The finisher has the registry's waker; between two looks tasks are cancelled.
            cx.waker().wake_by_ref();
            Poll::Pending
        });
        run_as_caller(scheduler, empty);
    }
}

/// How many of `tasks` are being run on this thread, one inside the other.
fn on_this_stack(tasks: &[TaskRef]) -> usize {
    let running = context::tasks_on_this_stack();
    tasks
        .iter()
        .filter(|task| running.contains(&task.id()))
        .count()
}

/// Steps 2 and 3; how many tasks were told to stop.
fn close_and_abort(scheduler: &Arc<Scheduler>) -> usize {
    scheduler.registry.close();
    let tasks = scheduler.registry.snapshot();
    for task in &tasks {
        task.abort();
    }
    for job in scheduler.blocking.close() {
        job.run();
    }
    tasks.len()
}

/// Step 4; false if `limit` passed first.
fn wait_for_empty(
    scheduler: &Arc<Scheduler>,
    scope: Scope,
    inline: bool,
    limit: Option<Duration>,
) -> bool {
    if inline {
        let empty = poll_fn(
            |cx| match scheduler.registry.watch_empty(scope, cx.waker().clone()) {
                true => Poll::Pending,
                false => Poll::Ready(()),
            },
        );
        return run_as_caller(scheduler, async {
            match limit {
                None => {
                    empty.await;
                    true
                }
                Some(limit) => reactor::time::timeout(limit, empty).await.is_ok(),
            }
        });
    }
    let (sender, receiver) = sync_channel(1);
    let deadline = limit.and_then(|limit| Instant::now().checked_add(limit));
    if !scheduler
        .registry
        .watch_empty(scope, Waker::from(Arc::new(Signal(sender))))
    {
        return true;
    }
    match deadline {
        None => receiver.recv().is_ok(),
        Some(deadline) => receiver
            .recv_timeout(deadline.saturating_duration_since(Instant::now()))
            .is_ok(),
    }
}

/// Steps 5 and 6 by whoever removes the last task, now or later.
fn finish_when_empty(scheduler: &Arc<Scheduler>) {
    let finisher = Arc::new(Finisher(Arc::clone(scheduler)));
    if !scheduler
        .registry
        .watch_empty(Scope::Tasks, Waker::from(Arc::clone(&finisher)))
    {
        finisher.wake();
    }
}

fn still_running(scheduler: &Scheduler) -> Vec<StillRunning> {
    let tasks = scheduler.registry.snapshot();
    let alive = tasks.iter().filter(|task| !task.is_complete());
    alive
        .map(|task| StillRunning {
            id: task.id(),
            name: task.name().map(str::to_owned),
            parent: task.parent(),
            location: task.location(),
        })
        .collect()
}

/// Tells the thread that waits in `wait_for_empty`.
struct Signal(SyncSender<()>);

impl Wake for Signal {
    fn wake(self: Arc<Self>) {
        // Full or gone: it knows, or it no longer waits.
        let _ = self.0.try_send(());
    }
}

/// Ends the runtime when its last task is gone and nobody waits for that.
struct Finisher(Arc<Scheduler>);

impl Wake for Finisher {
    fn wake(self: Arc<Self>) {
        self.0.stop();
        self.0.registry.flush();
        self.0.reactor().shutdown();
    }
}
