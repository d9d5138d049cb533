//! An async runtime: a work-stealing executor, a reactor over mio, timers and TCP.
//!
//! ```
//! use futures::io::{AsyncReadExt, AsyncWriteExt};
//! use runtime::net::{TcpListener, TcpStream};
//!
//! #[runtime::main]
//! async fn main() -> std::io::Result<()> {
//!     let listener = TcpListener::bind("127.0.0.1:0").await?;
//!     let address = listener.local_addr()?;
//!     runtime::spawn(async move {
//!         while let Ok((stream, _)) = listener.accept().await {
//!             runtime::spawn(async move {
//!                 let (reader, mut writer) = stream.into_split();
//!                 futures::io::copy(reader, &mut writer).await
//!             });
//!         }
//!     });
//!
//!     let mut stream = TcpStream::connect(address).await?;
//!     stream.write_all(b"hello").await?;
//!     let mut echoed = [0; 5];
//!     stream.read_exact(&mut echoed).await?;
//!     assert_eq!(&echoed, b"hello");
//!     Ok(())
//! }
//! ```
//!
//! # How it works, in five steps
//!
//! 1. [`spawn`] puts a future on the heap as a task and queues it, usually on the worker that it is called on.
//! 2. The task's cell holds the future, later its output, and one atomic state word.
//! 3. The state says who may poll, wake, complete or free it.
//! 4. A worker takes the next task (its own, from the backlog, or stolen) and polls it; when there is none, it
//!    parks, in the reactor if it is the first to do so.
//! 5. The [`JoinHandle`](task::JoinHandle) gives the output, or says how the task failed.
//!
//! ARCHITECTURE.md walks through the files of each step.
#![deny(unsafe_code)]

// In the order in which a task meets them.
mod spawn;
pub mod task;
mod worker;

// What a worker stands on.
mod backlog;
mod park;
mod queue;
mod scheduler;
mod seat;
mod sleep;

// How a thread gets in, and a runtime begins and ends.
mod block_on;
mod blocking;
mod builder;
mod context;
mod handle;
mod join;
mod metrics;
#[allow(clippy::module_inception)]
mod runtime;
mod shutdown;

mod panic;
mod sync;

#[cfg(all(test, loom))]
mod loom_tests;

pub use ::reactor::{net, time};
pub use runtime_macros::{main, test};

pub use crate::blocking::spawn_blocking;
pub use crate::builder::{Builder, StealOrder};
pub use crate::handle::{EnterGuard, Handle, TryCurrentError, TrySpawnError};
pub use crate::join::join;
pub use crate::metrics::{Metrics, WorkerMetrics};
pub use crate::runtime::Runtime;
pub use crate::shutdown::{ShutdownReport, StillRunning};
pub use crate::spawn::spawn;

/// Runs `future` to its end on this thread, in a runtime with the default options that is built for this one
/// call and dropped at its end.
///
/// # Panics
///
/// With the panic of `future`; if a runtime cannot be built ([`Builder::build`] gives an error instead); and on
/// a worker of a runtime, where blocking would hold up tasks: use `.await` there.
///
/// ```
/// assert_eq!(runtime::block_on(async { 6 * 7 }), 42);
/// ```
#[track_caller]
pub fn block_on<F: Future>(future: F) -> F::Output {
    assert!(!context::is_worker(), "{}", block_on::INSIDE_A_RUNTIME);
    match Runtime::new() {
        Ok(runtime) => runtime.block_on(future),
        Err(error) => panic!("`block_on` cannot build a runtime: {error}"),
    }
}
