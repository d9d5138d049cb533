//! The async sibling of fork-join: two futures, one of them as a task of its own.

use std::future::Future;
use std::panic::resume_unwind;

use super::{AbortHandle, JoinHandle};
use crate::spawn::spawn;

/// Runs `a` here and `b` as a task beside it, and gives both outputs.
///
/// For futures that compute or wait independently; to merely interleave two futures on one task use
/// `futures::join!`. A recursion of it runs depth first, so it keeps about as many tasks alive as it is deep.
///
/// Cancel safety: dropped while pending it drops `a` and aborts `b`; `b`'s future is then dropped on a worker,
/// soon after.
///
/// # Panics
///
/// With the panic of `a` or of `b`; with that of `a`, `b` is aborted. If `b` was cancelled by a shutdown of the
/// runtime. If there is no runtime on this thread.
///
/// ```
/// fn fib(n: u64) -> std::pin::Pin<Box<dyn Future<Output = u64> + Send>> {
///     Box::pin(async move {
///         if n < 2 {
///             return n;
///         }
///         let (a, b) = runtime::task::join(fib(n - 1), fib(n - 2)).await;
///         a + b
///     })
/// }
/// assert_eq!(runtime::block_on(fib(10)), 55);
/// ```
pub async fn join<A, B>(a: A, b: B) -> (A::Output, B::Output)
where
    A: Future,
    B: Future + Send + 'static,
    B::Output: Send + 'static,
{
    let b: JoinHandle<B::Output> = spawn(b);
    let mut abort = AbortOnDrop(Some(b.abort_handle()));
    let a = a.await;
    let b = b.await;
    abort.0 = None;
    match b {
        Ok(b) => (a, b),
        Err(error) => match error.try_into_panic() {
            Ok(payload) => resume_unwind(payload),
            Err(error) => panic!("the second future of `task::join` did not finish: {error}"),
        },
    }
}

/// The second task owns its future, so nothing refers to the first one's frame when that is dropped early; but
/// nobody would want its result.
struct AbortOnDrop(Option<AbortHandle>);

impl Drop for AbortOnDrop {
    fn drop(&mut self) {
        if let Some(task) = &self.0 {
            task.abort();
        }
    }
}
