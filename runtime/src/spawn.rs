//! (1) From a future to a scheduled task: create the cell, count it, schedule it.

use std::cell::Cell;
use std::future::Future;
use std::num::NonZeroU64;
use std::panic::Location;

use crate::context::{self, OnStack};
use crate::scheduler::Scheduler;
use crate::seat::Seat;
use crate::shutdown;
use crate::sync::Arc;
use crate::task::raw::{NewTask, new_task};
use crate::task::refs::Runnable;
use crate::task::slot::Origin;
use crate::task::{Extra, Id, JoinHandle, Meta};

/// What is said when there is no runtime on this thread.
pub(crate) const NO_RUNTIME: &str = "no runtime on this thread: call this from a task, inside \
     `Runtime::block_on` or under `#[runtime::main]`, or enter one with `Handle::enter`";

/// Spawns `future` as a task of the current runtime, and returns at once.
///
/// The task runs whether or not the [`JoinHandle`] is awaited or kept. It starts on this worker next if this
/// thread is a worker and spawns nothing else, else wherever there is time first. After the runtime was
/// shut down the future is dropped here and the handle says *cancelled*.
///
/// # Panics
///
/// If there is no runtime on this thread.
///
/// ```
/// # runtime::block_on(async {
/// let double = runtime::spawn(async { 2 * 21 });
/// assert_eq!(double.await.unwrap(), 42);
/// # });
/// ```
///
/// The future goes to other threads, so it must be `Send`:
///
/// ```compile_fail,E0277
/// use std::rc::Rc;
/// let local = Rc::new(1);
/// runtime::spawn(async move {
///     runtime::task::yield_now().await;
///     println!("{local}");
/// });
/// ```
///
/// and it outlives this function, so it must not borrow:
///
/// ```compile_fail,E0373
/// let text = String::from("mine");
/// runtime::spawn(async { println!("{text}") });
/// ```
#[track_caller]
pub fn spawn<F>(future: F) -> JoinHandle<F::Output>
where
    F: Future + Send + 'static,
    F::Output: Send + 'static,
{
    spawn_with(future, ())
}

/// [`spawn`], with something extra in the task's cell.
#[track_caller]
pub(crate) fn spawn_with<F, X>(future: F, extra: X) -> JoinHandle<F::Output>
where
    F: Future + Send + 'static,
    F::Output: Send + 'static,
    X: Extra,
{
    let location = Location::caller();
    // Behind an Option, so that a future that cannot be spawned is dropped out here: its destructor is user
    // code, and the context is borrowed in there.
    let mut parts = Some((future, extra));
    let spawned = context::with(|current| {
        let (scheduler, seat) = current?;
        let (future, extra) = parts.take()?;
        Some(schedule_new(
            scheduler,
            seat.map(|seat| &seat.seat),
            future,
            extra,
            location,
        ))
    });
    match spawned {
        Some(spawned) => spawned.settle(),
        None => panic!("{NO_RUNTIME}"),
    }
}

/// [`spawn`] on the runtime of `scheduler`, wherever this thread is.
pub(crate) fn spawn_on<F, X>(
    scheduler: &Arc<Scheduler>,
    future: F,
    extra: X,
    location: &'static Location<'static>,
) -> JoinHandle<F::Output>
where
    F: Future + Send + 'static,
    F::Output: Send + 'static,
    X: Extra,
{
    context::with_seat(scheduler, |seat| {
        schedule_new(
            scheduler,
            seat.map(|seat| &seat.seat),
            future,
            extra,
            location,
        )
    })
    .settle()
}

/// Submits a task whose place in the backlog, if it is bounded, has been acquired.
pub(crate) fn submit_counted<F>(
    scheduler: &Arc<Scheduler>,
    future: F,
    location: &'static Location<'static>,
) -> JoinHandle<F::Output>
where
    F: Future + Send + 'static,
    F::Output: Send + 'static,
{
    let counted = scheduler.backlog.admission().is_some();
    let task = create(scheduler, None, future, (), location, counted);
    launch(scheduler, None, task, false, |runnable| {
        scheduler.submit(runnable);
    })
    .settle()
}

/// Submits a task if the backlog has a place for it, else runs it here.
pub(crate) fn submit_or_run<F>(
    scheduler: &Arc<Scheduler>,
    future: F,
    location: &'static Location<'static>,
) -> JoinHandle<F::Output>
where
    F: Future + Send + 'static,
    F::Output: Send + 'static,
{
    match scheduler.backlog.admission() {
        Some(admission) if !admission.try_acquire() => {
            let Some(_depth) = Depth::deeper() else {
                return spawn_on(scheduler, future, (), location);
            };
            let task = create(scheduler, None, future, (), location, false);
            // Registered at once: no worker says that it is running this.
            launch(scheduler, None, task, true, |runnable| {
                let _entered = context::enter(scheduler);
                run_here(runnable, false);
                // It may have dropped its own runtime, which then relied on us if it has no threads.
                shutdown::after_caller(scheduler);
            })
            .settle()
        }
        _ => submit_counted(scheduler, future, location),
    }
}

/// How many tasks run inside each other on this thread, each submitted by the one around it.
struct Depth;

thread_local! {
    static DEPTH: Cell<u32> = const { Cell::new(0) };
}

impl Depth {
    /// `None` at the depth from which the stack would be in danger.
    fn deeper() -> Option<Depth> {
        let depth = DEPTH.get();
        (depth < 32).then(|| DEPTH.set(depth + 1)).map(|()| Depth)
    }
}

impl Drop for Depth {
    fn drop(&mut self) {
        DEPTH.set(DEPTH.get() - 1);
    }
}

fn schedule_new<F, X>(
    scheduler: &Arc<Scheduler>,
    seat: Option<&Seat>,
    future: F,
    extra: X,
    location: &'static Location<'static>,
) -> Spawned<F::Output>
where
    F: Future + Send + 'static,
    F::Output: Send + 'static,
    X: Extra,
{
    // One with a name is registered at once: only there a report finds the name.
    let named = extra.name().is_some();
    let Some(seat) = seat else {
        let admission = scheduler.backlog.admission();
        if let Some(admission) = admission {
            // Never refused, but counted; given back by the first run, or by the cancellation.
            admission.acquire_anyway();
        }
        let counted = admission.is_some();
        let task = create(scheduler, None, future, extra, location, counted);
        return launch(scheduler, None, task, named, |runnable| {
            scheduler.submit(runnable);
        });
    };
    let task = create(scheduler, Some(seat), future, extra, location, false);
    launch(scheduler, Some(seat), task, named, |runnable| {
        scheduler.push_local(seat, runnable, Origin::Spawned);
    })
}

/// Counts `task`, registers it if it is not to wait for that until it waits itself, and lets `schedule` have its
/// permit, unless the runtime was shut down.
fn launch<T>(
    scheduler: &Scheduler,
    seat: Option<&Seat>,
    task: NewTask<T>,
    register: bool,
    schedule: impl FnOnce(Runnable),
) -> Spawned<T> {
    let NewTask { runnable, output } = task;
    let registry = &scheduler.registry;
    let open = match seat {
        Some(seat) if seat.peer.running.is_some() => {
            seat.peer.tally.count_birth();
            !registry.census.is_closed()
        }
        _ => registry.census.birth_outside(),
    };
    let shard = || registry.shard_for(seat.map(Seat::index));
    let open = open && (!register || runnable.register(|task| registry.insert(task, shard())));
    let refused = if open {
        schedule(runnable);
        None
    } else {
        Some(runnable)
    };
    Spawned {
        handle: JoinHandle::of(output),
        refused,
    }
}

/// Polls a task once, or runs a blocking job, on this thread, in the midst of whatever it does.
#[inline]
pub(crate) fn run_here(runnable: Runnable, is_job: bool) {
    let task = runnable
        .as_task()
        .map(|task| OnStack::new(task.id(), task.scheduler_address(), is_job));
    let _current = context::set_current_task(task);
    reactor::budget::with_budget(|| runnable.run());
}

/// A new task that is neither counted nor scheduled. `counted`: it has a place of the bounded backlog.
pub(crate) fn create<F, X>(
    scheduler: &Arc<Scheduler>,
    seat: Option<&Seat>,
    future: F,
    extra: X,
    location: &'static Location<'static>,
    counted: bool,
) -> NewTask<F::Output>
where
    F: Future + Send + 'static,
    F::Output: Send + 'static,
    X: Extra,
{
    let id = NonZeroU64::new(scheduler.next_id(seat)).expect("ids start at one");
    let meta = Meta {
        id: Id::from_raw(id),
        parent: context::current_task(),
        location,
        counted,
    };
    new_task(future, scheduler, meta, extra)
}

/// What came of a spawn; [`Spawned::settle`] it where user code may run.
#[must_use]
pub(crate) struct Spawned<T> {
    handle: JoinHandle<T>,
    /// The runtime was shut down: the task is to be cancelled.
    refused: Option<Runnable>,
}

impl<T> Spawned<T> {
    fn settle(self) -> JoinHandle<T> {
        if let Some(runnable) = self.refused {
            runnable.cancel();
        }
        self.handle
    }
}
