//! How a runtime ends.
//!
//! 1. *Drain* (`shutdown_timeout` only): everything goes on as before, spawns included, since a task that is
//!    asked to finish may need help; until no task is left or the time is up.
//! 2. *Close* the census and the blocking pool. A spawn after this is refused, its future dropped by the spawner
//!    and its handle says cancelled. A spawn that raced is counted (C3 of `task/census.rs`): step 4 waits for it.
//! 3. *Cancel* every task, wherever it is. One that is in a queue is cancelled by the worker that takes it out,
//!    instead of polled. One that is being polled, and would wait then, finds that the registry refuses it, and is
//!    cancelled on the spot. One that waits is in the registry: it is aborted, which queues it like a wake, as are
//!    the registered ones that run; so is a blocking job that had not begun. Between waiting and running nothing is
//!    lost: `Registry::insert` looks for the closing under the lock that `snapshot` takes. So each future is dropped
//!    by a worker in its loop, under no lock; what that destructor wakes, sends or locks meets a scheduler at work,
//!    and what it spawns is refused. A wake from a foreign thread that is between taking the permit and queueing the
//!    task keeps it alive and counted: it is waited for.
//! 4. *Wait* until the census is at zero. Whoever counts the last end wakes the waiter (C4).
//! 5. *Stop*: set the flag, wake every parked and displaced thread; each leaves its loop when it finds nothing
//!    to run. Queues are empty now, since a queued task would be counted.
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
use crate::task::census::Scope;

/// After the time is up, how long aborted tasks get to be dropped before they are reported.
const GRACE: Duration = Duration::from_millis(100);

/// What [`Runtime::shutdown_timeout`](crate::Runtime::shutdown_timeout) came to.
#[derive(Debug)]
#[non_exhaustive]
pub struct ShutdownReport {
    /// Tasks and blocking jobs that finished in the time that was given, those that were spawned meanwhile among them.
    pub finished: usize,
    /// Tasks that were aborted when the time was up, and blocking jobs that had not begun. Inside a task of the
    /// runtime itself, where nothing is waited for, all that are left.
    pub aborted: usize,
    /// What could not be stopped: a poll that does not return, a blocking job that goes on. The threads they are
    /// on end when they do. What is queued behind them and was never polled is not listed.
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
    let ended_before = scheduler.ended();
    // Inside a task or a job of this runtime, on whatever thread, its own end cannot be waited for.
    let inside = on_this_stack(scheduler, Scope::All) > 0;
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
    let finished = scheduler.ended() - ended_before;
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
    let (still_running, left) = if waits {
        (still_running(scheduler), scheduler.live(Scope::All))
    } else {
        (Vec::new(), 0)
    };
    ShutdownReport {
        finished,
        aborted: told_to_stop.saturating_sub(left),
        still_running,
    }
}

/// A thread leaves `block_on`, or has run a task, while the runtime ends. Without background threads it may be the
/// only one that can cancel what was aborted, as when the runtime was dropped by a task that it ran.
pub(crate) fn after_caller(scheduler: &Arc<Scheduler>) {
    let alone = !scheduler.background_threads && !context::is_worker();
    if !alone || !scheduler.registry.census.is_closed() {
        return;
    }
    // Those that this very stack is in the midst of end after us; whoever runs the outermost comes by here too.
    let beneath = on_this_stack(scheduler, Scope::Tasks);
    let ours_are_left = || scheduler.live(Scope::Tasks) > beneath;
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

/// How many tasks of the runtime are being run on this thread, one inside the other.
fn on_this_stack(scheduler: &Arc<Scheduler>, scope: Scope) -> usize {
    let address = Arc::as_ptr(scheduler).addr();
    context::count_on_this_stack(|task| {
        task.is_of(address) && (scope == Scope::All || !task.is_job())
    })
}

/// Steps 2 and 3; how many tasks were told to stop.
fn close_and_abort(scheduler: &Arc<Scheduler>) -> usize {
    scheduler.registry.census.close();
    let live = scheduler.live(Scope::All);
    for task in scheduler.registry.snapshot() {
        task.abort();
    }
    for job in scheduler.blocking.close() {
        job.run();
    }
    // Those that nobody runs now are told when they are.
    scheduler.notify();
    live
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
            |cx| match scheduler.watch_empty(scope, cx.waker().clone()) {
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
    if !scheduler.watch_empty(scope, Waker::from(Arc::new(Signal(sender)))) {
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
    if !scheduler.watch_empty(Scope::Tasks, Waker::from(Arc::clone(&finisher))) {
        finisher.wake();
    }
}

/// What a worker or a thread of the blocking pool is in the midst of. What is queued behind that is only counted.
fn still_running(scheduler: &Scheduler) -> Vec<StillRunning> {
    let tasks = scheduler.registry.snapshot();
    let registered = tasks.iter().map(|task| StillRunning {
        id: task.id(),
        name: task.name().map(str::to_owned),
        parent: task.parent(),
        location: task.location(),
    });
    let mut found: Vec<_> = registered.collect();
    // In its first poll a task is not registered yet.
    for seen in scheduler.running() {
        if found.iter().all(|known| known.id != seen.id) {
            found.push(StillRunning {
                id: seen.id,
                name: None,
                parent: seen.parent,
                location: seen.location,
            });
        }
    }
    found
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
