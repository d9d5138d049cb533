//! Tests of the task cell, on a scheduler without threads.

#[cfg(not(loom))]
mod cell;
#[cfg(not(loom))]
mod errors;
#[cfg(not(loom))]
mod programs;
#[cfg(not(loom))]
mod records;
pub(crate) mod toy;
