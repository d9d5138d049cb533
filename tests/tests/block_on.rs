//! Waiting for a future on a thread: from several at once, from blocking jobs, and where it is not allowed.

use std::future::{Future, poll_fn};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Barrier};
use std::task::Poll;
use std::thread;
use std::time::Duration;

use futures::channel::{mpsc, oneshot};
use futures::{SinkExt, StreamExt};
use runtime::task::yield_now;
use runtime::{Builder, Runtime};
use tests::{every_shape, panic_text, panic_text_of, watchdog, with_workers};

/// What the documentation says in the panic of a `block_on` on a worker.
const NESTED: &str = "`block_on` was called on a worker of a runtime";

/// Two tasks that send a number back and forth `count` times.
async fn ping_pong(count: usize) -> usize {
    let (mut to_echo, mut from_main) = mpsc::channel::<usize>(1);
    let (mut to_main, mut from_echo) = mpsc::channel::<usize>(1);
    let echo = runtime::spawn(async move {
        while let Some(number) = from_main.next().await {
            to_main.send(number + 1).await.unwrap();
        }
    });
    let mut number = 0;
    for _ in 0..count {
        to_echo.send(number).await.unwrap();
        number = from_echo.next().await.unwrap();
    }
    drop(to_echo);
    echo.await.unwrap();
    number
}

/// `threads` threads at once, each in `block_on` of the same runtime.
fn all_at_once(rt: &Runtime, threads: usize) {
    let start = Barrier::new(threads);
    thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                start.wait();
                for _ in 0..5 {
                    assert_eq!(rt.block_on(ping_pong(50)), 50);
                    let slept = async {
                        runtime::time::sleep(Duration::from_millis(1)).await;
                        runtime::spawn(async { 3 }).await.unwrap()
                    };
                    assert_eq!(rt.block_on(slept), 3);
                }
            });
        }
    });
}

#[test]
fn several_threads_can_wait_at_once() {
    let dog = watchdog(120, "several_threads_can_wait_at_once");
    for shape in every_shape() {
        dog.step(format!("{shape:?}"));
        let rt = shape.build();
        dog.watch(rt.handle());
        all_at_once(&rt, 4);
    }
}

#[test]
fn twenty_threads_can_wait_on_one_worker() {
    let dog = watchdog(120, "twenty_threads_can_wait_on_one_worker");
    for background in [true, false] {
        let rt = Builder::new()
            .worker_threads(1)
            .background_threads(background)
            .build()
            .unwrap();
        dog.watch(rt.handle());
        all_at_once(&rt, 20);
    }
}

#[test]
fn more_threads_can_wait_than_seats_are_lent() {
    let dog = watchdog(120, "more_threads_can_wait_than_seats_are_lent");
    let rt = with_workers(1);
    dog.watch(rt.handle());
    let threads = 300;
    let waiting = AtomicUsize::new(0);
    let (senders, receivers): (Vec<_>, Vec<_>) = (0..threads).map(|_| oneshot::channel()).unzip();
    thread::scope(|scope| {
        for receiver in receivers {
            scope.spawn(|| {
                let number = rt.block_on(async {
                    waiting.fetch_add(1, SeqCst);
                    let received: usize = receiver.await.unwrap();
                    runtime::spawn(async move { received + 1 }).await.unwrap()
                });
                assert!(number >= 1);
            });
        }
        assert!(tests::eventually(|| waiting.load(SeqCst) == threads));
        for (number, sender) in senders.into_iter().enumerate() {
            sender.send(number).unwrap();
        }
    });
}

#[test]
fn a_wake_from_any_thread_ends_the_wait() {
    let dog = watchdog(60, "a_wake_from_any_thread_ends_the_wait");
    for shape in every_shape() {
        let rt = shape.build();
        dog.watch(rt.handle());
        for round in 0..50 {
            let (sender, receiver) = oneshot::channel();
            let other = thread::spawn(move || {
                thread::sleep(Duration::from_micros(round * 20));
                sender.send(round).unwrap();
            });
            assert_eq!(rt.block_on(receiver).unwrap(), round);
            other.join().unwrap();
        }
    }
}

#[test]
fn blocking_jobs_may_wait() {
    let dog = watchdog(60, "blocking_jobs_may_wait");
    for shape in every_shape() {
        let rt = shape.build();
        dog.watch(rt.handle());
        let handle = rt.handle().clone();
        let number = rt.block_on(async {
            let job = move || handle.block_on(ping_pong(20));
            runtime::spawn_blocking(job).await.unwrap()
        });
        assert_eq!(number, 20);
        let number = rt
            .block_on(async { runtime::spawn_blocking(|| runtime::block_on(ping_pong(20))).await });
        assert_eq!(number.unwrap(), 20);
    }
}

#[test]
fn on_a_worker_it_panics_and_says_what_to_do() {
    let dog = watchdog(60, "on_a_worker_it_panics_and_says_what_to_do");
    for shape in every_shape() {
        let rt = Arc::new(shape.build());
        dog.watch(rt.handle());

        let inner = Arc::clone(&rt);
        let error = rt.block_on(async {
            // The task must not be the one that drops the runtime.
            let handle = inner.handle().clone();
            let task = async move { handle.block_on(async {}) };
            runtime::spawn(task).await.unwrap_err()
        });
        let text = error.into_panic();
        assert!(panic_text(&*text).contains(NESTED));
        assert!(
            panic_text(&*text).contains("spawn_blocking"),
            "it says what to do"
        );

        rt.block_on(async {
            assert!(panic_text_of(|| inner.block_on(async {})).contains(NESTED));
            assert!(panic_text_of(|| runtime::block_on(async {})).contains(NESTED));
            let other = with_workers(1);
            assert!(panic_text_of(|| other.block_on(async {})).contains(NESTED));
        });
        // Nothing is left broken by the panics.
        assert_eq!(rt.block_on(ping_pong(10)), 10);
    }
}

#[test]
fn a_panic_of_the_future_comes_out_and_the_runtime_goes_on() {
    let dog = watchdog(60, "a_panic_of_the_future_comes_out");
    for shape in every_shape() {
        let rt = shape.build();
        dog.watch(rt.handle());
        let panicked = catch_unwind(AssertUnwindSafe(|| {
            rt.block_on(async {
                let _task = runtime::spawn(yield_now());
                yield_now().await;
                panic!("on purpose");
            })
        }));
        assert_eq!(panic_text(&*panicked.unwrap_err()), "on purpose");
        assert_eq!(rt.block_on(ping_pong(10)), 10);
    }
}

#[test]
fn it_polls_only_when_woken() {
    let _dog = watchdog(60, "it_polls_only_when_woken");
    for shape in every_shape() {
        let rt = shape.build();
        let mut polls = 0;
        let mut sleep = Box::pin(runtime::time::sleep(Duration::from_millis(20)));
        rt.block_on(poll_fn(|cx| {
            polls += 1;
            sleep.as_mut().poll(cx)
        }));
        assert_eq!(polls, 2, "{shape:?}");

        let mut polls = 0;
        rt.block_on(poll_fn(|cx| {
            polls += 1;
            cx.waker().wake_by_ref();
            if polls == 10 {
                Poll::Ready(())
            } else {
                Poll::Pending
            }
        }));
        assert_eq!(polls, 10);
    }
}

#[test]
fn without_a_runtime_it_builds_one_for_the_call() {
    let _dog = watchdog(60, "without_a_runtime_it_builds_one_for_the_call");
    let borrowed = String::from("borrowed");
    let length = runtime::block_on(async {
        let number = runtime::spawn(async { 1 }).await.unwrap();
        borrowed.len() + number
    });
    assert_eq!(length, 9);
    assert!(
        runtime::Handle::try_current().is_err(),
        "and it is left again"
    );
}

#[test]
fn what_a_woken_root_spawns_is_run_while_it_blocks() {
    let dog = watchdog(60, "what_a_woken_root_spawns_is_run_while_it_blocks");
    let rt = with_workers(2);
    dog.watch(rt.handle());
    for _ in 0..20 {
        rt.block_on(async {
            // Parked and woken: the thread comes back to its root as one that looks for work.
            runtime::time::sleep(Duration::from_millis(5)).await;
            let ran = Arc::new(AtomicUsize::new(0));
            for _ in 0..3 {
                let ran = Arc::clone(&ran);
                runtime::spawn(async move { ran.fetch_add(1, SeqCst) });
            }
            // The last one is next on this very worker, and waits for it; the others are anybody's.
            assert!(tests::eventually(|| ran.load(SeqCst) >= 2));
        });
    }
}
