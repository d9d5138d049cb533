//! The other end of the echo rows.

pub(crate) mod load;
