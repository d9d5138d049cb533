//! Which reactor, and which of its timer shards, the current thread uses.
//!
//! The runtime sets it on its workers and wherever a thread enters a runtime; sockets and timers
//! created on the thread then find their reactor here.

use std::cell::RefCell;
use std::io;

use crate::handle::Reactor;

/// What is said when a socket or a timer is used on a thread without a reactor.
pub const NO_RUNTIME: &str = "no runtime on this thread: call this from a task, inside \
     `Runtime::block_on` or under `#[runtime::main]`, or enter one with `Handle::enter`";

thread_local! {
    static CURRENT: RefCell<Option<(Reactor, usize)>> = const { RefCell::new(None) };
}

/// Makes `current` (a reactor and a timer shard of it) what this thread uses, and returns what it
/// used before.
///
/// # Panics
///
/// Inside the closure of [`with`].
pub fn set(current: Option<(Reactor, usize)>) -> Option<(Reactor, usize)> {
    // On a thread whose thread-locals are gone there is nothing to set and nobody to see it.
    CURRENT
        .try_with(|cell| cell.replace(current))
        .unwrap_or(None)
}

/// Changes the timer shard this thread uses; without a reactor it does nothing.
///
/// # Panics
///
/// Inside the closure of [`with`].
pub fn set_shard(shard: usize) {
    let _ = CURRENT.try_with(|cell| {
        if let Some((_, current)) = cell.borrow_mut().as_mut() {
            *current = shard;
        }
    });
}

/// Runs `f` with this thread's reactor and timer shard, if it has one.
///
/// The context is borrowed meanwhile: `f` must not run user code (a waker, a destructor), since
/// that might enter or leave a runtime.
pub fn with<R>(f: impl FnOnce(Option<(&Reactor, usize)>) -> R) -> R {
    let mut f = Some(f);
    let result = CURRENT.try_with(|cell| {
        let f = f.take()?;
        Some(match &*cell.borrow() {
            Some((reactor, shard)) => f(Some((reactor, *shard))),
            None => f(None),
        })
    });
    match (result, f) {
        (Ok(Some(result)), _) => result,
        (_, Some(f)) => f(None),
        // `f` is only ever taken to be called.
        (_, None) => unreachable!("the closure ran without a result"),
    }
}

/// This thread's reactor, or the error that [`net`](crate::net) reports without one.
pub(crate) fn current() -> io::Result<Reactor> {
    with(|current| current.map(|(reactor, _)| reactor.clone()))
        .ok_or_else(|| io::Error::other(NO_RUNTIME))
}

/// [`with`], for callers that cannot do without a reactor.
///
/// # Panics
///
/// With [`NO_RUNTIME`] if the thread has none.
#[track_caller]
#[inline]
pub(crate) fn expect<R>(f: impl FnOnce(&Reactor, usize) -> R) -> R {
    with(|current| current.map(|(reactor, shard)| f(reactor, shard))).expect(NO_RUNTIME)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shard() -> Option<usize> {
        with(|current| current.map(|(_, shard)| shard))
    }

    #[test]
    fn the_last_context_counts() {
        let outer = Reactor::detached(4);
        let inner = Reactor::detached(1);
        assert!(set(Some((outer, 2))).is_none());
        assert_eq!(shard(), Some(2));
        set_shard(3);
        let before = set(Some((inner, 0)));
        assert_eq!(shard(), Some(0));
        set(before);
        assert_eq!(shard(), Some(3));
        assert!(set(None).is_some());
        set_shard(1);
        assert_eq!(shard(), None);
    }

    #[test]
    fn without_one_the_message_says_what_to_do() {
        assert_eq!(current().unwrap_err().to_string(), NO_RUNTIME);
        let panic = std::panic::catch_unwind(|| expect(|_, shard| shard)).unwrap_err();
        let message = panic.downcast_ref::<String>().map(String::as_str);
        assert!(
            message
                .or(panic.downcast_ref::<&str>().copied())
                .unwrap()
                .contains(NO_RUNTIME)
        );
    }
}
