//! An idle runtime uses no CPU.
#![cfg(target_os = "linux")]

use std::sync::Arc;
use std::thread;
use std::time::Duration;

use futures::StreamExt;
use runtime::net::{TcpListener, TcpStream};
use tests::{cpu_time, in_own_process, watchdog, with_workers};

/// CPU time that the whole process uses within two seconds.
fn cpu_of_two_seconds() -> Duration {
    let before = cpu_time();
    thread::sleep(Duration::from_secs(2));
    cpu_time() - before
}

#[test]
fn with_nothing_to_do_it_uses_no_cpu() {
    in_own_process("with_nothing_to_do_it_uses_no_cpu", || {
        let dog = watchdog(60, "with_nothing_to_do");
        let rt = with_workers(4);
        dog.watch(rt.handle());
        // It has been busy before.
        rt.block_on(async {
            let tasks: Vec<_> = (0..1000).map(|_| runtime::spawn(async {})).collect();
            futures::future::join_all(tasks).await;
        });
        let parks = rt.metrics().total(|worker| worker.parks);
        let used = cpu_of_two_seconds();
        assert!(
            used < Duration::from_millis(20),
            "{used:?}\n{}",
            rt.metrics()
        );
        let parks_since = rt.metrics().total(|worker| worker.parks) - parks;
        assert!(parks_since <= 8, "nobody wakes up: {parks_since} parks");
    });
}

#[test]
fn with_waiting_sockets_and_timers_it_uses_no_cpu() {
    in_own_process("with_waiting_sockets_and_timers_it_uses_no_cpu", || {
        let dog = watchdog(60, "with_waiting_sockets_and_timers");
        let rt = with_workers(2);
        dog.watch(rt.handle());
        let listener = rt.block_on(TcpListener::bind("127.0.0.1:0")).unwrap();
        let address = listener.local_addr().unwrap();
        drop(rt.spawn(async move {
            let mut streams = Vec::new();
            while let Ok((stream, _)) = listener.accept().await {
                streams.push(stream);
            }
        }));
        for _ in 0..100 {
            drop(rt.spawn(async move {
                let stream = TcpStream::connect(address).await.unwrap();
                stream.readable().await
            }));
            drop(rt.spawn(runtime::time::sleep(Duration::from_secs(3600))));
        }
        thread::sleep(Duration::from_millis(200));
        let used = cpu_of_two_seconds();
        assert!(
            used < Duration::from_millis(20),
            "{used:?}\n{}",
            rt.metrics()
        );
    });
}

#[test]
fn a_thread_in_block_on_that_waits_uses_no_cpu() {
    in_own_process("a_thread_in_block_on_that_waits_uses_no_cpu", || {
        let _dog = watchdog(60, "a_thread_in_block_on_that_waits");
        for background in [false, true] {
            let rt = runtime::Builder::new().worker_threads(2);
            let rt = rt.background_threads(background).build().unwrap();
            let before = cpu_time();
            rt.block_on(runtime::time::sleep(Duration::from_secs(1)));
            let used = cpu_time() - before;
            assert!(
                used < Duration::from_millis(20),
                "{used:?}\n{}",
                rt.metrics()
            );
        }
    });
}

#[test]
fn many_tasks_that_wait_for_one_listener_use_no_cpu() {
    in_own_process("many_tasks_that_wait_for_one_listener_use_no_cpu", || {
        let _dog = watchdog(60, "many_tasks_that_wait_for_one_listener");
        let rt = with_workers(2);
        rt.block_on(async {
            let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
            let listener = Arc::new(listener);
            for number in 0..100 {
                let listener = Arc::clone(&listener);
                drop(runtime::spawn(async move {
                    if number % 2 == 0 {
                        let _ = listener.incoming().next().await;
                    } else {
                        let _ = std::future::poll_fn(|cx| listener.poll_accept(cx)).await;
                    }
                }));
            }
            // They find out how many they are.
            runtime::time::sleep(Duration::from_millis(100)).await;
        });
        let used = cpu_of_two_seconds();
        assert!(used < Duration::from_millis(100), "{used:?}");
    });
}
