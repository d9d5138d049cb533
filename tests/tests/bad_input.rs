//! What goes wrong outside of the runtime comes out as an error that says what it was.

use std::io::ErrorKind;
use std::time::Duration;

use runtime::net::{TcpListener, TcpStream, lookup_host};
use runtime::time;
use tests::{panic_text_of, watchdog, with_workers};

/// What the documentation says where there is no runtime.
const NO_RUNTIME: &str = "no runtime on this thread: call this from a task, inside `Runtime::block_on` or under \
     `#[runtime::main]`, or enter one with `Handle::enter`";

#[test]
fn an_address_in_use_is_named() {
    let _dog = watchdog(60, "an_address_in_use_is_named");
    with_workers(1).block_on(async {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let error = TcpListener::bind(address).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::AddrInUse);
        assert!(error.to_string().contains(&address.to_string()), "{error}");
        drop(listener);
        TcpListener::bind(address).await.unwrap();
    });
}

#[test]
fn a_refused_connection_is_an_error_and_names_the_address() {
    let _dog = watchdog(60, "a_refused_connection_is_an_error");
    with_workers(1).block_on(async {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        drop(listener);
        let error = TcpStream::connect(address).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::ConnectionRefused);
        assert!(error.to_string().contains(&address.to_string()), "{error}");
    });
}

#[test]
fn a_name_that_cannot_be_resolved_is_in_the_error() {
    let _dog = watchdog(60, "a_name_that_cannot_be_resolved");
    with_workers(1).block_on(async {
        // A top level that is reserved for never being there.
        let name = "no-such-host.invalid";
        let error = TcpStream::connect((name, 80)).await.unwrap_err();
        assert!(error.to_string().contains(name), "{error}");
        let error = TcpListener::bind((name, 80)).await.unwrap_err();
        assert!(error.to_string().contains(name), "{error}");
        let error = lookup_host(format!("{name}:80"))
            .await
            .map(drop)
            .unwrap_err();
        assert!(error.to_string().contains(name), "{error}");
    });
}

#[test]
fn what_is_no_address_is_invalid_input() {
    let _dog = watchdog(60, "what_is_no_address");
    with_workers(1).block_on(async {
        for text in [
            "",
            "localhost",
            "127.0.0.1:port",
            "127.0.0.1:65536",
            "a:b:c",
        ] {
            let error = TcpStream::connect(text).await.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::InvalidInput, "{text:?}: {error}");
            assert!(error.to_string().contains(&format!("{text:?}")), "{error}");
        }
        let none: &[std::net::SocketAddr] = &[];
        let error = TcpStream::connect(none).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidInput, "{error}");
    });
}

#[test]
fn sockets_without_a_runtime_are_an_error_that_says_what_to_do() {
    let _dog = watchdog(60, "sockets_without_a_runtime");
    futures::executor::block_on(async {
        let error = TcpListener::bind("127.0.0.1:0").await.unwrap_err();
        assert_eq!(error.to_string(), NO_RUNTIME);
        let error = TcpStream::connect("127.0.0.1:1").await.unwrap_err();
        assert_eq!(error.to_string(), NO_RUNTIME);
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let stream = std::net::TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let error = TcpStream::from_std(stream).unwrap_err();
        assert_eq!(error.to_string(), NO_RUNTIME);
        let error = TcpListener::from_std(listener).unwrap_err();
        assert_eq!(error.to_string(), NO_RUNTIME);
    });
}

#[test]
fn timers_without_a_runtime_panic_and_say_what_to_do() {
    let _dog = watchdog(60, "timers_without_a_runtime");
    let wait = Duration::from_millis(1);
    let block_on = |future| futures::executor::block_on::<time::Sleep>(future);
    assert!(panic_text_of(|| block_on(time::sleep(wait))).contains(NO_RUNTIME));
    let limited = || {
        let never = std::future::pending::<()>();
        let _ = futures::executor::block_on(time::timeout(wait, never));
    };
    assert!(panic_text_of(limited).contains(NO_RUNTIME));
    // A future that is ready at once needs no timer.
    let ready = time::timeout(wait, std::future::ready(1));
    assert_eq!(futures::executor::block_on(ready).unwrap(), 1);
}

#[test]
fn a_socket_works_on_any_thread_once_it_is_made() {
    let _dog = watchdog(60, "a_socket_works_on_any_thread");
    let rt = with_workers(1);
    let guard = rt.enter();
    let listener = futures::executor::block_on(TcpListener::bind("127.0.0.1:0")).unwrap();
    drop(guard);
    let address = listener.local_addr().unwrap();
    let client = std::thread::spawn(move || std::net::TcpStream::connect(address).unwrap());
    let (_, peer) = futures::executor::block_on(listener.accept()).unwrap();
    assert_eq!(peer, client.join().unwrap().local_addr().unwrap());
}

#[test]
fn a_connection_that_is_reset_is_an_error() {
    let _dog = watchdog(60, "a_connection_that_is_reset");
    with_workers(1).block_on(async {
        use futures::io::AsyncReadExt;
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let client = TcpStream::connect(listener.local_addr().unwrap())
            .await
            .unwrap();
        let (mut server, _) = listener.accept().await.unwrap();
        let reads = runtime::spawn(async move { server.read(&mut [0; 1]).await });
        runtime::task::yield_now().await;
        client.set_linger(Some(Duration::ZERO)).unwrap();
        drop(client);
        let error = reads.await.unwrap().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::ConnectionReset);
    });
}
