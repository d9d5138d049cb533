//! The task cell step by step: what is polled, queued, dropped and freed, and when.

use std::future::Future;
use std::panic::resume_unwind;
use std::pin::Pin;
use std::sync::Mutex;
use std::sync::atomic::Ordering::SeqCst;
use std::task::{Context, Poll, Waker};

use super::toy::{Birth, Tally, ToyScheduler, WakeCount};
use crate::sync::Arc;
use crate::task::{AbortHandle, JoinError, JoinHandle};

/// Polls a handle, or a future that need not be pinned, once.
fn poll_once<F: Future + Unpin>(future: &mut F) -> Poll<F::Output> {
    Pin::new(future).poll(&mut Context::from_waker(Waker::noop()))
}

#[track_caller]
pub(super) fn output_of<T>(handle: &mut JoinHandle<T>) -> Result<T, JoinError> {
    match poll_once(handle) {
        Poll::Ready(output) => output,
        Poll::Pending => panic!("the task is not complete"),
    }
}

/// A future that leaves its waker here at each poll, and is ready at poll number `ready_at`.
struct Waits {
    wakers: Arc<Mutex<Vec<Waker>>>,
}

impl Waits {
    fn new() -> Self {
        Self {
            wakers: Arc::default(),
        }
    }

    fn future(&self, tally: &Arc<Tally>, ready_at: usize) -> impl Future<Output = usize> + use<> {
        let wakers = Arc::clone(&self.wakers);
        let mut polls = 0;
        tally.future(move |cx| {
            polls += 1;
            if polls == ready_at {
                return Poll::Ready(polls);
            }
            wakers.lock().unwrap().push(cx.waker().clone());
            Poll::Pending
        })
    }

    fn take(&self) -> Waker {
        self.wakers.lock().unwrap().pop().expect("a waker was left")
    }
}

#[test]
fn a_task_from_birth_to_output() {
    let (scheduler, tally, waits) = (ToyScheduler::new(), Tally::new(), Waits::new());
    let (runnable, mut handle) = scheduler.create(waits.future(&tally, 3), tally.extra());
    runnable.expect("the census is open").run();
    tally.expect(1, 0, 0, 0);
    assert!(!handle.is_finished() && poll_once(&mut handle).is_pending());
    assert_eq!((scheduler.permits(), scheduler.queued()), (0, 0));

    waits.take().wake();
    assert_eq!((scheduler.permits(), scheduler.queued()), (1, 1));
    assert!(scheduler.run_one());
    tally.expect(2, 0, 0, 0);

    let waker = waits.take();
    waker.wake_by_ref();
    waker.wake_by_ref();
    assert_eq!(scheduler.permits(), 2, "the second wake found it scheduled");
    assert!(scheduler.run_one());
    tally.expect(3, 1, 0, 0);
    assert_eq!(scheduler.released.load(SeqCst), 1);
    assert!(handle.is_finished());

    waker.wake_by_ref();
    assert_eq!(
        scheduler.permits(),
        2,
        "a wake of a complete task is nothing"
    );
    assert_eq!(output_of(&mut handle).unwrap(), 3);
    drop(handle);
    tally.expect(3, 1, 0, 0);
    drop(waker);
    tally.expect(3, 1, 0, 1);
}

#[test]
fn wakes_during_a_poll_requeue_once() {
    let (scheduler, tally) = (ToyScheduler::new(), Tally::new());
    let mut first = true;
    let mut handle = scheduler.spawn(tally.future(move |cx| {
        if std::mem::take(&mut first) {
            let waker = cx.waker().clone();
            waker.wake_by_ref();
            waker.wake();
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        Poll::Ready(())
    }));
    assert!(scheduler.run_one());
    assert_eq!(scheduler.queued(), 1);
    assert_eq!(scheduler.rescheduled.load(SeqCst), 1);
    assert_eq!(scheduler.scheduled.load(SeqCst), 0);
    assert!(scheduler.run_one());
    assert!(output_of(&mut handle).is_ok());
}

#[test]
fn a_wake_in_the_last_poll_is_nothing() {
    let (scheduler, tally) = (ToyScheduler::new(), Tally::new());
    let (runnable, handle) = scheduler.create(
        tally.future(|cx| {
            cx.waker().wake_by_ref();
            Poll::Ready(())
        }),
        tally.extra(),
    );
    drop(handle);
    runnable.unwrap().run();
    assert_eq!((scheduler.permits(), scheduler.queued()), (0, 0));
    tally.expect(1, 1, 0, 1);
}

#[test]
fn the_last_waker_frees_the_cell_woken_or_dropped() {
    for end in [drop as fn(Waker), Waker::wake] {
        let (scheduler, tally, waits) = (ToyScheduler::new(), Tally::new(), Waits::new());
        let (runnable, handle) = scheduler.create(waits.future(&tally, 2), tally.extra());
        runnable.unwrap().run();
        let waker = waits.take();
        waker.wake_by_ref();
        assert!(scheduler.run_one());
        drop(handle);
        tally.expect(2, 1, 0, 0);
        end(waker);
        tally.expect(2, 1, 0, 1);
        assert_eq!(scheduler.queued(), 0);
    }
}

#[test]
fn an_abort_before_the_first_poll_drops_the_future_unpolled() {
    let (scheduler, tally, waits) = (ToyScheduler::new(), Tally::new(), Waits::new());
    let mut handle = scheduler.spawn(waits.future(&tally, 1));
    handle.abort();
    assert_eq!(scheduler.permits(), 0, "it was scheduled already");
    tally.expect(0, 0, 0, 0);
    assert!(
        !handle.is_finished(),
        "an abort drops nothing on this thread"
    );
    assert!(scheduler.run_one());
    tally.expect(0, 1, 0, 0);
    assert!(output_of(&mut handle).unwrap_err().is_cancelled());
}

#[test]
fn an_abort_of_a_waiting_task_schedules_it() {
    let (scheduler, tally, waits) = (ToyScheduler::new(), Tally::new(), Waits::new());
    let mut handle = scheduler.spawn(waits.future(&tally, 2));
    assert!(scheduler.run_one());
    let abort = handle.abort_handle();
    abort.abort();
    abort.abort();
    assert_eq!((scheduler.permits(), scheduler.queued()), (1, 1));
    assert!(scheduler.run_one());
    tally.expect(1, 1, 0, 0);
    assert!(abort.is_finished());
    assert!(output_of(&mut handle).unwrap_err().is_cancelled());
}

/// A task that aborts itself: a pending poll is its last, an output that is ready stays.
#[test]
fn an_abort_during_a_poll() {
    for ready in [false, true] {
        let (scheduler, tally) = (ToyScheduler::new(), Tally::new());
        let own = Arc::new(Mutex::new(None::<AbortHandle>));
        let mut handle = scheduler.spawn({
            let own = Arc::clone(&own);
            tally.future(move |_| {
                own.lock().unwrap().as_ref().expect("set").abort();
                if ready {
                    Poll::Ready(())
                } else {
                    Poll::Pending
                }
            })
        });
        *own.lock().unwrap() = Some(handle.abort_handle());
        assert!(scheduler.run_one());
        assert_eq!(handle.is_finished(), ready);
        assert_eq!(scheduler.run_one(), !ready);
        tally.expect(1, 1, 0, 0);
        match output_of(&mut handle) {
            Ok(()) => assert!(ready),
            Err(error) => assert!(!ready && error.is_cancelled()),
        }
    }
}

#[test]
fn an_abort_after_completion_keeps_the_output() {
    let (scheduler, tally) = (ToyScheduler::new(), Tally::new());
    let output = Arc::clone(&tally);
    let mut handle = scheduler.spawn(tally.future(move |_| Poll::Ready(output.output())));
    assert!(scheduler.run_one());
    handle.abort();
    assert_eq!(scheduler.queued(), 0);
    assert!(output_of(&mut handle).is_ok());
    tally.expect(1, 1, 1, 0);
}

#[test]
fn an_output_nobody_takes_is_dropped_once() {
    for late in [false, true] {
        let (scheduler, tally) = (ToyScheduler::new(), Tally::new());
        let output = Arc::clone(&tally);
        let (runnable, handle) = scheduler.create(
            tally.future(move |_| Poll::Ready(output.output())),
            tally.extra(),
        );
        let handle = late.then_some(handle);
        runnable.unwrap().run();
        tally.expect(1, 1, usize::from(!late), usize::from(!late));
        drop(handle);
        tally.expect(1, 1, 1, 1);
    }
}

#[test]
fn the_future_is_gone_before_the_output_is_there() {
    let (scheduler, tally) = (ToyScheduler::new(), Tally::new());
    let mut handle = scheduler.spawn(tally.future(|_| Poll::Ready(())));
    let (seen, watched) = (Arc::new(Mutex::new(None)), Arc::clone(&tally));
    struct OnWake(Arc<Mutex<Option<usize>>>, Arc<Tally>);
    impl std::task::Wake for OnWake {
        fn wake(self: Arc<Self>) {
            *self.0.lock().unwrap() = Some(self.1.future_drops());
        }
    }
    let waker = Waker::from(Arc::new(OnWake(Arc::clone(&seen), watched)));
    assert!(
        Pin::new(&mut handle)
            .poll(&mut Context::from_waker(&waker))
            .is_pending()
    );
    assert!(scheduler.run_one());
    assert_eq!(*seen.lock().unwrap(), Some(1));
}

#[test]
fn the_join_waker_is_the_last_one_given() {
    let (scheduler, tally) = (ToyScheduler::new(), Tally::new());
    let mut handle = scheduler.spawn(tally.future(|_| Poll::Ready(())));
    let counts = [WakeCount::new(), WakeCount::new()];
    for count in [&counts[0], &counts[0], &counts[1]] {
        let waker = Waker::from(Arc::clone(count));
        let mut cx = Context::from_waker(&waker);
        assert!(Pin::new(&mut handle).poll(&mut cx).is_pending());
    }
    assert_eq!(Arc::strong_count(&counts[0]), 1, "replaced, so dropped");
    assert_eq!(Arc::strong_count(&counts[1]), 2);
    assert!(scheduler.run_one());
    assert_eq!((counts[0].get(), counts[1].get()), (0, 1));
    assert_eq!(Arc::strong_count(&counts[1]), 1);
    assert!(output_of(&mut handle).is_ok());
}

#[test]
fn a_dropped_handle_drops_its_waker() {
    let (scheduler, tally) = (ToyScheduler::new(), Tally::new());
    let mut handle = scheduler.spawn(tally.future(|_| Poll::Ready(())));
    let count = WakeCount::new();
    let waker = Waker::from(Arc::clone(&count));
    let mut cx = Context::from_waker(&waker);
    assert!(Pin::new(&mut handle).poll(&mut cx).is_pending());
    drop((handle, waker));
    assert_eq!(Arc::strong_count(&count), 1);
    assert!(scheduler.run_one());
    assert_eq!(count.get(), 0);
}

#[test]
#[should_panic(expected = "polled after it had given its output")]
fn a_handle_gives_its_output_once() {
    let scheduler = ToyScheduler::new();
    let mut handle = scheduler.spawn(async {});
    assert!(scheduler.run_one());
    assert!(output_of(&mut handle).is_ok());
    let _ = poll_once(&mut handle);
}

#[test]
fn a_counted_task_starts_once_run_or_cancelled() {
    for abort in [false, true] {
        let (scheduler, tally, waits) = (ToyScheduler::new(), Tally::new(), Waits::new());
        let birth = Birth { counted: true };
        let (task, _) = scheduler.born(waits.future(&tally, 2), (), birth);
        let handle = JoinHandle::of(task.output);
        if abort {
            handle.abort();
        }
        task.runnable.run();
        assert_eq!(scheduler.started.load(SeqCst), 1);
        if !abort {
            waits.take().wake();
            assert!(scheduler.run_one());
        }
        assert_eq!(scheduler.started.load(SeqCst), 1);
        assert!(handle.is_finished());
    }
}

#[test]
fn a_refused_task_is_cancelled_by_its_spawner() {
    let (scheduler, tally, waits) = (ToyScheduler::new(), Tally::new(), Waits::new());
    scheduler.registry.census.close();
    let (runnable, mut handle) = scheduler.create(waits.future(&tally, 1), tally.extra());
    assert_eq!(runnable, None);
    assert!(output_of(&mut handle).unwrap_err().is_cancelled());
    drop(handle);
    tally.expect(0, 1, 0, 1);
}

#[test]
fn a_name_is_known_as_long_as_the_task() {
    let scheduler = ToyScheduler::new();
    let name = Box::<str>::from("greeter");
    let (runnable, handle) = scheduler.create(async {}, name);
    let runnable = runnable.unwrap();
    assert!(runnable.register(|task| scheduler.registry.insert(task, 0)));
    let reference = scheduler.registry.snapshot().pop().expect("registered");
    runnable.run();
    drop(handle);
    assert_eq!(reference.name(), Some("greeter"));
    assert!(reference.is_complete());
}

/// Panics when it is dropped, without the hook's message.
struct BadDrop(&'static str);

impl Drop for BadDrop {
    fn drop(&mut self) {
        resume_unwind(Box::new(self.0));
    }
}

#[track_caller]
fn panic_text(error: JoinError) -> &'static str {
    *error.into_panic().downcast::<&'static str>().expect("text")
}

#[test]
fn a_future_that_panics_in_its_destructor_fails_with_that() {
    let (scheduler, tally) = (ToyScheduler::new(), Tally::new());
    let output = Arc::clone(&tally);
    let bad = BadDrop("in the destructor");
    let mut handle = scheduler.spawn(tally.future(move |_| {
        let _ = &bad;
        Poll::Ready(output.output())
    }));
    assert!(scheduler.run_one());
    tally.expect(1, 1, 1, 0);
    let error = output_of(&mut handle).unwrap_err();
    assert_eq!(panic_text(error), "in the destructor");
    assert_eq!(scheduler.live(), 0);
}

#[test]
fn a_future_that_panics_twice_is_dropped_once() {
    let (scheduler, tally) = (ToyScheduler::new(), Tally::new());
    let bad = BadDrop("second");
    let mut handle = scheduler.spawn(tally.future(move |_| -> Poll<()> {
        let _ = &bad;
        resume_unwind(Box::new("first"))
    }));
    assert!(scheduler.run_one());
    tally.expect(1, 1, 0, 0);
    assert_eq!(panic_text(output_of(&mut handle).unwrap_err()), "second");
}

#[test]
fn an_aborted_future_that_panics_in_its_destructor_fails_with_that() {
    let scheduler = ToyScheduler::new();
    let bad = BadDrop("cancelled");
    let mut handle = scheduler.spawn(async move {
        let _bad = bad;
    });
    handle.abort();
    assert!(scheduler.run_one());
    assert_eq!(panic_text(output_of(&mut handle).unwrap_err()), "cancelled");
}

#[test]
fn an_output_that_panics_in_its_destructor_harms_nobody() {
    for late in [false, true] {
        let (scheduler, tally) = (ToyScheduler::new(), Tally::new());
        let (runnable, handle) = scheduler.create(
            tally.future(|_| Poll::Ready(BadDrop("output"))),
            tally.extra(),
        );
        let handle = late.then_some(handle);
        runnable.unwrap().run();
        drop(handle);
        tally.expect(1, 1, 0, 1);
        assert_eq!(scheduler.live(), 0);
    }
}

#[test]
fn a_join_waker_that_panics_harms_nobody() {
    struct BadWake;
    impl std::task::Wake for BadWake {
        fn wake(self: Arc<Self>) {
            resume_unwind(Box::new("woken"));
        }
    }
    let scheduler = ToyScheduler::new();
    let mut handle = scheduler.spawn(async { 7 });
    let waker = Waker::from(Arc::new(BadWake));
    let mut cx = Context::from_waker(&waker);
    assert!(Pin::new(&mut handle).poll(&mut cx).is_pending());
    assert!(scheduler.run_one());
    assert_eq!(output_of(&mut handle).unwrap(), 7);
}

/// A type with an alignment above that of the cell's header.
#[repr(align(128))]
#[derive(Clone, Copy)]
struct Wide(u8);

impl Wide {
    #[track_caller]
    fn check(&self) -> u8 {
        assert_eq!(std::ptr::from_ref(self).addr() % 128, 0, "misaligned");
        self.0
    }
}

#[test]
fn over_aligned_futures_and_outputs() {
    let scheduler = ToyScheduler::new();
    let wide = Wide(1);
    let mut narrow_output = scheduler.spawn(async move {
        let held = wide;
        std::future::poll_fn(|_| Poll::Ready(held.check())).await
    });
    let mut wide_output = scheduler.spawn(async { Wide(2) });
    let mut both = scheduler.spawn(async move {
        let held = wide;
        std::future::poll_fn(|_| Poll::Ready(held.check())).await;
        held
    });
    while scheduler.run_one() {}
    assert_eq!(output_of(&mut narrow_output).unwrap(), 1);
    assert_eq!(output_of(&mut wide_output).unwrap().check(), 2);
    assert_eq!(output_of(&mut both).unwrap().check(), 1);
    drop(scheduler.spawn(async { Wide(3) }));
    assert!(scheduler.run_one());
}

#[test]
fn zero_sized_futures_and_outputs() {
    let scheduler = ToyScheduler::new();
    let future = async {};
    assert!(size_of_val(&future) <= 1);
    struct Nothing;
    impl Future for Nothing {
        type Output = [u64; 0];
        fn poll(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<[u64; 0]> {
            Poll::Ready([])
        }
    }
    assert_eq!(size_of::<Nothing>(), 0);
    let mut handle = scheduler.spawn(Nothing);
    drop(scheduler.spawn(future));
    while scheduler.run_one() {}
    assert_eq!(output_of(&mut handle).unwrap(), [0_u64; 0]);
}

#[test]
fn handles_are_sent_and_shared() {
    fn sent_and_shared<T: Send + Sync>() {}
    sent_and_shared::<JoinHandle<std::cell::Cell<u8>>>();
    sent_and_shared::<AbortHandle>();
    sent_and_shared::<JoinError>();
}
