//! What a listener does when there is no descriptor left for the connection it should accept.
//!
//! The connection stays in the system's queue and the listener stays ready, so a loop that logs the
//! error and accepts again would spin, and keep its worker from the very tasks whose end would free
//! a descriptor. So after such an error the listener's readiness is held back for a while, twice as
//! long each time, until an accept succeeds. Whoever accepts meanwhile waits as if nothing had
//! arrived, whichever form of accept it is.

use std::pin::Pin;
use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Mutex, PoisonError};
use std::task::Context;
use std::time::Duration;

use crate::registration::Registration;
use crate::time::{Sleep, sleep};
use crate::{budget, context};

/// A listener's pause between attempts.
#[derive(Debug, Default)]
pub(crate) struct AcceptPause {
    /// Length of the last pause in milliseconds, 0 after a success. Relaxed: it guards nothing.
    last: AtomicU32,
    /// Ends the pause; kept so that it goes with the listener.
    timer: Mutex<Option<Pin<Box<Sleep>>>>,
}

const FIRST_MS: u32 = 10;
const LONGEST_MS: u32 = 1000;

impl AcceptPause {
    /// Makes accepting on `listener` wait.
    pub(crate) fn begin(&self, listener: &Registration) {
        let pause = next_pause(self.last.load(Relaxed));
        self.last.store(pause, Relaxed);
        let resume = listener.source().hold();
        let mut timer = Box::pin(sleep(Duration::from_millis(pause.into())));
        // Started by its first poll: with the listener's reactor, wherever this runs, and without
        // a say for the budget of the task that happens to run it.
        let elapsed = context::within(listener.reactor(), || {
            budget::unconstrained(|| timer.as_mut().poll(&mut Context::from_waker(&resume)))
        });
        if elapsed.is_ready() {
            resume.wake();
        }
        let previous = self
            .timer
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .replace(timer);
        drop(previous);
    }

    /// To be called after a success.
    pub(crate) fn reset(&self) {
        if self.last.load(Relaxed) != 0 {
            self.last.store(0, Relaxed);
        }
    }
}

fn next_pause(last: u32) -> u32 {
    (last * 2).clamp(FIRST_MS, LONGEST_MS)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Driver;
    use crate::net::TcpListener;
    use std::task::{Poll, Waker};
    use std::time::Instant;

    #[test]
    fn pauses_double_up_to_a_second() {
        let mut pauses = vec![0];
        for _ in 0..10 {
            pauses.push(next_pause(*pauses.last().unwrap()));
        }
        assert_eq!(pauses, [0, 10, 20, 40, 80, 160, 320, 640, 1000, 1000, 1000]);
    }

    #[test]
    fn accepting_waits_for_the_end_of_the_pause() {
        let mut driver = Driver::new(1).unwrap();
        let entered = context::set(Some((driver.reactor(), 0)));
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let addr = listener.local_addr().unwrap();
        let listener = TcpListener::from_std(listener).unwrap();
        let start = Instant::now();
        let pause = listener.pause();
        pause.begin(listener.registration());
        // The event of this connection must not end the pause.
        let _client = std::net::TcpStream::connect(addr).unwrap();
        let mut cx = Context::from_waker(Waker::noop());
        let accepted = loop {
            match listener.poll_accept(&mut cx) {
                Poll::Ready(accepted) => break accepted,
                Poll::Pending => driver.turn(Some(Duration::from_secs(5))).unwrap(),
            };
            assert!(
                start.elapsed() < Duration::from_secs(20),
                "the pause never ended"
            );
        };
        accepted.unwrap();
        assert!(start.elapsed() >= Duration::from_millis(FIRST_MS.into()));
        assert_eq!(pause.last.load(Relaxed), 0, "a success starts over");
        drop(listener);
        context::set(entered);
    }
}
