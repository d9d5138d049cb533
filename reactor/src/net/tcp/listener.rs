//! Accepting connections.

use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use futures_core::Stream;
use mio::Interest;

use super::accept_pause::AcceptPause;
use super::socket::TcpSocket;
use super::stream::TcpStream;
use crate::handle::Reactor;
use crate::net::addr::{self, LastFailure, ToSocketAddrs};
use crate::net::evented::Evented;
use crate::net::platform;
use crate::readiness::{Direction, Flags};
use crate::registration::Registration;
use crate::source::ReadyFuture;
use crate::{budget, context};

/// A TCP socket that accepts connections.
///
/// Any number of tasks may accept from one listener. It stops listening when dropped.
///
/// ```no_run
/// use futures::io::copy;
/// # runtime::block_on(async {
/// let listener = runtime::net::TcpListener::bind("127.0.0.1:7000").await?;
/// loop {
///     let (stream, peer) = listener.accept().await?;
///     runtime::spawn(async move {
///         let (reader, mut writer) = stream.into_split();
///         if let Err(error) = copy(reader, &mut writer).await {
///             eprintln!("{peer}: {error}");
///         }
///     });
/// }
/// # #[allow(unreachable_code)]
/// # std::io::Result::Ok(()) }).unwrap();
/// ```
#[derive(Debug)]
pub struct TcpListener {
    inner: ListenerInner,
    pause: AcceptPause,
}

/// The stream of a listener's connections, see [`TcpListener::incoming`].
#[derive(Debug)]
#[must_use = "streams do nothing unless polled"]
pub struct Incoming<'a> {
    listener: &'a TcpListener,
    /// Its place among those who wait, so that any number of tasks can have a stream of one listener.
    ready: ReadyFuture<'a>,
}

/// The kinds of listeners there are.
#[derive(Debug)]
enum ListenerInner {
    Os(Evented<mio::net::TcpListener>),
}

/// Connections the system queues until they are accepted; it may queue fewer.
const BACKLOG: u32 = 1024;

impl TcpListener {
    /// Listens on the first of `addr`'s addresses that can be listened on. Port 0 has the system
    /// choose one, see [`local_addr`](Self::local_addr).
    ///
    /// On unix the address may be in use by what is left of an earlier listener's connections
    /// (`SO_REUSEADDR`). For other options see [`TcpSocket`].
    ///
    /// # Errors
    ///
    /// That of the last address tried, naming it, as when it is in use (`AddrInUse`); or if the name
    /// cannot be resolved, or there is no runtime on this thread.
    pub async fn bind(addr: impl ToSocketAddrs) -> io::Result<TcpListener> {
        let reactor = context::current()?;
        let mut failure = LastFailure::new("listen on");
        for addr in addr::resolve(addr).await? {
            match TcpListener::bind_one(&reactor, addr) {
                Ok(listener) => return Ok(listener),
                Err(error) => failure.note(addr, error),
            }
        }
        Err(failure.into_error())
    }

    /// Accepts the next connection; returns it and its peer's address.
    ///
    /// Cancel safe: a connection is either returned or left for the next call.
    ///
    /// # Errors
    ///
    /// What the system reports about one connection (such as `ConnectionAborted`) or about itself;
    /// the listener goes on. When there are no descriptors left (`EMFILE`, `ENFILE`) the error is
    /// returned, and the next accept waits before it tries again: 10 ms, twice as long each time, up
    /// to a second, until one succeeds. A loop that just logs errors therefore does not spin. An
    /// error that the runtime was shut down is final.
    pub async fn accept(&self) -> io::Result<(TcpStream, SocketAddr)> {
        let ListenerInner::Os(os) = &self.inner;
        let accepted = os
            .registration()
            .async_io(Direction::Read, || os.io().accept())
            .await;
        self.admit(accepted)
    }

    /// [`accept`](Self::accept), for poll functions. More than 16 tasks that poll one listener at
    /// once wake each other in vain; `accept` has no such limit.
    ///
    /// # Errors
    ///
    /// As for [`accept`](Self::accept).
    pub fn poll_accept(&self, cx: &mut Context<'_>) -> Poll<io::Result<(TcpStream, SocketAddr)>> {
        let ListenerInner::Os(os) = &self.inner;
        let registration = os.registration();
        let accepted = ready!(registration.poll_io(cx, Direction::Read, || os.io().accept()));
        Poll::Ready(self.admit(accepted))
    }

    /// The connections as a stream, which never ends; its errors are those of
    /// [`accept`](Self::accept).
    pub fn incoming(&self) -> Incoming<'_> {
        let source = self.registration().source();
        Incoming {
            listener: self,
            ready: source.ready(Direction::Read),
        }
    }

    /// The address it listens on.
    ///
    /// # Errors
    ///
    /// What the system reports.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        self.os().local_addr()
    }

    /// How many hops the packets of accepted connections may take (`IP_TTL`).
    ///
    /// # Errors
    ///
    /// What the system reports.
    pub fn ttl(&self) -> io::Result<u32> {
        self.os().ttl()
    }

    /// Sets how many hops the packets of accepted connections may take (`IP_TTL`).
    ///
    /// # Errors
    ///
    /// What the system reports.
    pub fn set_ttl(&self, ttl: u32) -> io::Result<()> {
        self.os().set_ttl(ttl)
    }

    /// A listener of the standard library's, from now on with this thread's runtime. It is set to
    /// non-blocking mode.
    ///
    /// # Errors
    ///
    /// If there is no runtime on this thread or it was shut down, or the system refuses.
    pub fn from_std(listener: std::net::TcpListener) -> io::Result<TcpListener> {
        listener.set_nonblocking(true)?;
        TcpListener::adopt(
            &context::current()?,
            mio::net::TcpListener::from_std(listener),
        )
    }

    /// The standard library's form of it, without a runtime. It stays in non-blocking mode, see
    /// [`set_nonblocking`](std::net::TcpListener::set_nonblocking).
    ///
    /// # Errors
    ///
    /// What the system reports.
    pub fn into_std(self) -> io::Result<std::net::TcpListener> {
        let ListenerInner::Os(os) = self.inner;
        Ok(os.into_io()?.into())
    }

    /// Takes over a listener that does not block.
    pub(crate) fn adopt(
        reactor: &Reactor,
        listener: mio::net::TcpListener,
    ) -> io::Result<TcpListener> {
        let os = Evented::new(reactor, listener, Interest::READABLE, Flags::NONE)?;
        Ok(TcpListener {
            inner: ListenerInner::Os(os),
            pause: AcceptPause::default(),
        })
    }

    pub(crate) fn os(&self) -> &mio::net::TcpListener {
        let ListenerInner::Os(os) = &self.inner;
        os.io()
    }

    pub(crate) fn registration(&self) -> &Registration {
        let ListenerInner::Os(os) = &self.inner;
        os.registration()
    }

    #[cfg(test)]
    pub(crate) fn pause(&self) -> &AcceptPause {
        &self.pause
    }

    fn bind_one(reactor: &Reactor, addr: SocketAddr) -> io::Result<TcpListener> {
        let socket = TcpSocket::new_for(addr)?;
        socket.set_reuseaddr(platform::LISTENERS_REUSE_ADDRESS)?;
        socket.bind(addr)?;
        socket.listen_with(reactor, BACKLOG)
    }

    fn admit(
        &self,
        accepted: io::Result<(mio::net::TcpStream, SocketAddr)>,
    ) -> io::Result<(TcpStream, SocketAddr)> {
        match accepted {
            Ok((stream, peer)) => {
                self.pause.reset();
                // Often the first bytes are there by now: try before waiting for their event.
                let reactor = self.registration().reactor();
                Ok((TcpStream::adopt(reactor, stream, Flags::BOTH)?, peer))
            }
            Err(error) => {
                if platform::is_descriptor_limit(&error) {
                    self.pause.begin(self.registration());
                }
                Err(error)
            }
        }
    }
}

impl Stream for Incoming<'_> {
    type Item = io::Result<TcpStream>;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = self.get_mut();
        let registration = this.listener.registration();
        loop {
            let event = ready!(Pin::new(&mut this.ready).poll(cx))?;
            match this.listener.os().accept() {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    budget::refund();
                    registration.clear_ready(event);
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                accepted => {
                    let accepted = this.listener.admit(accepted);
                    return Poll::Ready(Some(accepted.map(|(stream, _)| stream)));
                }
            }
        }
    }
}
