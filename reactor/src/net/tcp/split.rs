//! The halves of a connection within one task.

use std::io;

use super::stream::TcpStream;

/// The reading half of a borrowed [`TcpStream`], see [`TcpStream::split`].
#[derive(Debug)]
pub struct ReadHalf<'a>(&'a TcpStream);

/// The writing half of a borrowed [`TcpStream`], see [`TcpStream::split`]. Closing it ends the
/// written direction; dropping it does not.
#[derive(Debug)]
pub struct WriteHalf<'a>(&'a TcpStream);

pub(crate) fn split(stream: &mut TcpStream) -> (ReadHalf<'_>, WriteHalf<'_>) {
    (ReadHalf(stream), WriteHalf(stream))
}

impl ReadHalf<'_> {
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
        self.0
    }
}

impl WriteHalf<'_> {
    /// [`TcpStream::writable`].
    ///
    /// # Errors
    ///
    /// As there.
    pub async fn writable(&self) -> io::Result<()> {
        self.0.writable().await
    }

    /// [`TcpStream::try_write`].
    ///
    /// # Errors
    ///
    /// As there.
    pub fn try_write(&self, buf: &[u8]) -> io::Result<usize> {
        self.0.try_write(buf)
    }

    pub(crate) fn stream(&self) -> &TcpStream {
        self.0
    }
}

impl AsRef<TcpStream> for ReadHalf<'_> {
    fn as_ref(&self) -> &TcpStream {
        self.0
    }
}

impl AsRef<TcpStream> for WriteHalf<'_> {
    fn as_ref(&self) -> &TcpStream {
        self.0
    }
}
