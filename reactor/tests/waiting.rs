//! Who waits is woken: several at once, by errors, by the end of the runtime; and a busy socket
//! lets others run.

mod support;

use std::io::{ErrorKind, Write};
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use futures::future::join_all;
use futures::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use reactor::net::{TcpListener, TcpSocket, TcpStream, lookup_host};
use reactor::{Driver, budget, context};
use support::World;

const ANY: &str = "127.0.0.1:0";

#[test]
fn any_number_of_tasks_accept_from_one_listener() {
    let mut world = World::new();
    world.drive(async {
        let listener = TcpListener::bind(ANY).await.unwrap();
        let addr = listener.local_addr().unwrap();
        let accepting = join_all((0..40).map(|_| listener.accept()));
        let connecting = join_all((0..40).map(|_| TcpStream::connect(addr)));
        let (accepted, connected) = futures::join!(accepting, connecting);
        assert!(accepted.into_iter().all(|result| result.is_ok()));
        assert!(connected.into_iter().all(|result| result.is_ok()));
    });
}

#[test]
fn each_task_that_polls_one_stream_is_woken() {
    let mut world = World::new();
    let (mut client, server) = world.connection();
    let wakers: Vec<_> = (0..10).map(|_| world.waker()).collect();
    for waker in &wakers {
        let waker = Waker::from(Arc::clone(waker));
        let mut cx = Context::from_waker(&waker);
        // The first time it is only tried whether something is there.
        assert!(pin!(&server).poll_read(&mut cx, &mut [0]).is_pending());
    }
    world.drive(async { client.write_all(b"for all").await.unwrap() });
    world.settle();
    for waker in &wakers {
        assert_eq!(waker.count(), 1);
    }
}

#[test]
fn a_dropped_wait_is_not_woken() {
    let mut world = World::new();
    let (mut client, server) = world.connection();
    let counter = world.waker();
    let waker = Waker::from(Arc::clone(&counter));
    // Accepted streams count as readable until a read finds otherwise.
    assert!(server.try_read(&mut [0]).is_err());
    let mut readable = Box::pin(server.readable());
    assert!(
        readable
            .as_mut()
            .poll(&mut Context::from_waker(&waker))
            .is_pending()
    );
    drop(readable);
    drop(waker);
    assert_eq!(Arc::strong_count(&counter), 1, "its waker went with it");
    world.drive(async { client.write_all(b"x").await.unwrap() });
    world.settle();
    assert_eq!(counter.count(), 0);
}

#[test]
fn a_reset_wakes_reader_and_writer() {
    let mut world = World::new();
    let (client, server) = world.connection();
    let chunk = vec![0; 1024 * 1024];
    while client.try_write(&chunk).is_ok() {}
    world.drive(async {
        let reset = async {
            server.set_linger(Some(Duration::ZERO)).unwrap();
            drop(server);
        };
        let read = async { (&client).read(&mut [0]).await.unwrap_err().kind() };
        let write = async { (&client).write_all(&chunk).await.unwrap_err().kind() };
        let (read, write, ()) = futures::join!(read, write, reset);
        let gone = [ErrorKind::ConnectionReset, ErrorKind::BrokenPipe];
        // Whoever comes first gets the reset, the other one what is left of it.
        assert!(gone.contains(&write), "{write:?}");
        assert!(
            read == ErrorKind::ConnectionReset || gone.contains(&write),
            "{read:?}"
        );
    });
}

#[test]
fn a_refused_connection_names_its_address() {
    let mut world = World::new();
    // Bound, not listening: nobody else can take the port meanwhile.
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind(ANY.parse().unwrap()).unwrap();
    let addr = socket.local_addr().unwrap();
    let error = world.drive(TcpStream::connect(addr)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::ConnectionRefused);
    assert!(error.to_string().contains(&addr.to_string()), "{error}");
    let error = world
        .drive(TcpSocket::new_v4().unwrap().connect(addr))
        .unwrap_err();
    assert_eq!(error.kind(), ErrorKind::ConnectionRefused);
}

#[test]
fn each_address_is_tried() {
    let mut world = World::new();
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind(ANY.parse().unwrap()).unwrap();
    let refusing = socket.local_addr().unwrap();
    world.drive(async {
        let listener = TcpListener::bind([refusing, ANY.parse().unwrap()])
            .await
            .unwrap();
        let addr = listener.local_addr().unwrap();
        let stream = TcpStream::connect(&[refusing, addr][..]).await.unwrap();
        assert_eq!(stream.peer_addr().unwrap(), addr);
        let error = TcpStream::connect(&[][..]).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidInput);
    });
}

#[test]
fn an_address_in_use_is_named() {
    let mut world = World::new();
    world.drive(async {
        let listener = TcpListener::bind(ANY).await.unwrap();
        let addr = listener.local_addr().unwrap();
        let error = TcpListener::bind(addr).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::AddrInUse);
        let said = error.to_string();
        assert!(
            said.contains("listen on") && said.contains(&addr.to_string()),
            "{said}"
        );
    });
}

#[test]
fn names_are_looked_up_and_failures_name_them() {
    let mut world = World::new();
    world.drive(async {
        let found: Vec<_> = lookup_host("localhost:80").await.unwrap().collect();
        assert!(
            found
                .iter()
                .any(|addr| addr.ip().is_loopback() && addr.port() == 80)
        );
        let error = TcpStream::connect("no such host:80").await.unwrap_err();
        assert!(error.to_string().contains("\"no such host\""), "{error}");
        let error = TcpListener::bind("no such host:80").await.unwrap_err();
        assert!(error.to_string().contains("\"no such host\""), "{error}");
    });
}

#[test]
fn without_a_runtime_the_error_says_what_to_do() {
    assert!(context::with(|current| current.is_none()));
    let listener = std::net::TcpListener::bind(ANY).unwrap();
    let addr = listener.local_addr().unwrap();
    let said = [
        TcpListener::from_std(listener).unwrap_err().to_string(),
        futures::executor::block_on(TcpListener::bind(ANY))
            .unwrap_err()
            .to_string(),
        futures::executor::block_on(TcpStream::connect(addr))
            .unwrap_err()
            .to_string(),
    ];
    for said in said {
        assert_eq!(said, context::NO_RUNTIME);
    }
}

/// Case R24: a socket that outlives its runtime keeps nothing of it.
#[test]
fn shutdown_wakes_all_waiters_and_keeps_no_waker() {
    let mut world = World::new();
    let (client, server) = world.connection();
    let listener = world.drive(TcpListener::bind(ANY)).unwrap();
    let counters: Vec<_> = (0..3).map(|_| world.waker()).collect();
    let wakers: Vec<_> = counters
        .iter()
        .map(|counter| Waker::from(Arc::clone(counter)))
        .collect();
    let mut accepting = Box::pin(listener.accept());
    let mut reading = Box::pin(async { (&server).read(&mut [0]).await });
    assert!(
        accepting
            .as_mut()
            .poll(&mut Context::from_waker(&wakers[0]))
            .is_pending()
    );
    assert!(
        reading
            .as_mut()
            .poll(&mut Context::from_waker(&wakers[1]))
            .is_pending()
    );
    assert!(
        listener
            .poll_accept(&mut Context::from_waker(&wakers[2]))
            .is_pending()
    );
    drop(wakers);

    world.driver.reactor().shutdown();
    for counter in &counters {
        assert_eq!(counter.count(), 1);
        assert_eq!(Arc::strong_count(counter), 1);
    }
    let waker = Waker::from(Arc::clone(&counters[0]));
    let mut cx = Context::from_waker(&waker);
    let Poll::Ready(Err(error)) = accepting.as_mut().poll(&mut cx) else {
        panic!("no error")
    };
    assert!(error.to_string().contains("shut down"), "{error}");
    assert!(matches!(
        reading.as_mut().poll(&mut cx),
        Poll::Ready(Err(_))
    ));
    assert!(matches!(listener.poll_accept(&mut cx), Poll::Ready(Err(_))));
    assert!(
        client
            .try_write(b"x")
            .unwrap_err()
            .to_string()
            .contains("shut down")
    );
    drop(waker);
    assert_eq!(Arc::strong_count(&counters[0]), 1, "nobody waits any more");
    let late = std::net::TcpListener::bind(ANY).unwrap();
    assert!(
        TcpListener::from_std(late)
            .unwrap_err()
            .to_string()
            .contains("shut down")
    );
    drop(world);
    drop((accepting, reading));
    drop((client, server, listener));
}

#[test]
fn a_socket_moves_to_another_runtime_by_way_of_the_standard_library() {
    let mut world = World::new();
    let (client, server) = world.connection();
    let client = client.into_std().unwrap();
    world.driver.reactor().shutdown();
    world.driver = Driver::new(1).unwrap();
    context::set(Some((world.driver.reactor(), 0)));
    let server = TcpStream::from_std(server.into_std().unwrap()).unwrap();
    world.drive(async {
        (&client).write_all(b"moved").unwrap();
        let mut buf = [0; 5];
        (&server).read_exact(&mut buf).await.unwrap();
        assert_eq!(&buf, b"moved");
    });
}

#[test]
fn a_busy_socket_uses_up_its_budget() {
    let mut world = World::new();
    let (mut client, server) = world.connection();
    world.drive(async { client.write_all(&[1; 1000]).await.unwrap() });
    world.settle();
    let counter = world.waker();
    let waker = Waker::from(Arc::clone(&counter));
    let mut cx = Context::from_waker(&waker);
    let mut read = 0;
    budget::with_budget(|| {
        while pin!(&server).poll_read(&mut cx, &mut [0]).is_ready() {
            read += 1;
        }
        assert!(!budget::has_remaining());
    });
    assert_eq!(read, 128);
    assert_eq!(counter.count(), 1, "it is polled again");
    // Waiting is not a ready operation and costs nothing.
    budget::with_budget(|| {
        for _ in 0..1000 {
            assert!(pin!(&client).poll_read(&mut cx, &mut [0]).is_pending());
        }
        assert!(budget::has_remaining());
    });
}
