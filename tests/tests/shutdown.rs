//! How a runtime ends: what is dropped, by whom, what is waited for and what is reported.

use std::future::{Future, pending};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::thread;
use std::time::{Duration, Instant};

use futures::executor;
use runtime::task::{self, yield_now};
use runtime::{Builder, Handle};
use tests::{Drops, Event, eventually, every_shape, one_thread, until, watchdog, with_workers};

/// Long enough for anything that does not wait for what it must not.
const AT_ONCE: Duration = Duration::from_secs(10);

/// A future that stays pending, and counts its drop.
fn never(drops: &Drops) -> impl Future<Output = ()> + Send + use<> {
    let guard = drops.guard();
    async move {
        let _guard = guard;
        pending::<()>().await;
    }
}

#[test]
fn dropping_it_cancels_every_task() {
    let dog = watchdog(60, "dropping_it_cancels_every_task");
    for shape in every_shape() {
        let rt = shape.build();
        dog.watch(rt.handle());
        let drops = Drops::new();
        let waiting: Vec<_> = (0..20).map(|_| rt.spawn(never(&drops))).collect();
        let polled = rt.block_on(async {
            let spawned: Vec<_> = (0..20).map(|_| runtime::spawn(never(&drops))).collect();
            for _ in 0..10 {
                yield_now().await;
            }
            spawned
        });
        let not_polled: Vec<_> = (0..20).map(|_| rt.spawn(never(&drops))).collect();
        drop(rt);
        assert_eq!(
            drops.count(),
            60,
            "when drop returns they are gone: {shape:?}"
        );
        for task in waiting.into_iter().chain(polled).chain(not_polled) {
            assert!(task.is_finished());
            assert!(executor::block_on(task).unwrap_err().is_cancelled());
        }
    }
}

#[test]
fn futures_are_dropped_on_the_workers() {
    let _dog = watchdog(60, "futures_are_dropped_on_the_workers");
    let here = thread::current().id();
    for shape in every_shape() {
        let rt = shape.build();
        let drops = Drops::new();
        for _ in 0..10 {
            drop(rt.spawn(never(&drops)));
        }
        rt.block_on(yield_now());
        drop(rt);
        assert_eq!(drops.count(), 10);
        for thread in drops.threads() {
            // Without background threads the thread that ends the runtime is its worker.
            assert_eq!(thread == here, !shape.background, "{shape:?}");
        }
        assert!(
            drops.tasks().iter().all(Option::is_some),
            "inside their tasks"
        );
    }
}

#[test]
fn destructors_find_a_runtime_at_work() {
    struct Busy(Drops, Arc<AtomicUsize>);
    impl Drop for Busy {
        fn drop(&mut self) {
            let refused = runtime::spawn(never(&self.0));
            let job = runtime::spawn_blocking(|| ());
            for result in [executor::block_on(refused), executor::block_on(job)] {
                assert!(result.unwrap_err().is_cancelled());
                self.1.fetch_add(1, SeqCst);
            }
            Handle::current().metrics();
        }
    }

    let dog = watchdog(60, "destructors_find_a_runtime_at_work");
    for shape in every_shape() {
        let rt = shape.build();
        dog.watch(rt.handle());
        let (drops, refused) = (Drops::new(), Arc::new(AtomicUsize::new(0)));
        let busy = Busy(drops.clone(), Arc::clone(&refused));
        drop(rt.spawn(async move {
            let _busy = busy;
            pending::<()>().await;
        }));
        rt.block_on(yield_now());
        drop(rt);
        assert_eq!((drops.count(), refused.load(SeqCst)), (1, 2), "{shape:?}");
    }
}

#[test]
fn a_handle_outlives_it_and_gives_cancelled_tasks() {
    let _dog = watchdog(60, "a_handle_outlives_it");
    for shape in every_shape() {
        let rt = shape.build();
        let handle = rt.handle().clone();
        drop(rt);
        let drops = Drops::new();
        let is_cancelled = |task| {
            executor::block_on::<task::JoinHandle<()>>(task)
                .unwrap_err()
                .is_cancelled()
        };

        assert!(is_cancelled(handle.spawn(never(&drops))));
        assert!(is_cancelled(handle.spawn_or_run(never(&drops))));
        let when_free = handle.spawn_when_free(never(&drops));
        assert!(is_cancelled(executor::block_on(when_free)));
        let job_guard = drops.guard();
        assert!(is_cancelled(handle.spawn_blocking(move || drop(job_guard))));
        assert_eq!(drops.count(), 4);

        let refused = handle.try_spawn(never(&drops)).unwrap_err();
        assert!(refused.is_shut_down() && !refused.is_full());
        assert!(refused.to_string().contains("shut down"));
        drop(refused.into_inner());
        assert_eq!(drops.count(), 5);

        let _guard = handle.enter();
        assert!(is_cancelled(runtime::spawn(never(&drops))));
        assert_eq!(handle.metrics().live_tasks, 0);
        assert_eq!(
            handle.block_on(async { 4 }),
            4,
            "what needs no runtime still works"
        );
    }
}

#[test]
fn it_can_be_dropped_inside_its_own_task() {
    let dog = watchdog(60, "it_can_be_dropped_inside_its_own_task");
    for shape in every_shape() {
        dog.step(format!("{shape:?}"));
        let rt = shape.build();
        let handle = rt.handle().clone();
        dog.watch(&handle);
        let drops = Drops::new();
        let other = handle.spawn(never(&drops));
        let guard = drops.guard();
        let dropped = Event::new();
        let returned = dropped.clone();
        let task = handle.spawn(async move {
            let _guard = guard;
            drop(rt);
            returned.set();
            pending::<()>().await;
        });
        let error = if shape.background {
            executor::block_on(task).unwrap_err()
        } else {
            handle.block_on(task).unwrap_err()
        };
        assert!(error.is_cancelled() && dropped.is_set());
        assert!(executor::block_on(other).unwrap_err().is_cancelled());
        assert!(eventually(|| drops.count() == 2));
        assert!(
            executor::block_on(handle.spawn(async {}))
                .unwrap_err()
                .is_cancelled()
        );
    }
}

#[test]
fn it_can_be_dropped_inside_another_runtime_without_waiting_there() {
    let dog = watchdog(60, "it_can_be_dropped_inside_another_runtime");
    for shape in every_shape() {
        dog.step(format!("{shape:?}"));
        let outer = with_workers(1);
        let inner = shape.build();
        let drops = Drops::new();
        let waiting = inner.spawn(never(&drops));
        outer.block_on(async {
            drop(inner);
            assert!(waiting.await.unwrap_err().is_cancelled());
            until(|| drops.count() == 1).await;
        });
    }
}

#[test]
fn a_handle_of_one_runtime_can_be_awaited_in_another_that_outlives_it() {
    let _dog = watchdog(60, "a_handle_of_one_runtime_can_be_awaited_in_another");
    for shape in every_shape() {
        let (outer, inner) = (with_workers(1), shape.build());
        let waiting = inner.spawn(pending::<()>());
        let waits = outer.spawn(waiting);
        thread::sleep(Duration::from_millis(2));
        drop(inner);
        assert!(outer.block_on(waits).unwrap().unwrap_err().is_cancelled());
    }
}

#[test]
fn drop_waits_for_a_poll_that_is_under_way() {
    let _dog = watchdog(60, "drop_waits_for_a_poll_that_is_under_way");
    let rt = with_workers(1);
    let (begun, done) = (Event::new(), Arc::new(AtomicBool::new(false)));
    let (begins, ends) = (begun.clone(), Arc::clone(&done));
    let task = rt.spawn(async move {
        begins.set();
        thread::sleep(Duration::from_millis(50));
        ends.store(true, SeqCst);
    });
    begun.wait();
    drop(rt);
    assert!(done.load(SeqCst));
    assert!(
        executor::block_on(task).is_ok(),
        "it completed before it could be cancelled"
    );
}

#[test]
fn drop_does_not_wait_for_a_blocking_job() {
    let _dog = watchdog(60, "drop_does_not_wait_for_a_blocking_job");
    for shape in every_shape() {
        let rt = shape.build();
        let (begun, release) = (Event::new(), Event::new());
        let (begins, held) = (begun.clone(), release.clone());
        let job = rt.spawn_blocking(move || {
            begins.set();
            held.wait();
            6
        });
        begun.wait();
        let start = Instant::now();
        drop(rt);
        assert!(start.elapsed() < AT_ONCE && !job.is_finished());
        release.set();
        assert_eq!(
            executor::block_on(job).unwrap(),
            6,
            "its result is still delivered"
        );
    }
}

#[test]
fn blocking_jobs_that_have_not_begun_are_cancelled() {
    let _dog = watchdog(60, "blocking_jobs_that_have_not_begun");
    let rt = Builder::new().worker_threads(1).max_blocking_threads(1);
    let rt = rt.build().unwrap();
    let (begun, release) = (Event::new(), Event::new());
    let (begins, held) = (begun.clone(), release.clone());
    drop(rt.spawn_blocking(move || {
        begins.set();
        held.wait();
    }));
    begun.wait();
    let (drops, ran) = (Drops::new(), Event::new());
    let (guard, runs) = (drops.guard(), ran.clone());
    let waiting = rt.spawn_blocking(move || {
        runs.set();
        drop(guard);
    });
    drop(rt);
    assert!(executor::block_on(waiting).unwrap_err().is_cancelled());
    assert!(drops.count() == 1 && !ran.is_set());
    release.set();
}

#[test]
fn a_drain_lets_tasks_finish_and_spawn() {
    let dog = watchdog(60, "a_drain_lets_tasks_finish_and_spawn");
    for shape in every_shape() {
        let rt = shape.build();
        dog.watch(rt.handle());
        let drops = Drops::new();
        let tasks: Vec<_> = (0..10)
            .map(|n| {
                let guard = drops.guard();
                rt.spawn(async move {
                    runtime::time::sleep(Duration::from_millis(n)).await;
                    let child = runtime::spawn(async move { drop(guard) });
                    child.await.unwrap();
                    runtime::spawn_blocking(move || n).await.unwrap()
                })
            })
            .collect();
        let job = rt.spawn_blocking(|| thread::sleep(Duration::from_millis(5)));
        let report = rt.shutdown_timeout(Duration::from_secs(50));
        assert_eq!((report.aborted, report.still_running.len()), (0, 0));
        assert_eq!(drops.count(), 10);
        for (n, task) in tasks.into_iter().enumerate() {
            assert_eq!(executor::block_on(task).unwrap(), n as u64);
        }
        executor::block_on(job).unwrap();
    }
}

#[test]
fn a_drain_reports_how_many_finished() {
    let _dog = watchdog(60, "a_drain_reports_how_many_finished");
    // Nothing runs in it before the drain.
    let rt = one_thread();
    for _ in 0..10 {
        drop(rt.spawn(async {
            runtime::time::sleep(Duration::from_millis(1)).await;
            runtime::spawn(async {}).await.unwrap();
        }));
    }
    let report = rt.shutdown_timeout(Duration::from_secs(50));
    assert_eq!((report.finished, report.aborted), (20, 0), "children too");
}

#[test]
fn a_drain_ends_when_there_is_nothing_left() {
    let _dog = watchdog(60, "a_drain_ends_when_there_is_nothing_left");
    for shape in every_shape() {
        let start = Instant::now();
        let report = shape.build().shutdown_timeout(Duration::MAX);
        assert!(start.elapsed() < AT_ONCE);
        assert_eq!((report.finished, report.aborted), (0, 0));
    }
}

#[test]
fn what_does_not_finish_in_time_is_aborted() {
    let dog = watchdog(60, "what_does_not_finish_in_time_is_aborted");
    for shape in every_shape() {
        let rt = shape.build();
        dog.watch(rt.handle());
        let drops = Drops::new();
        let tasks: Vec<_> = (0..10).map(|_| rt.spawn(never(&drops))).collect();
        drop(rt.spawn(async {}));
        let limit = Duration::from_millis(30);
        let start = Instant::now();
        let report = rt.shutdown_timeout(limit);
        assert!((limit..AT_ONCE).contains(&start.elapsed()));
        assert_eq!(report.aborted, 10, "{shape:?}");
        assert!(report.finished <= 1 && report.still_running.is_empty());
        assert_eq!(drops.count(), 10);
        for task in tasks {
            assert!(executor::block_on(task).unwrap_err().is_cancelled());
        }
    }
}

#[test]
fn what_cannot_be_stopped_is_reported() {
    let _dog = watchdog(60, "what_cannot_be_stopped_is_reported");
    let rt = with_workers(2);
    let (release, begun) = (Event::new(), [Event::new(), Event::new()]);
    let (held, begins) = (release.clone(), begun[0].clone());
    let job_line = line!() + 1;
    let job = rt.spawn_blocking(move || {
        begins.set();
        held.wait();
    });
    let (held, begins) = (release.clone(), begun[1].clone());
    let stuck = rt.block_on(async {
        let stuck = async move {
            begins.set();
            held.wait();
        };
        // On a worker of its own, so that it does not hold up this future.
        task::Builder::new().name("stuck").spawn(async {
            drop(runtime::spawn(stuck));
        })
    });
    executor::block_on(stuck.unwrap()).unwrap();
    begun.iter().for_each(Event::wait);

    let report = rt.shutdown_timeout(Duration::from_millis(10));
    assert_eq!(report.still_running.len(), 2, "{report:?}");
    let of_job = report
        .still_running
        .iter()
        .find(|it| it.id == job.id())
        .unwrap();
    assert!(of_job.location.file().ends_with("shutdown.rs"));
    assert_eq!(of_job.location.line(), job_line);
    let of_task = report
        .still_running
        .iter()
        .find(|it| it.id != job.id())
        .unwrap();
    assert!(of_task.parent.is_some() && of_task.name.is_none());

    release.set();
    executor::block_on(job).unwrap();
}

#[test]
fn a_report_knows_names() {
    let _dog = watchdog(60, "a_report_knows_names");
    let rt = with_workers(1);
    let (release, begun) = (Event::new(), Event::new());
    let (held, begins) = (release.clone(), begun.clone());
    let guard = rt.enter();
    let task = task::Builder::new().name("stuck").spawn(async move {
        begins.set();
        held.wait();
    });
    let task = task.unwrap();
    drop(guard);
    begun.wait();
    let report = rt.shutdown_timeout(Duration::ZERO);
    assert_eq!(report.still_running[0].name.as_deref(), Some("stuck"));
    assert_eq!(report.still_running[0].id, task.id());
    release.set();
    assert!(executor::block_on(task).is_ok());
}

#[test]
fn in_the_background_nobody_waits() {
    let _dog = watchdog(60, "in_the_background_nobody_waits");
    let rt = with_workers(1);
    let (release, begun, drops) = (Event::new(), Event::new(), Drops::new());
    let (held, begins) = (release.clone(), begun.clone());
    let stuck = rt.spawn(async move {
        begins.set();
        held.wait();
    });
    let waiting = rt.spawn(never(&drops));
    begun.wait();
    let start = Instant::now();
    rt.shutdown_background();
    assert!(start.elapsed() < Duration::from_millis(80), "it waited");
    assert!(!stuck.is_finished());
    release.set();
    assert!(executor::block_on(stuck).is_ok());
    assert!(executor::block_on(waiting).unwrap_err().is_cancelled());
    assert_eq!(drops.count(), 1);
}

#[test]
fn a_timer_or_handle_polled_after_the_end_does_not_hang() {
    let _dog = watchdog(60, "a_timer_or_handle_polled_after_the_end");
    for shape in every_shape() {
        let (gone, next) = (shape.build(), one_thread());
        // A timer that was registered with the runtime that is gone fires in the next one.
        let mut sleep = Box::pin(runtime::time::sleep(Duration::from_millis(20)));
        gone.block_on(async {
            assert!(tests::ready_now(Pin::as_mut(&mut sleep)).is_pending());
        });
        drop(gone);
        next.block_on(sleep);
    }
}
