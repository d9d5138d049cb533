//! The counters move with what they count, and print as a table.

use std::thread;
use std::time::Duration;

use futures::executor;
use futures::future::{join_all, pending};
use runtime::task::yield_now;
use tests::{Event, eventually, every_shape, one_thread, until, watchdog, with_workers};

#[test]
fn polls_are_counted_one_by_one() {
    let _dog = watchdog(60, "polls_are_counted_one_by_one");
    for shape in every_shape() {
        let rt = shape.build();
        let before = rt.metrics().total(|worker| worker.polls);
        rt.block_on(async {
            let tasks = (0..10).map(|_| {
                runtime::spawn(async {
                    for _ in 0..9 {
                        yield_now().await;
                    }
                })
            });
            join_all(tasks.collect::<Vec<_>>()).await;
        });
        let after = rt.metrics().total(|worker| worker.polls);
        assert_eq!(after - before, 100, "{shape:?}");
    }
}

#[test]
fn live_tasks_and_the_backlog_are_counted() {
    let _dog = watchdog(60, "live_tasks_and_the_backlog_are_counted");
    let rt = one_thread();
    let tasks: Vec<_> = (0..5).map(|_| rt.spawn(pending::<()>())).collect();
    assert_eq!((rt.metrics().live_tasks, rt.metrics().backlog_len), (5, 5));
    rt.block_on(async {
        yield_now().await;
        until(|| rt.metrics().backlog_len == 0).await;
    });
    assert_eq!(rt.metrics().live_tasks, 5);
    for task in &tasks {
        task.abort();
    }
    rt.block_on(join_all(tasks));
    assert_eq!(rt.metrics().live_tasks, 0);
}

#[test]
fn queue_lengths_are_shown_per_worker() {
    let _dog = watchdog(60, "queue_lengths_are_shown_per_worker");
    let rt = one_thread();
    rt.block_on(async {
        let tasks: Vec<_> = (0..10).map(|_| runtime::spawn(async {})).collect();
        let worker = rt.metrics().workers[0];
        // The newest is in the slot, the others were spawned here and wait in the fork lane.
        assert_eq!(
            (worker.slot_len, worker.fork_len, worker.fair_len),
            (1, 9, 0)
        );
        join_all(tasks).await;
        let worker = rt.metrics().workers[0];
        assert_eq!(
            (worker.slot_len, worker.fork_len, worker.fair_len),
            (0, 0, 0)
        );
    });
}

#[test]
fn an_idle_worker_parks_and_is_unparked_for_work() {
    let dog = watchdog(60, "an_idle_worker_parks_and_is_unparked_for_work");
    let rt = with_workers(1);
    dog.watch(rt.handle());
    let parks = || rt.metrics().total(|worker| worker.parks);
    assert!(eventually(|| parks() == 1));
    executor::block_on(rt.spawn(async {})).unwrap();
    assert!(eventually(|| parks() >= 2));
    assert!(rt.metrics().total(|worker| worker.unparks) >= 1);
    assert!(rt.metrics().total(|worker| worker.refills) >= 1);
    // And then it stays parked.
    assert!(eventually(|| {
        let before = parks();
        thread::sleep(Duration::from_millis(20));
        parks() == before
    }));
}

#[test]
fn thefts_are_counted() {
    let dog = watchdog(60, "thefts_are_counted");
    let rt = with_workers(2);
    dog.watch(rt.handle());
    // A worker that is held up by one task cannot run the others that it spawned.
    let held = Event::new();
    let release = held.clone();
    let spawner = rt.spawn(async move {
        let tasks: Vec<_> = (0..20).map(|_| runtime::spawn(async {})).collect();
        let last = runtime::spawn(async move { release.set() });
        drop(runtime::spawn(async {}));
        held.wait();
        join_all(tasks).await;
        last.await.unwrap();
    });
    executor::block_on(spawner).unwrap();
    let metrics = rt.metrics();
    assert!(metrics.total(|worker| worker.searches) >= 1, "{metrics}");
    assert!(metrics.total(|worker| worker.steals) >= 1, "{metrics}");
    assert!(
        metrics.total(|worker| worker.stolen_tasks) >= 1,
        "{metrics}"
    );
}

#[test]
fn blocking_threads_and_jobs_are_counted() {
    let _dog = watchdog(60, "blocking_threads_and_jobs_are_counted");
    let rt = one_thread();
    assert_eq!(rt.metrics().blocking_threads, 0);
    let release = Event::new();
    let held = release.clone();
    let job = rt.spawn_blocking(move || held.wait());
    assert!(eventually(|| rt.metrics().blocking_queue_len == 0));
    assert_eq!(rt.metrics().blocking_threads, 1);
    assert_eq!(rt.metrics().live_tasks, 0, "jobs are no tasks");
    release.set();
    rt.block_on(job).unwrap();
}

#[test]
fn they_print_as_a_table_with_a_row_for_each_worker() {
    let _dog = watchdog(60, "they_print_as_a_table");
    let rt = with_workers(3);
    rt.block_on(async { runtime::spawn(async {}).await })
        .unwrap();
    let table = rt.metrics().to_string();
    let lines: Vec<_> = table.lines().collect();
    assert!(lines.len() >= 2 + 3, "{table}");
    let header = lines.iter().find(|line| line.contains("polls")).unwrap();
    for column in [
        "worker", "parks", "searches", "steals", "refills", "slot", "fork", "fair",
    ] {
        assert!(header.contains(column), "{column}: {table}");
    }
    assert!(lines.iter().all(|line| line.len() <= 120), "{table}");
}
