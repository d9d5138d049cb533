//! Blocks one thread until somebody hands it a token: beside the others, or inside the driver.
//!
//! ```text
//!   EMPTY ── park ──▶ PARKED ────────┐
//!     │                              ├── unpark ──▶ NOTIFIED ── consumed ──▶ EMPTY
//!     └─ enter_driver ─▶ IN_DRIVER ──┘
//! ```
//!
//! `unpark` leaves the token whatever the state was, so one that comes before the thread blocks is not lost;
//! it then interrupts the place where the state says that the thread blocks.

use reactor::Reactor;

use crate::sync::atomic::AtomicU8;
use crate::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed};
use crate::sync::{Arc, thread};

const EMPTY: u8 = 0;
const PARKED: u8 = 1;
const IN_DRIVER: u8 = 2;
const NOTIFIED: u8 = 3;

/// The place where one thread blocks. Made on that thread.
pub(crate) struct Parker {
    state: AtomicU8,
    thread: thread::Thread,
    /// Interrupts a wait in the driver; `None` where there is none (models).
    reactor: Option<Reactor>,
}

impl Parker {
    /// For the calling thread.
    pub(crate) fn new(reactor: Option<Reactor>) -> Arc<Self> {
        Arc::new(Self {
            state: AtomicU8::new(EMPTY),
            thread: thread::current(),
            reactor,
        })
    }

    /// Blocks until there is a token, and consumes it. On the parker's own thread.
    pub(crate) fn park(&self) {
        // Failure Acquire and the Acquire below pair with the Release of `unpark`.
        if self
            .state
            .compare_exchange(EMPTY, PARKED, Relaxed, Acquire)
            .is_ok()
        {
            // std's token may be left over from user code: only our own state ends the wait.
            while self.state.load(Acquire) == PARKED {
                thread::park();
            }
        }
        self.consume();
    }

    /// About to wait in the driver; false if a token is there, which is then consumed.
    pub(crate) fn enter_driver(&self) -> bool {
        let enters = self
            .state
            .compare_exchange(EMPTY, IN_DRIVER, AcqRel, Acquire)
            .is_ok();
        if !enters {
            self.consume();
        }
        enters
    }

    /// Back from the driver; consumes the token if there is one.
    pub(crate) fn leave_driver(&self) {
        self.consume();
    }

    /// Leaves the token and interrupts the wait, wherever it is.
    pub(crate) fn unpark(&self) {
        // Release pairs with the Acquire of whoever consumes the token.
        match self.state.swap(NOTIFIED, AcqRel) {
            PARKED => self.thread.unpark(),
            IN_DRIVER => {
                if let Some(reactor) = &self.reactor {
                    reactor.wake();
                }
            }
            _ => {}
        }
    }

    /// A hint: the thread waits in the driver.
    pub(crate) fn is_in_driver(&self) -> bool {
        self.state.load(Relaxed) == IN_DRIVER
    }

    /// A swap and not a store, also where the token has been seen: a second `unpark` may have come since, and a
    /// plain store could wipe its token out without seeing what it published, or even land behind it.
    fn consume(&self) {
        // Acquire pairs with the Release of the last `unpark`.
        self.state.swap(EMPTY, Acquire);
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use std::sync::mpsc;
    use std::time::Duration;

    use super::*;

    /// Runs `body` on a thread of its own, which must end soon.
    fn ends(body: impl FnOnce() + Send + 'static) {
        let (sender, receiver) = mpsc::channel();
        let thread = std::thread::spawn(move || {
            body();
            let _ = sender.send(());
        });
        if receiver.recv_timeout(Duration::from_secs(30)) == Err(mpsc::RecvTimeoutError::Timeout) {
            eprintln!("a parked thread was not woken");
            std::process::abort();
        }
        thread.join().unwrap();
    }

    #[test]
    fn a_token_that_comes_first_is_kept_and_used_once() {
        ends(|| {
            let parker = Parker::new(None);
            parker.unpark();
            parker.unpark();
            parker.park();
            assert!(parker.enter_driver(), "two tokens are one");
            assert!(parker.is_in_driver());
            parker.leave_driver();
        });
    }

    #[test]
    fn a_token_keeps_the_thread_out_of_the_driver() {
        let parker = Parker::new(None);
        parker.unpark();
        assert!(!parker.enter_driver());
        assert!(!parker.is_in_driver());
        assert!(parker.enter_driver(), "it was consumed");
        parker.unpark();
        assert!(!parker.is_in_driver(), "the wait is over");
        parker.leave_driver();
        assert!(parker.enter_driver());
    }

    #[test]
    fn a_parked_thread_is_woken() {
        ends(|| {
            let parker = Parker::new(None);
            let other = std::thread::spawn({
                let parker = Arc::clone(&parker);
                move || {
                    while parker.state.load(Acquire) != PARKED {
                        std::thread::yield_now();
                    }
                    parker.unpark();
                }
            });
            parker.park();
            other.join().unwrap();
        });
    }

    #[test]
    fn a_token_of_std_does_not_end_the_wait() {
        ends(|| {
            let parker = Parker::new(None);
            let told = Arc::new(AtomicU8::new(0));
            let other = std::thread::spawn({
                let (parker, told) = (Arc::clone(&parker), Arc::clone(&told));
                move || {
                    while parker.state.load(Acquire) != PARKED {
                        std::thread::yield_now();
                    }
                    for _ in 0..100 {
                        parker.thread.unpark();
                        std::thread::sleep(Duration::from_micros(100));
                    }
                    told.store(1, Relaxed);
                    parker.unpark();
                }
            });
            std::thread::current().unpark();
            parker.park();
            assert_eq!(told.load(Relaxed), 1, "woken by std's token");
            other.join().unwrap();
        });
    }
}
