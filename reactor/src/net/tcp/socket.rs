//! A TCP socket before it listens or connects.

use std::io;
use std::net::SocketAddr;

use socket2::{Domain, Protocol, Socket, Type};

use super::listener::TcpListener;
use super::stream::TcpStream;
use crate::context;
use crate::handle::Reactor;
use crate::net::platform;
use crate::readiness::Flags;

/// A TCP socket that neither listens nor is connected yet, to set options that must be set by then.
///
/// ```no_run
/// # runtime::block_on(async {
/// let socket = runtime::net::TcpSocket::new_v4()?;
/// socket.set_reuseaddr(true)?;
/// socket.bind("127.0.0.1:7000".parse().unwrap())?;
/// let listener = socket.listen(1024)?;
/// # drop(listener);
/// # std::io::Result::Ok(()) }).unwrap();
/// ```
#[derive(Debug)]
pub struct TcpSocket {
    inner: SocketInner,
}

/// The kinds of sockets there are.
#[derive(Debug)]
enum SocketInner {
    Os(Socket),
}

impl TcpSocket {
    /// A socket for IPv4 addresses.
    ///
    /// # Errors
    ///
    /// What the system reports, as when there is no descriptor left.
    pub fn new_v4() -> io::Result<TcpSocket> {
        TcpSocket::new(Domain::IPV4)
    }

    /// A socket for IPv6 addresses.
    ///
    /// # Errors
    ///
    /// What the system reports, as when there is no descriptor left.
    pub fn new_v6() -> io::Result<TcpSocket> {
        TcpSocket::new(Domain::IPV6)
    }

    /// Whether the address may be in use by what is left of earlier connections (`SO_REUSEADDR`).
    /// On Windows it even lets another process take over the address.
    ///
    /// # Errors
    ///
    /// What the system reports.
    pub fn set_reuseaddr(&self, reuse: bool) -> io::Result<()> {
        self.os().set_reuse_address(reuse)
    }

    /// Whether `SO_REUSEADDR` is set.
    ///
    /// # Errors
    ///
    /// What the system reports.
    pub fn reuseaddr(&self) -> io::Result<bool> {
        self.os().reuse_address()
    }

    /// Whether several sockets may listen on the same address and share its connections
    /// (`SO_REUSEPORT`).
    ///
    /// # Errors
    ///
    /// What the system reports.
    #[cfg(all(
        unix,
        not(any(target_os = "solaris", target_os = "illumos", target_os = "cygwin"))
    ))]
    pub fn set_reuseport(&self, reuse: bool) -> io::Result<()> {
        self.os().set_reuse_port(reuse)
    }

    /// Whether small writes are sent at once (`TCP_NODELAY`).
    ///
    /// # Errors
    ///
    /// What the system reports.
    pub fn set_nodelay(&self, nodelay: bool) -> io::Result<()> {
        self.os().set_tcp_nodelay(nodelay)
    }

    /// Size in bytes of the system's buffer for what is to be sent; the system may change it.
    ///
    /// # Errors
    ///
    /// What the system reports.
    pub fn set_send_buffer_size(&self, size: u32) -> io::Result<()> {
        self.os().set_send_buffer_size(to_usize(size))
    }

    /// Size in bytes of the system's buffer for what is to be sent.
    ///
    /// # Errors
    ///
    /// What the system reports.
    pub fn send_buffer_size(&self) -> io::Result<u32> {
        self.os().send_buffer_size().map(to_u32)
    }

    /// Size in bytes of the system's buffer for what was received; the system may change it.
    ///
    /// # Errors
    ///
    /// What the system reports.
    pub fn set_recv_buffer_size(&self, size: u32) -> io::Result<()> {
        self.os().set_recv_buffer_size(to_usize(size))
    }

    /// Size in bytes of the system's buffer for what was received.
    ///
    /// # Errors
    ///
    /// What the system reports.
    pub fn recv_buffer_size(&self) -> io::Result<u32> {
        self.os().recv_buffer_size().map(to_u32)
    }

    /// Gives the socket a local address. Port 0 has the system choose one.
    ///
    /// # Errors
    ///
    /// What the system reports, such as `AddrInUse`.
    pub fn bind(&self, addr: SocketAddr) -> io::Result<()> {
        self.os().bind(&addr.into())
    }

    /// The socket's local address.
    ///
    /// # Errors
    ///
    /// What the system reports.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        let unspecified = || io::Error::other("the socket has no address of the internet");
        self.os().local_addr()?.as_socket().ok_or_else(unspecified)
    }

    /// Starts to listen; the system queues up to `backlog` connections, or fewer, until they are
    /// accepted.
    ///
    /// # Errors
    ///
    /// What the system reports; or if there is no runtime on this thread or it was shut down.
    pub fn listen(self, backlog: u32) -> io::Result<TcpListener> {
        self.listen_with(&context::current()?, backlog)
    }

    /// Connects to `addr`.
    ///
    /// Cancel safe in that dropping it closes the socket.
    ///
    /// # Errors
    ///
    /// What the system reports, such as `ConnectionRefused`; or if there is no runtime on this
    /// thread or it was shut down.
    pub async fn connect(self, addr: SocketAddr) -> io::Result<TcpStream> {
        let reactor = context::current()?;
        let SocketInner::Os(socket) = self.inner;
        match socket.connect(&addr.into()) {
            Err(error) if !platform::is_connect_under_way(&error) => return Err(error),
            _ => {}
        }
        let stream = mio::net::TcpStream::from_std(socket.into());
        TcpStream::adopt(&reactor, stream, Flags::NONE)?
            .connected()
            .await
    }

    /// [`listen`](Self::listen), with `reactor`.
    pub(crate) fn listen_with(self, reactor: &Reactor, backlog: u32) -> io::Result<TcpListener> {
        let SocketInner::Os(socket) = self.inner;
        socket.listen(backlog.try_into().unwrap_or(i32::MAX))?;
        TcpListener::adopt(reactor, mio::net::TcpListener::from_std(socket.into()))
    }

    /// A socket for addresses like `addr`.
    pub(crate) fn new_for(addr: SocketAddr) -> io::Result<TcpSocket> {
        TcpSocket::new(Domain::for_address(addr))
    }

    pub(crate) fn os(&self) -> &Socket {
        let SocketInner::Os(socket) = &self.inner;
        socket
    }

    fn new(domain: Domain) -> io::Result<TcpSocket> {
        let socket = Socket::new(domain, Type::STREAM, Some(Protocol::TCP))?;
        socket.set_nonblocking(true)?;
        Ok(TcpSocket {
            inner: SocketInner::Os(socket),
        })
    }
}

fn to_usize(size: u32) -> usize {
    size.try_into().unwrap_or(usize::MAX)
}

fn to_u32(size: usize) -> u32 {
    size.try_into().unwrap_or(u32::MAX)
}
