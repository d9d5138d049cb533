//! The owned pointers to a task: the run permit, a counted reference, a waker.
//!
//! - [`Runnable`]: the run permit. Exists exactly while the task is to be run (T1). Not counted. The only pointer
//!   that may also stand for a stack job of `join`.
//! - [`TaskRef`]: one counted reference.
//! - [`OutputRef`]: the handle's counted reference, with the right to the output (T4).
//! - a `Waker`: one counted reference, in std's clothes.
//!
//! # Safety
//!
//! Part of the task cell (`raw.rs`); the rules T1 to T6 stand in [`super`].
#![allow(unsafe_code)]

use std::marker::PhantomData;
use std::mem::{ManuallyDrop, MaybeUninit};
use std::ptr::NonNull;
use std::task::{Context, Poll, RawWaker, RawWakerVTable, Waker};

use super::header::{Header, Prefix};
use super::join::{Failure, JoinError};
use super::raw::{Kind, pass_to_registry};
use super::state::{Detach, Wake};
use crate::panic;
use crate::sync::atomic::Ordering::Relaxed;

/// The permit to run a task once, or a stack job to its end. Owning one means that nobody else has it queued.
#[must_use = "a runnable that is not queued or run is a task that is lost"]
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Runnable(NonNull<Prefix>);

// SAFETY: T1. A permit is for one thread at a time and may travel: the future and its output are Send (bound
// in `new_task`), a stack job's closure and result likewise (bound in `join`).
unsafe impl Send for Runnable {}

impl Runnable {
    /// Runs: polls the task once, cancels it if it was aborted, or executes the stack job.
    pub(crate) fn run(self) {
        let ptr = self.into_raw();
        // SAFETY: T1. We hold the permit, so the pointee is alive (T2), and give it up to `run`.
        let vtable = unsafe { ptr.as_ref() }.vtable;
        // SAFETY: as above; the vtable was made for this very pointee.
        unsafe { (vtable.run)(ptr) }
    }

    /// Cancels a task that never got into a queue: its future is dropped here, its handle says cancelled.
    pub(crate) fn cancel(self) {
        let task = self.as_task().expect("only tasks are cancelled");
        // We hold the permit, so the answer is always Nothing.
        let _ = task.state.abort();
        self.run();
    }

    /// Registers the task at birth; false if the registry refuses it.
    pub(crate) fn register(&self, insert: impl FnOnce(TaskRef) -> Result<(), TaskRef>) -> bool {
        let task = self.as_task().expect("only tasks are registered");
        assert!(!task.is_registered(), "registered twice");
        pass_to_registry(self.0.cast(), insert)
    }

    /// Whether it is the permit for the job at `ptr`.
    pub(crate) fn is_for(&self, ptr: NonNull<Prefix>) -> bool {
        self.0 == ptr
    }

    pub(crate) fn kind(&self) -> Kind {
        self.prefix().vtable.kind
    }

    pub(crate) fn stamp(&self) -> u32 {
        self.prefix().stamp.load(Relaxed)
    }

    pub(crate) fn set_stamp(&self, stamp: u32) {
        self.prefix().stamp.store(stamp, Relaxed);
    }

    pub(crate) fn as_task(&self) -> Option<&Header> {
        (self.kind() == Kind::Task).then(|| {
            // SAFETY: T2 for the lifetime of the permit; a `Kind::Task` prefix is the start of a Header.
            unsafe { self.0.cast::<Header>().as_ref() }
        })
    }

    pub(crate) fn into_raw(self) -> NonNull<Prefix> {
        ManuallyDrop::new(self).0
    }

    /// # Safety
    /// `ptr` came from [`Runnable::into_raw`], or points to a stack job that stays in place until it has been
    /// run; and the permit it stands for is nobody else's.
    pub(crate) unsafe fn from_raw(ptr: NonNull<Prefix>) -> Self {
        Self(ptr)
    }

    /// For the cell, which has just been given the permit by the state word.
    pub(super) fn adopt(ptr: NonNull<Prefix>) -> Self {
        Self(ptr)
    }

    fn prefix(&self) -> &Prefix {
        // SAFETY: T2. The holder of the permit keeps the pointee alive.
        unsafe { self.0.as_ref() }
    }
}

impl Drop for Runnable {
    fn drop(&mut self) {
        panic::scheduler_bug("a run permit was dropped: its task would never run nor be cancelled");
    }
}

/// One counted reference to a task.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct TaskRef(NonNull<Header>);

// SAFETY: T3. Through a reference only the state word, immutable fields and (for the handle, under the rules
// of JOIN_WAKER and COMPLETE) the join waker and the output are reached; the output is Send.
unsafe impl Send for TaskRef {}
// SAFETY: as for Send; every shared access is to atomics or immutable fields.
unsafe impl Sync for TaskRef {}

impl Clone for TaskRef {
    fn clone(&self) -> Self {
        self.header().state.ref_inc();
        Self(self.0)
    }
}

impl Drop for TaskRef {
    fn drop(&mut self) {
        // SAFETY: T2. This reference is one of the count.
        unsafe { drop_reference(self.0) }
    }
}

impl std::ops::Deref for TaskRef {
    type Target = Header;

    fn deref(&self) -> &Header {
        self.header()
    }
}

impl TaskRef {
    /// For the cell, of one of the references that it was born with.
    pub(super) fn adopt(ptr: NonNull<Header>) -> Self {
        Self(ptr)
    }

    fn header(&self) -> &Header {
        // SAFETY: T2. A counted reference keeps the cell alive.
        unsafe { self.0.as_ref() }
    }

    /// Aborts the task: it is cancelled where it next runs, never on this thread (unless that is a worker).
    pub(crate) fn abort(&self) {
        if self.header().state.abort() == Wake::Enqueue {
            // SAFETY: T1. Enqueue hands us the permit.
            unsafe { enqueue(self.0) };
        }
    }

    /// The name given by `task::Builder`, if any.
    pub(crate) fn name(&self) -> Option<&str> {
        let vtable = self.header().prefix.vtable;
        // SAFETY: T2.
        let name = unsafe { (vtable.task.name)(self.0) }?;
        // SAFETY: the name is immutable until the cell is freed, and the borrow of `self` prevents that.
        Some(unsafe { name.as_ref() })
    }
}

/// The handle's reference: one counted reference, and the right to the output (T4). Typed, since only
/// [`super::raw::new_task`] makes one, and there the output's type is known.
pub(crate) struct OutputRef<T> {
    task: ManuallyDrop<TaskRef>,
    taken: bool,
    _output: PhantomData<T>,
}

// SAFETY: T3 and T4; the output moves to the thread that takes it, so it must be Send. The handle never gives
// out a shared borrow of the output, so nothing is asked of `T` for Sync but that.
unsafe impl<T: Send> Send for OutputRef<T> {}
// SAFETY: as above.
unsafe impl<T: Send> Sync for OutputRef<T> {}

impl<T> OutputRef<T> {
    /// For `new_task`: `ptr`'s output is a `T`.
    pub(super) fn adopt(ptr: NonNull<Header>) -> Self {
        Self {
            task: ManuallyDrop::new(TaskRef(ptr)),
            taken: false,
            _output: PhantomData,
        }
    }

    pub(crate) fn task(&self) -> &TaskRef {
        &self.task
    }

    /// The output if the task is complete, else leaves `cx`'s waker for the completer.
    ///
    /// # Panics
    /// If the output was taken.
    pub(crate) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Result<T, JoinError>> {
        assert!(
            !self.taken,
            "a JoinHandle was polled after it had given its output"
        );
        if !self.task.is_complete() && self.task.leave_join_waker(cx.waker()) {
            return Poll::Pending;
        }
        self.taken = true;
        let mut output = MaybeUninit::<Result<T, Failure>>::uninit();
        let take_output = self.task.prefix.vtable.task.take_output;
        // SAFETY: T4. COMPLETE was seen with Acquire, the output is the handle's and not yet taken.
        unsafe { take_output(self.task.0, output.as_mut_ptr().cast()) };
        // SAFETY: `take_output` has written it.
        let output = unsafe { output.assume_init() };
        Poll::Ready(output.map_err(|failure| JoinError::new(self.task.id, failure)))
    }
}

impl<T> Drop for OutputRef<T> {
    fn drop(&mut self) {
        loop {
            match self.task.state.detach() {
                // The count went down together with the interest.
                Detach::Done => return,
                Detach::OwnsWaker => {
                    // SAFETY: T4. The state has just given it back.
                    unsafe { self.task.drop_join_waker() };
                }
                Detach::OwnsOutput => {
                    if !self.taken {
                        // SAFETY: T4. COMPLETE, with a handle: the output is the handle's.
                        unsafe { (self.task.prefix.vtable.task.drop_output)(self.task.0) };
                    }
                    // SAFETY: dropped here and never again: `self` is going away.
                    return unsafe { ManuallyDrop::drop(&mut self.task) };
                }
            }
        }
    }
}

impl TaskRef {
    /// Puts `waker` in place; false if the task completed meanwhile. Called by the handle alone.
    fn leave_join_waker(&self, waker: &Waker) -> bool {
        if self.state.has_join_waker() {
            let same = self.join_waker.with(|stored| {
                // SAFETY: T4. The handle wrote it; the completer only ever copies the bits out, so they stay
                // valid for this comparison of two pointers even after the waker has moved out.
                unsafe { &*stored.cast::<Waker>() }.will_wake(waker)
            });
            if same {
                return !self.is_complete();
            }
            if !self.state.unset_join_waker() {
                return false;
            }
            // SAFETY: T4. JOIN_WAKER is unset before completion: the waker is ours again.
            unsafe { self.drop_join_waker() };
        }
        let waker = waker.clone();
        self.join_waker.with_mut(|stored| {
            // SAFETY: T4. JOIN_WAKER is not set, so the field is the handle's alone.
            unsafe { (*stored).write(waker) };
        });
        if self.state.set_join_waker() {
            return true;
        }
        // SAFETY: T4. The bit was refused, so the completer does not know of the waker: it is still ours.
        unsafe { self.drop_join_waker() };
        false
    }

    /// # Safety
    /// The join waker is in place and the caller's (T4).
    unsafe fn drop_join_waker(&self) {
        let waker = self.join_waker.with(|stored| {
            // SAFETY: by contract.
            unsafe { stored.cast::<Waker>().read() }
        });
        panic::contained(|| drop(waker));
    }
}

// Static, since `will_wake` compares its address.
static WAKER_VTABLE: RawWakerVTable =
    RawWakerVTable::new(clone_waker, wake_by_val, wake_by_ref, drop_waker);

/// The waker that a poll lends to its future: no reference is counted, since the permit outlasts the poll.
pub(super) fn borrowed_waker(ptr: NonNull<Header>) -> ManuallyDrop<Waker> {
    // SAFETY: the vtable's functions keep the contract of `RawWaker`: they are thread-safe (T3), and every
    // clone counts a reference. This one is not counted and so must not be dropped: `ManuallyDrop`.
    ManuallyDrop::new(unsafe { Waker::new(ptr.as_ptr().cast_const().cast(), &WAKER_VTABLE) })
}

unsafe fn clone_waker(data: *const ()) -> RawWaker {
    // SAFETY: the waker's own pointer.
    let ptr = unsafe { header_of(data) };
    // SAFETY: T2, by the waker that is being cloned.
    unsafe { ptr.as_ref() }.state.ref_inc();
    RawWaker::new(data, &WAKER_VTABLE)
}

unsafe fn wake_by_val(data: *const ()) {
    // SAFETY: the waker's own pointer.
    let ptr = unsafe { header_of(data) };
    // SAFETY: T2, by the reference that this call consumes.
    match unsafe { ptr.as_ref() }.state.wake_by_val() {
        // SAFETY: T1. Enqueue hands us the permit.
        Wake::Enqueue => unsafe { enqueue(ptr) },
        Wake::Nothing => {}
        // SAFETY: T2. It was the last reference.
        Wake::Dealloc => unsafe { free(ptr) },
    }
}

unsafe fn wake_by_ref(data: *const ()) {
    // SAFETY: the waker's own pointer.
    let ptr = unsafe { header_of(data) };
    // SAFETY: T2, by the waker.
    if unsafe { ptr.as_ref() }.state.wake_by_ref() == Wake::Enqueue {
        // SAFETY: T1. Enqueue hands us the permit.
        unsafe { enqueue(ptr) };
    }
}

unsafe fn drop_waker(data: *const ()) {
    // SAFETY: the waker's own pointer.
    let ptr = unsafe { header_of(data) };
    // SAFETY: the waker's reference is one of the count.
    unsafe { drop_reference(ptr) };
}

/// # Safety
/// `data` is the data pointer of a waker of ours.
unsafe fn header_of(data: *const ()) -> NonNull<Header> {
    // SAFETY: it was made from a NonNull in `borrowed_waker`.
    unsafe { NonNull::new_unchecked(data.cast_mut().cast()) }
}

/// # Safety
/// The caller holds the run permit and gives it up.
unsafe fn enqueue(ptr: NonNull<Header>) {
    // SAFETY: T2, by the permit.
    let vtable = unsafe { ptr.as_ref() }.prefix.vtable;
    // SAFETY: by contract.
    unsafe { (vtable.task.schedule)(ptr) };
}

/// # Safety
/// The caller gives up a counted reference.
unsafe fn drop_reference(ptr: NonNull<Header>) {
    // SAFETY: T2, by that reference.
    if unsafe { ptr.as_ref() }.state.ref_dec() {
        // SAFETY: it was the last one.
        unsafe { free(ptr) };
    }
}

/// # Safety
/// The last reference is gone.
unsafe fn free(ptr: NonNull<Header>) {
    // SAFETY: nobody else can reach the cell any more.
    let vtable = unsafe { ptr.as_ref() }.prefix.vtable;
    // SAFETY: as above.
    unsafe { (vtable.task.dealloc)(ptr) };
}
