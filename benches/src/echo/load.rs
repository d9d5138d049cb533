//! The load generator: one thread, many connections, one request on its way on each.
//!
//! A plain loop over mio, the same for every server. The latency of a request runs from just before
//! its first byte is written until its last byte has come back.

use std::io::{self, ErrorKind, Read, Write};
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use mio::net::TcpStream;
use mio::{Events, Interest, Poll, Token};

use crate::statistics::percentile;

/// What a run gave.
#[derive(Debug, PartialEq)]
pub(crate) struct Report {
    /// Requests answered within the time.
    pub(crate) in_time: u64,
    /// Requests answered at all: those that were on their way when the time ended are waited for.
    pub(crate) answered: u64,
    /// Median latency of all that were answered.
    pub(crate) p50: Duration,
    /// The latency that 99 of 100 of them do not exceed.
    pub(crate) p99: Duration,
    /// The latency that 999 of 1000 of them do not exceed.
    pub(crate) p999: Duration,
}

/// Connects, warms up, prints `ready`, waits for a line, runs for `time` and prints the report.
pub(crate) fn run(
    server: SocketAddr,
    connections: usize,
    bytes: usize,
    time: Duration,
) -> io::Result<()> {
    let mut load = Load::connect(server, connections, bytes)?;
    load.run(time / 5)?;
    println!("ready");
    io::stdin().read_line(&mut String::new())?;
    println!("{}", load.run(time)?.line());
    Ok(())
}

impl Report {
    /// As one line, for [`Report::parse`].
    fn line(&self) -> String {
        format!(
            "{} {} {} {} {}",
            self.in_time,
            self.answered,
            self.p50.as_nanos(),
            self.p99.as_nanos(),
            self.p999.as_nanos()
        )
    }

    /// Reads what the load generator printed.
    ///
    /// # Panics
    /// If it is something else.
    pub(crate) fn parse(line: &str) -> Report {
        let numbers: Vec<u64> = line
            .split(' ')
            .map(|word| word.parse().expect("a report is numbers"))
            .collect();
        let [in_time, answered, p50, p99, p999] = numbers[..] else {
            panic!("not a report: {line}")
        };
        let [p50, p99, p999] = [p50, p99, p999].map(Duration::from_nanos);
        Report {
            in_time,
            answered,
            p50,
            p99,
            p999,
        }
    }
}

struct Load {
    poll: Poll,
    connections: Vec<Connection>,
    message: Vec<u8>,
    buffer: Vec<u8>,
}

struct Connection {
    stream: TcpStream,
    written: usize,
    read: usize,
    since: Instant,
}

impl Load {
    fn connect(server: SocketAddr, connections: usize, bytes: usize) -> io::Result<Load> {
        let poll = Poll::new()?;
        let connections = (0..connections).map(|index| {
            // One after another and blocking, so that no listen queue overflows.
            let stream = std::net::TcpStream::connect(server)?;
            stream.set_nodelay(true)?;
            stream.set_nonblocking(true)?;
            let mut stream = TcpStream::from_std(stream);
            poll.registry().register(
                &mut stream,
                Token(index),
                Interest::READABLE | Interest::WRITABLE,
            )?;
            Ok(Connection {
                stream,
                written: 0,
                read: 0,
                since: Instant::now(),
            })
        });
        let connections = connections.collect::<io::Result<_>>()?;
        Ok(Load {
            poll,
            connections,
            message: vec![b'e'; bytes],
            buffer: vec![0; bytes],
        })
    }

    /// Keeps every connection busy for `time`, then waits for what is on its way. The late answers
    /// count as latencies: they are the slow ones, and without them no tail would look long.
    fn run(&mut self, time: Duration) -> io::Result<Report> {
        let mut latencies = Vec::with_capacity(1 << 20);
        let mut in_time = 0;
        let mut events = Events::with_capacity(1024);
        let start = Instant::now();
        for connection in &mut self.connections {
            connection.send(&self.message)?;
        }
        let mut busy = self.connections.len();
        while busy > 0 {
            match self.poll.poll(&mut events, None) {
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                polled => polled?,
            }
            for event in &events {
                let connection = &mut self.connections[event.token().0];
                if !connection.advance(&self.message, &mut self.buffer)? {
                    continue;
                }
                let now = Instant::now();
                // Saturates at 4 s, which no server here is meant to reach.
                latencies
                    .push(u32::try_from((now - connection.since).as_nanos()).unwrap_or(u32::MAX));
                if now - start < time {
                    in_time += 1;
                    connection.send(&self.message)?;
                } else {
                    busy -= 1;
                }
            }
        }
        latencies.sort_unstable();
        let [p50, p99, p999] = [0.5, 0.99, 0.999]
            .map(|share| Duration::from_nanos(u64::from(percentile(&latencies, share))));
        Ok(Report {
            in_time,
            answered: latencies.len() as u64,
            p50,
            p99,
            p999,
        })
    }
}

impl Connection {
    /// Begins a request.
    fn send(&mut self, message: &[u8]) -> io::Result<()> {
        (self.written, self.read) = (0, 0);
        self.since = Instant::now();
        self.write(message)
    }

    /// Goes on with the request, as far as that is possible; whether it was answered just now.
    fn advance(&mut self, message: &[u8], buffer: &mut [u8]) -> io::Result<bool> {
        if self.written == 0 || self.read == message.len() {
            // Nothing is on its way: the event is about the connection being writable, or old.
            return Ok(false);
        }
        self.write(message)?;
        while self.read < message.len() {
            let missing = message.len() - self.read;
            match self.stream.read(&mut buffer[..missing]) {
                Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
                Ok(length) => self.read += length,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(false),
                Err(error) => return Err(error),
            }
        }
        Ok(true)
    }

    fn write(&mut self, message: &[u8]) -> io::Result<()> {
        while self.written < message.len() {
            match self.stream.write(&message[self.written..]) {
                Ok(length) => self.written += length,
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) => return Err(error),
            }
        }
        Ok(())
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
        let [p50, p99, p999] = [70, 900, 1200].map(Duration::from_micros);
        let report = Report {
            in_time: 12,
            answered: 14,
            p50,
            p99,
            p999,
        };
        assert_eq!(Report::parse(&report.line()), report);
    }

    #[test]
    fn an_answer_after_the_time_is_no_throughput_but_a_latency() {
        let watchdog = Watchdog::start();
        watchdog.watch("the test of late answers".to_owned());
        let delay = Duration::from_millis(200);
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let server = listener.local_addr().unwrap();
        thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let mut buffer = [0; 64];
            stream.read_exact(&mut buffer).unwrap();
            thread::sleep(delay);
            stream.write_all(&buffer).unwrap();
            // Open until the other end closes it.
            let _ = stream.read(&mut buffer);
        });
        let report = Load::connect(server, 1, 64)
            .unwrap()
            .run(Duration::from_millis(20))
            .unwrap();
        assert_eq!((report.in_time, report.answered), (0, 1));
        assert!(report.p99 >= delay, "{report:?}");
        watchdog.rest();
    }

    #[test]
    fn a_request_larger_than_the_socket_buffers_comes_back_whole() {
        let watchdog = Watchdog::start();
        watchdog.watch("the test of large requests".to_owned());
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let server = listener.local_addr().unwrap();
        thread::spawn(move || {
            let (stream, _) = listener.accept().unwrap();
            io::copy(&mut &stream, &mut &stream).unwrap();
        });
        let report = Load::connect(server, 1, 1 << 20)
            .unwrap()
            .run(Duration::from_millis(20))
            .unwrap();
        assert!(report.answered > report.in_time, "{report:?}");
        watchdog.rest();
    }
}
