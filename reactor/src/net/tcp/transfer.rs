//! Moving bytes through a connection: by polling, by trying, and by waiting until it is worth it.

use std::io::{self, IoSlice, IoSliceMut, Read, Write};
use std::net::Shutdown;
use std::pin::Pin;
use std::task::{Context, Poll};

use futures_io::{AsyncRead, AsyncWrite};

use super::owned_split::{OwnedReadHalf, OwnedWriteHalf};
use super::split::{ReadHalf, WriteHalf};
use super::stream::TcpStream;
use crate::readiness::Direction;

impl TcpStream {
    /// Waits until reading is worth trying: there are bytes, or the end of them, or an error.
    ///
    /// Cancel safe. It may be wrong; [`try_read`](Self::try_read) then says `WouldBlock`.
    ///
    /// # Errors
    ///
    /// If the runtime was shut down.
    ///
    /// ```no_run
    /// # async fn example(stream: runtime::net::TcpStream) -> std::io::Result<()> {
    /// let mut buf = [0; 1024];
    /// let received = loop {
    ///     stream.readable().await?;
    ///     match stream.try_read(&mut buf) {
    ///         Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => continue,
    ///         result => break result?,
    ///     }
    /// };
    /// # drop(received); Ok(()) }
    /// ```
    pub async fn readable(&self) -> io::Result<()> {
        self.registration().ready(Direction::Read).await.map(drop)
    }

    /// Waits until writing is worth trying.
    ///
    /// Cancel safe. It may be wrong; [`try_write`](Self::try_write) then says `WouldBlock`.
    ///
    /// # Errors
    ///
    /// If the runtime was shut down.
    pub async fn writable(&self) -> io::Result<()> {
        self.registration().ready(Direction::Write).await.map(drop)
    }

    /// [`readable`](Self::readable), for poll functions. When very many tasks poll one stream at once, more than
    /// ten thousand, they wake each other in vain; `readable` has no such limit.
    ///
    /// # Errors
    ///
    /// If the runtime was shut down.
    pub fn poll_read_ready(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.registration()
            .poll_ready(cx, Direction::Read)
            .map_ok(drop)
    }

    /// [`writable`](Self::writable), for poll functions. When very many tasks poll one stream at once, more than
    /// ten thousand, they wake each other in vain; `writable` has no such limit.
    ///
    /// # Errors
    ///
    /// If the runtime was shut down.
    pub fn poll_write_ready(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.registration()
            .poll_ready(cx, Direction::Write)
            .map_ok(drop)
    }

    /// Reads what is there without waiting; 0 bytes mean the end.
    ///
    /// # Errors
    ///
    /// `WouldBlock` if nothing is there, or what the system reports.
    pub fn try_read(&self, buf: &mut [u8]) -> io::Result<usize> {
        let wanted = buf.len();
        self.registration()
            .try_transfer(Direction::Read, wanted, || self.os().read(buf))
    }

    /// [`try_read`](Self::try_read) into several buffers, one after the other.
    ///
    /// # Errors
    ///
    /// As for [`try_read`](Self::try_read).
    pub fn try_read_vectored(&self, bufs: &mut [IoSliceMut<'_>]) -> io::Result<usize> {
        let wanted = total_mut(bufs);
        self.registration()
            .try_transfer(Direction::Read, wanted, || self.os().read_vectored(bufs))
    }

    /// Writes what the system takes without waiting.
    ///
    /// # Errors
    ///
    /// `WouldBlock` if it takes nothing now, or what the system reports.
    pub fn try_write(&self, buf: &[u8]) -> io::Result<usize> {
        self.registration()
            .try_transfer(Direction::Write, buf.len(), || self.os().write(buf))
    }

    /// [`try_write`](Self::try_write) from several buffers, one after the other.
    ///
    /// # Errors
    ///
    /// As for [`try_write`](Self::try_write).
    pub fn try_write_vectored(&self, bufs: &[IoSlice<'_>]) -> io::Result<usize> {
        let wanted = total(bufs);
        self.registration()
            .try_transfer(Direction::Write, wanted, || self.os().write_vectored(bufs))
    }

    /// Tries an operation of the caller's own on the socket, if the stream counts as ready in
    /// `direction`; when it says `WouldBlock`, the stream counts as not ready until an event comes.
    /// It should say so only if the system did.
    ///
    /// # Errors
    ///
    /// `WouldBlock` if the stream is not ready, or what `operation` fails with.
    pub fn try_io<R>(
        &self,
        direction: Direction,
        operation: impl FnOnce() -> io::Result<R>,
    ) -> io::Result<R> {
        // Through mio, which asks for the next event where the system does not report edges.
        self.registration()
            .try_io(direction, || self.os().try_io(operation))
    }

    /// Reads without taking: the next read gives the same bytes again. 0 bytes mean the end.
    ///
    /// Cancel safe.
    ///
    /// # Errors
    ///
    /// What the system reports, or that the runtime was shut down.
    pub async fn peek(&self, buf: &mut [u8]) -> io::Result<usize> {
        self.registration()
            .async_io(Direction::Read, || self.os().peek(buf))
            .await
    }

    /// [`peek`](Self::peek), for poll functions.
    ///
    /// # Errors
    ///
    /// As for [`peek`](Self::peek).
    pub fn poll_peek(&self, cx: &mut Context<'_>, buf: &mut [u8]) -> Poll<io::Result<usize>> {
        self.registration()
            .poll_io(cx, Direction::Read, || self.os().peek(buf))
    }

    fn poll_read_shared(&self, cx: &mut Context<'_>, buf: &mut [u8]) -> Poll<io::Result<usize>> {
        let wanted = buf.len();
        self.registration()
            .poll_transfer(cx, Direction::Read, wanted, || self.os().read(buf))
    }

    fn poll_read_vectored_shared(
        &self,
        cx: &mut Context<'_>,
        bufs: &mut [IoSliceMut<'_>],
    ) -> Poll<io::Result<usize>> {
        let wanted = total_mut(bufs);
        self.registration()
            .poll_transfer(cx, Direction::Read, wanted, || {
                self.os().read_vectored(bufs)
            })
    }

    fn poll_write_shared(&self, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        self.registration()
            .poll_transfer(cx, Direction::Write, buf.len(), || self.os().write(buf))
    }

    fn poll_write_vectored_shared(
        &self,
        cx: &mut Context<'_>,
        bufs: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let wanted = total(bufs);
        self.registration()
            .poll_transfer(cx, Direction::Write, wanted, || {
                self.os().write_vectored(bufs)
            })
    }

    /// The end of what is written. A connection that is gone already has come to its end as well.
    fn close_writing(&self) -> io::Result<()> {
        match self.shutdown(Shutdown::Write) {
            Err(error) if error.kind() == io::ErrorKind::NotConnected => Ok(()),
            result => result,
        }
    }
}

/// `AsyncRead` for each `$reader`, whose `stream()` is read from.
macro_rules! read_through_the_stream {
    ($($reader:ty),*) => {$(
        impl AsyncRead for $reader {
            fn poll_read(
                self: Pin<&mut Self>,
                cx: &mut Context<'_>,
                buf: &mut [u8],
            ) -> Poll<io::Result<usize>> {
                self.stream().poll_read_shared(cx, buf)
            }

            fn poll_read_vectored(
                self: Pin<&mut Self>,
                cx: &mut Context<'_>,
                bufs: &mut [IoSliceMut<'_>],
            ) -> Poll<io::Result<usize>> {
                self.stream().poll_read_vectored_shared(cx, bufs)
            }
        }
    )*};
}

/// `AsyncWrite` for each `$writer`, whose `stream()` is written to. Nothing is buffered, so there is
/// nothing to flush; closing ends the written direction only.
macro_rules! write_through_the_stream {
    ($($writer:ty),*) => {$(
        impl AsyncWrite for $writer {
            fn poll_write(
                self: Pin<&mut Self>,
                cx: &mut Context<'_>,
                buf: &[u8],
            ) -> Poll<io::Result<usize>> {
                self.stream().poll_write_shared(cx, buf)
            }

            fn poll_write_vectored(
                self: Pin<&mut Self>,
                cx: &mut Context<'_>,
                bufs: &[IoSlice<'_>],
            ) -> Poll<io::Result<usize>> {
                self.stream().poll_write_vectored_shared(cx, bufs)
            }

            fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
                Poll::Ready(Ok(()))
            }

            fn poll_close(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
                Poll::Ready(self.stream().close_writing())
            }
        }
    )*};
}

read_through_the_stream!(TcpStream, &TcpStream, ReadHalf<'_>, OwnedReadHalf);
write_through_the_stream!(TcpStream, &TcpStream, WriteHalf<'_>, OwnedWriteHalf);

impl TcpStream {
    /// Itself, under the name that its halves have for it.
    fn stream(&self) -> &TcpStream {
        self
    }
}

/// std hands the system so many slices at once at most (`IOV_MAX`); what lies beyond is not asked for, so that a
/// transfer without it is not short.
const MOST_SLICES: usize = 1024;

fn total(bufs: &[IoSlice<'_>]) -> usize {
    bufs.iter().take(MOST_SLICES).map(|buf| buf.len()).sum()
}

fn total_mut(bufs: &[IoSliceMut<'_>]) -> usize {
    bufs.iter().take(MOST_SLICES).map(|buf| buf.len()).sum()
}
