//! A loop over epoll, written by hand: what a server costs that needs no runtime.
//!
//! As few system calls as it can: connections are edge-triggered, a read that does not fill the buffer
//! has taken everything, so that nothing is read to learn that nothing is there, and interest in writing
//! begins only when a write fell short. All connections of a thread share one buffer and have no state
//! besides. With two threads the first accepts, and deals the connections out in turn.

use std::collections::HashMap;
use std::io;
use std::net::TcpListener;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, IntoRawFd, OwnedFd, RawFd};
use std::thread;

use rustix::buffer::spare_capacity;
use rustix::event::epoll::{self, CreateFlags, Event, EventData, EventFlags};
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, SocketFlags, sockopt};

use super::{EchoPeer, Peer};

/// Events taken at once, as many as tokio takes.
const EVENTS: usize = 1024;

/// What a connection is watched for: the other end's closing is an event of its own, so that a read which
/// took everything need not be followed by one that finds the end.
const READING: EventFlags = EventFlags::IN
    .union(EventFlags::RDHUP)
    .union(EventFlags::ET);

/// The same when something is left to be written.
const WRITING: EventFlags = READING.union(EventFlags::OUT);

/// `W` threads, the calling one among them.
pub(crate) struct Epoll<const W: usize>;

/// One thread with its connections.
struct Worker<'a> {
    epoll: &'a OwnedFd,
    buffer: Vec<u8>,
    /// What could not be written yet, of the connections that have any. They are not read meanwhile.
    unsent: HashMap<RawFd, Vec<u8>>,
}

/// Whether to keep a connection.
#[derive(PartialEq)]
enum Next {
    Keep,
    Close,
}

impl<const W: usize> Peer for Epoll<W> {
    const WORKERS: usize = W;

    fn name() -> String {
        format!("epoll-{W}")
    }

    fn start() -> Self {
        Epoll
    }
}

impl<const W: usize> EchoPeer for Epoll<W> {
    fn serve<const BUFFER: usize>(&self, listener: TcpListener) -> io::Result<()> {
        listener.set_nonblocking(true)?;
        let epolls = (0..W)
            .map(|_| epoll::create(CreateFlags::CLOEXEC))
            .collect::<Result<Vec<_>, _>>()?;
        // Level-triggered: one that is left for the next turn is reported again.
        let token = EventData::new_u64(listener.as_raw_fd() as u64);
        epoll::add(&epolls[0], &listener, token, EventFlags::IN)?;
        thread::scope(|scope| {
            for epoll in &epolls[1..] {
                scope.spawn(|| {
                    Worker::new(epoll, BUFFER)
                        .run(None)
                        .expect("epoll goes on working")
                });
            }
            Worker::new(&epolls[0], BUFFER).run(Some((&listener, &epolls)))
        })
    }
}

impl<'a> Worker<'a> {
    fn new(epoll: &'a OwnedFd, buffer: usize) -> Worker<'a> {
        Worker {
            epoll,
            buffer: vec![0; buffer],
            unsent: HashMap::new(),
        }
    }

    /// Serves for ever; who accepts is given the listener, and the threads to deal out to.
    fn run(&mut self, accepting: Option<(&TcpListener, &[OwnedFd])>) -> io::Result<()> {
        let mut events = Vec::with_capacity(EVENTS);
        let mut turns = accepting.map(|(_, epolls)| epolls.iter().cycle());
        loop {
            events.clear();
            match epoll::wait(self.epoll, spare_capacity(&mut events), None) {
                Err(Errno::INTR) => continue,
                waited => waited?,
            };
            for &Event { data, flags } in &events {
                let fd = data.u64() as RawFd;
                match (accepting, &mut turns) {
                    (Some((listener, _)), Some(turns)) if fd == listener.as_raw_fd() => {
                        accept(listener, turns)?;
                    }
                    _ => {
                        // SAFETY: `accept` gave the descriptor away, to this thread's epoll only, and it
                        // is open until this thread closes it below; then epoll forgets it, and an event
                        // names a connection once in a turn.
                        let stream = unsafe { BorrowedFd::borrow_raw(fd) };
                        if self.advance(stream, flags) == Next::Close {
                            self.unsent.remove(&fd);
                            // SAFETY: as above, nobody else owns it, and no event names it any more.
                            drop(unsafe { OwnedFd::from_raw_fd(fd) });
                        }
                    }
                }
            }
        }
    }

    /// Reads and writes as long as anything is there.
    fn advance(&mut self, stream: BorrowedFd, flags: EventFlags) -> Next {
        let fd = stream.as_raw_fd();
        let mut ending = flags.intersects(EventFlags::RDHUP | EventFlags::HUP | EventFlags::ERR);
        if let Some(mut rest) = self.unsent.remove(&fd) {
            let Ok(written) = send(stream, &rest) else {
                return Next::Close;
            };
            if written < rest.len() {
                rest.drain(..written);
                self.unsent.insert(fd, rest);
                return Next::Keep;
            }
            // Its events came and went while it was not read.
            ending = true;
        }
        loop {
            let length = match rustix::net::recv(stream, &mut self.buffer[..], RecvFlags::empty()) {
                Ok((length @ 1.., _)) => length,
                Err(Errno::AGAIN) => return Next::Keep,
                Err(Errno::INTR) => continue,
                Ok(_) | Err(_) => return Next::Close,
            };
            let Ok(written) = send(stream, &self.buffer[..length]) else {
                return Next::Close;
            };
            if written < length {
                self.unsent
                    .insert(fd, self.buffer[written..length].to_vec());
                let token = EventData::new_u64(fd as u64);
                return match epoll::modify(self.epoll, stream, token, WRITING) {
                    Ok(()) => Next::Keep,
                    Err(_) => Next::Close,
                };
            }
            if length < self.buffer.len() && !ending {
                return Next::Keep;
            }
        }
    }
}

/// Takes all connections that wait, and gives each to the next thread.
fn accept<'a>(
    listener: &TcpListener,
    turns: &mut impl Iterator<Item = &'a OwnedFd>,
) -> io::Result<()> {
    let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
    loop {
        let stream = match rustix::net::accept_with(listener, flags) {
            Ok(stream) => stream,
            Err(Errno::AGAIN) => return Ok(()),
            Err(Errno::INTR | Errno::CONNABORTED) => continue,
            Err(error) => return Err(error.into()),
        };
        sockopt::set_tcp_nodelay(&stream, true)?;
        let epoll = turns.next().expect("the turns have no end");
        let token = EventData::new_u64(stream.as_raw_fd() as u64);
        epoll::add(epoll, &stream, token, READING)?;
        // From here on that thread owns it.
        let _ = stream.into_raw_fd();
    }
}

/// Writes what can be written now, and says how much that is.
fn send(stream: BorrowedFd, mut bytes: &[u8]) -> Result<usize, Errno> {
    let whole = bytes.len();
    while !bytes.is_empty() {
        match rustix::net::send(stream, bytes, SendFlags::NOSIGNAL) {
            Ok(length) => bytes = &bytes[length..],
            Err(Errno::AGAIN) => break,
            Err(Errno::INTR) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(whole - bytes.len())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Write};
    use std::net::{Shutdown, TcpStream};

    use crate::watchdog::Watchdog;

    /// A server whose thread ends with the tests.
    fn server<const W: usize>() -> std::net::SocketAddr {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        thread::spawn(move || Epoll::<W>.serve::<4096>(listener));
        address
    }

    #[test]
    fn every_connection_gets_back_what_it_sends_until_it_closes() {
        let watchdog = Watchdog::start();
        watchdog.watch("the test of the epoll loop".to_owned());
        let address = server::<2>();
        for number in 0..8u8 {
            let mut stream = TcpStream::connect(address).unwrap();
            let mut answer = [0; 64];
            for _ in 0..3 {
                stream.write_all(&[number; 64]).unwrap();
                stream.read_exact(&mut answer).unwrap();
                assert_eq!(answer, [number; 64]);
            }
            stream.shutdown(Shutdown::Write).unwrap();
            assert_eq!(stream.read(&mut answer).unwrap(), 0);
        }
        watchdog.rest();
    }

    #[test]
    fn one_who_does_not_read_for_a_while_gets_all_of_it() {
        let watchdog = Watchdog::start();
        watchdog.watch("the test of short writes".to_owned());
        let mut stream = TcpStream::connect(server::<1>()).unwrap();
        let message: Vec<u8> = (0..16 << 20u32)
            .map(|number| (number % 251) as u8)
            .collect();
        let sent = message.clone();
        let mut writer = stream.try_clone().unwrap();
        let writing = thread::spawn(move || {
            writer.write_all(&sent).unwrap();
            writer.shutdown(Shutdown::Write).unwrap();
        });
        thread::sleep(std::time::Duration::from_millis(100));
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).unwrap();
        writing.join().unwrap();
        assert!(answer == message);
        watchdog.rest();
    }
}
