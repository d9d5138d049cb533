//! The other end of the rows that have a server.

pub(crate) mod connect;
pub(crate) mod hold;
pub(crate) mod load;
