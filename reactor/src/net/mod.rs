//! TCP sockets, and the names they are reached by.
//!
//! Sockets belong to the runtime they were created in and are readied by it; any thread, also
//! outside of a runtime, may use them afterwards. Reading and writing go through the traits
//! `AsyncRead` and `AsyncWrite` of the `futures` crate.
//!
//! - [`TcpListener`] accepts connections, [`TcpStream`] is one, [`tcp`] has their parts.
//! - [`TcpSocket`] is a socket before it becomes either, for options that must be set by then.
//! - [`ToSocketAddrs`] is what they take as an address; [`lookup_host`] resolves one.
//!
//! # Errors
//!
//! All operations report [`std::io::Error`]. Creating a socket on a thread without a runtime is one,
//! as is using a socket whose runtime was shut down; both say so.

mod addr;
mod evented;
mod platform;
mod resolver;
pub mod tcp;

pub use addr::{ToSocketAddrs, lookup_host};
pub use tcp::{TcpListener, TcpSocket, TcpStream};
