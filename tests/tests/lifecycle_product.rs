//! The product of lifecycles: how a task ends x what becomes of its handle x when it is aborted x how it is
//! woken, in every shape of runtime. After each: the output or error is right, the future was dropped once and
//! not by whoever aborted it, the output was dropped once, and the task's cell is gone.

use std::future::Future;
use std::panic::resume_unwind;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};
use std::thread;

use runtime::Handle;
use runtime::task::{AbortHandle, JoinError, JoinHandle};
use tests::{Counted, Drops, Event, Shape, Watchdog, every_shape, until, watchdog};

const ENDINGS: [Ending; 3] = [Ending::Completes, Ending::Panics, Ending::Pending];
const HANDLES: [HandleIs; 3] = [
    HandleIs::Awaited,
    HandleIs::DroppedEarly,
    HandleIs::DroppedLate,
];
const ABORTS: [Abort; 5] = [
    Abort::Never,
    Abort::BeforeFirstPoll,
    Abort::WhilePolled,
    Abort::WhileWaiting,
    Abort::After,
];
const WAKES: [Wake; 5] = [
    Wake::Never,
    Wake::InPoll,
    Wake::ByValue,
    Wake::ByRef,
    Wake::FromThread,
];

#[derive(Clone, Copy, Debug, PartialEq)]
enum Ending {
    Completes,
    Panics,
    Pending,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum HandleIs {
    Awaited,
    /// Before the task is polled.
    DroppedEarly,
    /// When it has come to its end.
    DroppedLate,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Abort {
    Never,
    BeforeFirstPoll,
    WhilePolled,
    WhileWaiting,
    After,
}

/// A task that is never woken comes to its end in its first poll, any other in its second.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Wake {
    Never,
    InPoll,
    ByValue,
    ByRef,
    FromThread,
}

#[derive(Clone, Copy, Debug)]
struct Case {
    ending: Ending,
    handle: HandleIs,
    abort: Abort,
    wake: Wake,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Outcome {
    Output,
    Panic,
    Cancelled,
}

impl Case {
    fn all() -> impl Iterator<Item = Case> {
        ENDINGS.into_iter().flat_map(|ending| {
            HANDLES.into_iter().flat_map(move |handle| {
                ABORTS.into_iter().flat_map(move |abort| {
                    WAKES.into_iter().map(move |wake| Case {
                        ending,
                        handle,
                        abort,
                        wake,
                    })
                })
            })
        })
    }

    /// A task that wakes itself while it is polled never waits.
    fn is_possible(&self) -> bool {
        !(self.wake == Wake::InPoll && self.abort == Abort::WhileWaiting)
    }

    fn last_poll(&self) -> usize {
        if self.wake == Wake::Never { 1 } else { 2 }
    }

    fn outcome(&self) -> Outcome {
        let abort_comes_first = match self.abort {
            Abort::Never | Abort::After => false,
            Abort::BeforeFirstPoll => true,
            // A poll that ends the task wins over an abort that comes during it.
            Abort::WhilePolled | Abort::WhileWaiting => self.last_poll() > 1,
        };
        match self.ending {
            _ if abort_comes_first => Outcome::Cancelled,
            Ending::Completes => Outcome::Output,
            Ending::Panics => Outcome::Panic,
            Ending::Pending => Outcome::Cancelled,
        }
    }

    fn polls(&self) -> usize {
        match self.abort {
            Abort::BeforeFirstPoll => 0,
            Abort::WhilePolled | Abort::WhileWaiting => 1,
            Abort::Never | Abort::After => self.last_poll(),
        }
    }
}

/// What test and task share.
#[derive(Default)]
struct Shared {
    polls: Mutex<usize>,
    waker: Mutex<Option<Waker>>,
    /// Set by the test when there is an abort handle for the task.
    abort_handle: Mutex<Option<AbortHandle>>,
    aborters: Mutex<Vec<thread::ThreadId>>,
    futures: Drops,
    outputs: Drops,
}

impl Shared {
    fn polls(&self) -> usize {
        *self.polls.lock().unwrap()
    }

    /// Aborts from a thread of its own.
    fn abort(&self) {
        let handle = self.abort_handle.lock().unwrap().clone().unwrap();
        let aborter = thread::spawn(move || {
            handle.abort();
            thread::current().id()
        });
        self.aborters.lock().unwrap().push(aborter.join().unwrap());
    }

    fn wake(&self, how: Wake) {
        let waker = self.waker.lock().unwrap().clone();
        let Some(waker) = waker else { return };
        match how {
            Wake::Never | Wake::InPoll => {}
            Wake::ByValue => waker.wake(),
            Wake::ByRef => waker.wake_by_ref(),
            Wake::FromThread => thread::spawn(move || waker.wake()).join().unwrap(),
        }
    }
}

struct Subject {
    case: Case,
    shared: Arc<Shared>,
    _guard: Counted,
}

impl Future for Subject {
    type Output = Counted<u32>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let (case, shared) = (self.case, &self.shared);
        let poll = {
            let mut polls = shared.polls.lock().unwrap();
            *polls += 1;
            *polls
        };
        if poll == 1 {
            *shared.waker.lock().unwrap() = Some(cx.waker().clone());
            if case.abort == Abort::WhilePolled {
                shared.abort();
            }
            if case.wake == Wake::InPoll {
                cx.waker().wake_by_ref();
            }
        }
        match case.ending {
            _ if poll < case.last_poll() => Poll::Pending,
            Ending::Completes => Poll::Ready(shared.outputs.counted(7)),
            Ending::Panics => resume_unwind(Box::new(shared.outputs.counted(8_u32))),
            Ending::Pending => Poll::Pending,
        }
    }
}

#[test]
fn every_lifecycle_in_every_shape() {
    let dog = watchdog(120, "every_lifecycle_in_every_shape");
    for shape in every_shape() {
        for case in Case::all().filter(Case::is_possible) {
            run(&dog, shape, case);
        }
    }
}

fn run(dog: &Watchdog, shape: Shape, case: Case) {
    dog.step(format!("{shape:?} {case:?}"));
    let rt = shape.build();
    dog.watch(rt.handle());
    let release = Event::new();
    if case.abort == Abort::BeforeFirstPoll && shape.background {
        occupy(rt.handle(), shape.workers - 1, &release);
    }

    let shared = Arc::new(Shared::default());
    let task = rt.block_on(drive(case, Arc::clone(&shared), release));
    drop(rt);
    if let Some(task) = task {
        check_result(shape, case, futures::executor::block_on(task));
    }
    check_drops(shape, case, &shared);

    drop(shared.waker.lock().unwrap().take());
    drop(shared.abort_handle.lock().unwrap().take());
    assert_eq!(
        Arc::strong_count(&shared),
        1,
        "the cell is gone: {shape:?} {case:?}"
    );
}

/// Holds up workers, so that a task that is spawned on another one is not polled at once.
fn occupy(handle: &Handle, workers: usize, release: &Event) {
    for _ in 0..workers {
        let (occupied, release) = (Event::new(), release.clone());
        let begun = occupied.clone();
        drop(handle.spawn(async move {
            begun.set();
            release.wait();
        }));
        occupied.wait();
    }
}

/// The test's side of a case, in the future of `block_on`. Gives the handle back if it is to be awaited.
async fn drive(
    case: Case,
    shared: Arc<Shared>,
    release: Event,
) -> Option<JoinHandle<Counted<u32>>> {
    let subject = Subject {
        case,
        shared: Arc::clone(&shared),
        _guard: shared.futures.guard(),
    };
    let task = {
        // Held until the abort handle is in place: the first poll may need it, on another worker.
        let _polls = shared.polls.lock().unwrap();
        let task = runtime::spawn(subject);
        *shared.abort_handle.lock().unwrap() = Some(task.abort_handle());
        task
    };
    let abort_handle = task.abort_handle();

    if case.abort == Abort::BeforeFirstPoll {
        shared.abort();
    }
    release.set();
    let mut kept = Some(task);
    if case.handle == HandleIs::DroppedEarly {
        drop(kept.take());
    }
    until(|| shared.polls() >= 1 || abort_handle.is_finished()).await;
    if case.abort == Abort::WhileWaiting {
        shared.abort();
    }
    shared.wake(case.wake);

    if case.ending == Ending::Pending && matches!(case.abort, Abort::Never | Abort::After) {
        until(|| shared.polls() == case.last_poll()).await;
        assert!(!abort_handle.is_finished());
    } else {
        until(|| abort_handle.is_finished()).await;
    }
    if case.abort == Abort::After {
        shared.abort();
        until(|| abort_handle.is_finished()).await;
    }
    if abort_handle.is_finished() {
        // A wake that comes too late is harmless.
        shared.wake(case.wake);
    }

    match case.handle {
        HandleIs::Awaited => kept,
        _ => None,
    }
}

fn check_result(shape: Shape, case: Case, result: Result<Counted<u32>, JoinError>) {
    let outcome = match result {
        Ok(output) => {
            assert_eq!(output.value, 7);
            Outcome::Output
        }
        Err(error) if error.is_cancelled() => {
            assert!(!error.is_panic());
            assert!(error.try_into_panic().is_err());
            Outcome::Cancelled
        }
        Err(error) => {
            assert!(error.is_panic());
            let payload = error.into_panic();
            assert_eq!(payload.downcast_ref::<Counted<u32>>().unwrap().value, 8);
            Outcome::Panic
        }
    };
    assert_eq!(outcome, case.outcome(), "{shape:?} {case:?}");
}

fn check_drops(shape: Shape, case: Case, shared: &Shared) {
    assert_eq!(shared.polls(), case.polls(), "{shape:?} {case:?}");
    assert_eq!(shared.futures.count(), 1, "futures: {shape:?} {case:?}");
    let outputs = usize::from(case.outcome() != Outcome::Cancelled);
    assert_eq!(
        shared.outputs.count(),
        outputs,
        "outputs: {shape:?} {case:?}"
    );
    let aborters = shared.aborters.lock().unwrap();
    assert!(
        !aborters.contains(&shared.futures.threads()[0]),
        "the future was dropped by the thread that aborted: {shape:?} {case:?}"
    );
    assert!(
        shared.futures.tasks()[0].is_some(),
        "the destructor does not know its task: {shape:?} {case:?}"
    );
}
