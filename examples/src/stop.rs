//! Waiting for Ctrl-C.

use std::future::Future;
use std::process;

use futures::channel::oneshot;

/// Is ready once the user presses Ctrl-C (or sends `kill`). The second time ends the process at
/// once, for a program that does not come to its end.
///
/// # Panics
///
/// Panics if it is called twice in one process.
pub fn ctrl_c() -> impl Future<Output = ()> + Send + 'static {
    let (sender, receiver) = oneshot::channel();
    let mut sender = Some(sender);
    ctrlc::set_handler(move || match sender.take() {
        // Nobody listens any more if the program is about to end by itself.
        Some(sender) => drop(sender.send(())),
        None => process::exit(130),
    })
    .expect("there is no other handler for Ctrl-C");
    async move {
        // The handler keeps its sender until it has sent.
        receiver.await.ok();
    }
}
