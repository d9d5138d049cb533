//! The shapes of runtime that tests go through.

use runtime::{Builder, Runtime};

/// One configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// `worker_threads`.
    pub workers: usize,
    /// `background_threads`.
    pub background: bool,
}

impl Shape {
    /// A runtime of this shape.
    ///
    /// # Panics
    ///
    /// If it cannot be built.
    pub fn build(self) -> Runtime {
        Builder::new()
            .worker_threads(self.workers)
            .background_threads(self.background)
            .build()
            .expect("a runtime")
    }
}

/// One and two workers, with and without background threads.
pub fn every_shape() -> impl Iterator<Item = Shape> {
    [1, 2].into_iter().flat_map(|workers| {
        [false, true].map(|background| Shape {
            workers,
            background,
        })
    })
}

/// A runtime with `workers` background threads.
///
/// # Panics
///
/// If it cannot be built.
pub fn with_workers(workers: usize) -> Runtime {
    let background = true;
    Shape {
        workers,
        background,
    }
    .build()
}

/// A runtime without a thread of its own: nothing runs while nobody is in `block_on`.
///
/// # Panics
///
/// If it cannot be built.
pub fn one_thread() -> Runtime {
    Builder::new_current_thread().build().expect("a runtime")
}
