//! User code that panics hurts nobody else: tasks, blocking jobs, wakers, destructors.

use std::future::{Future, pending, poll_fn};
use std::panic::resume_unwind;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::task::{Context, Poll, Wake, Waker};
use std::thread;
use std::time::Duration;

use futures::channel::oneshot;
use runtime::Runtime;
use runtime::task::{JoinHandle, yield_now};
use tests::{Drops, eventually, every_shape, until, watchdog, with_workers};

/// Panics without the message that would clutter the tests' output.
fn quiet_panic() -> ! {
    resume_unwind(Box::new("on purpose"))
}

/// A value whose destructor panics; it counts the drop.
struct PanicsWhenDropped(Arc<AtomicUsize>);

impl Drop for PanicsWhenDropped {
    fn drop(&mut self) {
        self.0.fetch_add(1, SeqCst);
        if !thread::panicking() {
            quiet_panic();
        }
    }
}

/// A waker that panics when it is woken.
struct PanicsWhenWoken(Arc<AtomicUsize>);

impl Wake for PanicsWhenWoken {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, SeqCst);
        quiet_panic();
    }
}

/// That the runtime does everything as before.
fn still_works(rt: &Runtime) {
    let sum = rt.block_on(async {
        let tasks: Vec<_> = (0..50)
            .map(|n| {
                runtime::spawn(async move {
                    yield_now().await;
                    n
                })
            })
            .collect();
        let mut sum = 0;
        for task in tasks {
            sum += task.await.unwrap();
        }
        runtime::time::sleep(Duration::from_millis(1)).await;
        sum + runtime::spawn_blocking(|| 1).await.unwrap()
    });
    assert_eq!(sum, 1226);
    assert_eq!(rt.metrics().live_tasks, 0);
}

#[test]
fn a_panic_is_delivered_and_the_worker_lives_on() {
    let dog = watchdog(60, "a_panic_is_delivered");
    for shape in every_shape() {
        let rt = shape.build();
        dog.watch(rt.handle());
        rt.block_on(async {
            for late in [false, true] {
                for _ in 0..50 {
                    let error = runtime::spawn(async move {
                        if late {
                            yield_now().await;
                        }
                        quiet_panic();
                    });
                    let error = error.await.unwrap_err();
                    assert!(error.is_panic() && !error.is_cancelled());
                    assert_eq!(error.into_panic().downcast_ref(), Some(&"on purpose"));
                }
            }
            let job = runtime::spawn_blocking(|| quiet_panic());
            assert!(job.await.unwrap_err().is_panic());
        });
        still_works(&rt);
    }
}

#[test]
fn errors_say_which_task_and_what_happened() {
    let _dog = watchdog(60, "errors_say_which_task");
    runtime::block_on(async {
        let task: JoinHandle<()> =
            runtime::spawn(async { resume_unwind(Box::new(String::from("a reason"))) });
        let id = task.id();
        let error = task.await.unwrap_err();
        assert_eq!(error.id(), id);
        let text = error.to_string();
        assert!(
            text.contains(&id.to_string()) && text.contains("a reason"),
            "{text}"
        );
        let io_error = std::io::Error::from(error);
        assert!(io_error.to_string().contains("a reason"));

        let task = runtime::spawn(pending::<()>());
        task.abort();
        let text = task.await.unwrap_err().to_string();
        assert!(text.contains("cancelled"), "{text}");
    });
}

#[test]
fn panics_that_nobody_looks_at_are_dropped() {
    let dog = watchdog(60, "panics_that_nobody_looks_at");
    for shape in every_shape() {
        let rt = shape.build();
        dog.watch(rt.handle());
        let payloads = Drops::new();
        for _ in 0..20 {
            let payload = payloads.guard();
            drop(rt.spawn(async { resume_unwind(Box::new(payload)) }));
        }
        rt.block_on(until(|| payloads.count() == 20));
        still_works(&rt);
    }
}

#[test]
fn a_waker_that_panics_when_a_task_completes_is_contained() {
    let dog = watchdog(60, "a_waker_that_panics_when_a_task_completes");
    for shape in every_shape() {
        let rt = shape.build();
        dog.watch(rt.handle());
        let wakes = Arc::new(AtomicUsize::new(0));
        let waker = Waker::from(Arc::new(PanicsWhenWoken(Arc::clone(&wakes))));
        let (sender, receiver) = oneshot::channel::<()>();
        let mut task = rt.spawn(receiver);
        let polled = Pin::new(&mut task).poll(&mut Context::from_waker(&waker));
        assert!(polled.is_pending());
        sender.send(()).unwrap();
        rt.block_on(until(|| wakes.load(SeqCst) == 1));
        assert_eq!(rt.block_on(task).unwrap(), Ok(()));
        still_works(&rt);
    }
}

#[test]
fn a_waker_that_panics_when_a_timer_fires_is_contained() {
    let dog = watchdog(60, "a_waker_that_panics_when_a_timer_fires");
    for shape in every_shape() {
        let rt = shape.build();
        dog.watch(rt.handle());
        let wakes = Arc::new(AtomicUsize::new(0));
        let waker = Waker::from(Arc::new(PanicsWhenWoken(Arc::clone(&wakes))));
        rt.block_on(async {
            let due = Duration::from_millis(2);
            // Others that are due at the same time must still fire.
            let before = runtime::spawn(runtime::time::sleep(due));
            let mut sleep = Box::pin(runtime::time::sleep(due));
            let polled = sleep.as_mut().poll(&mut Context::from_waker(&waker));
            assert!(polled.is_pending());
            let after = runtime::spawn(runtime::time::sleep(due));
            before.await.unwrap();
            after.await.unwrap();
            until(|| wakes.load(SeqCst) == 1).await;
        });
        still_works(&rt);
    }
}

#[test]
fn a_waker_that_panics_inside_a_task_is_the_tasks_panic() {
    let dog = watchdog(60, "a_waker_that_panics_inside_a_task");
    for shape in every_shape() {
        let rt = shape.build();
        dog.watch(rt.handle());
        rt.block_on(async {
            let waker = Waker::from(Arc::new(PanicsWhenWoken(Arc::default())));
            let task = runtime::spawn(async move { waker.wake() });
            assert!(task.await.unwrap_err().is_panic());
        });
        still_works(&rt);
    }
}

#[test]
fn a_future_whose_destructor_panics_counts_as_panicked() {
    let dog = watchdog(60, "a_future_whose_destructor_panics");
    for shape in every_shape() {
        let rt = shape.build();
        dog.watch(rt.handle());
        let drops = Arc::new(AtomicUsize::new(0));
        rt.block_on(async {
            // When it completes.
            let guard = PanicsWhenDropped(Arc::clone(&drops));
            let mut kept = Some(guard);
            let task = runtime::spawn(poll_fn(move |_| {
                assert!(kept.is_some());
                let _borrowed = &mut kept;
                Poll::Ready(1)
            }));
            assert!(task.await.unwrap_err().is_panic());
            // When it is aborted.
            let guard = PanicsWhenDropped(Arc::clone(&drops));
            let task = runtime::spawn(async move {
                let _guard = guard;
                pending::<()>().await;
            });
            yield_now().await;
            task.abort();
            assert!(task.await.is_err());
        });
        assert_eq!(drops.load(SeqCst), 2);
        still_works(&rt);
        // When the runtime ends.
        let guard = PanicsWhenDropped(Arc::clone(&drops));
        drop(rt.spawn(async move {
            let _guard = guard;
            pending::<()>().await;
        }));
        drop(rt);
        assert_eq!(drops.load(SeqCst), 3);
    }
}

#[test]
fn an_output_or_payload_whose_destructor_panics_is_contained() {
    let dog = watchdog(60, "an_output_or_payload_whose_destructor_panics");
    for shape in every_shape() {
        let rt = shape.build();
        dog.watch(rt.handle());
        let drops = Arc::new(AtomicUsize::new(0));
        let (output, payload, result) = (
            PanicsWhenDropped(Arc::clone(&drops)),
            PanicsWhenDropped(Arc::clone(&drops)),
            PanicsWhenDropped(Arc::clone(&drops)),
        );
        drop(rt.spawn(async move { output }));
        drop(rt.spawn(async move { resume_unwind(Box::new(payload)) }));
        drop(rt.spawn_blocking(move || result));
        rt.block_on(yield_now());
        let all = || drops.load(SeqCst) == 3;
        assert!(eventually(|| {
            rt.block_on(yield_now());
            all()
        }));
        still_works(&rt);
    }
}

#[test]
fn an_error_can_be_written_while_it_is_being_written() {
    use std::fmt::Write;

    /// Looks at the error with each piece that it is given.
    struct Nosy<'a>(&'a runtime::task::JoinError, usize);
    impl Write for Nosy<'_> {
        fn write_str(&mut self, _: &str) -> std::fmt::Result {
            self.1 += format!("{0} {0:?}", self.0).len();
            Ok(())
        }
    }
    let _dog = watchdog(60, "an_error_can_be_written");
    let rt = with_workers(1);
    let error = rt.block_on(rt.spawn(async { quiet_panic() })).unwrap_err();
    let mut nosy = Nosy(&error, 0);
    write!(nosy, "{error} {error:?}").unwrap();
    assert!(nosy.1 > 0);
}
