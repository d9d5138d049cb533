//! The halves of a connection for different tasks.

use std::error::Error;
use std::fmt;
use std::io;
use std::net::Shutdown;
use std::sync::Arc;

use super::stream::TcpStream;

/// The reading half of a [`TcpStream`], see [`TcpStream::into_split`]. Dropping it changes nothing
/// for the writing half.
#[derive(Debug)]
pub struct OwnedReadHalf(Arc<TcpStream>);

/// The writing half of a [`TcpStream`], see [`TcpStream::into_split`]. Dropping it ends the written
/// direction, which the peer reads as the end of the data; [`forget`](Self::forget) does not.
#[derive(Debug)]
pub struct OwnedWriteHalf {
    stream: Arc<TcpStream>,
    ends_when_dropped: bool,
}

/// That two halves are not of the same connection; it gives them back.
#[derive(Debug)]
pub struct ReuniteError(pub OwnedReadHalf, pub OwnedWriteHalf);

pub(crate) fn split(stream: TcpStream) -> (OwnedReadHalf, OwnedWriteHalf) {
    let stream = Arc::new(stream);
    let reader = OwnedReadHalf(Arc::clone(&stream));
    (
        reader,
        OwnedWriteHalf {
            stream,
            ends_when_dropped: true,
        },
    )
}

impl OwnedReadHalf {
    /// Puts the connection together again.
    ///
    /// # Errors
    ///
    /// If `writer` is a half of another one; both halves are in the error.
    pub fn reunite(self, writer: OwnedWriteHalf) -> Result<TcpStream, ReuniteError> {
        if !Arc::ptr_eq(&self.0, &writer.stream) {
            return Err(ReuniteError(self, writer));
        }
        writer.forget();
        Ok(Arc::into_inner(self.0).expect("there are two halves and no other owners"))
    }

    /// [`TcpStream::readable`].
    ///
    /// # Errors
    ///
    /// As there.
    pub async fn readable(&self) -> io::Result<()> {
        self.0.readable().await
    }

    /// [`TcpStream::try_read`].
    ///
    /// # Errors
    ///
    /// As there.
    pub fn try_read(&self, buf: &mut [u8]) -> io::Result<usize> {
        self.0.try_read(buf)
    }

    /// [`TcpStream::peek`].
    ///
    /// # Errors
    ///
    /// As there.
    pub async fn peek(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        self.0.peek(buf).await
    }

    pub(crate) fn stream(&self) -> &TcpStream {
        &self.0
    }
}

impl OwnedWriteHalf {
    /// Puts the connection together again.
    ///
    /// # Errors
    ///
    /// If `reader` is a half of another one; both halves are in the error.
    pub fn reunite(self, reader: OwnedReadHalf) -> Result<TcpStream, ReuniteError> {
        reader.reunite(self)
    }

    /// Drops the half without ending the written direction.
    pub fn forget(mut self) {
        self.ends_when_dropped = false;
    }

    /// [`TcpStream::writable`].
    ///
    /// # Errors
    ///
    /// As there.
    pub async fn writable(&self) -> io::Result<()> {
        self.stream.writable().await
    }

    /// [`TcpStream::try_write`].
    ///
    /// # Errors
    ///
    /// As there.
    pub fn try_write(&self, buf: &[u8]) -> io::Result<usize> {
        self.stream.try_write(buf)
    }

    pub(crate) fn stream(&self) -> &TcpStream {
        &self.stream
    }
}

impl Drop for OwnedWriteHalf {
    fn drop(&mut self) {
        if self.ends_when_dropped {
            // It fails if the connection has ended already, which is as good.
            let _ = self.stream.shutdown(Shutdown::Write);
        }
    }
}

impl AsRef<TcpStream> for OwnedReadHalf {
    fn as_ref(&self) -> &TcpStream {
        &self.0
    }
}

impl AsRef<TcpStream> for OwnedWriteHalf {
    fn as_ref(&self) -> &TcpStream {
        &self.stream
    }
}

impl fmt::Display for ReuniteError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the two halves are not of the same connection")
    }
}

impl Error for ReuniteError {}
