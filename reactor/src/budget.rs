//! How much one poll of a task may do: a budget of operations that are ready at once.
//!
//! A socket with data in it, or a timer that is due, never makes its task wait, so a task that
//! loops over it would hold its worker for as long as data comes. Each such operation therefore
//! takes a unit from the budget of the poll it runs in; when it is used up, the operation reports
//! "not ready" and wakes its task, which lets others run and comes back with a fresh budget.

use std::cell::Cell;
use std::future::poll_fn;
use std::task::{Context, Poll};

/// Ready operations one poll of a task may perform.
const PER_POLL: u32 = 128;

/// The mark for "nobody counts": code outside of a task's poll.
const UNLIMITED: u32 = u32::MAX;

thread_local! {
    // Const and without a destructor: an access is one load from the thread's own memory.
    static LEFT: Cell<u32> = const { Cell::new(UNLIMITED) };
}

/// Runs `f`, one poll of a task, with a fresh budget; afterwards, also when `f` panics, the budget
/// from before is in force again.
pub fn with_budget<R>(f: impl FnOnce() -> R) -> R {
    let _restore = RestoreBudget(LEFT.replace(PER_POLL));
    f()
}

/// Runs `f` with no limit; afterwards, also when `f` panics, the budget from before is in force
/// again.
pub fn unconstrained<R>(f: impl FnOnce() -> R) -> R {
    let _restore = RestoreBudget(LEFT.replace(UNLIMITED));
    f()
}

/// Takes one unit of the budget. When it is used up, the task is woken and the result is
/// `Pending`: return it, and the task is polled again soon. Outside of [`with_budget`] there is no
/// limit.
#[inline]
pub fn poll_proceed(cx: &mut Context<'_>) -> Poll<()> {
    match LEFT.get() {
        UNLIMITED => Poll::Ready(()),
        0 => {
            cx.waker().wake_by_ref();
            Poll::Pending
        }
        left => {
            LEFT.set(left - 1);
            Poll::Ready(())
        }
    }
}

/// Gives back the unit that [`poll_proceed`] took for an operation that turned out not to be ready.
#[inline]
pub fn refund() {
    let left = LEFT.get();
    if left < PER_POLL {
        LEFT.set(left + 1);
    }
}

/// Whether the next [`poll_proceed`] would proceed.
#[inline]
pub fn has_remaining() -> bool {
    LEFT.get() != 0
}

/// Takes one unit of the current poll's budget and yields to other tasks if there is none left.
///
/// Meant for loops that do work of their own without ever waiting: with this call in the loop, the
/// task shares its worker as one that reads from a busy socket does.
///
/// Cancel safe: dropping it loses at most the unit.
pub async fn consume_budget() {
    poll_fn(poll_proceed).await;
}

struct RestoreBudget(u32);

impl Drop for RestoreBudget {
    fn drop(&mut self) {
        LEFT.set(self.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::panic::{AssertUnwindSafe, catch_unwind};
    use std::pin::pin;
    use std::task::Waker;

    fn proceed() -> bool {
        poll_proceed(&mut Context::from_waker(Waker::noop())).is_ready()
    }

    #[test]
    fn outside_of_a_poll_there_is_no_limit() {
        assert!((0..10 * PER_POLL).all(|_| proceed()));
        refund();
        assert!(has_remaining());
    }

    #[test]
    fn a_poll_has_its_own_budget() {
        with_budget(|| {
            assert_eq!(
                (0..10 * PER_POLL).filter(|_| proceed()).count(),
                PER_POLL as usize
            );
            assert!(!has_remaining());
            with_budget(|| assert!(proceed()));
            unconstrained(|| assert!(proceed() && has_remaining()));
            assert!(!proceed(), "the inner polls' budgets were theirs");
            refund();
            assert!(proceed() && !proceed());
        });
        assert!(has_remaining());
    }

    #[test]
    fn it_is_never_more_than_full() {
        with_budget(|| {
            refund();
            assert_eq!(
                (0..10 * PER_POLL).filter(|_| proceed()).count(),
                PER_POLL as usize
            );
        });
    }

    #[test]
    fn a_panic_restores_it() {
        let panicking = || with_budget(|| std::panic::resume_unwind(Box::new(())));
        assert!(catch_unwind(AssertUnwindSafe(panicking)).is_err());
        assert!((0..10 * PER_POLL).all(|_| proceed()));
    }

    #[test]
    fn consuming_yields_when_there_is_none_left() {
        with_budget(|| {
            let mut cx = Context::from_waker(Waker::noop());
            while has_remaining() {
                assert!(pin!(consume_budget()).poll(&mut cx).is_ready());
            }
            assert!(pin!(consume_budget()).poll(&mut cx).is_pending());
        });
    }
}
