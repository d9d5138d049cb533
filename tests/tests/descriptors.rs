//! Out of descriptors: errors, no spinning, and all is well when there are some again.
#![cfg(unix)]

use std::fs::File;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::time::{Duration, Instant};

use futures::io::{AsyncReadExt, AsyncWriteExt};
use runtime::net::{TcpListener, TcpStream};
use runtime::{Builder, time};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tests::{in_own_process, watchdog, with_workers};

/// EMFILE: too many open files in this process.
const NONE_LEFT: i32 = 24;

/// This process may have so many descriptors from here on.
fn limit_descriptors(count: u64) {
    let limit = Rlimit {
        current: Some(count),
        maximum: getrlimit(Resource::Nofile).maximum,
    };
    setrlimit(Resource::Nofile, limit).unwrap();
}

/// Opens files until there is no descriptor left.
fn use_them_up() -> Vec<File> {
    let mut files = Vec::new();
    loop {
        match File::open("/dev/null") {
            Ok(file) => files.push(file),
            Err(error) => {
                assert_eq!(error.raw_os_error(), Some(NONE_LEFT));
                return files;
            }
        }
    }
}

#[test]
fn a_runtime_that_cannot_be_built_is_an_error() {
    in_own_process("a_runtime_that_cannot_be_built_is_an_error", || {
        let _dog = watchdog(60, "a_runtime_that_cannot_be_built");
        limit_descriptors(64);
        let mut files = use_them_up();
        // One descriptor after the other: it fails at each of them cleanly, and works when there are enough.
        for spared in 0.. {
            match Builder::new().worker_threads(1).build() {
                Ok(rt) => {
                    assert!(spared >= 1);
                    assert_eq!(rt.block_on(async { 1 }), 1);
                    break;
                }
                Err(error) => assert_eq!(error.raw_os_error(), Some(NONE_LEFT), "{error}"),
            }
            assert!(spared < 10, "a runtime needs few descriptors");
            drop(files.pop());
        }
    });
}

#[test]
fn runtimes_give_their_descriptors_back() {
    in_own_process("runtimes_give_their_descriptors_back", || {
        let _dog = watchdog(60, "runtimes_give_their_descriptors_back");
        limit_descriptors(32);
        for round in 0..100 {
            let rt = Builder::new().worker_threads(1 + round % 2);
            let rt = rt.background_threads(round % 3 == 0).build().unwrap();
            let guard = rt.enter();
            let listener = futures::executor::block_on(TcpListener::bind("127.0.0.1:0")).unwrap();
            drop(guard);
            drop(rt.spawn(async move { listener.accept().await }));
            rt.block_on(runtime::task::yield_now());
        }
    });
}

#[test]
fn connecting_without_a_descriptor_is_an_error() {
    in_own_process("connecting_without_a_descriptor_is_an_error", || {
        let _dog = watchdog(60, "connecting_without_a_descriptor");
        limit_descriptors(64);
        let rt = with_workers(1);
        rt.block_on(async {
            let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
            let address = listener.local_addr().unwrap();
            let files = use_them_up();
            let error = TcpStream::connect(address).await.unwrap_err();
            assert!(error.to_string().contains("os error 24"), "{error}");
            let error = TcpListener::bind("127.0.0.1:0").await.unwrap_err();
            assert!(error.to_string().contains("os error 24"), "{error}");
            drop(files);
            TcpStream::connect(address).await.unwrap();
        });
    });
}

// tokio#3529, tokio#4782
#[test]
fn accepting_backs_off_and_serves_the_late_ones() {
    in_own_process("accepting_backs_off_and_serves_the_late_ones", || {
        let dog = watchdog(60, "accepting_backs_off");
        limit_descriptors(64);
        let rt = with_workers(1);
        dog.watch(rt.handle());
        let errors = Arc::new(AtomicUsize::new(0));
        let listener = rt.block_on(TcpListener::bind("127.0.0.1:0")).unwrap();
        let address = listener.local_addr().unwrap();
        // Counts the errors and goes on at once, as careless servers do.
        let counts = Arc::clone(&errors);
        drop(rt.spawn(async move {
            loop {
                match listener.accept().await {
                    Ok((mut stream, _)) => drop(runtime::spawn(async move {
                        let mut bytes = [0; 4];
                        while stream.read_exact(&mut bytes).await.is_ok() {
                            stream.write_all(&bytes).await.unwrap();
                        }
                    })),
                    Err(error) => {
                        assert_eq!(error.raw_os_error(), Some(NONE_LEFT), "{error}");
                        counts.fetch_add(1, SeqCst);
                    }
                }
            }
        }));
        rt.block_on(async {
            async fn echoes(mut stream: &TcpStream) {
                stream.write_all(b"ping").await.unwrap();
                let mut bytes = [0; 4];
                stream.read_exact(&mut bytes).await.unwrap();
                assert_eq!(&bytes, b"ping");
            }
            // Clients take a descriptor as well as those who serve them: half of them are left waiting.
            let mut clients = Vec::new();
            while let Ok(client) = TcpStream::connect(address).await {
                clients.push(client);
            }
            assert!(clients.len() > 20);
            let start = Instant::now();
            time::sleep(Duration::from_millis(300)).await;
            let rate = errors.load(SeqCst) as f64 / start.elapsed().as_secs_f64();
            assert!((1.0..200.0).contains(&rate), "{rate} errors per second");

            // Those that were accepted are served all the time.
            echoes(&clients[0]).await;
            // And the others when descriptors come free.
            let waiting = clients.split_off(clients.len() - 5);
            drop(clients);
            for client in &waiting {
                echoes(client).await;
            }
            echoes(&TcpStream::connect(address).await.unwrap()).await;
        });
    });
}
