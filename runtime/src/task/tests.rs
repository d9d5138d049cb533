//! Tests of the task cell, the registry and the census, on a scheduler without threads.

#[cfg(not(loom))]
mod cell;
#[cfg(not(loom))]
mod census;
#[cfg(not(loom))]
mod errors;
#[cfg(not(loom))]
mod lifecycles;
#[cfg(not(loom))]
mod programs;
#[cfg(not(loom))]
mod registry;
pub(crate) mod toy;
