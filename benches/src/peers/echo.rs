//! The systems of the echo rows: every asynchronous one, and those that can do nothing else.
//!
//! A hand-written loop over epoll has no tasks to spawn and an io_uring runtime reads and writes in a way
//! of its own, so that neither fits [`AsyncPeer`]. All they must do here is to serve.

use std::io;
use std::marker::PhantomData;
use std::net::TcpListener;

use super::epoll::Epoll;
#[cfg(feature = "uring")]
use super::uring::{Monoio, TokioUring};
use super::{AsyncPeer, Entry, Peer, PerAsyncPeer, each_async, in_task, named};

/// A system that serves TCP.
pub(crate) trait EchoPeer: Peer {
    /// Accepts connections for ever and sends back what each sends; reads at most `BUFFER` bytes at once.
    fn serve<const BUFFER: usize>(&self, listener: TcpListener) -> io::Result<()>;
}

/// Something that exists once for each system that serves TCP.
pub(crate) trait PerEchoPeer {
    /// What it is.
    type Item;
    /// The one for system `P`.
    fn make<P: EchoPeer>() -> Self::Item;
}

/// One `T` for each system that serves TCP.
pub(crate) fn each_echo<T: PerEchoPeer>() -> Vec<Entry<T::Item>> {
    fn entry<T: PerEchoPeer, P: EchoPeer>() -> Entry<T::Item> {
        named::<P, _>(T::make::<P>())
    }
    let mut entries = each_async::<Asynchronous<T>>();
    entries.push(entry::<T, Epoll<2>>());
    entries.push(entry::<T, Epoll<1>>());
    #[cfg(feature = "uring")]
    entries.extend([entry::<T, Monoio>(), entry::<T, TokioUring>()]);
    entries
}

impl<P: AsyncPeer> EchoPeer for P {
    fn serve<const BUFFER: usize>(&self, listener: TcpListener) -> io::Result<()> {
        in_task(self, P::echo::<BUFFER>(self.inside(), listener))
    }
}

/// Each asynchronous system is one that serves TCP.
struct Asynchronous<T>(PhantomData<T>);

impl<T: PerEchoPeer> PerAsyncPeer for Asynchronous<T> {
    type Item = T::Item;

    fn make<P: AsyncPeer>() -> T::Item {
        T::make::<P>()
    }
}
