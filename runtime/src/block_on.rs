//! A thread waits for a future, and works for the runtime as long as it waits.

use std::future::Future;
use std::panic::resume_unwind;
use std::pin::pin;
use std::rc::Rc;
use std::task::{Context, Poll, Wake, Waker};

use reactor::budget;

use crate::context;
use crate::panic;
use crate::park::Parker;
use crate::scheduler::Scheduler;
use crate::seat::Seated;
use crate::shutdown;
use crate::sync::Arc;
use crate::sync::atomic::AtomicBool;
use crate::sync::atomic::Ordering::{AcqRel, Acquire};
use crate::worker::{Role, Turn, Worker};

/// Why `block_on` does not work on a worker.
pub(crate) const INSIDE_A_RUNTIME: &str = "`block_on` was called on a worker of a runtime, from a task or from \
     inside another `block_on`: it would block every task that waits for this worker. Use `.await` here, or \
     `spawn_blocking` for code that must block";

/// Runs `future` to its end on this thread, as a worker of `scheduler`: between its polls the thread runs other
/// tasks, drives I/O and fires timers.
#[track_caller]
pub(crate) fn block_on<F: Future>(scheduler: &Arc<Scheduler>, future: F) -> F::Output {
    assert!(!context::is_worker(), "{INSIDE_A_RUNTIME}");
    run_as_caller(scheduler, future)
}

/// [`block_on`] without the question whether this thread may block.
pub(crate) fn run_as_caller<F: Future>(scheduler: &Arc<Scheduler>, future: F) -> F::Output {
    let parker = scheduler.parker();
    let root = Arc::new(Root {
        woken: AtomicBool::new(true),
        parker: Arc::clone(&parker),
        thread: context::thread_number(),
    });
    let waker = Waker::from(Arc::clone(&root));
    let mut future = pin!(future);
    let mut output = None;
    let mut poll = || {
        let mut cx = Context::from_waker(&waker);
        // Acquire pairs with the Release of `Root::wake_by_ref`: the poll sees what was written before it.
        root.woken.swap(false, Acquire);
        match panic::catch(|| budget::with_budget(|| future.as_mut().poll(&mut cx))) {
            Ok(Poll::Pending) => return Turn::Continue,
            Ok(Poll::Ready(value)) => output = Some(Ok(value)),
            Err(payload) => output = Some(Err(payload)),
        }
        Turn::Leave
    };

    // The future is polled with this runtime current; its own destructor, too, runs inside.
    let _entered = context::enter(scheduler);
    let _outer = context::set_current_task(None);
    let _seat = OuterSeat(context::set_seat(None));
    loop {
        if scheduler.seats.add_caller(&parker) {
            let _caller = Caller(scheduler);
            if scheduler.seats.callers_have_all() && scheduler.sleep.anyone_parked() {
                // A background thread may wait in the driver without hope for a seat: out with it, so that we
                // can wait there ourselves and an event need not cross threads.
                scheduler.reactor().wake();
            }
            Worker::new(scheduler, &parker, Role::Caller).run(&root.woken, &mut poll);
            break;
        }
        // More threads are in `block_on` than seats can be lent: wait beside the workers, until one leaves.
        if root.woken.load(Acquire) && poll() == Turn::Leave {
            scheduler.seats.leave_line(&parker);
            break;
        }
        // A wake by this very thread leaves no token.
        if !root.woken.load(Acquire) {
            parker.park();
        }
    }
    shutdown::after_caller(scheduler);
    match output.expect("the loop ends with an output") {
        Ok(value) => value,
        Err(payload) => resume_unwind(payload),
    }
}

/// Wakes the future that a thread waits for.
struct Root {
    woken: AtomicBool,
    parker: Arc<Parker>,
    /// The waiting thread, by its number.
    thread: usize,
}

impl Wake for Root {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        // Also when it is woken already: the poll must see what was written before this call. AcqRel: Release
        // pairs with the Acquire in `poll` above; the thread looks at the flag between P1 and blocking, and
        // the token that `unpark` leaves covers the rest.
        let woken = self.woken.swap(true, AcqRel);
        // On its own thread it is awake, and looks at the flag before it parks.
        if !woken && context::thread_number() != self.thread {
            self.parker.unpark();
        }
    }
}

/// Counts a caller out. After its seat was released, so that a displaced thread finds it.
struct Caller<'a>(&'a Arc<Scheduler>);

impl Drop for Caller<'_> {
    fn drop(&mut self) {
        self.0.seats.remove_caller();
    }
}

struct OuterSeat(Option<Rc<Seated>>);

impl Drop for OuterSeat {
    fn drop(&mut self) {
        context::set_seat(self.0.take());
    }
}
