//! Waits for the system, then wakes whoever is ready.

use std::fmt;
use std::io;
use std::task::Waker;
use std::time::Duration;

use mio::{Events, Poll, Token};

use crate::deadline_timer::DeadlineTimer;
use crate::handle::Reactor;
use crate::readiness::Flags;
use crate::registry::SourceToken;
use crate::waiters::wake_all;

/// The part of a reactor that waits: one thread at a time holds it.
///
/// A turn is two steps, so that the caller can let go of what it holds in between: [`wait`] asks the
/// system, [`dispatch`] wakes.
///
/// # A new deadline against a waiting poller
///
/// A timer may be started while the poller already waits for a later deadline, or for none; then it
/// has to be interrupted. Interrupting it for every timer would cost a system call each, so both
/// sides look at each other:
///
/// 1. The poller publishes the deadline it is about to wait for (`poller_deadline`), then reads the
///    timers' earliest deadline again, and starts over if that is lower by now.
/// 2. Whoever starts a timer lowers the earliest deadline, and if it did, reads `poller_deadline`
///    and interrupts the poller if that is later than its own.
///
/// Each side writes first and then reads what the other writes, all four SeqCst, so they cannot
/// both read the old value: either the poller sees the new deadline before it waits, or the starter
/// sees that the poller waits for a later one. A deadline that has been removed leaves `earliest`
/// too low; the poller then wakes once for nothing, and the true value is found.
///
/// [`wait`]: Self::wait
/// [`dispatch`]: Self::dispatch
pub struct Driver {
    poll: Poll,
    events: Events,
    timer: DeadlineTimer,
    reactor: Reactor,
    /// Kept for its memory; empty between turns.
    woken: Vec<Waker>,
    found_many: bool,
}

/// Events taken from the system at once; what does not fit is taken the next time. Few, so that what
/// is touched to wake a task is still in the cache when the task runs: with a thousand, a server with
/// 500 busy connections spent 8 % more on each request.
const EVENTS_PER_TURN: usize = 64;

// No source has these tokens, see `MAX_KEY` of the registry.
const INTERRUPTION: Token = Token(usize::MAX);
const DEADLINE: Token = Token(usize::MAX - 1);

impl Driver {
    /// A driver and its reactor, with `shards` timer shards: one for each seat of a worker, so that
    /// workers start and cancel timers without meeting each other.
    ///
    /// # Errors
    ///
    /// If the system refuses one of the descriptors it needs.
    ///
    /// # Panics
    ///
    /// If `shards` is zero.
    pub fn new(shards: usize) -> io::Result<Driver> {
        assert!(shards > 0, "a reactor needs at least one timer shard");
        let poll = Poll::new()?;
        let waker = mio::Waker::new(poll.registry(), INTERRUPTION)?;
        let timer = DeadlineTimer::new(poll.registry(), DEADLINE)?;
        let reactor = Reactor::new(shards, poll.registry().try_clone()?, waker);
        let events = Events::with_capacity(EVENTS_PER_TURN);
        Ok(Driver {
            poll,
            events,
            timer,
            reactor,
            woken: Vec::new(),
            found_many: false,
        })
    }

    /// Whether the last wait found as many events as it could take: there may be more, and it is worth looking again
    /// soon.
    pub fn found_many(&self) -> bool {
        self.found_many
    }

    /// The shared side of this driver.
    pub fn reactor(&self) -> Reactor {
        self.reactor.clone()
    }

    /// Waits for I/O, the next deadline, a [`Reactor::wake`], or the end of `timeout`; `None` is
    /// without end, zero only looks. Wakes nobody yet: that is for [`dispatch`](Self::dispatch), and
    /// until it is called further waits may return at once. It may return early for no visible
    /// reason.
    ///
    /// # Errors
    ///
    /// What the system reports, except being interrupted by a signal: that just ends the wait.
    pub fn wait(&mut self, timeout: Option<Duration>) -> io::Result<()> {
        if !self.events.is_empty() {
            // Found by a wait that no dispatch followed: the system will not report it again.
            return Ok(());
        }
        self.reactor.sources().begin_turn();
        let timeout = match timeout {
            Some(Duration::ZERO) => timeout,
            _ => self.prepare_deadline(timeout)?,
        };
        let result = self.poll.poll(&mut self.events, timeout);
        self.found_many = self.events.iter().count() == EVENTS_PER_TURN;
        self.reactor.retract_poller_deadline();
        for event in &self.events {
            match event.token() {
                INTERRUPTION => self.reactor.interruption_seen(),
                DEADLINE => self.timer.fired(),
                _ => {}
            }
        }
        match result {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => Ok(()),
            result => result,
        }
    }

    /// Wakes whoever the last wait found ready, and every timer that is due. Returns how many wakers
    /// were woken.
    pub fn dispatch(&mut self) -> usize {
        let events = self.events.iter().filter_map(|event| match event.token() {
            INTERRUPTION | DEADLINE => None,
            token => Some((SourceToken::from_system(token), Flags::of_event(event))),
        });
        self.reactor.sources().end_turn(events, &mut self.woken);
        self.events.clear();
        let timers = self.reactor.timers();
        let earliest = timers.earliest();
        if earliest != u64::MAX {
            let clock = self.reactor.clock();
            let now = clock.nanos(clock.now());
            // A lower bound: most turns end here, without touching a shard.
            if earliest <= now {
                timers.collect_due(now, &mut self.woken);
            }
        }
        wake_all(&mut self.woken)
    }

    /// [`wait`](Self::wait), then [`dispatch`](Self::dispatch).
    ///
    /// # Errors
    ///
    /// As for [`wait`](Self::wait).
    pub fn turn(&mut self, timeout: Option<Duration>) -> io::Result<usize> {
        self.wait(timeout)?;
        Ok(self.dispatch())
    }

    /// Settles the deadline to wait for (the protocol above), and returns the timeout to wait with.
    fn prepare_deadline(&mut self, timeout: Option<Duration>) -> io::Result<Option<Duration>> {
        let timers = self.reactor.timers();
        let mut deadline = timers.earliest();
        loop {
            self.reactor.publish_poller_deadline(deadline);
            match timers.earliest() {
                lowered if lowered < deadline => deadline = lowered,
                _ => break,
            }
        }
        if deadline == u64::MAX {
            return Ok(timeout);
        }
        let clock = self.reactor.clock();
        match deadline.saturating_sub(clock.nanos(clock.now())) {
            0 => Ok(Some(Duration::ZERO)),
            left => self
                .timer
                .prepare(deadline, Duration::from_nanos(left), timeout),
        }
    }
}

impl fmt::Debug for Driver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Driver")
            .field("reactor", &self.reactor)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{context, time};
    use std::pin::pin;
    use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
    use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
    use std::task::{self, Context};
    use std::thread;
    use std::time::Instant;

    /// Far beyond what any test waits for.
    const LONG: Duration = Duration::from_secs(20);

    /// Aborts the process unless what it returns is dropped in time.
    fn watchdog() -> Sender<()> {
        let (alive, gone) = channel();
        thread::spawn(move || {
            if gone.recv_timeout(LONG * 3) == Err(RecvTimeoutError::Timeout) {
                eprintln!("a test of the driver hangs");
                std::process::abort();
            }
        });
        alive
    }

    #[test]
    fn a_wake_before_the_wait_counts_once() {
        let _watchdog = watchdog();
        let mut driver = Driver::new(1).unwrap();
        for _ in 0..3 {
            for _ in 0..1000 {
                driver.reactor().wake();
            }
            assert_eq!(driver.turn(None).unwrap(), 0);
            let start = Instant::now();
            driver.turn(Some(Duration::from_millis(20))).unwrap();
            assert!(
                start.elapsed() >= Duration::from_millis(20),
                "one of the wakes was left over"
            );
        }
    }

    #[test]
    fn no_wake_is_lost_to_coalescing() {
        let _watchdog = watchdog();
        let mut driver = Driver::new(1).unwrap();
        let reactor = driver.reactor();
        let published = AtomicUsize::new(0);
        thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| {
                    for _ in 0..5000 {
                        published.fetch_add(1, SeqCst);
                        reactor.wake();
                    }
                });
            }
            while published.load(SeqCst) < 10_000 {
                driver.wait(None).unwrap();
                driver.dispatch();
            }
        });
    }

    #[test]
    fn deadlines_are_precise_and_never_early() {
        let _watchdog = watchdog();
        let mut driver = Driver::new(1).unwrap();
        let before = context::set(Some((driver.reactor(), 0)));
        let mut best = Duration::MAX;
        for micros in [1, 50, 300, 700, 999, 1001, 2500].repeat(3) {
            let asked = Duration::from_micros(micros);
            let start = Instant::now();
            let mut sleep = pin!(time::sleep(asked));
            let mut cx = Context::from_waker(Waker::noop());
            while sleep.as_mut().poll(&mut cx).is_pending() {
                driver.turn(None).unwrap();
            }
            assert!(
                start.elapsed() >= asked,
                "{asked:?} took {:?}",
                start.elapsed()
            );
            best = best.min(start.elapsed() - asked);
        }
        if cfg!(target_os = "linux") {
            assert!(
                best < Duration::from_micros(900),
                "not even once better than {best:?}"
            );
        }
        context::set(before);
    }

    #[test]
    fn an_earlier_deadline_interrupts_the_poller() {
        struct Fired(AtomicBool);
        impl task::Wake for Fired {
            fn wake(self: std::sync::Arc<Self>) {
                self.0.store(true, SeqCst);
            }
        }
        let _watchdog = watchdog();
        let mut driver = Driver::new(1).unwrap();
        let reactor = driver.reactor();
        for round in 0..20 {
            let fired = std::sync::Arc::new(Fired(AtomicBool::new(false)));
            let waker = Waker::from(std::sync::Arc::clone(&fired));
            let delay = Duration::from_micros(50 * round);
            let start = Instant::now();
            thread::scope(|scope| {
                let starter = scope.spawn(|| {
                    // At different moments before and after the poller has started to wait.
                    thread::sleep(delay);
                    context::set(Some((reactor.clone(), 0)));
                    let mut sleep = Box::pin(time::sleep(Duration::from_millis(2)));
                    assert!(
                        sleep
                            .as_mut()
                            .poll(&mut Context::from_waker(&waker))
                            .is_pending()
                    );
                    sleep
                });
                while !fired.0.load(SeqCst) {
                    driver.turn(Some(LONG)).unwrap();
                    assert!(start.elapsed() < LONG, "the deadline was slept through");
                }
                drop(starter.join().unwrap());
            });
        }
    }

    #[test]
    fn a_zero_timeout_only_looks() {
        let _watchdog = watchdog();
        let mut driver = Driver::new(1).unwrap();
        let before = context::set(Some((driver.reactor(), 0)));
        let mut sleep = pin!(time::sleep(LONG));
        assert!(
            sleep
                .as_mut()
                .poll(&mut Context::from_waker(Waker::noop()))
                .is_pending()
        );
        for _ in 0..100 {
            assert_eq!(driver.turn(Some(Duration::ZERO)).unwrap(), 0);
        }
        context::set(before);
    }

    #[test]
    fn findings_outlast_a_wait_without_dispatch() {
        let _watchdog = watchdog();
        let mut driver = Driver::new(1).unwrap();
        let before = context::set(Some((driver.reactor(), 0)));
        let std_listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let addr = std_listener.local_addr().unwrap();
        let listener = crate::net::TcpListener::from_std(std_listener).unwrap();
        let mut accept = pin!(listener.accept());
        let mut cx = Context::from_waker(Waker::noop());
        assert!(accept.as_mut().poll(&mut cx).is_pending());
        let _client = std::net::TcpStream::connect(addr).unwrap();
        driver.wait(Some(LONG)).unwrap();
        driver.wait(None).unwrap();
        assert_eq!(driver.dispatch(), 1);
        assert!(accept.as_mut().poll(&mut cx).is_ready());
        context::set(before);
    }
}
