//! Many connections open at once, quiet most of the time.

use std::io;
use std::time::{Duration, Instant};

use futures::future::try_join_all;
use runtime::net::TcpStream;
use runtime::time;

use crate::Failure;
use crate::connections::{PATIENCE, connect_all, echo};

pub(crate) async fn run(address: &str, count: usize, hold: Duration) -> Result<(), Failure> {
    let start = Instant::now();
    let streams = connect_all(address, count).await?;
    println!("{count} connections open after {:.2?}", start.elapsed());

    let streams = echo_on_all(streams).await?;
    println!("echoed on each; holding them for {hold:?}");
    time::sleep(hold).await;

    echo_on_all(streams).await?;
    println!("echoed on each again: all {count} connections still work");
    Ok(())
}

async fn echo_on_all(streams: Vec<TcpStream>) -> Result<Vec<TcpStream>, Failure> {
    let tasks = streams
        .into_iter()
        .enumerate()
        .map(|(number, stream)| runtime::spawn(time::timeout(PATIENCE, echo_once(number, stream))));
    try_join_all(tasks)
        .await
        .map_err(Failure::new)?
        .into_iter()
        .map(|outcome| match outcome {
            Ok(Ok(stream)) => Ok(stream),
            Ok(Err(error)) => Err(Failure::new(format_args!("a connection failed: {error}"))),
            Err(_elapsed) => Err(Failure::new("a connection got no answer")),
        })
        .collect()
}

async fn echo_once(number: usize, mut stream: TcpStream) -> io::Result<TcpStream> {
    let message = number.to_le_bytes();
    echo(&mut stream, &message, &mut [0; size_of::<usize>()]).await?;
    Ok(stream)
}
