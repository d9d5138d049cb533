//! Everybody gets a share: equal tasks equal ones, and no kind of load shuts another one out.

use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::task::{Poll, Waker};
use std::thread;
use std::time::{Duration, Instant};

use futures::channel::mpsc;
use futures::future::join_all;
use futures::{SinkExt, StreamExt, executor};
use runtime::task::yield_now;
use runtime::{Builder, StealOrder};
use tests::{every_shape, one_thread, watchdog, with_workers};

#[test]
fn tasks_that_do_the_same_get_similar_shares() {
    let dog = watchdog(60, "tasks_that_do_the_same_get_similar_shares");
    for workers in [1, 2] {
        for order in [
            StealOrder::Random,
            StealOrder::RoundRobin,
            StealOrder::Longest,
        ] {
            let rt = Builder::new().worker_threads(workers).steal_order(order);
            let rt = rt.build().unwrap();
            dog.watch(rt.handle());
            let stop = Arc::new(AtomicBool::new(false));
            let tasks: Vec<_> = (0..32)
                .map(|_| {
                    let stop = Arc::clone(&stop);
                    rt.spawn(async move {
                        let mut turns = 0_u64;
                        while !stop.load(SeqCst) {
                            turns += 1;
                            yield_now().await;
                        }
                        turns
                    })
                })
                .collect();
            thread::sleep(Duration::from_millis(400));
            stop.store(true, SeqCst);
            let turns = executor::block_on(join_all(tasks));
            let turns: Vec<_> = turns.into_iter().map(Result::unwrap).collect();
            let (least, most) = (turns.iter().min().unwrap(), turns.iter().max().unwrap());
            assert!(
                *most <= 4 * *least,
                "{workers} workers, {order:?}: {turns:?}"
            );
        }
    }
}

/// Two tasks that wake each other directly through stored wakers, until `stop`. Counts the turns.
fn wake_each_other(
    stop: &Arc<AtomicBool>,
    turns: &Arc<AtomicU64>,
) -> [impl Future<Output = ()> + Send + use<>; 2] {
    let wakers: Arc<[Mutex<Option<Waker>>; 2]> = Arc::default();
    [0, 1].map(|me| {
        let (wakers, stop, turns) = (Arc::clone(&wakers), Arc::clone(stop), Arc::clone(turns));
        poll_fn(move |cx| {
            let other = wakers[1 - me].lock().unwrap().clone();
            if let Some(other) = other {
                other.wake();
            }
            if stop.load(SeqCst) {
                return Poll::Ready(());
            }
            turns.fetch_add(1, SeqCst);
            *wakers[me].lock().unwrap() = Some(cx.waker().clone());
            Poll::Pending
        })
    })
}

// tokio#2349, tokio#5712
#[test]
fn a_task_from_outside_runs_soon_while_two_tasks_keep_waking_each_other() {
    let dog = watchdog(60, "a_task_from_outside_runs_soon");
    for shape in every_shape().filter(|shape| shape.background) {
        let rt = shape.build();
        dog.watch(rt.handle());
        let (stop, turns) = (Arc::default(), Arc::new(AtomicU64::new(0)));
        let pair = wake_each_other(&stop, &turns).map(|task| rt.spawn(task));
        assert!(tests::eventually(|| turns.load(SeqCst) > 100));
        let mut waits: Vec<_> = (0..21)
            .map(|_| {
                let start = Instant::now();
                let waited = rt.spawn(async move { start.elapsed() });
                executor::block_on(waited).unwrap()
            })
            .collect();
        waits.sort();
        assert!(
            waits[10] < Duration::from_millis(10),
            "{shape:?}: {waits:?}"
        );
        let before = turns.load(SeqCst);
        assert!(
            tests::eventually(|| turns.load(SeqCst) > before),
            "the pair goes on"
        );
        stop.store(true, SeqCst);
        for task in pair {
            task.abort();
            let _ = executor::block_on(task);
        }
    }
}

#[test]
fn ordinary_tasks_run_while_a_chain_of_spawns_or_a_pair_uses_the_slot() {
    fn chain(stop: Arc<AtomicBool>) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        Box::pin(async move {
            if !stop.load(SeqCst) {
                drop(runtime::spawn(chain(stop)));
            }
        })
    }

    let dog = watchdog(60, "ordinary_tasks_run_while_the_slot_is_used");
    for shape in every_shape() {
        let rt = shape.build();
        dog.watch(rt.handle());
        rt.block_on(async {
            let (stop, turns) = (Arc::default(), Arc::new(AtomicU64::new(0)));
            drop(runtime::spawn(chain(Arc::clone(&stop))));
            for task in wake_each_other(&stop, &turns) {
                drop(runtime::spawn(task));
            }
            let ordinary = (0..20).map(|_| {
                runtime::spawn(async {
                    for _ in 0..20 {
                        yield_now().await;
                    }
                })
            });
            join_all(ordinary.collect::<Vec<_>>()).await;
            stop.store(true, SeqCst);
        });
    }
}

#[test]
fn a_pair_that_uses_the_slot_leaves_ordinary_tasks_a_fair_part_of_the_turns() {
    let dog = watchdog(60, "a_pair_that_uses_the_slot_leaves_ordinary_tasks_a_part");
    let rt = one_thread();
    dog.watch(rt.handle());
    rt.block_on(async {
        let (stop, turns) = (Arc::default(), Arc::new(AtomicU64::new(0)));
        for task in wake_each_other(&stop, &turns) {
            drop(runtime::spawn(task));
        }
        let ordinary = (0..10).map(|_| {
            runtime::spawn(async {
                for _ in 0..1000 {
                    yield_now().await;
                }
            })
        });
        join_all(ordinary.collect::<Vec<_>>()).await;
        stop.store(true, SeqCst);
        // Counted in turns, so the machine's speed has no part in it.
        let (of_pair, of_others) = (turns.load(SeqCst), 10 * 1000);
        assert!(
            of_pair <= 8 * of_others,
            "{of_pair} turns beside {of_others}"
        );
        assert!(of_pair >= 1000, "the pair went on: {of_pair} turns");
    });
}

#[test]
fn a_flood_from_outside_does_not_starve_tasks_that_are_woken() {
    let dog = watchdog(60, "a_flood_from_outside_does_not_starve");
    for workers in [1, 2] {
        let rt = with_workers(workers);
        dog.watch(rt.handle());
        let stop = Arc::new(AtomicBool::new(false));
        let flood = {
            let (handle, stop) = (rt.handle().clone(), Arc::clone(&stop));
            thread::spawn(move || {
                let ran = Arc::new(AtomicUsize::new(0));
                let mut spawned = 0;
                while !stop.load(SeqCst) {
                    // The backlog is never empty, and not without bound.
                    if spawned - ran.load(SeqCst) < 10_000 {
                        let ran = Arc::clone(&ran);
                        spawned += 1;
                        drop(handle.spawn(async move {
                            ran.fetch_add(1, SeqCst);
                        }));
                    } else {
                        thread::yield_now();
                    }
                }
                (spawned, ran)
            })
        };
        let (mut to_echo, mut from_main) = mpsc::channel::<u32>(1);
        let (mut to_main, mut from_echo) = mpsc::channel::<u32>(1);
        let echo = rt.spawn(async move {
            while let Some(number) = from_main.next().await {
                to_main.send(number).await.unwrap();
            }
        });
        let pinging = rt.spawn(async move {
            let (mut trips, mut longest) = (0, Duration::ZERO);
            let end = Instant::now() + Duration::from_millis(500);
            while Instant::now() < end {
                let start = Instant::now();
                to_echo.send(trips).await.unwrap();
                assert_eq!(from_echo.next().await.unwrap(), trips);
                longest = longest.max(start.elapsed());
                trips += 1;
            }
            (trips, longest)
        });
        let (trips, longest) = executor::block_on(pinging).unwrap();
        stop.store(true, SeqCst);
        executor::block_on(echo).unwrap();
        let (spawned, ran) = flood.join().unwrap();
        assert!(
            trips >= 50 && longest < Duration::from_secs(1),
            "{trips} trips, {longest:?}"
        );
        assert!(
            tests::eventually(|| ran.load(SeqCst) == spawned),
            "and none is lost"
        );
    }
}

#[test]
fn a_flood_of_spawns_inside_does_not_starve_older_tasks() {
    let dog = watchdog(60, "a_flood_of_spawns_inside");
    for workers in [1, 2] {
        let rt = with_workers(workers);
        dog.watch(rt.handle());
        rt.block_on(async {
            let (stop, alive) = (
                Arc::new(AtomicBool::new(false)),
                Arc::new(AtomicUsize::new(0)),
            );
            let flood = {
                let stop = Arc::clone(&stop);
                runtime::spawn(async move {
                    while !stop.load(SeqCst) {
                        // Bounded: a task that yields does not wait for what it has spawned.
                        while alive.load(SeqCst) < 10_000 {
                            alive.fetch_add(1, SeqCst);
                            let alive = Arc::clone(&alive);
                            drop(runtime::spawn(async move {
                                alive.fetch_sub(1, SeqCst);
                            }));
                        }
                        yield_now().await;
                    }
                })
            };
            for _ in 0..20 {
                let older: Vec<_> = (0..10).map(|_| runtime::spawn(async {})).collect();
                join_all(older).await;
            }
            stop.store(true, SeqCst);
            flood.await.unwrap();
        });
    }
}

#[test]
fn a_task_with_endless_ready_operations_lets_others_run() {
    let dog = watchdog(60, "a_task_with_endless_ready_operations");
    let rt = one_thread();
    dog.watch(rt.handle());
    rt.block_on(async {
        let stop = Arc::new(AtomicBool::new(false));
        // Each pass is ready at once: only the budget of a poll interrupts the loop.
        let stops = Arc::clone(&stop);
        let consumer = runtime::spawn(async move {
            while !stops.load(SeqCst) {
                runtime::task::consume_budget().await;
            }
        });
        let stops = Arc::clone(&stop);
        let sleeper = runtime::spawn(async move {
            while !stops.load(SeqCst) {
                runtime::time::sleep(Duration::ZERO).await;
            }
        });
        for _ in 0..10 {
            yield_now().await;
        }
        // Timers fire beside them as well.
        runtime::time::sleep(Duration::from_millis(5)).await;
        stop.store(true, SeqCst);
        consumer.await.unwrap();
        sleeper.await.unwrap();
    });
}

#[test]
fn a_timeout_around_a_task_that_uses_up_its_budget_fires() {
    // tokio#4291, tokio#4314
    let _dog = watchdog(60, "a_timeout_around_a_task_that_uses_up_its_budget");
    for shape in every_shape() {
        let rt = shape.build();
        rt.block_on(async {
            let burner = async {
                loop {
                    runtime::task::consume_budget().await;
                }
            };
            let limited = runtime::time::timeout(Duration::from_millis(10), burner);
            assert!(runtime::spawn(limited).await.unwrap().is_err());
        });
    }
}
