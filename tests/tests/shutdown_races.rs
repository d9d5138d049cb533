//! Ends of a runtime in the midst of everything: destructors that wake, events and spawns at the same time,
//! handles in a circle, timers on the way.

use std::future::pending;
use std::io::Write;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use futures::channel::{mpsc, oneshot};
use futures::io::AsyncReadExt;
use futures::{StreamExt, executor};
use runtime::net::{TcpListener, TcpStream};
use runtime::task::{JoinHandle, yield_now};
use tests::{Drops, every_shape, rounds, watchdog, with_workers};

/// Takes the lock, and then sends, when it is dropped.
struct LocksAndSends {
    lock: Arc<Mutex<usize>>,
    wakes: Option<mpsc::UnboundedSender<()>>,
}

impl Drop for LocksAndSends {
    fn drop(&mut self) {
        let mut drops = self.lock.lock().unwrap();
        *drops += 1;
        if let Some(wakes) = &self.wakes {
            let _ = wakes.unbounded_send(());
        }
    }
}

// tokio#2046, tokio#1886, tokio#1972
#[test]
fn a_destructor_may_wake_a_task_while_it_holds_a_lock_that_the_tasks_destructor_takes() {
    let dog = watchdog(60, "a_destructor_may_wake_a_task_while_it_holds_a_lock");
    for shape in every_shape() {
        for _ in 0..rounds(50) {
            let rt = shape.build();
            dog.watch(rt.handle());
            let lock = Arc::new(Mutex::new(0));
            let (wakes, mut woken) = mpsc::unbounded();
            let of_a = LocksAndSends {
                lock: Arc::clone(&lock),
                wakes: Some(wakes),
            };
            let of_b = LocksAndSends {
                lock: Arc::clone(&lock),
                wakes: None,
            };
            let (polled, both_polled) = channel();
            let polled_too = polled.clone();
            let a = rt.spawn(async move {
                let _guard = of_a;
                polled.send(()).unwrap();
                pending::<()>().await;
            });
            let b = rt.spawn(async move {
                let _guard = of_b;
                polled_too.send(()).unwrap();
                while woken.next().await.is_some() {}
                pending::<()>().await;
            });
            rt.block_on(tests::until(|| both_polled.try_recv().is_ok()));
            rt.block_on(tests::until(|| both_polled.try_recv().is_ok()));
            let start = Instant::now();
            drop(rt);
            assert!(start.elapsed() < Duration::from_secs(1), "{shape:?}");
            assert_eq!(*lock.lock().unwrap(), 2);
            assert!(executor::block_on(a).unwrap_err().is_cancelled());
            assert!(executor::block_on(b).unwrap_err().is_cancelled());
        }
    }
}

// tokio#2061, tokio#2074, tokio#3548, tokio#1853
#[test]
fn events_and_spawns_may_come_during_the_end() {
    let dog = watchdog(100, "events_and_spawns_may_come_during_the_end");
    for round in 0..rounds(60) {
        let shape = every_shape().nth(round % 4).unwrap();
        dog.step(format!("round {round} {shape:?}"));
        let rt = shape.build();
        dog.watch(rt.handle());
        let drops = Drops::new();

        // A task that reads whatever a plain thread writes.
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let mut writer = std::net::TcpStream::connect(address).unwrap();
        let reader = listener.accept().unwrap().0;
        let reading = {
            let guard = drops.guard();
            rt.spawn(async move {
                let _guard = guard;
                let mut reader = TcpStream::from_std(reader).unwrap();
                let mut bytes = [0; 16];
                while reader.read(&mut bytes).await.is_ok() {}
            })
        };

        let stop = Arc::new(AtomicBool::new(false));
        let disturber = {
            let (handle, drops, stop) = (rt.handle().clone(), drops.clone(), Arc::clone(&stop));
            thread::spawn(move || {
                let mut handles: Vec<JoinHandle<()>> = Vec::new();
                while !stop.load(SeqCst) && handles.len() < 20_000 {
                    let _ = writer.write(b"x");
                    let (in_task, in_job) = (drops.guard(), drops.guard());
                    handles.push(handle.spawn(async move {
                        let _guard = in_task;
                        yield_now().await;
                    }));
                    handles.push(handle.spawn_blocking(move || drop(in_job)));
                }
                handles
            })
        };
        rt.block_on(runtime::time::sleep(Duration::from_millis(2)));
        drop(rt);
        thread::sleep(Duration::from_micros(200));
        stop.store(true, SeqCst);

        let handles = disturber.join().unwrap();
        let expected = handles.len() + 1;
        for handle in handles {
            if let Err(error) = executor::block_on(handle) {
                assert!(error.is_cancelled());
            }
        }
        let error = executor::block_on(reading).unwrap_err();
        assert!(error.is_cancelled());
        assert_eq!(drops.count(), expected, "each was dropped once");
    }
}

// tokio#4724, tokio#6986
#[test]
fn tasks_that_await_each_other_are_freed() {
    let _dog = watchdog(60, "tasks_that_await_each_other_are_freed");
    for shape in every_shape() {
        let rt = shape.build();
        let drops = Drops::new();
        // Each cell owns one of these: as many owners as there are cells that were not freed.
        let owned = Arc::new(());
        rt.block_on(async {
            let (give_second, second) = oneshot::channel::<JoinHandle<()>>();
            let (guard, owner) = (drops.guard(), Arc::clone(&owned));
            let first = runtime::spawn(async move {
                let _held = (guard, owner);
                second.await.unwrap().await.unwrap();
            });
            let (guard, owner) = (drops.guard(), Arc::clone(&owned));
            let second = runtime::spawn(async move {
                let _held = (guard, owner);
                first.await.unwrap();
            });
            give_second.send(second).unwrap();
            for _ in 0..10 {
                yield_now().await;
            }
        });
        assert_eq!((drops.count(), Arc::strong_count(&owned)), (0, 3));
        drop(rt);
        assert_eq!(drops.count(), 2, "{shape:?}");
        assert_eq!(Arc::strong_count(&owned), 1, "{shape:?}");
    }
}

// tokio#3473
#[test]
fn a_task_that_waits_for_a_connection_is_freed_while_the_listener_lives_on() {
    let _dog = watchdog(60, "a_task_that_waits_for_a_connection_is_freed");
    for shape in every_shape() {
        let rt = shape.build();
        let owned = Arc::new(());
        let listener = rt.block_on(TcpListener::bind("127.0.0.1:0")).unwrap();
        let listener = Arc::new(listener);
        let (owner, accepts) = (Arc::clone(&owned), Arc::clone(&listener));
        let task = rt.spawn(async move {
            let _owner = owner;
            let _ = accepts.accept().await;
        });
        rt.block_on(async {
            for _ in 0..10 {
                yield_now().await;
            }
        });
        drop(rt);
        assert_eq!(Arc::strong_count(&owned), 1, "{shape:?}");
        assert!(executor::block_on(task).unwrap_err().is_cancelled());

        // The listener knows that its runtime is gone, wherever it is used.
        let error = with_workers(1).block_on(listener.accept()).unwrap_err();
        assert!(error.to_string().contains("shut down"), "{error}");
    }
}

#[test]
fn who_waits_elsewhere_for_a_socket_is_told_that_its_runtime_is_gone() {
    let _dog = watchdog(60, "who_waits_elsewhere_for_a_socket");
    for shape in every_shape() {
        let (gone, other) = (shape.build(), with_workers(1));
        let listener = gone.block_on(TcpListener::bind("127.0.0.1:0")).unwrap();
        let waits = other.spawn(async move { listener.accept().await });
        thread::sleep(Duration::from_millis(5));
        drop(gone);
        let error = other.block_on(waits).unwrap().unwrap_err();
        assert!(error.to_string().contains("shut down"), "{error}");
    }
}

// tokio#2789
#[test]
fn a_runtime_may_end_with_timers_on_the_way() {
    let dog = watchdog(100, "a_runtime_may_end_with_timers_on_the_way");
    for _ in 0..rounds(60) {
        let rt = with_workers(4);
        dog.watch(rt.handle());
        let drops = Drops::new();
        for n in 0..100 {
            let guard = drops.guard();
            drop(rt.spawn(async move {
                let _guard = guard;
                loop {
                    runtime::time::sleep(Duration::from_millis(1 + n % 10)).await;
                }
            }));
        }
        thread::sleep(Duration::from_millis(5));
        drop(rt);
        assert_eq!(drops.count(), 100);
    }
}

#[test]
fn many_runtimes_may_come_and_go() {
    let _dog = watchdog(100, "many_runtimes_may_come_and_go");
    for round in 0..rounds(200) {
        let rt = every_shape().nth(round % 4).unwrap().build();
        let task = rt.spawn(async { runtime::spawn(async { 1 }).await });
        if round % 3 == 0 {
            assert_eq!(rt.block_on(task).unwrap().unwrap(), 1);
        }
    }
}
