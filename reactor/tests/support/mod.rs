//! Drives a reactor by hand on the test's own thread.
#![allow(dead_code, unreachable_pub, reason = "each test file uses its part")]

use std::pin::pin;
use std::process::abort;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::task::{Context, Poll, Wake, Waker};
use std::thread;
use std::time::Duration;

use reactor::net::{TcpListener, TcpStream};
use reactor::{Driver, Reactor, context};

/// A driver that this thread's sockets and timers use until it is dropped. The process is aborted
/// should the test take longer than any test may.
pub struct World {
    pub driver: Driver,
    _watchdog: Sender<()>,
}

/// Counts how often it is woken, and makes the driver look.
pub struct CountingWaker {
    reactor: Reactor,
    woken: AtomicBool,
    pub count: AtomicUsize,
}

impl World {
    pub fn new() -> World {
        let driver = Driver::new(1).expect("a driver");
        context::set(Some((driver.reactor(), 0)));
        World {
            driver,
            _watchdog: watchdog(),
        }
    }

    pub fn waker(&self) -> Arc<CountingWaker> {
        let (woken, count) = Default::default();
        Arc::new(CountingWaker {
            reactor: self.driver.reactor(),
            woken,
            count,
        })
    }

    /// Runs `future` to its end.
    pub fn drive<F: Future>(&mut self, future: F) -> F::Output {
        let mut future = pin!(future);
        let flag = self.waker();
        let waker = Waker::from(Arc::clone(&flag));
        loop {
            if let Poll::Ready(output) = future.as_mut().poll(&mut Context::from_waker(&waker)) {
                return output;
            }
            while !flag.woken.swap(false, SeqCst) {
                self.driver.turn(None).expect("a turn");
            }
        }
    }

    /// A connection over loopback: the end that connected, and the end that accepted.
    pub fn connection(&mut self) -> (TcpStream, TcpStream) {
        self.drive(async {
            let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
            let addr = listener.local_addr().unwrap();
            let (connected, accepted) = futures::join!(TcpStream::connect(addr), listener.accept());
            (connected.unwrap(), accepted.unwrap().0)
        })
    }

    /// Turns, without waiting long, until nothing more comes for a moment.
    pub fn settle(&mut self) {
        for _ in 0..5 {
            self.driver
                .turn(Some(Duration::from_millis(10)))
                .expect("a turn");
        }
    }
}

impl Drop for World {
    fn drop(&mut self) {
        context::set(None);
    }
}

impl CountingWaker {
    pub fn count(&self) -> usize {
        self.count.load(SeqCst)
    }
}

impl Wake for CountingWaker {
    fn wake(self: Arc<Self>) {
        self.count.fetch_add(1, SeqCst);
        self.woken.store(true, SeqCst);
        self.reactor.wake();
    }
}

/// Aborts the process unless what it returns is dropped in time.
fn watchdog() -> Sender<()> {
    let test = thread::current().name().unwrap_or("a test").to_owned();
    let (alive, gone) = channel();
    thread::spawn(move || {
        if gone.recv_timeout(Duration::from_secs(60)) == Err(RecvTimeoutError::Timeout) {
            eprintln!("{test} hangs");
            abort();
        }
    });
    alive
}
