//! A connection: opening it, its options, its end. Reading and writing are in `transfer`.

use std::io;
use std::net::{Shutdown, SocketAddr};
use std::time::Duration;

use mio::Interest;
use socket2::{SockRef, TcpKeepalive};

use super::owned_split::{self, OwnedReadHalf, OwnedWriteHalf};
use super::split::{self, ReadHalf, WriteHalf};
use crate::context;
use crate::handle::Reactor;
use crate::net::addr::{self, LastFailure, ToSocketAddrs};
use crate::net::evented::Evented;
use crate::readiness::{Direction, Flags};
use crate::registration::Registration;

/// A TCP connection.
///
/// It is read and written through `futures::io::{AsyncReadExt, AsyncWriteExt}`. `&TcpStream` can be
/// read and written as well, so tasks may share one; to read in one and write in another see
/// [`split`](Self::split) and [`into_split`](Self::into_split). Dropping it closes the connection.
///
/// ```no_run
/// use futures::io::{AsyncReadExt, AsyncWriteExt};
/// # runtime::block_on(async {
/// let mut stream = runtime::net::TcpStream::connect("localhost:7000").await?;
/// stream.write_all(b"hello").await?;
/// let mut answer = [0; 5];
/// stream.read_exact(&mut answer).await?;
/// # std::io::Result::Ok(()) }).unwrap();
/// ```
#[derive(Debug)]
pub struct TcpStream {
    inner: StreamInner,
}

/// The kinds of streams there are.
#[derive(Debug)]
enum StreamInner {
    Os(Evented<mio::net::TcpStream>),
}

impl TcpStream {
    /// Connects to the first of `addr`'s addresses that can be connected to, trying one after the
    /// other. There is no limit of time but the system's, see `time::timeout`.
    ///
    /// Cancel safe in that dropping it closes the socket.
    ///
    /// # Errors
    ///
    /// That of the last address tried, naming it, such as `ConnectionRefused`; or if the name cannot
    /// be resolved, or there is no runtime on this thread.
    pub async fn connect(addr: impl ToSocketAddrs) -> io::Result<TcpStream> {
        let reactor = context::current()?;
        let mut failure = LastFailure::new("connect to");
        for addr in addr::resolve(addr).await? {
            match TcpStream::connect_one(&reactor, addr).await {
                Ok(stream) => return Ok(stream),
                Err(error) => failure.note(addr, error),
            }
        }
        Err(failure.into_error())
    }

    /// Takes the connection apart for reading and writing at the same time within one task. The halves
    /// borrow, and cost nothing.
    ///
    /// With `futures::AsyncReadExt` in scope a plain `stream.split()` means that trait's method, which
    /// takes the stream by value and puts a lock between the halves: write `TcpStream::split(&mut
    /// stream)`, or use [`into_split`](Self::into_split).
    ///
    /// ```no_run
    /// use futures::{AsyncReadExt, AsyncWriteExt};
    /// # use runtime::net::TcpStream;
    /// # async fn example(mut stream: TcpStream) -> std::io::Result<()> {
    /// let (mut reader, mut writer) = TcpStream::split(&mut stream);
    /// futures::io::copy(&mut reader, &mut writer).await?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn split(&mut self) -> (ReadHalf<'_>, WriteHalf<'_>) {
        split::split(self)
    }

    /// Takes the connection apart for reading and writing in different tasks. The peer sees the end
    /// of the data when the write half is dropped; the connection is closed when both are.
    pub fn into_split(self) -> (OwnedReadHalf, OwnedWriteHalf) {
        owned_split::split(self)
    }

    /// Ends the connection in one direction or both. After `Shutdown::Write` the peer reads the end
    /// of the data; what is in the system's buffer is still sent.
    ///
    /// # Errors
    ///
    /// What the system reports.
    pub fn shutdown(&self, how: Shutdown) -> io::Result<()> {
        self.os().shutdown(how)
    }

    /// The address of this end.
    ///
    /// # Errors
    ///
    /// What the system reports.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        self.os().local_addr()
    }

    /// The address of the other end.
    ///
    /// # Errors
    ///
    /// What the system reports, such as `NotConnected`.
    pub fn peer_addr(&self) -> io::Result<SocketAddr> {
        self.os().peer_addr()
    }

    /// Takes the error that the system keeps for the connection (`SO_ERROR`).
    ///
    /// # Errors
    ///
    /// If it cannot be asked for.
    pub fn take_error(&self) -> io::Result<Option<io::Error>> {
        self.os().take_error()
    }

    /// Whether small writes are sent at once (`TCP_NODELAY`).
    ///
    /// # Errors
    ///
    /// What the system reports.
    pub fn nodelay(&self) -> io::Result<bool> {
        self.os().nodelay()
    }

    /// Sets whether small writes are sent at once (`TCP_NODELAY`) or may wait for more to be sent
    /// with them. The system's default is to wait.
    ///
    /// # Errors
    ///
    /// What the system reports.
    pub fn set_nodelay(&self, nodelay: bool) -> io::Result<()> {
        self.os().set_nodelay(nodelay)
    }

    /// How many hops packets may take (`IP_TTL`).
    ///
    /// # Errors
    ///
    /// What the system reports.
    pub fn ttl(&self) -> io::Result<u32> {
        self.os().ttl()
    }

    /// Sets how many hops packets may take (`IP_TTL`).
    ///
    /// # Errors
    ///
    /// What the system reports.
    pub fn set_ttl(&self, ttl: u32) -> io::Result<()> {
        self.os().set_ttl(ttl)
    }

    /// How long closing keeps trying to send what is left (`SO_LINGER`), `None` if in the
    /// background.
    ///
    /// # Errors
    ///
    /// What the system reports.
    pub fn linger(&self) -> io::Result<Option<Duration>> {
        SockRef::from(self.os()).linger()
    }

    /// Sets how long closing keeps trying to send what is left, in whole seconds (`SO_LINGER`). With
    /// a duration other than zero, dropping the stream blocks the thread for as long; zero resets
    /// the connection and discards what is left; `None` sends it in the background.
    ///
    /// # Errors
    ///
    /// What the system reports.
    pub fn set_linger(&self, linger: Option<Duration>) -> io::Result<()> {
        SockRef::from(self.os()).set_linger(linger)
    }

    /// Whether the system asks a silent peer if it is still there (`SO_KEEPALIVE`).
    ///
    /// # Errors
    ///
    /// What the system reports.
    pub fn keepalive(&self) -> io::Result<bool> {
        SockRef::from(self.os()).keepalive()
    }

    /// Sets after how long a silence, in whole seconds, the system asks the peer if it is still
    /// there (`SO_KEEPALIVE`, `TCP_KEEPIDLE`); `None` for never, the system's default.
    ///
    /// # Errors
    ///
    /// What the system reports.
    pub fn set_keepalive(&self, silence: Option<Duration>) -> io::Result<()> {
        let socket = SockRef::from(self.os());
        match silence {
            Some(silence) => socket.set_tcp_keepalive(&TcpKeepalive::new().with_time(silence)),
            None => socket.set_keepalive(false),
        }
    }

    /// A connection of the standard library's, from now on with this thread's runtime. It is set to
    /// non-blocking mode.
    ///
    /// # Errors
    ///
    /// If there is no runtime on this thread or it was shut down, or the system refuses.
    pub fn from_std(stream: std::net::TcpStream) -> io::Result<TcpStream> {
        stream.set_nonblocking(true)?;
        let stream = mio::net::TcpStream::from_std(stream);
        TcpStream::adopt(&context::current()?, stream, Flags::BOTH)
    }

    /// The standard library's form of it, without a runtime. It stays in non-blocking mode, see
    /// [`set_nonblocking`](std::net::TcpStream::set_nonblocking).
    ///
    /// # Errors
    ///
    /// What the system reports.
    pub fn into_std(self) -> io::Result<std::net::TcpStream> {
        let StreamInner::Os(os) = self.inner;
        Ok(os.into_io()?.into())
    }

    /// Takes over a stream that does not block, at first ready for `initial`.
    pub(crate) fn adopt(
        reactor: &Reactor,
        stream: mio::net::TcpStream,
        initial: Flags,
    ) -> io::Result<TcpStream> {
        let interest = Interest::READABLE | Interest::WRITABLE;
        // A read stops short at urgent data: to be told of it costs nothing, not to be told the rest (see
        // `Registration::clear_if_drained`).
        #[cfg(any(target_os = "linux", target_os = "android"))]
        let interest = interest | Interest::PRIORITY;
        let os = Evented::new(reactor, stream, interest, initial)?;
        Ok(TcpStream {
            inner: StreamInner::Os(os),
        })
    }

    /// Waits until connecting has succeeded or failed.
    pub(crate) async fn connected(self) -> io::Result<TcpStream> {
        self.registration().ready(Direction::Write).await?;
        match self.take_error()? {
            Some(error) => Err(error),
            None => Ok(self),
        }
    }

    #[inline]
    pub(crate) fn os(&self) -> &mio::net::TcpStream {
        let StreamInner::Os(os) = &self.inner;
        os.io()
    }

    #[inline]
    pub(crate) fn registration(&self) -> &Registration {
        let StreamInner::Os(os) = &self.inner;
        os.registration()
    }

    async fn connect_one(reactor: &Reactor, addr: SocketAddr) -> io::Result<TcpStream> {
        let stream = mio::net::TcpStream::connect(addr)?;
        TcpStream::adopt(reactor, stream, Flags::NONE)?
            .connected()
            .await
    }
}
