//! Timers as the driver and several threads see them.

use super::*;

use std::pin::pin;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::task::{Context, Wake};
use std::thread;
use std::time::Duration;

use crate::waiters::wake_all;
use crate::{context, time};

const MS: Duration = Duration::from_millis(1);

#[derive(Default)]
struct Count(AtomicUsize);

/// Starts a timer whenever it is woken or dropped: that hangs if it happens under a shard's lock.
struct Busybody(Reactor);

impl Wake for Count {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Relaxed);
    }
}

impl Wake for Busybody {
    fn wake(self: Arc<Self>) {}
}

impl Drop for Busybody {
    fn drop(&mut self) {
        if let Ok(timer) = Timer::start(
            &self.0,
            0,
            time::Instant::now(),
            time::Instant::now(),
            Waker::noop().clone(),
        ) {
            timer.cancel();
        }
    }
}

/// Aborts the process unless what it returns is dropped in time.
fn watchdog() -> Sender<()> {
    let (alive, gone) = channel();
    thread::spawn(move || {
        if gone.recv_timeout(Duration::from_secs(60)) == Err(RecvTimeoutError::Timeout) {
            eprintln!("a test of the timers hangs");
            std::process::abort();
        }
    });
    alive
}

fn start(reactor: &Reactor, shard: usize, after: Duration, waker: &Waker) -> Timer {
    let deadline = reactor.clock().origin() + after;
    Timer::start(reactor, shard, deadline, deadline, waker.clone()).expect("no shutdown")
}

/// Fires what is due `after` the clock's origin; returns how many that were.
fn fire(reactor: &Reactor, after: Duration) -> usize {
    let mut due = Vec::new();
    let now = reactor.clock().nanos(reactor.clock().origin() + after);
    reactor.timers().collect_due(now, &mut due);
    wake_all(&mut due)
}

fn is_empty(reactor: &Reactor) -> bool {
    let mut shards = reactor.timers().shards.iter();
    shards.all(|shard| shard.lock().as_ref().is_none_or(Wheel::is_empty))
}

#[test]
fn the_earliest_of_all_shards_counts() {
    let reactor = Reactor::detached(3);
    let earliest = || Duration::from_nanos(reactor.timers().earliest());
    assert_eq!(reactor.timers().earliest(), u64::MAX);
    let noop = Waker::noop();
    let far = start(&reactor, 0, 500 * MS, noop);
    assert!(earliest() >= 500 * MS && earliest() < 501 * MS);
    let near = start(&reactor, 1, 200 * MS, noop);
    let later = start(&reactor, 2, 300 * MS, noop);
    assert!(earliest() >= 200 * MS && earliest() < 201 * MS);

    assert!(near.cancel().is_some());
    assert!(earliest() < 201 * MS, "a cancelled timer leaves it");
    assert_eq!(fire(&reactor, 201 * MS), 0);
    assert!(earliest() >= 300 * MS && earliest() < 301 * MS, "corrected");
    assert_eq!(fire(&reactor, 600 * MS), 2);
    assert_eq!(reactor.timers().earliest(), u64::MAX);
    for timer in [far, later] {
        assert_eq!(timer.poll(noop), TimerState::Fired);
        assert!(timer.cancel().is_none());
    }
}

#[test]
fn any_number_names_a_shard() {
    let reactor = Reactor::detached(2);
    let timers: Vec<_> = [0, 1, 2, 7, usize::MAX]
        .map(|shard| start(&reactor, shard, MS, Waker::noop()))
        .into();
    assert_eq!(fire(&reactor, 2 * MS), timers.len());
}

#[test]
fn a_deadline_that_never_comes_wakes_nobody() {
    let reactor = Reactor::detached(1);
    let timer = start(&reactor, 0, Duration::MAX, Waker::noop());
    assert_eq!(reactor.timers().earliest(), u64::MAX);
    assert_eq!(fire(&reactor, Duration::MAX), 0);
    assert_eq!(timer.poll(Waker::noop()), TimerState::Running);
    assert!(timer.cancel().is_some());
}

#[test]
fn the_last_waker_is_woken_and_none_is_kept() {
    let reactor = Reactor::detached(1);
    let counts: [Arc<Count>; 2] = Default::default();
    let [first, second] = counts.clone().map(Waker::from);
    let timer = start(&reactor, 0, MS, &first);
    assert_eq!(timer.poll(&first), TimerState::Running);
    assert_eq!(
        Arc::strong_count(&counts[0]),
        3,
        "itself, ours, the timer's"
    );
    assert_eq!(timer.poll(&second), TimerState::Running);
    assert_eq!(Arc::strong_count(&counts[0]), 2, "replaced");
    assert_eq!(fire(&reactor, 2 * MS), 1);
    assert_eq!(counts.each_ref().map(|count| count.0.load(Relaxed)), [0, 1]);
    assert_eq!(timer.poll(&second), TimerState::Fired);
    drop((first, second));
    assert_eq!(counts.each_ref().map(Arc::strong_count), [1, 1]);
}

#[test]
fn wakers_run_under_no_lock() {
    let _watchdog = watchdog();
    let reactor = Reactor::detached(1);
    let busybody = || Waker::from(Arc::new(Busybody(reactor.clone())));
    let timers = [(); 4].map(|()| {
        let deadline = reactor.clock().origin() + MS;
        Timer::start(&reactor, 0, deadline, deadline, busybody()).expect("no shutdown")
    });
    let [replaced, cancelled, fired, shut_down] = timers;
    assert_eq!(replaced.poll(Waker::noop()), TimerState::Running);
    drop(cancelled.cancel());
    assert_eq!(fire(&reactor, 2 * MS), 3);
    assert_eq!(fired.poll(&busybody()), TimerState::Fired);
    assert_eq!(shut_down.poll(&busybody()), TimerState::Fired);

    let late = Timer::start(
        &reactor,
        0,
        time::Instant::now(),
        time::Instant::now() + MS,
        busybody(),
    );
    assert!(late.is_ok());
    reactor.shutdown();
    let refused = Timer::start(
        &reactor,
        0,
        time::Instant::now(),
        time::Instant::now(),
        busybody(),
    );
    assert!(refused.is_err());
}

#[test]
fn a_dropped_sleep_leaves_nothing_behind() {
    let reactor = Reactor::detached(2);
    let before = context::set(Some((reactor.clone(), 1)));
    let count = Arc::<Count>::default();
    let waker = Waker::from(Arc::clone(&count));
    let mut cx = Context::from_waker(&waker);
    for delay in [MS, Duration::from_secs(3600), Duration::MAX] {
        let unpolled = time::sleep(delay);
        assert!(is_empty(&reactor), "it starts with its first poll");
        drop(unpolled);
        {
            let mut polled = pin!(time::sleep(delay));
            assert!(polled.as_mut().poll(&mut cx).is_pending());
            assert!(!is_empty(&reactor));
            polled.as_mut().reset(time::Instant::now() + delay);
            assert!(!is_empty(&reactor));
        }
        assert!(is_empty(&reactor));
        let mut limited = Box::pin(time::timeout(delay, std::future::pending::<()>()));
        assert!(is_empty(&reactor));
        assert!(limited.as_mut().poll(&mut cx).is_pending());
        assert!(!is_empty(&reactor));
        drop(limited);
        assert!(is_empty(&reactor));
    }
    drop(waker);
    assert_eq!(Arc::strong_count(&count), 1);
    context::set(before);
}

/// Timers are started and cancelled while others are fired: the race that "Firing" describes.
#[test]
fn no_timer_is_missed_by_a_driver_that_fires_meanwhile() {
    const THREADS: usize = 3;
    const TIMERS: usize = 3000;
    let _watchdog = watchdog();
    let reactor = Reactor::detached(2);
    let running = AtomicUsize::new(THREADS);
    let starter = |seed: usize| {
        let count = Arc::<Count>::default();
        let waker = Waker::from(Arc::clone(&count));
        let mut kept = 0;
        for round in 0..TIMERS {
            let delay = Duration::from_micros(((round * 61 + seed) % 300) as u64);
            let deadline = reactor.clock().now() + delay;
            let timer = Timer::start(&reactor, seed, deadline, deadline, waker.clone()).unwrap();
            if round % 3 != 0 || timer.cancel().is_none() {
                kept += 1;
            }
        }
        while count.0.load(Relaxed) < kept {
            thread::yield_now();
        }
        running.fetch_sub(1, Relaxed);
        assert_eq!(count.0.load(Relaxed), kept, "fired once each");
    };
    thread::scope(|scope| {
        for seed in 0..THREADS {
            scope.spawn(move || starter(seed));
        }
        let mut due = Vec::new();
        while running.load(Relaxed) > 0 {
            // As the driver does: only `earliest` tells it that there is something to fire.
            let now = reactor.clock().nanos(reactor.clock().now());
            if reactor.timers().earliest() <= now {
                reactor.timers().collect_due(now, &mut due);
                wake_all(&mut due);
            }
            thread::yield_now();
        }
    });
    assert!(is_empty(&reactor));
}

/// Case R26c (tokio#2789): shutting down between anything that can happen to a timer.
#[test]
fn shutdown_meets_timers_in_any_state() {
    let _watchdog = watchdog();
    for round in 0..100 {
        let reactor = Reactor::detached(4);
        thread::scope(|scope| {
            for shard in 0..4 {
                let reactor = reactor.clone();
                scope.spawn(move || {
                    let count = Arc::<Count>::default();
                    let waker = Waker::from(Arc::clone(&count));
                    let mut timers = Vec::new();
                    for micros in 0.. {
                        let deadline = reactor.clock().now() + Duration::from_micros(micros % 200);
                        match Timer::start(&reactor, shard, deadline, deadline, waker.clone()) {
                            Ok(timer) => timers.push(timer),
                            Err(_) => break,
                        }
                        if timers.len() > 100 {
                            timers.swap_remove(micros as usize % 100).cancel();
                        }
                    }
                    for timer in timers {
                        assert_eq!(timer.poll(&waker), TimerState::ShutDown);
                        assert!(timer.cancel().is_none());
                    }
                });
            }
            let mut due = Vec::new();
            for _ in 0..round % 10 {
                let now = reactor.clock().nanos(reactor.clock().now());
                reactor.timers().collect_due(now, &mut due);
                wake_all(&mut due);
                thread::sleep(Duration::from_micros(round));
            }
            reactor.shutdown();
        });
        assert!(is_empty(&reactor));
    }
}

/// Prints what a timer costs that is cancelled, as most are:
/// `cargo test --release -p reactor --lib -- --ignored --nocapture cost`
#[test]
#[ignore = "measures, asserts nothing"]
fn cost_of_starting_and_cancelling() {
    const ROUNDS: u32 = 2_000_000;
    let reactor = Reactor::detached(2);
    let before = context::set(Some((reactor.clone(), 0)));
    let noop = Waker::noop();
    let measure = |what: &str, operation: &mut dyn FnMut()| {
        let best = (0..5).map(|_| {
            let start = std::time::Instant::now();
            for _ in 0..ROUNDS {
                operation();
            }
            start.elapsed() / ROUNDS
        });
        println!("{what}: {:?}", best.min().expect("five runs"));
    };
    let deadline = reactor.clock().now() + Duration::from_secs(60);
    measure("start and cancel", &mut || {
        let timer = Timer::start(&reactor, 0, deadline, deadline, noop.clone());
        drop(timer.map(Timer::cancel));
    });
    let mut wheel = Wheel::new();
    measure("of these in the wheel", &mut || {
        let (key, _) = wheel.insert(1 << 36, noop.clone());
        wheel.remove(key);
    });
    measure("reading the clock", &mut || {
        std::hint::black_box(reactor.clock().now());
    });
    let mut cx = Context::from_waker(noop);
    measure("sleep: create, poll, drop", &mut || {
        let polled = pin!(time::sleep(Duration::from_secs(60))).poll(&mut cx);
        assert!(polled.is_pending());
    });
    measure("sleep: create, drop", &mut || {
        drop(std::hint::black_box(time::sleep(Duration::from_secs(60))));
    });
    measure("timeout: ready at once", &mut || {
        let ready = std::hint::black_box(std::future::ready(()));
        let polled = pin!(time::timeout(Duration::from_secs(60), ready)).poll(&mut cx);
        assert!(polled.is_ready());
    });
    context::set(before);
}

#[test]
fn far_timers_share_moments_and_near_ones_keep_theirs() {
    const MILLI: u64 = 1_000_000;
    for now in [0, 12_345, 987_654_321, u64::MAX / 3] {
        for ahead in
            (0..64).flat_map(|bits| [0, 1, 77].map(|more| (1u64 << bits).saturating_add(more)))
        {
            let deadline = now.saturating_add(ahead);
            let moment = coalesced(now, deadline);
            assert!(moment >= deadline, "never early");
            let late = moment - deadline;
            assert!(
                late <= ahead / 16 && late < MILLI || moment == u64::MAX,
                "{ahead} ahead, {late} late"
            );
        }
        assert_eq!(coalesced(now, now), now);
        let moments: std::collections::HashSet<_> = (0..1000)
            .map(|n| coalesced(now, now + 100 * MILLI + n * 10_000))
            .collect();
        assert!(
            moments.len() <= 21,
            "10 ms of timers wake {} times",
            moments.len()
        );
    }
}
