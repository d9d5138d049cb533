//! Letting others run.

use std::future::poll_fn;
use std::task::Poll;

/// Goes to the back of this worker's queue of woken tasks: those that were woken or yielded before get their turn
/// first. Tasks that were spawned here and have not begun take turns with that queue, one of them for each of it,
/// so a task that spawns many and yields once gets ahead of most of them. Others may also go on elsewhere: order
/// across workers is not promised.
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
