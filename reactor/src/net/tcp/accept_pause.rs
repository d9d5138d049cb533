//! What a listener does when there is no descriptor left for the connection it should accept.
//!
//! The connection stays in the system's queue and the listener stays ready, so a loop that logs the
//! error and accepts again would spin, and keep its worker from the very tasks whose end would free
//! a descriptor. So after such an error the listener's readiness is held back for a while, twice as
//! long each time, until an accept succeeds. Whoever accepts meanwhile waits as if nothing had
//! arrived, whichever form of accept it is.

use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use crate::registration::Registration;
use crate::timers::Timer;

/// A listener's pause between attempts.
#[derive(Debug, Default)]
pub(crate) struct AcceptPause {
    /// Length of the last pause in milliseconds, 0 after a success. Relaxed: it guards nothing.
    last: AtomicU32,
    /// Ends the pause; kept so that it goes with the listener.
    timer: Mutex<Option<Timer>>,
}

const FIRST_MS: u32 = 10;
const LONGEST_MS: u32 = 1000;

impl AcceptPause {
    /// Makes accepting on `listener` wait.
    pub(crate) fn begin(&self, listener: &Registration) {
        let pause = next_pause(self.last.load(Relaxed));
        self.last.store(pause, Relaxed);
        let reactor = listener.reactor();
        let now = reactor.clock().now();
        let deadline = now + Duration::from_millis(pause.into());
        // All under the lock: of two threads at once, whoever holds the listener back later must leave its timer, or
        // nobody would let it go. What is woken and dropped is so outside.
        let outcome = {
            let mut timer = self.timer.lock().unwrap_or_else(PoisonError::into_inner);
            let resume = listener.source().hold();
            Timer::start(reactor, 0, now, deadline, resume).map(|started| timer.replace(started))
        };
        match outcome {
            Ok(previous) => drop(previous.and_then(Timer::cancel)),
            // The runtime is gone, and accepting is to say so.
            Err(resume) => resume.wake(),
        }
    }

    /// To be called after a success.
    pub(crate) fn reset(&self) {
        if self.last.load(Relaxed) != 0 {
            self.last.store(0, Relaxed);
        }
    }
}

impl Drop for AcceptPause {
    fn drop(&mut self) {
        let timer = self.timer.get_mut().unwrap_or_else(PoisonError::into_inner);
        drop(timer.take().and_then(Timer::cancel));
    }
}

fn next_pause(last: u32) -> u32 {
    (last * 2).clamp(FIRST_MS, LONGEST_MS)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::net::TcpListener;
    use crate::{Direction, Driver, context};
    use std::task::{Context, Poll, Waker};
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

    #[test]
    fn a_pause_that_begins_after_the_shutdown_is_none() {
        let driver = Driver::new(1).unwrap();
        let entered = context::set(Some((driver.reactor(), 0)));
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let listener = TcpListener::from_std(listener).unwrap();
        driver.reactor().shutdown();
        listener.pause().begin(listener.registration());
        let mut cx = Context::from_waker(Waker::noop());
        let Poll::Ready(accepted) = listener.poll_accept(&mut cx) else {
            panic!("the listener was held back for ever");
        };
        assert!(accepted.unwrap_err().to_string().contains("shut down"));
        drop(listener);
        context::set(entered);
    }

    #[test]
    fn pauses_that_begin_together_end() {
        let mut driver = Driver::new(1).unwrap();
        let entered = context::set(Some((driver.reactor(), 0)));
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let _client = std::net::TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let listener = TcpListener::from_std(listener).unwrap();
        driver.turn(Some(Duration::from_secs(5))).unwrap();
        for _ in 0..10 {
            let start = Instant::now();
            std::thread::scope(|scope| {
                for _ in 0..4 {
                    scope.spawn(|| {
                        listener.pause().reset();
                        listener.pause().begin(listener.registration());
                    });
                }
            });
            while listener
                .registration()
                .source()
                .ready_now(Direction::Read)
                .is_none()
            {
                driver.turn(Some(Duration::from_millis(50))).unwrap();
                assert!(
                    start.elapsed() < Duration::from_secs(20),
                    "held back for ever"
                );
            }
        }
        drop(listener);
        context::set(entered);
    }
}
