//! Letting others run.

use std::future::poll_fn;
use std::task::Poll;

/// Goes to the back of the fair lane: every task that is ready now gets its turn before this one goes on
/// (order across workers is not promised).
///
/// It wakes the task directly, so it also works under another executor's `block_on` on a worker.
///
/// ```
/// # runtime::block_on(async {
/// for _ in 0..3 {
///     // a slice of a long computation
///     runtime::task::yield_now().await;
/// }
/// # });
/// ```
pub async fn yield_now() {
    let mut yielded = false;
    poll_fn(|cx| {
        if yielded {
            return Poll::Ready(());
        }
        yielded = true;
        cx.waker().wake_by_ref();
        Poll::Pending
    })
    .await
}
