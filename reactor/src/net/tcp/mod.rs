//! The TCP sockets and their parts.

mod accept_pause;
mod listener;
mod os_handles;
mod owned_split;
mod socket;
mod split;
mod stream;
mod transfer;

pub use listener::{Incoming, TcpListener};
pub use owned_split::{OwnedReadHalf, OwnedWriteHalf, ReuniteError};
pub use socket::TcpSocket;
pub use split::{ReadHalf, WriteHalf};
pub use stream::TcpStream;
