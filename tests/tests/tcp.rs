//! TCP between tasks, and with plain sockets of the standard library.

use std::io::{ErrorKind, IoSlice, IoSliceMut, Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr};
use std::pin::Pin;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use futures::future::{join, join_all};
use futures::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, copy};
use futures::{StreamExt, TryStreamExt};
use runtime::net::{TcpListener, TcpStream, lookup_host};
use runtime::time::timeout;
use tests::{Shape, every_shape, watchdog};

async fn listen() -> (TcpListener, SocketAddr) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    (listener, address)
}

/// The two ends of a connection.
async fn pair() -> (TcpStream, TcpStream) {
    let (listener, address) = listen().await;
    let (client, server) = join(TcpStream::connect(address), listener.accept()).await;
    (client.unwrap(), server.unwrap().0)
}

/// Runs an async test in every shape, under a watchdog.
fn in_every_shape<F: Future<Output = ()>>(name: &str, test: impl Fn(Shape) -> F) {
    let dog = watchdog(100, name);
    for shape in every_shape() {
        dog.step(format!("{shape:?}"));
        let rt = shape.build();
        dog.watch(rt.handle());
        rt.block_on(test(shape));
    }
}

/// Bytes that differ from place to place.
fn pattern(length: usize, seed: u32) -> Vec<u8> {
    let byte = |n: usize| {
        (n as u32)
            .wrapping_mul(2_654_435_761)
            .wrapping_add(seed)
            .to_be_bytes()[0]
    };
    (0..length).map(byte).collect()
}

#[test]
fn a_hundred_connections_are_echoed_at_once() {
    in_every_shape("a_hundred_connections_are_echoed_at_once", |_| async {
        let (listener, address) = listen().await;
        let server = runtime::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                drop(runtime::spawn(
                    async move { copy(&stream, &mut &stream).await },
                ));
            }
        });
        let clients = (0..100_u32).map(|n| {
            runtime::spawn(async move {
                let mut stream = TcpStream::connect(address).await.unwrap();
                stream.set_nodelay(true).unwrap();
                for round in 0..20 {
                    let sent = pattern(64, n * 1000 + round);
                    stream.write_all(&sent).await.unwrap();
                    let mut echoed = [0; 64];
                    stream.read_exact(&mut echoed).await.unwrap();
                    assert_eq!(sent, echoed);
                }
                stream
            })
        });
        // All of them are open until the last has ended.
        let open = join_all(clients.collect::<Vec<_>>()).await;
        assert!(open.iter().all(Result::is_ok));
        server.abort();
    });
}

#[test]
fn ten_megabytes_go_both_ways_at_once_unchanged() {
    in_every_shape("ten_megabytes_go_both_ways", |_| async {
        let (client, server) = pair().await;
        let length = 10 << 20;
        let both_ways = |stream: TcpStream, sends: u32, expects: u32| {
            let (mut reader, mut writer) = stream.into_split();
            let sending = runtime::spawn(async move {
                writer.write_all(&pattern(length, sends)).await.unwrap();
                writer.close().await.unwrap();
            });
            let receiving = runtime::spawn(async move {
                let mut received = Vec::new();
                reader.read_to_end(&mut received).await.unwrap();
                assert!(received == pattern(length, expects), "byte for byte");
            });
            join(sending, receiving)
        };
        let (a, b) = join(both_ways(client, 1, 2), both_ways(server, 2, 1)).await;
        for result in [a.0, a.1, b.0, b.1] {
            result.unwrap();
        }
    });
}

// tokio#5866, miri#5106, libuv#4997
#[test]
fn the_end_that_comes_together_with_few_bytes_is_seen() {
    in_every_shape("the_end_that_comes_together_with_few_bytes", |_| async {
        let (listener, address) = listen().await;
        for _ in 0..20 {
            let peer = thread::spawn(move || {
                let mut stream = std::net::TcpStream::connect(address).unwrap();
                stream.write_all(b"ten bytes!").unwrap();
                // Closed at once: the end may be in the same segment.
            });
            let (mut stream, _) = listener.accept().await.unwrap();
            peer.join().unwrap();
            let mut bytes = [0; 100];
            assert_eq!(stream.read(&mut bytes).await.unwrap(), 10);
            assert_eq!(&bytes[..10], b"ten bytes!");
            assert_eq!(stream.read(&mut bytes).await.unwrap(), 0, "the end");
            assert_eq!(
                stream.read(&mut bytes).await.unwrap(),
                0,
                "and still the end"
            );
        }
        // The same where the reader waits already, and the end comes a little later.
        for micros in [0, 50, 500, 3000] {
            let peer = thread::spawn(move || {
                let mut stream = std::net::TcpStream::connect(address).unwrap();
                thread::sleep(Duration::from_millis(2));
                stream.write_all(b"x").unwrap();
                thread::sleep(Duration::from_micros(micros));
            });
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut all = Vec::new();
            stream.read_to_end(&mut all).await.unwrap();
            assert_eq!(all, b"x");
            peer.join().unwrap();
        }
    });
}

#[test]
fn halves_work_within_one_task() {
    in_every_shape("halves_work_within_one_task", |_| async {
        let (mut client, server) = pair().await;
        let echo = runtime::spawn(async move { copy(&server, &mut &server).await });
        // Not `client.split()`: with `AsyncReadExt` in scope that is the trait's, which takes the stream.
        let (mut reader, mut writer) = TcpStream::split(&mut client);
        // More than the buffers hold: only both together can go on.
        let sent = pattern(4 << 20, 3);
        let sending = async {
            writer.write_all(&sent).await.unwrap();
            writer.close().await.unwrap();
        };
        let mut received = Vec::new();
        let (_, result) = join(sending, reader.read_to_end(&mut received)).await;
        result.unwrap();
        assert!(received == sent);
        assert_eq!(echo.await.unwrap().unwrap(), sent.len() as u64);
    });
}

#[test]
fn owned_halves_find_together_again() {
    in_every_shape("owned_halves_find_together_again", |_| async {
        let (client, mut server) = pair().await;
        let address = client.local_addr().unwrap();
        let (reader, mut writer) = client.into_split();
        writer.write_all(b"1").await.unwrap();
        let (other, _) = pair().await;
        let (other_reader, other_writer) = other.into_split();

        let error = reader.reunite(other_writer).unwrap_err();
        assert!(error.to_string().contains("same connection"));
        let (reader, other_writer) = (error.0, error.1);
        let mut client = reader.reunite(writer).unwrap();
        other_writer.reunite(other_reader).unwrap();
        assert_eq!(client.local_addr().unwrap(), address);
        // And it was not ended by being taken apart.
        client.write_all(b"2").await.unwrap();
        let mut received = [0; 2];
        server.read_exact(&mut received).await.unwrap();
        assert_eq!(&received, b"12");
    });
}

#[test]
fn the_peer_reads_the_end_when_the_write_half_is_dropped() {
    in_every_shape("the_peer_reads_the_end", |_| async {
        let (client, mut server) = pair().await;
        let (mut reader, mut writer) = client.into_split();
        writer.write_all(b"last").await.unwrap();
        drop(writer);
        let mut received = Vec::new();
        server.read_to_end(&mut received).await.unwrap();
        assert_eq!(received, b"last");
        // The other direction is still open.
        server.write_all(b"answer").await.unwrap();
        drop(server);
        received.clear();
        reader.read_to_end(&mut received).await.unwrap();
        assert_eq!(received, b"answer");
    });
}

#[test]
fn shutting_down_one_direction_leaves_the_other() {
    in_every_shape("shutting_down_one_direction", |_| async {
        let (mut client, mut server) = pair().await;
        client.write_all(b"request").await.unwrap();
        client.shutdown(Shutdown::Write).unwrap();
        let mut request = String::new();
        server.read_to_string(&mut request).await.unwrap();
        assert_eq!(request, "request");
        server.write_all(b"response").await.unwrap();
        server.close().await.unwrap();
        let mut response = String::new();
        client.read_to_string(&mut response).await.unwrap();
        assert_eq!(response, "response");
        assert!(client.write_all(b"more").await.is_err());
    });
}

#[test]
fn peeking_leaves_the_bytes() {
    in_every_shape("peeking_leaves_the_bytes", |_| async {
        let (mut client, mut server) = pair().await;
        let writes_later = runtime::spawn(async move {
            runtime::time::sleep(Duration::from_millis(2)).await;
            server.write_all(b"peek").await.unwrap();
            server
        });
        let mut bytes = [0; 8];
        for _ in 0..3 {
            assert_eq!(client.peek(&mut bytes).await.unwrap(), 4);
            assert_eq!(&bytes[..4], b"peek");
        }
        assert_eq!(client.read(&mut bytes).await.unwrap(), 4);
        let nothing = timeout(Duration::from_millis(5), client.peek(&mut bytes)).await;
        assert!(nothing.is_err());
        drop(writes_later.await.unwrap());
        assert_eq!(client.peek(&mut bytes).await.unwrap(), 0, "the end");
    });
}

#[test]
fn several_buffers_go_in_one_call() {
    in_every_shape("several_buffers_go_in_one_call", |_| async {
        let (mut client, mut server) = pair().await;
        let slices = [
            IoSlice::new(b"one "),
            IoSlice::new(b""),
            IoSlice::new(b"two"),
        ];
        let written = client.write_vectored(&slices).await.unwrap();
        assert_eq!(written, 7);
        let (mut first, mut second) = ([0; 3], [0; 10]);
        let mut places = [IoSliceMut::new(&mut first), IoSliceMut::new(&mut second)];
        assert_eq!(server.read_vectored(&mut places).await.unwrap(), 7);
        assert_eq!((&first, &second[..4]), (b"one", &b" two"[..]));
    });
}

#[test]
fn readiness_and_trying_go_together() {
    in_every_shape("readiness_and_trying", |_| async {
        let (client, server) = pair().await;
        let mut bytes = [0; 16];
        assert_eq!(
            client.try_read(&mut bytes).unwrap_err().kind(),
            ErrorKind::WouldBlock
        );
        // Fills the buffers until the system takes no more.
        let chunk = pattern(64 << 10, 4);
        let mut sent = 0;
        server.writable().await.unwrap();
        loop {
            match server.try_write(&chunk) {
                Ok(count) => sent += count,
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) => panic!("{error}"),
            }
        }
        let not_now = timeout(Duration::from_millis(5), server.writable()).await;
        assert!(not_now.is_err(), "after WouldBlock it waits");
        // Reading makes room again.
        let mut received = 0;
        let mut buffer = vec![0; 64 << 10];
        while received < sent {
            client.readable().await.unwrap();
            match client.try_read(&mut buffer) {
                Ok(count) => received += count,
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                Err(error) => panic!("{error}"),
            }
        }
        server.writable().await.unwrap();
        assert_eq!(server.try_write(b"x").unwrap(), 1);
    });
}

#[test]
fn one_connection_may_be_used_by_several_tasks() {
    in_every_shape("one_connection_may_be_used_by_several_tasks", |_| async {
        let (client, server) = pair().await;
        let (client, server) = (Arc::new(client), Arc::new(server));
        // Every reader gets some byte, although they all wait for the same direction.
        let readers: Vec<_> = (0..10)
            .map(|_| {
                let server = Arc::clone(&server);
                runtime::spawn(async move {
                    let mut byte = [0];
                    (&*server).read_exact(&mut byte).await.unwrap();
                    byte[0]
                })
            })
            .collect();
        for byte in 0..10 {
            runtime::time::sleep(Duration::from_micros(200)).await;
            (&*client).write_all(&[byte]).await.unwrap();
        }
        let mut bytes: Vec<_> = join_all(readers)
            .await
            .into_iter()
            .map(Result::unwrap)
            .collect();
        bytes.sort();
        assert_eq!(bytes, (0..10).collect::<Vec<_>>());
    });
}

#[test]
fn several_tasks_may_accept_from_one_listener() {
    in_every_shape("several_tasks_may_accept", |_| async {
        let (listener, address) = listen().await;
        let listener = Arc::new(listener);
        let accepting: Vec<_> = (0..8)
            .map(|_| {
                let listener = Arc::clone(&listener);
                runtime::spawn(async move { listener.accept().await.unwrap().1 })
            })
            .collect();
        let clients = join_all((0..8).map(|_| TcpStream::connect(address))).await;
        let mut expected: Vec<_> = clients
            .iter()
            .map(|client| client.as_ref().unwrap().local_addr().unwrap())
            .collect();
        let mut peers: Vec<_> = join_all(accepting)
            .await
            .into_iter()
            .map(Result::unwrap)
            .collect();
        expected.sort();
        peers.sort();
        assert_eq!(peers, expected);
    });
}

#[test]
fn connections_come_as_a_stream() {
    in_every_shape("connections_come_as_a_stream", |_| async {
        let (listener, address) = listen().await;
        let clients =
            runtime::spawn(
                async move { join_all((0..5).map(|_| TcpStream::connect(address))).await },
            );
        let streams: Vec<_> = listener.incoming().take(5).try_collect().await.unwrap();
        assert_eq!(streams.len(), 5);
        drop(clients.await.unwrap());
    });
}

#[test]
fn sockets_of_the_standard_library_can_be_used_and_given_back() {
    in_every_shape("sockets_of_the_standard_library", |_| async {
        // It blocks, as they do at first; from_std sees to that.
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let listener = TcpListener::from_std(listener).unwrap();
        let address = listener.local_addr().unwrap();
        let nothing = timeout(Duration::from_millis(5), listener.accept()).await;
        assert!(nothing.is_err(), "accept does not block the worker");

        let client = std::net::TcpStream::connect(address).unwrap();
        let mut client = TcpStream::from_std(client).unwrap();
        let (server, peer) = listener.accept().await.unwrap();
        assert_eq!(peer, client.local_addr().unwrap());
        assert_eq!(client.peer_addr().unwrap(), address);
        let server = server.into_std().unwrap();
        server.set_nonblocking(false).unwrap();
        let echo = runtime::spawn_blocking(move || {
            let (mut server, mut bytes) = (server, [0; 4]);
            server.read_exact(&mut bytes).unwrap();
            server.write_all(&bytes).unwrap();
        });
        client.write_all(b"echo").await.unwrap();
        let mut bytes = [0; 4];
        client.read_exact(&mut bytes).await.unwrap();
        assert_eq!(&bytes, b"echo");
        echo.await.unwrap();
        drop(listener.into_std().unwrap());
        assert!(std::net::TcpStream::connect(address).is_err());
    });
}

#[test]
fn options_are_kept() {
    in_every_shape("options_are_kept", |_| async {
        let (client, _server) = pair().await;
        for on in [true, false] {
            client.set_nodelay(on).unwrap();
            assert_eq!(client.nodelay().unwrap(), on);
        }
        client.set_ttl(33).unwrap();
        assert_eq!(client.ttl().unwrap(), 33);
        client.set_linger(Some(Duration::from_secs(2))).unwrap();
        assert_eq!(client.linger().unwrap(), Some(Duration::from_secs(2)));
        client.set_keepalive(Some(Duration::from_secs(60))).unwrap();
        assert!(client.keepalive().unwrap());
        client.set_keepalive(None).unwrap();
        assert!(!client.keepalive().unwrap());
        assert!(client.take_error().unwrap().is_none());
    });
}

#[test]
fn every_form_of_address_is_taken() {
    in_every_shape("every_form_of_address", |_| async {
        let (listener, address) = listen().await;
        let port = address.port();
        let accepting = runtime::spawn(async move {
            for _ in 0..6 {
                listener.accept().await.unwrap();
            }
        });
        TcpStream::connect(address).await.unwrap();
        TcpStream::connect((Ipv4Addr::LOCALHOST, port))
            .await
            .unwrap();
        TcpStream::connect(("127.0.0.1", port)).await.unwrap();
        TcpStream::connect(format!("127.0.0.1:{port}"))
            .await
            .unwrap();
        // A name may stand for several addresses; all are tried.
        TcpStream::connect(("localhost", port)).await.unwrap();
        let nobody: SocketAddr = "127.0.0.1:1".parse().unwrap();
        TcpStream::connect(&[nobody, address][..]).await.unwrap();
        accepting.await.unwrap();
        let found: Vec<_> = lookup_host("localhost:80").await.unwrap().collect();
        assert!(
            found.iter().any(|found| found.ip().is_loopback()),
            "{found:?}"
        );
    });
}

#[test]
fn streams_and_halves_can_be_sent_and_are_unpin() {
    fn check<T: Send + Sync + Unpin>() {}
    fn check_io<T: AsyncRead + AsyncWrite>() {}
    let _dog = watchdog(60, "streams_and_halves_can_be_sent");
    check::<TcpStream>();
    check::<TcpListener>();
    check::<runtime::net::tcp::OwnedReadHalf>();
    check::<runtime::net::tcp::OwnedWriteHalf>();
    check_io::<TcpStream>();
    check_io::<&TcpStream>();
}

#[test]
fn reading_wakes_also_a_task_that_moved_to_another_waker() {
    in_every_shape("reading_wakes_also_a_task_that_moved", |_| async {
        let (mut client, mut server) = pair().await;
        let mut bytes = [0; 1];
        // Polled once here, with another waker, and then by a task.
        assert!(tests::ready_now(Pin::new(&mut client.read(&mut bytes))).is_pending());
        let reads = runtime::spawn(async move {
            let mut bytes = [0; 1];
            client.read(&mut bytes).await.unwrap()
        });
        runtime::task::yield_now().await;
        server.write_all(b"x").await.unwrap();
        assert_eq!(reads.await.unwrap(), 1);
    });
}

/// More slices than one system call takes.
const SLICES: usize = 2000;

/// Longer than any of these takes; shorter than the watchdog.
const STUCK: Duration = Duration::from_secs(20);

#[test]
fn a_transfer_of_very_many_slices_goes_on() {
    in_every_shape("a_transfer_of_very_many_slices", async |_| {
        let (mut writer, mut reader) = pair().await;
        let piece = [7; 4];
        let pieces = [IoSlice::new(&piece); SLICES];
        let mut written = 0;
        // Twice, since the first may leave the stream counted as full.
        for _ in 0..2 {
            let next = timeout(STUCK, writer.write_vectored(&pieces)).await;
            written += next.expect("writing hangs").unwrap();
        }
        let mut room = vec![[0; 4]; SLICES];
        let mut read = 0;
        while read < written {
            let mut rooms: Vec<_> = room.iter_mut().map(|it| IoSliceMut::new(it)).collect();
            let next = timeout(STUCK, reader.read_vectored(&mut rooms)).await;
            read += next.expect("reading hangs").unwrap();
        }
        assert_eq!(read, written);
    });
}

#[test]
fn what_is_behind_urgent_data_is_not_lost() {
    in_every_shape("what_is_behind_urgent_data", async |_| {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let mut peer = std::net::TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let mut stream = TcpStream::from_std(listener.accept().unwrap().0).unwrap();
        peer.write_all(b"abc").unwrap();
        // The last byte of what is sent so is the urgent one, and is not in the stream.
        socket2::SockRef::from(&peer)
            .send_out_of_band(b"!")
            .unwrap();
        peer.write_all(b"def").unwrap();
        // All is there, and its events are over, before anything is read.
        runtime::time::sleep(Duration::from_millis(50)).await;
        let mut received = Vec::new();
        while received.len() < 6 {
            let mut buffer = [0; 100];
            let length = timeout(STUCK, stream.read(&mut buffer)).await;
            received.extend_from_slice(&buffer[..length.expect("reading hangs").unwrap()]);
        }
        assert_eq!(received, b"abcdef");
    });
}

#[test]
fn an_error_of_an_address_has_the_systems_own_as_its_source() {
    in_every_shape("an_error_of_an_address", async |_| {
        let (_listener, address) = listen().await;
        let error = TcpListener::bind(address).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::AddrInUse);
        assert!(error.to_string().contains(&address.to_string()));
        let source = error.get_ref().and_then(std::error::Error::source);
        let source = source.and_then(|it| it.downcast_ref::<std::io::Error>());
        assert!(source.and_then(std::io::Error::raw_os_error).is_some());
    });
}
