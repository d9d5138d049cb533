//! (2) The task cell: one heap block with the header, then the future or its output in one slot.
//!
//! ```text
//!   Cell<F, S, X>
//!   ├─ Header    vtable │ stamp │ shard, key │ state │ scheduler │ id, parent │ location │ join waker
//!   ├─ stage     Running(future) → Finished(output) → Consumed
//!   └─ extra     what only some tasks have (a name)
//! ```
//!
//! # Safety
//!
//! The functions here know the future's type; the owned pointers in `refs.rs` reach them through the vtable.
//! The rules they rely on stand in [`super`] as T1 to T6, the invariants I1 to I12 in ARCHITECTURE.md.
#![allow(unsafe_code)]

use std::future::Future;
use std::marker::PhantomData;
use std::mem::{ManuallyDrop, MaybeUninit};
use std::pin::Pin;
use std::ptr::NonNull;
use std::task::{Context, Poll, Waker};

use super::header::{Header, Prefix, UNREGISTERED};
use super::join::Failure;
use super::refs::{OutputRef, Runnable, TaskRef, borrowed_waker};
use super::state::{Idle, State};
use super::{Extra, Meta, Schedule};
use crate::panic;
use crate::sync::atomic::AtomicU32;
use crate::sync::{Arc, UnsafeCell};

/// The functions that know the future's type.
pub(crate) struct Vtable {
    /// Uses up the run permit.
    pub(super) run: unsafe fn(NonNull<Prefix>),
    pub(super) kind: Kind,
    /// The rest is called for `Kind::Task` alone.
    pub(super) task: TaskVtable,
}

pub(super) struct TaskVtable {
    /// Queues the task; the caller hands over the run permit.
    pub(super) schedule: unsafe fn(NonNull<Header>),
    /// Moves the `Result<T, Failure>` out to where the pointer says.
    pub(super) take_output: unsafe fn(NonNull<Header>, *mut ()),
    pub(super) drop_output: unsafe fn(NonNull<Header>),
    pub(super) name: unsafe fn(NonNull<Header>) -> Option<NonNull<str>>,
    pub(super) dealloc: unsafe fn(NonNull<Header>),
}

impl Vtable {
    /// For a job that `run` executes to its end. It has no references, no output and no waker, so nothing
    /// but `run` can be reached from it.
    pub(crate) const fn stack_job(run: unsafe fn(NonNull<Prefix>)) -> Self {
        const fn never() -> TaskVtable {
            TaskVtable {
                schedule: |_| panic::scheduler_bug("a stack job was woken"),
                take_output: |_, _| panic::scheduler_bug("a stack job was joined"),
                drop_output: |_| panic::scheduler_bug("a stack job was detached"),
                name: |_| None,
                dealloc: |_| panic::scheduler_bug("a stack job was freed"),
            }
        }
        Self {
            run,
            kind: Kind::StackJob,
            task: never(),
        }
    }
}

/// What a [`Runnable`] points to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A task cell: the prefix of a [`Header`].
    Task,
    /// A job on the stack of a thread that waits in `join`.
    StackJob,
}

#[repr(C)]
struct Cell<F: Future, S, X> {
    header: Header,
    stage: UnsafeCell<Stage<F>>,
    extra: X,
    _scheduler: PhantomData<Arc<S>>,
}

enum Stage<F: Future> {
    Running(F),
    Finished(Result<F::Output, Failure>),
    Consumed,
}

/// The two handles of a new task.
pub(crate) struct NewTask<T> {
    /// The run permit, and with it the scheduler's reference (T2).
    pub(crate) runnable: Runnable,
    /// The handle's reference.
    pub(crate) output: OutputRef<T>,
}

/// Puts `future` on the heap as a task of `scheduler`.
///
/// The future and its output are sent to whichever thread polls; callers bound `F` and its output by `Send`
/// (they do so in the public signatures, where the error message belongs).
pub(crate) fn new_task<F, S, X>(
    future: F,
    scheduler: &Arc<S>,
    meta: Meta,
    extra: X,
) -> NewTask<F::Output>
where
    F: Future + Send + 'static,
    F::Output: Send + 'static,
    S: Schedule,
    X: Extra,
{
    let cell = Box::new(Cell::<F, S, X> {
        header: Header {
            prefix: Prefix {
                vtable: &const { Cell::<F, S, X>::VTABLE },
                stamp: AtomicU32::new(0),
                shard: AtomicU32::new(0),
            },
            key: AtomicU32::new(UNREGISTERED),
            state: State::new(meta.counted),
            scheduler: Arc::as_ptr(scheduler).cast(),
            id: meta.id,
            parent: meta.parent,
            location: meta.location,
            join_waker: UnsafeCell::new(MaybeUninit::uninit()),
        },
        stage: UnsafeCell::new(Stage::Running(future)),
        extra,
        _scheduler: PhantomData,
    });
    let header = NonNull::from(Box::leak(cell)).cast::<Header>();
    NewTask {
        runnable: Runnable::adopt(header.cast()),
        output: OutputRef::adopt(header),
    }
}

impl<F, S, X> Cell<F, S, X>
where
    F: Future + Send + 'static,
    F::Output: Send + 'static,
    S: Schedule,
    X: Extra,
{
    const VTABLE: Vtable = Vtable {
        run: Self::run,
        kind: Kind::Task,
        task: TaskVtable {
            schedule: Self::schedule,
            take_output: Self::take_output,
            drop_output: Self::drop_output,
            name: Self::name,
            dealloc: Self::dealloc,
        },
    };

    /// One run: a poll, or the cancellation. The permit came with the call.
    unsafe fn run(ptr: NonNull<Prefix>) {
        let ptr = ptr.cast::<Header>();
        // SAFETY: T2. The permit keeps the cell alive until it is complete or idle; after either, `cell` is
        // used again only where a permit or the scheduler's reference is still ours.
        let cell = unsafe { ptr.cast::<Self>().as_ref() };
        // SAFETY: T6, for as long as the task is not complete.
        let scheduler = unsafe { scheduler_of::<S>(ptr) };
        let start = cell.header.state.start(!cell.header.is_registered());
        if start.counted {
            S::started(&scheduler);
        }
        let output = if start.cancel || S::is_closing(&scheduler) {
            Err(Failure::Cancelled)
        } else {
            match cell.poll(ptr) {
                Ok(Poll::Ready(output)) => Ok(output),
                Ok(Poll::Pending) if cell.may_wait(&scheduler, ptr) => {
                    if cell.header.state.idle() == Idle::Requeue {
                        S::reschedule(&scheduler, Runnable::adopt(ptr.cast()));
                    }
                    return;
                }
                Ok(Poll::Pending) => Err(Failure::Cancelled),
                Err(payload) => Err(Failure::panicked(payload)),
            }
        };
        // Of a task that never was registered the scheduler's reference is still here (T2).
        let unregistered = (!cell.header.is_registered()).then(|| TaskRef::adopt(ptr));
        // SAFETY: T2. RUNNING is ours, and the scheduler's reference has not been given up.
        unsafe { Self::finish(ptr, &scheduler, output) };
        drop(unregistered);
    }

    /// Sees to it that the task can be found when it waits. False if the runtime is shutting down.
    fn may_wait(&self, scheduler: &Arc<S>, ptr: NonNull<Header>) -> bool {
        // One that was woken meanwhile goes to a queue, and is found there.
        self.header.is_registered()
            || self.header.state.is_scheduled()
            || pass_to_registry(ptr, |task| S::register(scheduler, task))
    }

    /// Polls the future where it lies. `Err` is the payload of a panic.
    fn poll(&self, ptr: NonNull<Header>) -> Result<Poll<F::Output>, panic::Payload> {
        let waker = borrowed_waker(ptr);
        let mut cx = Context::from_waker(&waker);
        self.stage.with_mut(|stage| {
            // SAFETY: I2. RUNNING is ours, so nobody else touches the stage.
            let Stage::Running(future) = (unsafe { &mut *stage }) else {
                panic::scheduler_bug("a task was run after its future was gone");
            };
            // SAFETY: T5. The future stays in the heap block, and is dropped in place before that is freed.
            let future = unsafe { Pin::new_unchecked(future) };
            panic::catch(|| future.poll(&mut cx))
        })
    }

    /// Drops the future, leaves the output, tells the handle and leaves the registry. Not a method: the cell may be
    /// freed before this returns, and no reference to it may be an argument then.
    unsafe fn finish(ptr: NonNull<Header>, scheduler: &Arc<S>, output: Result<F::Output, Failure>) {
        // SAFETY: T2, by contract; `cell` is not used again after `release`.
        let cell = unsafe { ptr.cast::<Self>().as_ref() };
        // A destructor that panics is the task's panic, and takes the place of its output.
        let output = match cell.replace_stage(Stage::Consumed) {
            Ok(()) => output,
            Err(payload) => {
                panic::contained(|| drop(output));
                Err(Failure::panicked(payload))
            }
        };
        panic::discard(cell.replace_stage(Stage::Finished(output)));
        let unregistered = !cell.header.is_registered();
        let completion = cell.header.state.complete(unregistered);
        if completion.drop_output {
            panic::discard(cell.replace_stage(Stage::Consumed));
        }
        if completion.take_join_waker {
            let waker = cell.header.join_waker.with(|stored| {
                // SAFETY: T4. JOIN_WAKER beside COMPLETE: it moves out here and nobody uses it again.
                unsafe { stored.cast::<Waker>().read() }
            });
            panic::contained(|| waker.wake());
        }
        // The cell lives until here by the scheduler's reference: `release` gives up the registry's, `run` its own.
        S::release(scheduler, cell.header.registry_key());
    }

    /// Puts `next` in the slot; what was there is dropped, and its panic returned.
    fn replace_stage(&self, next: Stage<F>) -> Result<(), panic::Payload> {
        self.stage.with_mut(|stage| {
            // SAFETY: I2. The caller has RUNNING, or COMPLETE with the output passed to it.
            let dropped = panic::catch(|| unsafe { std::ptr::drop_in_place(stage) });
            // SAFETY: as above; the old value has just been dropped in place (T5), whatever it did.
            unsafe { stage.write(next) };
            dropped
        })
    }

    unsafe fn schedule(ptr: NonNull<Header>) {
        // SAFETY: T6. The caller holds the permit, so the task is not complete.
        let scheduler = unsafe { scheduler_of::<S>(ptr) };
        S::schedule(&scheduler, Runnable::adopt(ptr.cast()));
    }

    unsafe fn take_output(ptr: NonNull<Header>, to: *mut ()) {
        // SAFETY: T2, by the caller's reference.
        let cell = unsafe { ptr.cast::<Self>().as_ref() };
        cell.stage.with_mut(|stage| {
            // SAFETY: T4. The output is the caller's.
            let stage = unsafe { &mut *stage };
            let Stage::Finished(output) = std::mem::replace(stage, Stage::Consumed) else {
                panic::scheduler_bug("a task's output was taken twice");
            };
            // SAFETY: the caller gave a place for exactly this type.
            unsafe { to.cast::<Result<F::Output, Failure>>().write(output) };
        });
    }

    unsafe fn drop_output(ptr: NonNull<Header>) {
        // SAFETY: T2, by the caller's reference; the output is the caller's (T4).
        let cell = unsafe { ptr.cast::<Self>().as_ref() };
        panic::discard(cell.replace_stage(Stage::Consumed));
    }

    unsafe fn name(ptr: NonNull<Header>) -> Option<NonNull<str>> {
        // SAFETY: T2, by the caller's reference.
        let cell = unsafe { ptr.cast::<Self>().as_ref() };
        cell.extra.name().map(NonNull::from)
    }

    unsafe fn dealloc(ptr: NonNull<Header>) {
        // SAFETY: T2. The last reference is gone; the block came from `Box::leak` in `new_task`.
        drop(unsafe { Box::from_raw(ptr.cast::<Self>().as_ptr()) });
    }
}

/// Passes the scheduler's reference from the holder of the permit, or the poller, to the registry. False if that
/// refuses it.
pub(super) fn pass_to_registry(
    ptr: NonNull<Header>,
    register: impl FnOnce(TaskRef) -> Result<(), TaskRef>,
) -> bool {
    match register(TaskRef::adopt(ptr)) {
        Ok(()) => true,
        Err(refused) => {
            // It stays with the permit.
            std::mem::forget(refused);
            false
        }
    }
}

/// The scheduler of a task, without a count: `ManuallyDrop` keeps it so.
///
/// # Safety
/// The task is not complete (T6), or the caller holds a reference to the scheduler by other means.
unsafe fn scheduler_of<S>(ptr: NonNull<Header>) -> ManuallyDrop<Arc<S>> {
    // SAFETY: T2, the caller holds a permit or a reference.
    let raw = unsafe { ptr.as_ref() }.scheduler;
    // SAFETY: it is `Arc::as_ptr` of a live `Arc<S>` (T6); it is not dropped.
    ManuallyDrop::new(unsafe { Arc::from_raw(raw.cast::<S>()) })
}
