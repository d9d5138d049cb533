//! What this thread is doing: which runtime it belongs to, which seat it holds, which task it polls.

use std::cell::{Cell, RefCell};
use std::ptr::{self, NonNull};
use std::rc::Rc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::scheduler::Scheduler;
use crate::seat::Seated;
use crate::sync::Arc;
use crate::task::Id;

struct Context {
    /// The runtime entered last on this thread.
    scheduler: RefCell<Option<Arc<Scheduler>>>,
    /// The seat of the worker that this thread is.
    seat: RefCell<Option<Rc<Seated>>>,
}

thread_local! {
    static CONTEXT: Context = const {
        Context { scheduler: RefCell::new(None), seat: RefCell::new(None) }
    };
    // Cells of their own, without a destructor, since these are read and written for every poll.
    static TASK: Cell<Option<OnStack>> = const { Cell::new(None) };
    // The tasks beneath the current one on this stack.
    static BENEATH: RefCell<Vec<OnStack>> = const { RefCell::new(Vec::new()) };
    static NUMBER: Cell<usize> = const { Cell::new(0) };
    // Where the seat is, for `join`, whose price a borrow and a count would double.
    static SEATED: Cell<*const Seated> = const { Cell::new(ptr::null()) };
    static HOME: Cell<usize> = const { Cell::new(usize::MAX) };
}

/// A task or blocking job that is being run on this thread.
#[derive(Clone, Copy)]
pub(crate) struct OnStack {
    id: Id,
    /// The scheduler's address, one more for a blocking job: two words are all that a poll exchanges.
    whose: usize,
}

impl OnStack {
    /// `scheduler`: its address, as [`Header::scheduler_address`](crate::task::header::Header::scheduler_address).
    pub(crate) fn new(id: Id, scheduler: usize, is_job: bool) -> Self {
        Self {
            id,
            whose: scheduler | usize::from(is_job),
        }
    }

    pub(crate) fn is_of(&self, scheduler: usize) -> bool {
        self.whose & !1 == scheduler
    }

    pub(crate) fn is_job(&self) -> bool {
        self.whose & 1 == 1
    }
}

/// Calls `f` with the runtime entered on this thread, and its seat if this thread is a worker of it. No user
/// code may run in `f`.
pub(crate) fn with<R>(f: impl FnOnce(Option<(&Arc<Scheduler>, Option<&Rc<Seated>>)>) -> R) -> R {
    let mut f = Some(f);
    let done = CONTEXT.try_with(|context| {
        let f = f.take().expect("called once");
        let scheduler = context.scheduler.borrow();
        let Some(scheduler) = &*scheduler else {
            return f(None);
        };
        let seat = context.seat.borrow();
        f(Some((
            scheduler,
            seat.as_ref()
                .filter(|seat| Arc::ptr_eq(&seat.scheduler, scheduler)),
        )))
    });
    // While the thread's locals are being destroyed there is no runtime any more.
    done.unwrap_or_else(|_| f.take().expect("not called yet")(None))
}

/// Calls `f` with this thread's seat, if it is a worker of `scheduler`. No user code may run in `f`. Also
/// while the thread's locals are being destroyed, where there is no seat.
pub(crate) fn with_seat<R>(
    scheduler: &Arc<Scheduler>,
    f: impl FnOnce(Option<&Rc<Seated>>) -> R,
) -> R {
    let mut f = Some(f);
    let done = CONTEXT.try_with(|context| {
        let seat = context.seat.borrow();
        let f = f.take().expect("called once");
        f(seat
            .as_ref()
            .filter(|seat| Arc::ptr_eq(&seat.scheduler, scheduler)))
    });
    done.unwrap_or_else(|_| f.take().expect("not called yet")(None))
}

/// The runtime entered on this thread.
pub(crate) fn current() -> Option<Arc<Scheduler>> {
    CONTEXT
        .try_with(|context| context.scheduler.borrow().clone())
        .ok()
        .flatten()
}

/// Where the seat of this thread is, if it is a worker of any runtime. It stays there until the user code that runs
/// on it returns: a worker gives its seat up between polls alone, and a `block_on` within one keeps it.
pub(crate) fn seated() -> Option<NonNull<Seated>> {
    NonNull::new(SEATED.get().cast_mut())
}

/// Whether this thread is a worker, of any runtime: it must not block.
pub(crate) fn is_worker() -> bool {
    CONTEXT
        .try_with(|context| context.seat.borrow().is_some())
        .unwrap_or(false)
}

/// Whether this thread is a worker of `scheduler`.
pub(crate) fn is_worker_of(scheduler: &Arc<Scheduler>) -> bool {
    with_seat(scheduler, |seat| seat.is_some())
}

/// Takes the seat, or takes it away; returns the one before.
pub(crate) fn set_seat(seat: Option<Rc<Seated>>) -> Option<Rc<Seated>> {
    let home = seat.as_ref().map(|seat| seat.index());
    if let Some(home) = home {
        reactor::context::set_shard(home);
    }
    HOME.set(home.unwrap_or(usize::MAX));
    SEATED.set(seat.as_ref().map_or(ptr::null(), Rc::as_ptr));
    CONTEXT
        .try_with(|context| context.seat.replace(seat))
        .unwrap_or(None)
}

/// Makes `scheduler` the current runtime of this thread until the guard is dropped.
pub(crate) fn enter(scheduler: &Arc<Scheduler>) -> Entered {
    let shard = thread_number();
    let reactor = reactor::context::set(Some((scheduler.reactor().clone(), shard)));
    let scheduler = CONTEXT
        .try_with(|context| context.scheduler.replace(Some(Arc::clone(scheduler))))
        .unwrap_or(None);
    Entered { scheduler, reactor }
}

/// Restores what was current before.
pub(crate) struct Entered {
    scheduler: Option<Arc<Scheduler>>,
    reactor: Option<(reactor::Reactor, usize)>,
}

impl Drop for Entered {
    fn drop(&mut self) {
        let replaced = CONTEXT.try_with(|context| context.scheduler.replace(self.scheduler.take()));
        drop(replaced);
        drop(reactor::context::set(self.reactor.take()));
    }
}

/// The task that this thread polls, or whose future or output it drops.
pub(crate) fn current_task() -> Option<Id> {
    TASK.get().map(|task| task.id)
}

/// Says which task runs, or that none does, until the guard is dropped.
#[inline]
pub(crate) fn set_current_task(task: Option<OnStack>) -> CurrentTask {
    let outer = TASK.replace(task);
    if let Some(outer) = outer {
        push_beneath(outer);
    }
    CurrentTask { outer }
}

/// Rare: a task within a task, or a `block_on` within a blocking job.
#[cold]
fn push_beneath(task: OnStack) {
    let _ = BENEATH.try_with(|beneath| beneath.borrow_mut().push(task));
}

#[cold]
fn pop_beneath() {
    let _ = BENEATH.try_with(|beneath| beneath.borrow_mut().pop());
}

/// Restores the task that ran before.
pub(crate) struct CurrentTask {
    outer: Option<OnStack>,
}

impl Drop for CurrentTask {
    #[inline]
    fn drop(&mut self) {
        TASK.set(self.outer);
        if self.outer.is_some() {
            pop_beneath();
        }
    }
}

/// How many such tasks and blocking jobs lie on this thread's stack, the current one among them.
pub(crate) fn count_on_this_stack(which: impl Fn(&OnStack) -> bool) -> usize {
    let beneath =
        BENEATH.try_with(|beneath| beneath.borrow().iter().filter(|task| which(task)).count());
    beneath.unwrap_or(0) + usize::from(TASK.get().as_ref().is_some_and(which))
}

/// The shard of the registry that is this thread's own, by the number of its seat (one that was lent has none of its
/// own; then, or if the seat is another runtime's, the number only misleads to a lock that others want too).
pub(crate) fn home_shard() -> Option<usize> {
    let home = HOME.get();
    (home != usize::MAX).then_some(home)
}

/// A small number that tells threads apart, for spreading them over shards.
pub(crate) fn thread_number() -> usize {
    static NEXT: AtomicUsize = AtomicUsize::new(1);
    NUMBER.with(|number| {
        if number.get() == 0 {
            // Relaxed: only uniqueness is asked of it.
            number.set(NEXT.fetch_add(1, Ordering::Relaxed));
        }
        number.get()
    })
}
