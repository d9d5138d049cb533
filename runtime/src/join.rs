//! Fork-join on the stack: [`join`] for closures that compute.
//!
//! `b` is pushed on the worker's fork lane as a job that lies in the caller's own frame; `a` runs here; then the
//! worker takes `b` back from the lane and runs it, unless a thief has it, which then sets the job's latch.
//!
//! While it waits for a thief the worker runs other jobs (its own, stolen ones, and those that a thief left behind
//! in the backlog when it gave its seat up), never tasks: a task may
//! hold a lock across its poll that this very frame waits for. Tasks that it comes upon go to its fair lane,
//! where anybody can take them. With nothing to help with it sleeps, a bounded time, since the thief may fork
//! more at any moment and a push wakes only workers that are parked.
//!
//! # Safety
//!
//! The second place with unsafe code, beside the task cell: a job borrows from its frame, and the queues hold
//! a pointer to it. What makes that sound:
//!
//! - J1 The frame does not end, by return or by unwinding, before the latch is set: `fork` waits in every case, and
//!   a panic that is not the closures' own aborts.
//! - J2 The permit to run the job exists once (as T1): whoever takes it from a queue runs it, once.
//! - J3 The runner's last access to the job is the store that sets the latch (Release); the frame reads the
//!   result only after it has seen that store (Acquire).
//! - J4 The seat is this thread's for as long as the user code that calls `join` runs (`context::seated`).
#![allow(unsafe_code)]

use std::panic::resume_unwind;
use std::ptr::NonNull;
use std::thread::{self, Thread};
use std::time::Duration;

use crate::context;
use crate::panic;
use crate::seat::Seated;
use crate::sync::UnsafeCell;
use crate::sync::atomic::AtomicU8;
use crate::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed};
use crate::task::header::Prefix;
use crate::task::raw::{Kind, Vtable};
use crate::task::refs::Runnable;
use crate::worker::steal;

/// Looks around this often before it sleeps.
const ROUNDS: u32 = 16;

/// The first and the longest sleep.
const NAPS: (Duration, Duration) = (Duration::from_micros(50), Duration::from_millis(1));

/// Runs `a` and `b`, in parallel if another worker has time, and gives both results.
///
/// For computations, cut into halves until a piece is worth no more cutting; both closures may borrow from the
/// caller. On a worker (in a task, or in the future of `block_on`) `b` is offered to the other workers while `a`
/// runs here, and run here if none took it. On any other thread `a` and then `b` run here, one after the
/// other. For futures there is [`task::join`](crate::task::join). In a `b` that another worker runs,
/// [`task::try_id`](crate::task::try_id) is `None`.
///
/// The worker is busy until both are done: other tasks wait for it, or run elsewhere.
///
/// # Panics
///
/// With the panic of `a`, else that of `b`; in both cases after both have ended.
///
/// ```
/// fn sum(numbers: &[u64]) -> u64 {
///     if numbers.len() < 1000 {
///         return numbers.iter().sum();
///     }
///     let (left, right) = numbers.split_at(numbers.len() / 2);
///     let (left, right) = runtime::join(|| sum(left), || sum(right));
///     left + right
/// }
/// let numbers: Vec<u64> = (0..10_000).collect();
/// assert_eq!(runtime::block_on(async { sum(&numbers) }), 49_995_000);
/// ```
pub fn join<A, B, RA, RB>(a: A, b: B) -> (RA, RB)
where
    A: FnOnce() -> RA,
    B: FnOnce() -> RB + Send,
    RB: Send,
{
    match context::seated() {
        // SAFETY: J4. The call ends before the user code that made it.
        Some(seated) => fork(unsafe { seated.as_ref() }, a, b),
        None => (a(), b()),
    }
}

fn fork<A, B, RA, RB>(seated: &Seated, a: A, b: B) -> (RA, RB)
where
    A: FnOnce() -> RA,
    B: FnOnce() -> RB + Send,
    RB: Send,
{
    let job = StackJob {
        prefix: Prefix::new(&const { StackJob::<B, RB>::VTABLE }),
        latch: Latch::new(),
        work: UnsafeCell::new(Work::Waiting(b)),
    };
    // From the whole job, which its runner casts back to.
    let own = NonNull::from(&job).cast::<Prefix>();
    // A panic of the scheduler, not of `a` or `b`, would leave others a pointer into a frame that is gone.
    let bomb = panic::Bomb("a frame of `join` was left before its job was done");
    // SAFETY: J1, J2. The one permit for this job, which stays in place until it has been run.
    seated.lanes.fork.push(unsafe { Runnable::from_raw(own) });
    seated.scheduler.notify_of_fork();

    let a = panic::catch(a);
    match seated.lanes.fork.pop() {
        // Nobody took it: no latch, no indirection, and `b` is inlined here.
        Some(permit) if permit.is_for(own) => {
            permit.into_raw();
            bomb.defuse();
            // SAFETY: J2. The permit is ours again.
            let b = unsafe { job.take_closure() };
            both(a, panic::catch(b))
        }
        other => {
            help_until(seated, &job.latch, other);
            bomb.defuse();
            // SAFETY: J3. The latch is set.
            both(a, unsafe { job.take_result() })
        }
    }
}

fn both<RA, RB>(a: Result<RA, panic::Payload>, b: Result<RB, panic::Payload>) -> (RA, RB) {
    match (a, b) {
        (Ok(a), Ok(b)) => (a, b),
        (Err(payload), other) => {
            panic::contained(|| drop(other));
            resume_unwind(payload)
        }
        (Ok(a), Err(payload)) => {
            panic::contained(|| drop(a));
            resume_unwind(payload)
        }
    }
}

/// A thief has the job: runs others until its latch is set. `found` has been taken from the lane already.
#[cold]
fn help_until(seated: &Seated, latch: &Latch, mut found: Option<Runnable>) {
    let seat = &seated.seat;
    let mut idle_rounds = 0;
    let mut nap = NAPS.0;
    loop {
        if found.is_none() && !latch.is_set() {
            found = seat
                .lanes
                .fork
                .pop()
                .or_else(|| steal::from_fork_lanes(seated));
        }
        match found.take() {
            Some(job) if job.kind() == Kind::StackJob => {
                seat.peer.counts.polls.add(1);
                job.run();
                idle_rounds = 0;
            }
            // Others could take it where it was, and one who looked while it was in our hands may have parked.
            Some(task) => {
                seat.lanes.fair.push(task);
                seated.scheduler.notify();
            }
            // What is left in the lane is older than the job, and not ours to wait for.
            None if latch.is_set() => return,
            None if idle_rounds < ROUNDS => {
                idle_rounds += 1;
                thread::yield_now();
            }
            None => {
                // Others may take what is queued here while we sleep (I11).
                seat.flush_slot();
                if seat.peer.shelf.has_visible_work() {
                    seated.scheduler.notify();
                }
                latch.sleep(nap);
                nap = (nap * 2).min(NAPS.1);
            }
        }
    }
}

/// A closure in its caller's frame, queued as a pointer to its prefix.
#[repr(C)]
struct StackJob<B, R> {
    prefix: Prefix,
    latch: Latch,
    work: UnsafeCell<Work<B, R>>,
}

enum Work<B, R> {
    Waiting(B),
    Running,
    Done(Result<R, panic::Payload>),
}

impl<B, R> StackJob<B, R>
where
    B: FnOnce() -> R + Send,
    R: Send,
{
    const VTABLE: Vtable = Vtable::stack_job(Self::run);

    /// A thief's way.
    unsafe fn run(ptr: NonNull<Prefix>) {
        // SAFETY: J1, and the prefix is the first field of this very type (`repr(C)`, VTABLE).
        let job = unsafe { ptr.cast::<Self>().as_ref() };
        // SAFETY: J2. The permit came with the call.
        let closure = unsafe { job.take_closure() };
        let result = panic::catch(closure);
        job.work.with_mut(|work| {
            // SAFETY: J2. Only `Running` is overwritten, which has no destructor.
            unsafe { work.write(Work::Done(result)) };
        });
        // SAFETY: J3. The last access to the job.
        unsafe { Latch::set(NonNull::from(&job.latch)) };
    }

    /// # Safety
    /// The caller has used up the job's permit (J2).
    unsafe fn take_closure(&self) -> B {
        self.work.with_mut(|work| {
            // SAFETY: by contract nobody else touches the job now.
            match std::mem::replace(unsafe { &mut *work }, Work::Running) {
                Work::Waiting(closure) => closure,
                _ => panic::scheduler_bug("a forked job was run twice"),
            }
        })
    }

    /// # Safety
    /// The latch was seen set (J3).
    unsafe fn take_result(&self) -> Result<R, panic::Payload> {
        self.work.with_mut(|work| {
            // SAFETY: by contract the runner is done with the job.
            match std::mem::replace(unsafe { &mut *work }, Work::Running) {
                Work::Done(result) => result,
                _ => panic::scheduler_bug("a forked job's latch was set before it was done"),
            }
        })
    }
}

/// Says that a job is done, and wakes its frame's thread if that sleeps.
struct Latch {
    state: AtomicU8,
    sleeper: UnsafeCell<Option<Thread>>,
}

const WAITING: u8 = 0;
const SLEEPING: u8 = 1;
const SET: u8 = 2;

impl Latch {
    fn new() -> Self {
        Self {
            state: AtomicU8::new(WAITING),
            sleeper: UnsafeCell::new(None),
        }
    }

    /// Acquire pairs with the Release in [`Latch::set`].
    fn is_set(&self) -> bool {
        self.state.load(Acquire) == SET
    }

    /// The frame's thread: sleeps until the latch is set, at most for `nap`.
    fn sleep(&self, nap: Duration) {
        // SAFETY: only this thread writes the field; a setter may read it meanwhile.
        if self.sleeper.with(|sleeper| unsafe { (*sleeper).is_none() }) {
            self.sleeper.with_mut(|sleeper| {
                // SAFETY: SLEEPING has never been published, so no setter reads the field. It is never written
                // again.
                unsafe { *sleeper = Some(thread::current()) };
            });
        }
        // AcqRel: Release publishes the sleeper to the Acquire in `set`.
        if self
            .state
            .compare_exchange(WAITING, SLEEPING, AcqRel, Acquire)
            .is_ok()
        {
            thread::park_timeout(nap);
            // Fails if the latch has been set; Acquire as in `is_set`.
            let _ = self
                .state
                .compare_exchange(SLEEPING, WAITING, AcqRel, Acquire);
        }
    }

    /// # Safety
    /// The latch is alive until this sets it; and the job's result is in place (J3).
    unsafe fn set(this: NonNull<Self>) {
        // SAFETY: by contract.
        let latch = unsafe { this.as_ref() };
        let mut seen = latch.state.load(Relaxed);
        loop {
            // The sleeper is copied out before the store: after it the frame may be gone.
            let mut sleeper = None;
            if seen == SLEEPING {
                // Acquire pairs with the Release in `sleep`.
                seen = latch.state.load(Acquire);
                if seen != SLEEPING {
                    continue;
                }
                sleeper = latch.sleeper.with(|sleeper| {
                    // SAFETY: SLEEPING was seen, so the field was written, and it is never written again.
                    unsafe { (*sleeper).clone() }
                });
            }
            // Release publishes the result (J3) to the Acquire in `is_set`.
            match latch.state.compare_exchange(seen, SET, AcqRel, Relaxed) {
                Ok(_) => {
                    if let Some(sleeper) = sleeper {
                        sleeper.unpark();
                    }
                    return;
                }
                Err(now) => seen = now,
            }
        }
    }
}
