//! Runtimes over io_uring: the kernel reads and writes, and many requests share a system call.
//!
//! One thread each. They serve TCP and no more, since their tasks stay on the thread that spawned them and
//! own the buffers that the kernel works on.

use std::io;
use std::net::TcpListener;

use monoio::io::{AsyncReadRent, AsyncWriteRentExt};
use monoio::{IoUringDriver, RuntimeBuilder};
use tokio_uring::buf::BoundedBuf;

use super::{EchoPeer, Peer};

/// monoio.
pub(crate) struct Monoio;

/// tokio-uring: tokio's current-thread runtime, with a ring beside its poller. Its name here does not begin
/// with `tokio`, for that family is what ours must not be behind.
pub(crate) struct TokioUring;

impl Peer for Monoio {
    const WORKERS: usize = 1;

    fn name() -> String {
        "monoio".to_owned()
    }

    fn start() -> Self {
        check();
        Monoio
    }
}

impl EchoPeer for Monoio {
    fn serve<const BUFFER: usize>(&self, listener: TcpListener) -> io::Result<()> {
        let mut runtime = RuntimeBuilder::<IoUringDriver>::new().build()?;
        runtime.block_on(async {
            let listener = monoio::net::TcpListener::from_std(listener)?;
            loop {
                let (mut stream, _) = listener.accept().await?;
                stream.set_nodelay(true)?;
                monoio::spawn(async move {
                    let mut buffer = vec![0; BUFFER];
                    loop {
                        let (read, filled) = stream.read(buffer).await;
                        if !matches!(read, Ok(1..)) {
                            return;
                        }
                        // As long as what was read.
                        let (written, empty) = stream.write_all(filled).await;
                        if written.is_err() {
                            return;
                        }
                        buffer = empty;
                    }
                });
            }
        })
    }
}

impl Peer for TokioUring {
    const WORKERS: usize = 1;

    fn name() -> String {
        "uring-tokio".to_owned()
    }

    fn start() -> Self {
        check();
        TokioUring
    }
}

impl EchoPeer for TokioUring {
    fn serve<const BUFFER: usize>(&self, listener: TcpListener) -> io::Result<()> {
        tokio_uring::start(async {
            let listener = tokio_uring::net::TcpListener::from_std(listener);
            loop {
                let (stream, _) = listener.accept().await?;
                stream.set_nodelay(true)?;
                tokio_uring::spawn(async move {
                    let mut buffer = vec![0; BUFFER];
                    loop {
                        let (read, filled) = stream.read(buffer).await;
                        let Ok(length @ 1..) = read else {
                            return;
                        };
                        let (written, slice) = stream.write_all(filled.slice(..length)).await;
                        if written.is_err() {
                            return;
                        }
                        buffer = slice.into_inner();
                    }
                });
            }
        })
    }
}

/// Ends the server's process with a plain word where there is no io_uring; the sample fails, the run goes on.
fn check() {
    if let Err(error) = RuntimeBuilder::<IoUringDriver>::new().build() {
        panic!("io_uring is not to be had on this machine: {error}");
    }
}
