//! A system socket together with its registration.

use std::io;

use mio::Interest;
use mio::event::Source;

use crate::handle::Reactor;
use crate::readiness::Flags;
use crate::registration::Registration;

/// A socket that is registered as long as it is in here.
#[derive(Debug)]
pub(crate) struct Evented<S: Source> {
    /// `None` only while it is being taken apart.
    io: Option<S>,
    registration: Registration,
}

impl<S: Source> Evented<S> {
    /// Registers `io`, which must not block, with `reactor`; the first operations in the directions
    /// of `initial` are tried without waiting for an event.
    pub(crate) fn new(
        reactor: &Reactor,
        mut io: S,
        interest: Interest,
        initial: Flags,
    ) -> io::Result<Evented<S>> {
        let registration = Registration::with_initial(reactor, &mut io, interest, initial)?;
        Ok(Evented {
            io: Some(io),
            registration,
        })
    }

    #[inline]
    pub(crate) fn io(&self) -> &S {
        self.io.as_ref().expect("only taken out at the end")
    }

    #[inline]
    pub(crate) fn registration(&self) -> &Registration {
        &self.registration
    }

    /// Ends the registration and gives the socket back.
    pub(crate) fn into_io(mut self) -> io::Result<S> {
        let mut io = self.io.take().expect("only taken out at the end");
        self.registration.deregister(&mut io)?;
        Ok(io)
    }
}

impl<S: Source> Drop for Evented<S> {
    fn drop(&mut self) {
        if let Some(io) = &mut self.io {
            // It can only fail if the system has forgotten the socket, and that is the point.
            let _ = self.registration.deregister(io);
        }
    }
}
