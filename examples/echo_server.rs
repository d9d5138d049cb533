//! A TCP server that sends back whatever it receives.
//!
//! Run it: `cargo run --release --example echo_server` (`-- --help` shows its arguments)
//!
//! Talk to it from another terminal:
//! by hand with `nc 127.0.0.1 7000`,
//! under load with `cargo run --release --example echo_load`.
//!
//! It shows: an accept loop, a task for each connection, a periodic report that costs nothing while
//! nothing happens, an end on Ctrl-C.

use std::future::{Future, poll_fn};
use std::io;
use std::pin::pin;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::task::Poll;
use std::time::{Duration, Instant};

use examples::arguments::Arguments;
use examples::{descriptors, stop};
use futures::future::{self, Either};
use futures::task::AtomicWaker;
use futures::{AsyncReadExt, AsyncWriteExt};
use runtime::net::{TcpListener, TcpStream};
use runtime::time;

const USAGE: &str = "\
echo_server [--addr 127.0.0.1:7000] [--workers one-for-each-core]

Sends back whatever it receives, until Ctrl-C. Port 0 picks a free port.";

/// Room for 10,000 connections, and as many again.
const DESCRIPTORS: u64 = 20_000;

fn main() -> ExitCode {
    let arguments = Arguments::from_command_line(USAGE, &["addr", "workers"]);
    let address = arguments.get("addr", "127.0.0.1:7000".to_owned());
    let workers = arguments.workers();
    descriptors::raise_limit(DESCRIPTORS);

    let runtime = match runtime::Builder::new().worker_threads(workers).build() {
        Ok(runtime) => runtime,
        Err(error) => {
            eprintln!("cannot start the runtime: {error}");
            return ExitCode::FAILURE;
        }
    };
    match runtime.block_on(serve(&address, workers, stop::ctrl_c())) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("cannot serve on {address}: {error}");
            ExitCode::FAILURE
        }
    }
}

async fn serve(address: &str, workers: usize, stop: impl Future<Output = ()>) -> io::Result<()> {
    let listener = TcpListener::bind(address).await?;
    let address = listener.local_addr()?;
    println!("listening on {address}, {workers} workers; Ctrl-C ends it");
    println!("  by hand:    nc {} {}", address.ip(), address.port());
    println!("  under load: cargo run --release --example echo_load -- --addr {address}");

    let traffic = Arc::new(Traffic::default());
    runtime::spawn(report(Arc::clone(&traffic)));
    // Dropping the accept loop closes the listener; the connections end with the runtime.
    match future::select(pin!(accept(listener, &traffic)), pin!(stop)).await {
        Either::Left((never, _)) => match never {},
        Either::Right(((), _)) => println!("\nended; in all: {}", traffic.totals()),
    }
    Ok(())
}

async fn accept(listener: TcpListener, traffic: &Arc<Traffic>) -> std::convert::Infallible {
    loop {
        match listener.accept().await {
            Ok((stream, _peer)) => {
                traffic.opened();
                runtime::spawn(connection(stream, Arc::clone(traffic)));
            }
            // Out of descriptors, or a client that left before it was accepted. Neither ends the
            // server; the listener itself waits a little before it tries again.
            Err(error) => eprintln!("cannot accept a connection: {error}"),
        }
    }
}

async fn connection(stream: TcpStream, traffic: Arc<Traffic>) {
    // A client that goes away in the middle is its own business.
    echo(stream, &traffic).await.ok();
    traffic.closed();
}

async fn echo(mut stream: TcpStream, traffic: &Traffic) -> io::Result<()> {
    /// Grows with the client's appetite, so that 10,000 quiet clients take 20 MB.
    const SMALLEST: usize = 2 * 1024;
    const LARGEST: usize = 64 * 1024;

    stream.set_nodelay(true)?;
    let mut buffer = vec![0; SMALLEST];
    loop {
        let length = stream.read(&mut buffer).await?;
        if length == 0 {
            return Ok(());
        }
        stream.write_all(&buffer[..length]).await?;
        traffic.echoed(length);
        if length == buffer.len() && length < LARGEST {
            buffer.resize(length * 2, 0);
        }
    }
}

/// Prints a line a second as long as there is traffic; in between it waits without a timer, so
/// that an idle server does nothing at all.
async fn report(traffic: Arc<Traffic>) {
    let mut printed = Counts::default();
    loop {
        traffic.begins().await;
        let mut since = Instant::now();
        loop {
            time::sleep(Duration::from_secs(1)).await;
            let counts = traffic.counts();
            if counts != printed {
                println!("{}", counts.line(&printed, since.elapsed()));
                printed = counts;
            } else if traffic.rests(&printed) {
                break;
            }
            since = Instant::now();
        }
    }
}

/// What happened so far, counted by the connections and read by the report.
///
/// The report sleeps while `watched` is false, and the first event after that wakes it. An event
/// counts first and then looks at `watched`; the report clears `watched` first and then looks at
/// the counts. All four steps are sequentially consistent, so at least one of the two sees the
/// other, and no traffic goes unreported.
#[derive(Default)]
struct Traffic {
    opened: AtomicU64,
    closed: AtomicU64,
    requests: AtomicU64,
    bytes: AtomicU64,
    watched: AtomicBool,
    report: AtomicWaker,
}

impl Traffic {
    fn opened(&self) {
        self.opened.fetch_add(1, Ordering::SeqCst);
        self.wake_report();
    }

    fn closed(&self) {
        self.closed.fetch_add(1, Ordering::SeqCst);
        self.wake_report();
    }

    fn echoed(&self, bytes: usize) {
        // Only the counter that every event of this kind changes takes part in the protocol.
        self.bytes.fetch_add(bytes as u64, Ordering::Relaxed);
        self.requests.fetch_add(1, Ordering::SeqCst);
        self.wake_report();
    }

    fn wake_report(&self) {
        if !self.watched.load(Ordering::SeqCst) && !self.watched.swap(true, Ordering::SeqCst) {
            self.report.wake();
        }
    }

    /// Waits until there is traffic.
    async fn begins(&self) {
        poll_fn(|context| {
            self.report.register(context.waker());
            if self.watched.load(Ordering::SeqCst) {
                Poll::Ready(())
            } else {
                Poll::Pending
            }
        })
        .await
    }

    /// Stops watching, unless there was traffic after `printed`.
    fn rests(&self, printed: &Counts) -> bool {
        self.watched.store(false, Ordering::SeqCst);
        if self.counts() == *printed {
            return true;
        }
        self.watched.store(true, Ordering::SeqCst);
        false
    }

    fn counts(&self) -> Counts {
        Counts {
            opened: self.opened.load(Ordering::SeqCst),
            closed: self.closed.load(Ordering::SeqCst),
            requests: self.requests.load(Ordering::SeqCst),
            bytes: self.bytes.load(Ordering::Relaxed),
        }
    }

    fn totals(&self) -> String {
        let counts = self.counts();
        format!(
            "{} connections, {} requests, {:.1} MB",
            counts.opened,
            counts.requests,
            counts.bytes as f64 / 1e6
        )
    }
}

#[derive(Default, PartialEq)]
struct Counts {
    opened: u64,
    closed: u64,
    requests: u64,
    bytes: u64,
}

impl Counts {
    fn line(&self, before: &Counts, elapsed: Duration) -> String {
        let seconds = elapsed.as_secs_f64();
        format!(
            "{:>6} connections open, {:>8.0} req/s, {:>8.2} MB/s",
            self.opened.saturating_sub(self.closed),
            (self.requests - before.requests) as f64 / seconds,
            (self.bytes - before.bytes) as f64 / 1e6 / seconds
        )
    }
}
