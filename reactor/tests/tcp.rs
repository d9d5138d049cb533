//! TCP over loopback: what is sent arrives, what ends is seen to end.

mod support;

use std::io::{ErrorKind, IoSlice, IoSliceMut, Read, Write};
use std::net::Shutdown;
use std::time::Duration;

use futures::io::{AsyncReadExt, AsyncWriteExt};
use futures::{StreamExt, join};
use reactor::Direction;
use reactor::net::{TcpListener, TcpSocket, TcpStream};
use support::World;

const ANY: &str = "127.0.0.1:0";

#[test]
fn a_megabyte_comes_back_as_it_was() {
    let mut world = World::new();
    let (client, server) = world.connection();
    let sent: Vec<u8> = (0..1_000_000_u32).map(|i| (i % 251) as u8).collect();
    let received = world.drive(async {
        let echo = async {
            let (reader, mut writer) = server.into_split();
            futures::io::copy(reader, &mut writer).await.unwrap();
        };
        let talk = async {
            let (mut reader, mut writer) = client.split();
            let send = async {
                writer.write_all(&sent).await.unwrap();
                writer.close().await.unwrap();
            };
            let mut received = Vec::new();
            let (_, read) = join!(send, reader.read_to_end(&mut received));
            read.unwrap();
            received
        };
        join!(echo, talk).1
    });
    assert!(received == sent);
}

/// Case R15a: the end right behind the last byte brings no event of its own.
#[test]
fn an_end_behind_a_short_read_is_seen() {
    let mut world = World::new();
    for settle_first in [false, true] {
        let listener = std::net::TcpListener::bind(ANY).unwrap();
        let mut peer = std::net::TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let mut stream = TcpStream::from_std(listener.accept().unwrap().0).unwrap();
        peer.write_all(b"ten bytes!").unwrap();
        peer.shutdown(Shutdown::Write).unwrap();
        if settle_first {
            world.settle();
        }
        world.drive(async {
            let mut buf = [0; 100];
            assert_eq!(stream.read(&mut buf).await.unwrap(), 10);
            assert_eq!(stream.read(&mut buf).await.unwrap(), 0);
            assert_eq!(stream.read(&mut buf).await.unwrap(), 0, "the end stays");
        });
    }
}

#[test]
fn a_short_read_costs_no_second_try() {
    let mut world = World::new();
    let (mut client, mut server) = world.connection();
    world.drive(async {
        client.write_all(b"1234").await.unwrap();
        server.readable().await.unwrap();
        let mut buf = [0; 100];
        assert_eq!(server.read(&mut buf).await.unwrap(), 4);
    });
    let tried = server.try_io(Direction::Read, || Ok(()));
    assert_eq!(
        tried.unwrap_err().kind(),
        ErrorKind::WouldBlock,
        "it counts as drained"
    );
    world.drive(async {
        client.write_all(b"56").await.unwrap();
        let mut buf = [0; 2];
        server.read_exact(&mut buf).await.unwrap();
        assert_eq!(&buf, b"56", "and later bytes are seen");
    });
}

#[test]
fn vectored_forms_keep_the_order() {
    let mut world = World::new();
    let (mut client, mut server) = world.connection();
    world.drive(async {
        let sent = [
            IoSlice::new(b"ab"),
            IoSlice::new(b""),
            IoSlice::new(b"cdef"),
        ];
        assert_eq!(client.write_vectored(&sent).await.unwrap(), 6);
        let (mut one, mut two) = ([0; 4], [0; 4]);
        let mut bufs = [IoSliceMut::new(&mut one), IoSliceMut::new(&mut two)];
        assert_eq!(server.read_vectored(&mut bufs).await.unwrap(), 6);
        assert_eq!((&one, &two[..2]), (b"abcd", &b"ef"[..]));
    });
    assert_eq!(
        server
            .try_write_vectored(&[IoSlice::new(b"x"), IoSlice::new(b"y")])
            .unwrap(),
        2
    );
    world.drive(client.readable()).unwrap();
    let mut buf = [0; 2];
    assert_eq!(
        client
            .try_read_vectored(&mut [IoSliceMut::new(&mut buf)])
            .unwrap(),
        2
    );
    assert_eq!(&buf, b"xy");
}

#[test]
fn peeking_takes_nothing() {
    let mut world = World::new();
    let (mut client, server) = world.connection();
    world.drive(async {
        client.write_all(b"once").await.unwrap();
        let mut buf = [0; 8];
        assert_eq!(server.peek(&mut buf).await.unwrap(), 4);
        assert_eq!(server.peek(&mut buf).await.unwrap(), 4);
        assert_eq!((&server).read(&mut buf).await.unwrap(), 4);
        assert_eq!(&buf[..4], b"once");
    });
}

#[test]
fn trying_says_would_block_until_it_is_ready() {
    let mut world = World::new();
    let (client, server) = world.connection();
    let mut buf = [0; 8];
    assert_eq!(
        server.try_read(&mut buf).unwrap_err().kind(),
        ErrorKind::WouldBlock
    );
    world.drive(client.writable()).unwrap();
    assert_eq!(client.try_write(b"hello").unwrap(), 5);
    world.drive(server.readable()).unwrap();
    assert_eq!(server.try_read(&mut buf).unwrap(), 5);
}

#[test]
fn a_full_connection_becomes_writable_when_it_is_read() {
    let mut world = World::new();
    let (client, mut server) = world.connection();
    let chunk = vec![7; 64 * 1024];
    let mut written = 0;
    loop {
        match client.try_write(&chunk) {
            Ok(n) => written += n,
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                world.settle();
                if client.try_io(Direction::Write, || Ok(())).is_err() {
                    break;
                }
            }
            Err(error) => panic!("{error}"),
        }
    }
    world.drive(async {
        let drain = async {
            let mut left = vec![0; written];
            server.read_exact(&mut left).await.unwrap();
            assert!(left.iter().all(|byte| *byte == 7));
        };
        let (_, writable) = join!(drain, client.writable());
        writable.unwrap();
    });
    assert!(client.try_write(&chunk).unwrap() > 0);
}

#[test]
fn dropping_the_write_half_ends_the_data_and_forgetting_does_not() {
    let mut world = World::new();
    let (client, mut server) = world.connection();
    let (reader, writer) = client.into_split();
    writer.forget();
    drop(reader);
    let mut buf = [0; 8];
    world.drive(async { assert_eq!(server.read(&mut buf).await.unwrap(), 0) });

    let (client, mut server) = world.connection();
    let (mut reader, writer) = client.into_split();
    drop(writer);
    world.drive(async {
        assert_eq!(server.read(&mut buf).await.unwrap(), 0);
        server.write_all(b"still").await.unwrap();
        assert_eq!(reader.read(&mut buf).await.unwrap(), 5);
    });
}

#[test]
fn halves_are_reunited_only_with_each_other() {
    let mut world = World::new();
    let (client, server) = world.connection();
    let (client_reader, client_writer) = client.into_split();
    let (server_reader, server_writer) = server.into_split();
    let error = client_reader.reunite(server_writer).unwrap_err();
    assert!(error.to_string().contains("not of the same"));
    let mut client = client_writer.reunite(error.0).unwrap();
    let mut server = server_reader.reunite(error.1).unwrap();
    world.drive(async {
        client.write_all(b"whole").await.unwrap();
        let mut buf = [0; 5];
        server.read_exact(&mut buf).await.unwrap();
        assert_eq!(&buf, b"whole");
    });
}

#[test]
fn closing_a_closed_connection_is_fine() {
    let mut world = World::new();
    let (mut client, server) = world.connection();
    drop(server);
    world.settle();
    world.drive(async {
        client.close().await.unwrap();
        client.close().await.unwrap();
    });
}

#[test]
fn incoming_yields_each_connection() {
    let mut world = World::new();
    world.drive(async {
        let listener = TcpListener::bind(ANY).await.unwrap();
        let addr = listener.local_addr().unwrap();
        let clients: Vec<_> = (0..3)
            .map(|_| std::net::TcpStream::connect(addr).unwrap())
            .collect();
        let mut peers = Vec::new();
        let mut incoming = listener.incoming().take(3);
        while let Some(stream) = incoming.next().await {
            peers.push(stream.unwrap().peer_addr().unwrap());
        }
        let expected: Vec<_> = clients
            .iter()
            .map(|client| client.local_addr().unwrap())
            .collect();
        assert_eq!(peers, expected);
    });
}

#[test]
fn sockets_of_the_standard_library_come_and_go() {
    let mut world = World::new();
    // Both in blocking mode: `from_std` changes that itself, or accepting here would hang.
    let listener = TcpListener::from_std(std::net::TcpListener::bind(ANY).unwrap()).unwrap();
    let addr = listener.local_addr().unwrap();
    let client = std::net::TcpStream::connect(addr).unwrap();
    let client = TcpStream::from_std(client).unwrap();
    let (server, peer) = world.drive(listener.accept()).unwrap();
    assert_eq!(peer, client.local_addr().unwrap());
    let mut buf = [0; 4];
    assert_eq!(
        client.try_read(&mut buf).unwrap_err().kind(),
        ErrorKind::WouldBlock
    );

    let mut client = client.into_std().unwrap();
    let mut server = server.into_std().unwrap();
    assert_eq!(listener.into_std().unwrap().local_addr().unwrap(), addr);
    client.set_nonblocking(false).unwrap();
    server.set_nonblocking(false).unwrap();
    client.write_all(b"sync").unwrap();
    server.read_exact(&mut buf).unwrap();
    assert_eq!(&buf, b"sync");
    assert!(!world.driver.reactor().has_sources());
}

#[test]
fn options_are_kept() {
    let mut world = World::new();
    let (client, _server) = world.connection();
    for nodelay in [true, false] {
        client.set_nodelay(nodelay).unwrap();
        assert_eq!(client.nodelay().unwrap(), nodelay);
    }
    client.set_ttl(17).unwrap();
    assert_eq!(client.ttl().unwrap(), 17);
    for linger in [Some(Duration::from_secs(3)), None] {
        client.set_linger(linger).unwrap();
        assert_eq!(client.linger().unwrap(), linger);
    }
    for silence in [Some(Duration::from_secs(40)), None] {
        client.set_keepalive(silence).unwrap();
        assert_eq!(client.keepalive().unwrap(), silence.is_some());
    }
    assert!(client.take_error().unwrap().is_none());
}

#[test]
fn a_socket_is_configured_before_it_listens_or_connects() {
    let mut world = World::new();
    let socket = TcpSocket::new_v4().unwrap();
    socket.set_reuseaddr(true).unwrap();
    assert!(socket.reuseaddr().unwrap());
    socket.set_recv_buffer_size(32 * 1024).unwrap();
    assert!(socket.recv_buffer_size().unwrap() >= 32 * 1024);
    socket.bind(ANY.parse().unwrap()).unwrap();
    let addr = socket.local_addr().unwrap();
    let listener = socket.listen(16).unwrap();
    assert_eq!(listener.local_addr().unwrap(), addr);

    let socket = TcpSocket::new_v4().unwrap();
    socket.set_nodelay(true).unwrap();
    socket.bind(ANY.parse().unwrap()).unwrap();
    let from = socket.local_addr().unwrap();
    let (client, accepted) = world.drive(async { join!(socket.connect(addr), listener.accept()) });
    assert!(client.unwrap().nodelay().unwrap());
    assert_eq!(accepted.unwrap().1, from);
}

#[test]
fn net_futures_are_send() {
    fn assert_send<T: Send>(value: T) -> T {
        value
    }
    drop(assert_send(TcpStream::connect("localhost:1")));
    drop(assert_send(TcpListener::bind(("localhost".to_owned(), 1))));
    fn of_stream(stream: &TcpStream) {
        drop(assert_send(stream.readable()));
        drop(assert_send(stream.peek(&mut [])));
    }
    fn of_listener(listener: &TcpListener) {
        drop(assert_send(listener.accept()));
        drop(assert_send(listener.incoming()));
    }
    let _ = (of_stream, of_listener);
}
