//! The usual load: every connection sends a request, waits for the answer, sends the next.

use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use examples::histogram::Histogram;
use runtime::net::TcpStream;
use runtime::time;

use crate::Failure;
use crate::connections::{PATIENCE, connect_all, echo};

/// Latencies a connection keeps to itself before it adds them to the common histogram.
const BATCH: usize = 256;

pub(crate) async fn run(
    address: &str,
    connections: usize,
    size: usize,
    duration: Duration,
) -> Result<(), Failure> {
    let streams = connect_all(address, connections).await?;
    println!("{connections} connections to {address}, {size} bytes a request, {duration:?}");

    let latencies = Arc::new(Mutex::new(Histogram::new()));
    let start = Instant::now();
    let clients: Vec<_> = streams
        .into_iter()
        .map(|stream| {
            let client = ask(stream, size, start + duration, Arc::clone(&latencies));
            runtime::spawn(time::timeout(duration + PATIENCE, client))
        })
        .collect();
    for client in clients {
        client
            .await
            .map_err(Failure::new)?
            .map_err(|_elapsed| Failure::new("the server stopped answering"))?
            .map_err(|error| Failure::new(format_args!("a connection failed: {error}")))?;
    }
    let elapsed = start.elapsed().as_secs_f64();

    let latencies = latencies.lock().unwrap_or_else(PoisonError::into_inner);
    let requests = latencies.count() as f64;
    println!(
        "{:.0} requests/s, {:.2} MB/s each way, all answers equal",
        requests / elapsed,
        requests * size as f64 / 1e6 / elapsed
    );
    println!("latency: {latencies}");
    Ok(())
}

async fn ask(
    mut stream: TcpStream,
    size: usize,
    end: Instant,
    latencies: Arc<Mutex<Histogram>>,
) -> io::Result<()> {
    let mut message: Vec<u8> = (0..size).map(|place| place as u8).collect();
    let mut answer = vec![0; size];
    let mut batch = Vec::with_capacity(BATCH);
    for number in 0_u64.. {
        // No two requests in a row are alike, so an old answer cannot pass for a new one.
        let stamp = number.to_le_bytes();
        let stamped = size.min(stamp.len());
        message[..stamped].copy_from_slice(&stamp[..stamped]);

        let sent = Instant::now();
        echo(&mut stream, &message, &mut answer).await?;
        let answered = Instant::now();
        batch.push((answered - sent).as_nanos() as u64);
        if batch.len() == BATCH || answered >= end {
            let mut latencies = latencies.lock().unwrap_or_else(PoisonError::into_inner);
            batch.drain(..).for_each(|nanos| latencies.record(nanos));
        }
        if answered >= end {
            break;
        }
    }
    Ok(())
}
