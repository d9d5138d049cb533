//! Which threads run tasks, and how many.

use std::collections::HashSet;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::thread::{self, ThreadId};
use std::time::{Duration, Instant};

use futures::executor;
use futures::future::join_all;
use runtime::task::yield_now;
use runtime::{Builder, Handle};
use tests::{Event, eventually, one_thread, watchdog, with_workers};

/// Who ran tasks, and how many did at the same time.
#[derive(Default)]
struct Runners {
    threads: Mutex<HashSet<ThreadId>>,
    running: AtomicUsize,
    peak: AtomicUsize,
    /// This thread does not count for the peak.
    aside: Option<ThreadId>,
}

impl Runners {
    /// A piece of work inside a poll.
    fn work(&self) {
        let here = thread::current().id();
        self.threads.lock().unwrap().insert(here);
        if Some(here) == self.aside {
            return;
        }
        let running = self.running.fetch_add(1, SeqCst) + 1;
        self.peak.fetch_max(running, SeqCst);
        let end = Instant::now() + Duration::from_micros(100);
        while Instant::now() < end {
            thread::yield_now();
        }
        self.running.fetch_sub(1, SeqCst);
    }

    /// Many tasks that work and yield; ends when they do.
    async fn run_many(self: &Arc<Self>, handle: &Handle) {
        let tasks = (0..100).map(|_| {
            let runners = Arc::clone(self);
            handle.spawn(async move {
                for _ in 0..5 {
                    runners.work();
                    yield_now().await;
                }
            })
        });
        for result in join_all(tasks.collect::<Vec<_>>()).await {
            result.unwrap();
        }
    }
}

#[test]
fn a_runtime_nobody_blocks_on_runs_what_is_spawned_on_its_threads() {
    let dog = watchdog(60, "a_runtime_nobody_blocks_on");
    for workers in 1..=3 {
        let rt = with_workers(workers);
        dog.watch(rt.handle());
        let runners = Arc::new(Runners::default());
        executor::block_on(runners.run_many(rt.handle()));
        let threads = runners.threads.lock().unwrap();
        assert!(threads.len() <= workers, "{} of {workers}", threads.len());
        assert!(runners.peak.load(SeqCst) <= workers);
        assert!(!threads.contains(&thread::current().id()));
    }
}

#[test]
fn all_workers_take_part_when_there_is_enough_to_do() {
    let dog = watchdog(60, "all_workers_take_part");
    let rt = with_workers(3);
    dog.watch(rt.handle());
    // Three tasks that only end together, spawned by a task, so that they must be taken by other workers.
    let meeting = Arc::new(AtomicUsize::new(0));
    let spawner = rt.spawn(async move {
        let parties = (0..3).map(|_| {
            let meeting = Arc::clone(&meeting);
            runtime::spawn(async move {
                meeting.fetch_add(1, SeqCst);
                while meeting.load(SeqCst) < 3 {
                    thread::yield_now();
                }
            })
        });
        join_all(parties.collect::<Vec<_>>()).await
    });
    for result in executor::block_on(spawner).unwrap() {
        result.unwrap();
    }
}

#[test]
fn a_thread_in_block_on_is_one_of_the_workers() {
    let dog = watchdog(60, "a_thread_in_block_on_is_one_of_the_workers");
    for workers in 1..=3 {
        let rt = with_workers(workers);
        dog.watch(rt.handle());
        // The caller aside: it is lent a seat if it comes while the workers have them all.
        let runners = Arc::new(Runners {
            aside: Some(thread::current().id()),
            ..Runners::default()
        });
        rt.block_on(runners.run_many(rt.handle()));
        assert!(runners.peak.load(SeqCst) <= workers);
        assert!(runners.threads.lock().unwrap().len() <= workers + 1);
    }
}

#[test]
fn the_only_worker_is_the_thread_in_block_on() {
    let dog = watchdog(60, "the_only_worker_is_the_thread_in_block_on");
    let rt = with_workers(1);
    dog.watch(rt.handle());
    let runners = Arc::new(Runners::default());
    rt.block_on(async {
        // By its first wait it has the seat, whoever had it before.
        yield_now().await;
        runners.run_many(rt.handle()).await;
    });
    assert_eq!(
        *runners.threads.lock().unwrap(),
        HashSet::from([thread::current().id()])
    );
    // And afterwards the background thread has it again.
    let ran_on = executor::block_on(rt.spawn(async { thread::current().id() }));
    assert_ne!(ran_on.unwrap(), thread::current().id());
}

#[test]
fn without_background_threads_the_caller_runs_everything() {
    let dog = watchdog(60, "without_background_threads");
    let rt = one_thread();
    dog.watch(rt.handle());
    let spawned_before = rt.spawn(async { thread::current().id() });
    let runners = Arc::new(Runners::default());
    rt.block_on(runners.run_many(rt.handle()));
    let here = thread::current().id();
    assert_eq!(*runners.threads.lock().unwrap(), HashSet::from([here]));
    assert_eq!(rt.block_on(spawned_before).unwrap(), here);
}

#[test]
fn without_background_threads_nothing_runs_between_two_calls() {
    let _dog = watchdog(60, "without_background_threads_nothing_runs");
    let rt = one_thread();
    let ran = Event::new();
    let runs = ran.clone();
    let task = rt.spawn(async move { runs.set() });
    thread::sleep(Duration::from_millis(30));
    assert!(!ran.is_set() && !task.is_finished());
    rt.block_on(task).unwrap();
    assert!(ran.is_set());
}

#[test]
fn tasks_go_on_after_block_on_returns() {
    let dog = watchdog(60, "tasks_go_on_after_block_on_returns");
    for workers in 1..=2 {
        let rt = with_workers(workers);
        dog.watch(rt.handle());
        let done = Event::new();
        let ends = done.clone();
        rt.block_on(async move {
            drop(runtime::spawn(async move {
                for _ in 0..1000 {
                    yield_now().await;
                }
                ends.set();
            }));
        });
        assert!(eventually(|| done.is_set()), "{}", rt.metrics());
    }
}

#[test]
fn threads_bear_the_name_they_were_given() {
    let _dog = watchdog(60, "threads_bear_the_name_they_were_given");
    let rt = Builder::new()
        .worker_threads(2)
        .thread_name("crunch")
        .build()
        .unwrap();
    let name = || thread::current().name().unwrap_or_default().to_owned();
    let worker = executor::block_on(rt.spawn(async move { name() })).unwrap();
    assert!(worker.starts_with("crunch"), "{worker}");
    let blocking = rt.block_on(rt.spawn_blocking(name)).unwrap();
    assert!(blocking.starts_with("crunch"), "{blocking}");
    assert_ne!(worker, blocking);
}

#[cfg(target_os = "linux")]
#[test]
fn only_background_threads_are_started_and_all_are_joined() {
    tests::in_own_process(
        "only_background_threads_are_started_and_all_are_joined",
        || {
            let _dog = watchdog(60, "only_background_threads_are_started_and_all_are_joined");
            let threads = tests::threads_of_this_process;
            let before = threads();

            let quiet = one_thread();
            assert_eq!(
                quiet
                    .block_on(async { runtime::spawn(async { 1 }).await })
                    .unwrap(),
                1
            );
            assert_eq!(threads(), before, "no background threads");
            drop(quiet);

            let quiet = Builder::new().worker_threads(4).background_threads(false);
            let quiet = quiet.build().unwrap();
            quiet
                .block_on(async { runtime::spawn(async {}).await })
                .unwrap();
            assert_eq!(
                threads(),
                before,
                "no background threads for four workers either"
            );
            drop(quiet);

            let busy = with_workers(3);
            assert_eq!(threads(), before + 3);
            busy.block_on(async { runtime::spawn(async {}).await })
                .unwrap();
            drop(busy);
            // A joined thread may still stand in /proc for a moment.
            assert!(
                eventually(|| threads() == before),
                "{} threads left",
                threads()
            );

            // Threads of the blocking pool go as well, long before their keep-alive is over.
            let pooled = Builder::new()
                .worker_threads(1)
                .thread_keep_alive(Duration::from_secs(3600));
            let pooled = pooled.build().unwrap();
            pooled.block_on(pooled.spawn_blocking(|| ())).unwrap();
            assert_eq!(threads(), before + 2);
            drop(pooled);
            assert!(
                eventually(|| threads() == before),
                "{} threads left",
                threads()
            );

            drop(with_workers(2).spawn(std::future::pending::<()>()));
            assert!(
                eventually(|| threads() == before),
                "{} threads left",
                threads()
            );
        },
    );
}
