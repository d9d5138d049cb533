//! Connecting to the server, with errors that say what to do, and the echo of one message.

use std::io;
use std::time::Duration;

use futures::stream::{self, StreamExt, TryStreamExt};
use futures::{AsyncReadExt, AsyncWriteExt};
use runtime::net::TcpStream;
use runtime::time;

use crate::Failure;

/// A server that takes longer than this to answer is taken for broken.
pub(crate) const PATIENCE: Duration = Duration::from_secs(10);

/// How many connections are being made at a time: fewer than a server's queue holds.
const CONNECTING: usize = 100;

pub(crate) async fn connect(address: &str) -> Result<TcpStream, Failure> {
    let connecting = time::timeout(PATIENCE, TcpStream::connect(address));
    let stream = match connecting.await {
        Ok(Ok(stream)) => stream,
        Ok(Err(error)) if error.kind() == io::ErrorKind::ConnectionRefused => {
            return Err(Failure::new(format_args!(
                "no server at {address}: start one with `cargo run --release --example echo_server`"
            )));
        }
        Ok(Err(error)) => return Err(failed("cannot connect to", address, &error)),
        Err(_elapsed) => return Err(failed("cannot connect to", address, &"no answer")),
    };
    stream
        .set_nodelay(true)
        .map_err(|error| failed("cannot set up the connection to", address, &error))?;
    Ok(stream)
}

pub(crate) async fn connect_all(address: &str, count: usize) -> Result<Vec<TcpStream>, Failure> {
    stream::iter(0..count)
        .map(|_| connect(address))
        .buffer_unordered(CONNECTING)
        .try_collect()
        .await
}

/// Sends `message` and waits for the same bytes. `answer` is as long.
pub(crate) async fn echo(
    stream: &mut TcpStream,
    message: &[u8],
    answer: &mut [u8],
) -> io::Result<()> {
    stream.write_all(message).await?;
    stream.read_exact(answer).await?;
    if answer != message {
        return Err(io::Error::new(
            io::ErrorKind::InvalidData,
            "the server sent back other bytes than it received",
        ));
    }
    Ok(())
}

fn failed(what: &str, address: &str, why: &dyn std::fmt::Display) -> Failure {
    Failure::new(format_args!("{what} {address}: {why}"))
}
