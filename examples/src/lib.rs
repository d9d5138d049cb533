//! What several examples share, so that each of them holds only what it shows.
#![forbid(unsafe_code)]

pub mod arguments;
pub mod descriptors;
pub mod histogram;
pub mod stop;

/// Compiles and runs the code in the project's README with the doc-tests.
#[cfg(doctest)]
#[doc = include_str!("../../README.md")]
pub struct Readme;
