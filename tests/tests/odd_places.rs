//! Runtimes used, dropped and waited for in places where nobody expects them.

use std::future::Future;
use std::pin::{Pin, pin};
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Barrier, mpsc};
use std::task::{Context, Wake, Waker};
use std::thread;
use std::time::Duration;

use runtime::{Builder, Handle, Runtime};
use tests::{Drops, eventually, one_thread, watchdog, with_workers};

#[test]
fn a_thread_that_got_no_seat_takes_one_when_another_leaves() {
    let _dog = watchdog(60, "a_thread_that_got_no_seat");
    // More than are lent, and nobody else to drive the timers.
    const THREADS: usize = 300;
    let rt = one_thread();
    let all_in = Barrier::new(THREADS);
    thread::scope(|scope| {
        for number in 0..THREADS {
            let (rt, all_in) = (&rt, &all_in);
            scope.spawn(move || {
                rt.block_on(async {
                    all_in.wait();
                    // A wake by the waiting thread itself, too, with a seat or without.
                    runtime::task::yield_now().await;
                    runtime::time::sleep(Duration::from_millis(number as u64 % 50)).await;
                });
            });
        }
    });
}

#[test]
fn a_task_that_its_submitter_runs_may_drop_its_own_runtime() {
    let _dog = watchdog(60, "a_task_that_its_submitter_runs");
    for background in [false, true] {
        let drops = Drops::new();
        let rt = Builder::new()
            .worker_threads(1)
            .background_threads(background)
            .backlog_capacity(1)
            .build()
            .unwrap();
        let handle = rt.handle().clone();
        let (go, held) = mpsc::channel::<()>();
        handle.spawn(async move { held.recv() });
        if background {
            assert!(eventually(|| handle.metrics().backlog_len == 0));
            handle.spawn(async {});
        }
        let guard = drops.guard();
        let own = handle.spawn_or_run(async move {
            let _guard = guard;
            drop(rt);
            std::future::pending::<()>().await;
        });
        drop(go);
        assert!(
            eventually(|| drops.count() == 1),
            "background: {background}"
        );
        assert!(eventually(|| own.is_finished()));
    }
}

#[test]
fn a_panicking_waker_in_the_line_for_the_backlog_harms_nobody() {
    struct Panics;
    impl Wake for Panics {
        fn wake(self: Arc<Self>) {
            panic!("a waker panics; this is part of the test");
        }
    }
    let _dog = watchdog(60, "a_panicking_waker_in_the_line");
    let rt = Builder::new()
        .worker_threads(1)
        .backlog_capacity(1)
        .build()
        .unwrap();
    let (go, held) = mpsc::channel::<()>();
    rt.spawn(async move { held.recv() });
    assert!(eventually(|| rt.metrics().backlog_len == 0));
    rt.spawn(async {});
    let mut line = pin!(rt.handle().spawn_when_free(async {}));
    let waker = Waker::from(Arc::new(Panics));
    assert!(
        line.as_mut()
            .poll(&mut Context::from_waker(&waker))
            .is_pending()
    );
    drop(go);
    assert_eq!(
        rt.block_on(async { runtime::spawn(async { 5 }).await })
            .unwrap(),
        5
    );
}

#[test]
fn submitters_that_run_their_successors_do_not_overflow_the_stack() {
    fn chain(
        handle: Handle,
        left: u32,
        ran: Arc<AtomicUsize>,
    ) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        Box::pin(async move {
            ran.fetch_add(1, SeqCst);
            if left > 0 {
                handle.clone().spawn_or_run(chain(handle, left - 1, ran));
            }
        })
    }
    let _dog = watchdog(60, "submitters_that_run_their_successors");
    let rt = Builder::new()
        .worker_threads(1)
        .backlog_capacity(1)
        .build()
        .unwrap();
    let handle = rt.handle().clone();
    let ran = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&ran);
    rt.spawn(async move {
        let _full = handle.try_spawn(async {});
        chain(handle, 20_000, counted).await;
    });
    assert!(eventually(|| ran.load(SeqCst) == 20_001));
}

#[test]
fn a_runtime_in_a_thread_local_is_dropped_with_its_thread() {
    thread_local! {
        static KEPT: Runtime = Builder::new_current_thread().build().unwrap();
    }
    let _dog = watchdog(60, "a_runtime_in_a_thread_local");
    let drops = Drops::new();
    let guard = drops.guard();
    let thread = thread::spawn(move || {
        KEPT.with(|rt| {
            rt.spawn(async move {
                let _guard = guard;
                std::future::pending::<()>().await;
            });
            rt.block_on(runtime::task::yield_now());
        });
    });
    thread.join().unwrap();
    assert_eq!(drops.count(), 1);
}

#[test]
fn a_half_that_panics_beside_a_result_that_panics_when_dropped() {
    struct Panics;
    impl Drop for Panics {
        fn drop(&mut self) {
            panic!("a destructor panics; this is part of the test");
        }
    }
    let _dog = watchdog(60, "a_half_that_panics_beside");
    let rt = with_workers(1);
    let error = rt.block_on(async {
        let joined = async { drop(runtime::join(|| Panics, || panic!("second half"))) };
        runtime::spawn(joined).await.unwrap_err()
    });
    assert!(error.to_string().contains("second half"), "{error}");
}

#[test]
fn what_a_shutdown_reports_adds_up() {
    let _dog = watchdog(60, "what_a_shutdown_reports");
    let rt = with_workers(2);
    rt.spawn(async {
        runtime::time::sleep(Duration::from_millis(20)).await;
        runtime::spawn(std::future::pending::<()>());
    });
    let report = rt.shutdown_timeout(Duration::from_millis(500));
    assert_eq!((report.finished, report.aborted), (1, 1));
    assert!(report.still_running.is_empty());

    let rt = with_workers(1);
    let (go, held) = mpsc::channel::<()>();
    let (begun, begins) = mpsc::channel();
    rt.spawn_blocking(move || {
        begun.send(()).unwrap();
        held.recv().ok();
    });
    begins.recv().unwrap();
    let report = rt.shutdown_timeout(Duration::from_millis(20));
    assert_eq!(
        (report.finished, report.aborted),
        (0, 0),
        "a job that had begun"
    );
    assert_eq!(report.still_running.len(), 1);
    drop(go);
}

#[test]
fn a_thread_name_that_no_thread_can_have_is_an_error() {
    let error = Builder::new().thread_name("a\0b").build().unwrap_err();
    assert_eq!(error.kind(), std::io::ErrorKind::InvalidInput);
    assert!(error.to_string().contains("thread_name"), "{error}");
}

#[test]
fn a_thread_without_a_seat_that_wakes_itself_goes_on() {
    let _dog = watchdog(60, "a_thread_without_a_seat_that_wakes_itself");
    let rt = one_thread();
    let done = tests::Event::new();
    let seated = AtomicUsize::new(0);
    thread::scope(|scope| {
        // As many as can be lent a seat keep theirs until the last thread, which gets none, is done.
        for _ in 0..256 {
            scope.spawn(|| {
                rt.block_on(async {
                    seated.fetch_add(1, SeqCst);
                    done.wait();
                });
            });
        }
        assert!(eventually(|| seated.load(SeqCst) == 256));
        rt.block_on(runtime::task::yield_now());
        done.set();
    });
}

#[test]
fn a_runtime_dropped_two_tasks_deep_in_its_submitters_stack() {
    let _dog = watchdog(60, "a_runtime_dropped_two_tasks_deep");
    let drops = Drops::new();
    let bounded = || {
        let rt = Builder::new_current_thread()
            .backlog_capacity(1)
            .build()
            .unwrap();
        rt.spawn(async {});
        rt
    };
    // The inner task is of the same runtime, or of another one.
    for other in [None, Some(bounded())] {
        let rt = bounded();
        let handle = rt.handle().clone();
        let inner = other.as_ref().map_or(&handle, Runtime::handle).clone();
        let (outer_guard, inner_guard) = (drops.guard(), drops.guard());
        let before = drops.count();
        handle.spawn_or_run(async move {
            let _guard = outer_guard;
            inner.spawn_or_run(async move {
                let _guard = inner_guard;
                drop(rt);
            });
            std::future::pending::<()>().await;
        });
        assert_eq!(drops.count() - before, 2);
    }
}
