//! What can be chosen when a runtime is built, and what is refused.

use std::io::ErrorKind;
use std::pin::Pin;

use futures::future::join_all;
use runtime::task::yield_now;
use runtime::{Builder, StealOrder};
use tests::watchdog;

#[test]
fn values_out_of_range_are_refused_with_their_name_and_range() {
    let _dog = watchdog(60, "values_out_of_range_are_refused");
    let refused = [
        (
            Builder::new().worker_threads(0),
            "worker_threads",
            "between 1 and 1024",
            "0",
        ),
        (
            Builder::new().worker_threads(1025),
            "worker_threads",
            "between 1 and 1024",
            "1025",
        ),
        (
            Builder::new().backlog_capacity(0),
            "backlog_capacity",
            "at least 1",
            "0",
        ),
        (
            Builder::new().max_blocking_threads(0),
            "max_blocking_threads",
            "at least 1",
            "0",
        ),
    ];
    for (builder, option, range, value) in refused {
        let error = builder.build().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidInput);
        let text = error.to_string();
        assert!(
            text.contains(option) && text.contains(range) && text.ends_with(value),
            "{text}"
        );
    }
}

#[test]
fn the_largest_number_of_workers_works() {
    let _dog = watchdog(60, "the_largest_number_of_workers_works");
    let rt = Builder::new()
        .worker_threads(1024)
        .background_threads(false);
    let rt = rt.build().unwrap();
    assert_eq!(
        rt.block_on(async { runtime::spawn(async { 9 }).await })
            .unwrap(),
        9
    );
    assert_eq!(rt.metrics().workers.len(), 1024);
}

/// Tasks that spawn tasks, of three workers: some must be stolen.
fn run_a_tree(builder: Builder) -> usize {
    fn tree(depth: u32) -> Pin<Box<dyn Future<Output = usize> + Send>> {
        Box::pin(async move {
            if depth == 0 {
                yield_now().await;
                return 1;
            }
            let children = (0..2).map(|_| runtime::spawn(tree(depth - 1)));
            let leaves = join_all(children.collect::<Vec<_>>()).await;
            leaves.into_iter().map(Result::unwrap).sum()
        })
    }

    let rt = builder.worker_threads(3).build().unwrap();
    rt.block_on(tree(9))
}

#[test]
fn every_steal_order_runs_everything() {
    let _dog = watchdog(60, "every_steal_order_runs_everything");
    for order in [
        StealOrder::Random,
        StealOrder::RoundRobin,
        StealOrder::Longest,
    ] {
        assert_eq!(
            run_a_tree(Builder::new().steal_order(order)),
            512,
            "{order:?}"
        );
    }
}

#[test]
fn every_seed_works() {
    let _dog = watchdog(60, "every_seed_works");
    for seed in [0, 1, 42, 0x9E37_79B9_7F4A_7C15, u64::MAX] {
        assert_eq!(run_a_tree(Builder::new().rng_seed(seed)), 512, "{seed}");
    }
}

#[test]
fn jobs_beyond_the_largest_number_of_blocking_threads_wait() {
    let dog = watchdog(
        60,
        "jobs_beyond_the_largest_number_of_blocking_threads_wait",
    );
    let rt = Builder::new().worker_threads(1).max_blocking_threads(2);
    let rt = rt.build().unwrap();
    dog.watch(rt.handle());
    let release = tests::Event::new();
    let jobs: Vec<_> = (0..6)
        .map(|_| {
            let release = release.clone();
            rt.spawn_blocking(move || release.wait())
        })
        .collect();
    assert!(tests::eventually(|| rt.metrics().blocking_queue_len == 4));
    assert_eq!(rt.metrics().blocking_threads, 2);
    release.set();
    rt.block_on(async {
        for job in jobs {
            job.await.unwrap();
        }
    });
}

#[test]
fn idle_blocking_threads_go_after_the_keep_alive() {
    let _dog = watchdog(60, "idle_blocking_threads_go_after_the_keep_alive");
    let keep_alive = std::time::Duration::from_millis(20);
    let rt = Builder::new()
        .worker_threads(1)
        .thread_keep_alive(keep_alive);
    let rt = rt.build().unwrap();
    rt.block_on(rt.spawn_blocking(|| {})).unwrap();
    assert!(tests::eventually(|| rt.metrics().blocking_threads == 0));
    rt.block_on(rt.spawn_blocking(|| {})).unwrap();
}
