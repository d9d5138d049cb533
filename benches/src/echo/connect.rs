//! The load of the row `connect`: one thread, some clients that each connect, send, receive and close, and
//! begin anew.
//!
//! A connection takes the client as few system calls as it can, so that the server is what is measured:
//! over the loopback interface a handshake is over when `connect` returns, and what is written then needs
//! no waiting either.

use std::io::{self, ErrorKind, Read, Write};
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use mio::net::TcpStream;
use mio::{Events, Interest, Poll, Token};

/// What a run gave.
#[derive(Debug, PartialEq)]
pub(crate) struct Report {
    /// Connections closed within the time.
    pub(crate) in_time: u64,
    /// Connections closed at all.
    pub(crate) closed: u64,
}

/// Warms up, prints `ready`, waits for a line, runs for `time` and prints the report.
pub(crate) fn run(
    server: SocketAddr,
    clients: usize,
    bytes: usize,
    time: Duration,
) -> io::Result<()> {
    let mut load = Load {
        poll: Poll::new()?,
        server,
        message: vec![b'c'; bytes],
        buffer: vec![0; bytes],
    };
    load.run(clients, time / 5)?;
    println!("ready");
    io::stdin().read_line(&mut String::new())?;
    println!("{}", load.run(clients, time)?.line());
    Ok(())
}

impl Report {
    /// As one line, for [`Report::parse`].
    fn line(&self) -> String {
        format!("{} {}", self.in_time, self.closed)
    }

    /// Reads what the load printed.
    ///
    /// # Panics
    /// If it is something else.
    pub(crate) fn parse(line: &str) -> Report {
        let report = line.split_once(' ').and_then(|(in_time, closed)| {
            Some(Report {
                in_time: in_time.parse().ok()?,
                closed: closed.parse().ok()?,
            })
        });
        report.unwrap_or_else(|| panic!("not a report: {line}"))
    }
}

struct Load {
    poll: Poll,
    server: SocketAddr,
    message: Vec<u8>,
    buffer: Vec<u8>,
}

/// A connection that waits for its answer.
struct Client {
    stream: TcpStream,
    read: usize,
}

impl Load {
    /// Keeps all clients busy for `time`, then waits for what is on its way.
    fn run(&mut self, clients: usize, time: Duration) -> io::Result<Report> {
        let mut report = Report {
            in_time: 0,
            closed: 0,
        };
        let mut events = Events::with_capacity(clients);
        let start = Instant::now();
        let mut open = (0..clients)
            .map(|index| self.begin(index).map(Some))
            .collect::<io::Result<Vec<_>>>()?;
        let mut busy = clients;
        while busy > 0 {
            match self.poll.poll(&mut events, None) {
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                polled => polled?,
            }
            for event in &events {
                let Token(index) = event.token();
                let Some(client) = &mut open[index] else {
                    continue;
                };
                if !client.receive(&mut self.buffer)? {
                    continue;
                }
                open[index] = None;
                report.closed += 1;
                if start.elapsed() < time {
                    report.in_time += 1;
                    open[index] = Some(self.begin(index)?);
                } else {
                    busy -= 1;
                }
            }
        }
        Ok(report)
    }

    /// Connects and sends.
    fn begin(&self, index: usize) -> io::Result<Client> {
        let mut stream = std::net::TcpStream::connect(self.server)?;
        stream.write_all(&self.message)?;
        stream.set_nonblocking(true)?;
        let mut stream = TcpStream::from_std(stream);
        self.poll
            .registry()
            .register(&mut stream, Token(index), Interest::READABLE)?;
        Ok(Client { stream, read: 0 })
    }
}

impl Client {
    /// Reads what is there; whether that was the rest of the answer.
    fn receive(&mut self, buffer: &mut [u8]) -> io::Result<bool> {
        while self.read < buffer.len() {
            match self.stream.read(&mut buffer[self.read..]) {
                Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
                Ok(length) => self.read += length,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(false),
                Err(error) => return Err(error),
            }
        }
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;
    use std::thread;

    use crate::watchdog::Watchdog;

    #[test]
    fn a_report_survives_its_line() {
        let report = Report {
            in_time: 12,
            closed: 28,
        };
        assert_eq!(Report::parse(&report.line()), report);
    }

    #[test]
    fn every_connection_is_answered_and_closed() {
        let watchdog = Watchdog::start();
        watchdog.watch("the test of the connecting load".to_owned());
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let server = listener.local_addr().unwrap();
        let clients = 4;
        let serving = thread::spawn(move || {
            for (served, stream) in listener.incoming().enumerate() {
                let stream = stream.unwrap();
                if io::copy(&mut &stream, &mut &stream).unwrap() == 0 {
                    return served as u64;
                }
            }
            unreachable!("a listener never ends")
        });
        let mut load = Load {
            poll: Poll::new().unwrap(),
            server,
            message: vec![b'c'; 64],
            buffer: vec![0; 64],
        };
        let report = load.run(clients, Duration::from_millis(20)).unwrap();
        // One that sends nothing ends the server.
        drop(std::net::TcpStream::connect(server).unwrap());
        assert_eq!(serving.join().unwrap(), report.closed);
        // The last one of each client is closed after the time.
        assert_eq!(report.closed, report.in_time + clients as u64);
        watchdog.rest();
    }
}
