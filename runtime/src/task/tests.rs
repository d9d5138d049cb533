//! Tests of the task cell and the registry, on a scheduler without threads.

#[cfg(not(loom))]
mod cell;
#[cfg(not(loom))]
mod errors;
#[cfg(not(loom))]
mod lifecycles;
#[cfg(not(loom))]
mod programs;
#[cfg(not(loom))]
mod registry;
pub(crate) mod toy;
