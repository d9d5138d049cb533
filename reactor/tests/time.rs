//! Sleeps, time limits and intervals, with a driver that the test turns by hand.

mod support;

use std::future::{pending, poll_fn, ready};
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::task::{Context, Poll, Waker};
use std::thread;

use futures::executor::block_on;
use futures::future::{join, join_all};
use reactor::time::{
    Duration, Instant, Interval, MissedTickBehavior, Sleep, Timeout, error::Elapsed, interval,
    interval_at, sleep, sleep_until, timeout, timeout_at,
};
use reactor::{Driver, budget, context};
use support::World;

const MS: Duration = Duration::from_millis(1);
/// Longer than any test takes.
const HOUR: Duration = Duration::from_secs(3600);
const POLICIES: [MissedTickBehavior; 3] = [
    MissedTickBehavior::Burst,
    MissedTickBehavior::Delay,
    MissedTickBehavior::Skip,
];

fn poll_once<F: Future + Unpin>(future: &mut F, waker: &Waker) -> Poll<F::Output> {
    Pin::new(future).poll(&mut Context::from_waker(waker))
}

fn is_ready<F: Future + Unpin>(future: &mut F) -> bool {
    poll_once(future, Waker::noop()).is_ready()
}

fn tick_is_ready(interval: &mut Interval) -> bool {
    let mut cx = Context::from_waker(Waker::noop());
    interval.poll_tick(&mut cx).is_ready()
}

/// What a panic said.
fn panic_of<T>(f: impl FnOnce() -> T) -> String {
    let Err(payload) = catch_unwind(AssertUnwindSafe(f)) else {
        panic!("it did not panic");
    };
    match payload.downcast::<String>() {
        Ok(said) => *said,
        Err(payload) => payload.downcast_ref::<&str>().unwrap().to_string(),
    }
}

#[test]
fn futures_of_time_go_anywhere() {
    fn assert_goes_anywhere<T: Send + Sync + Unpin + 'static>() {}
    assert_goes_anywhere::<Sleep>();
    assert_goes_anywhere::<Interval>();
    assert_goes_anywhere::<Timeout<std::future::Ready<()>>>();
}

#[test]
fn no_sleep_is_early_and_all_end_in_order() {
    let mut world = World::new();
    let start = Instant::now();
    let order = std::cell::RefCell::new(Vec::new());
    world.drive(join_all((0..500_u64).map(|number| {
        let after = Duration::from_micros(number * 7919 % 60_000);
        let order = &order;
        async move {
            let deadline = start + after;
            let mut sleep = sleep_until(deadline);
            let waits = poll_fn(|cx| Poll::Ready(Pin::new(&mut sleep).poll(cx).is_pending())).await;
            sleep.await;
            assert!(Instant::now() >= deadline, "early");
            if waits {
                order.borrow_mut().push(after);
            }
        }
    })));
    // Who is woken first is polled first here. Timers that share a moment, a tick or what is coalesced
    // for their distance, fire in the order of their start.
    let order = order.into_inner();
    let shared =
        |after: Duration| Duration::from_micros(66) + (after / 16).min(Duration::from_micros(525));
    assert!(order.is_sorted_by(|first, second| *first <= *second + shared(*first)));
}

#[test]
fn a_deadline_that_has_passed_is_ready_at_once() {
    let _world = World::new();
    let start = Instant::now();
    assert!(is_ready(&mut sleep(Duration::ZERO)));
    assert!(is_ready(&mut sleep_until(start)));
    assert!(is_ready(&mut sleep_until(start - HOUR)));
    let mut short = sleep(MS);
    thread::sleep(2 * MS);
    assert!(is_ready(&mut short), "time counts before the first poll");
    assert!(is_ready(&mut short), "and it stays ready");
    assert!(short.is_elapsed());
    let long = sleep(HOUR);
    assert!(!long.is_elapsed());
    assert!(long.deadline() >= start + HOUR);
}

#[test]
fn sleeps_that_need_not_wait_use_up_the_budget() {
    let _world = World::new();
    budget::with_budget(|| {
        let ready = (0..1000)
            .filter(|_| is_ready(&mut sleep(Duration::ZERO)))
            .count();
        assert_eq!(ready, 128);
        // Waiting, on the other hand, is what the budget is there for.
        assert!(!is_ready(&mut sleep(HOUR)));
    });
    budget::with_budget(|| {
        assert!((0..1000).all(|_| !is_ready(&mut sleep(HOUR))));
        assert!(budget::has_remaining());
    });
}

#[test]
fn the_waker_of_the_last_poll_is_woken() {
    let mut world = World::new();
    let [first, second] = [world.waker(), world.waker()];
    let mut sleep = sleep(5 * MS);
    for waker in [&first, &first, &second] {
        assert!(poll_once(&mut sleep, &Waker::from(Arc::clone(waker))).is_pending());
    }
    assert_eq!(Arc::strong_count(&first), 1, "no longer kept");
    while second.count() == 0 {
        world.driver.turn(None).unwrap();
    }
    assert_eq!((first.count(), second.count()), (0, 1));
    assert_eq!(Arc::strong_count(&second), 1);
    assert!(is_ready(&mut sleep));
}

#[test]
fn a_dropped_sleep_wakes_nobody() {
    let mut world = World::new();
    let counter = world.waker();
    let mut dropped = sleep(2 * MS);
    assert!(poll_once(&mut dropped, &Waker::from(Arc::clone(&counter))).is_pending());
    drop(dropped);
    assert_eq!(Arc::strong_count(&counter), 1, "its waker went with it");
    world.drive(sleep(10 * MS));
    assert_eq!(counter.count(), 0);
}

#[test]
fn a_reset_wakes_at_the_new_deadline_without_another_poll() {
    let mut world = World::new();
    // Earlier, later, and again after it had completed.
    for (first, second) in [(HOUR, 5 * MS), (5 * MS, 20 * MS), (Duration::ZERO, 5 * MS)] {
        let counter = world.waker();
        let waker = Waker::from(Arc::clone(&counter));
        let mut sleep = sleep(first);
        let waits = poll_once(&mut sleep, &waker).is_pending();
        assert_eq!(waits, !first.is_zero());
        let deadline = Instant::now() + second;
        Pin::new(&mut sleep).reset(deadline);
        assert_eq!(sleep.deadline(), deadline);
        if !waits {
            assert!(poll_once(&mut sleep, &waker).is_pending());
        }
        while counter.count() == 0 {
            world.driver.turn(None).unwrap();
        }
        assert!(Instant::now() >= deadline, "woken early");
        assert!(poll_once(&mut sleep, &waker).is_ready());
        world.settle();
        assert_eq!(counter.count(), 1, "the old deadline is forgotten");
    }
}

#[test]
fn a_reset_between_firing_and_polling_counts() {
    let mut world = World::new();
    let counter = world.waker();
    let waker = Waker::from(Arc::clone(&counter));
    let mut sleep = sleep(MS);
    assert!(poll_once(&mut sleep, &waker).is_pending());
    while counter.count() == 0 {
        world.driver.turn(None).unwrap();
    }
    Pin::new(&mut sleep).reset(Instant::now() + HOUR);
    assert!(poll_once(&mut sleep, &waker).is_pending());
}

#[test]
fn a_reset_away_from_the_runtime_wakes_so_that_it_can_start_again() {
    let world = World::new();
    let counter = world.waker();
    let waker = Waker::from(Arc::clone(&counter));
    let mut sleep = sleep(HOUR);
    assert!(poll_once(&mut sleep, &waker).is_pending());
    thread::scope(|scope| {
        scope.spawn(|| Pin::new(&mut sleep).reset(Instant::now() + HOUR));
    });
    assert_eq!(counter.count(), 1);
    assert!(poll_once(&mut sleep, &waker).is_pending());
    assert_eq!(counter.count(), 1);
}

#[test]
fn without_a_runtime_only_waiting_panics() {
    assert!(context::with(|current| current.is_none()));
    for said in [
        panic_of(|| is_ready(&mut sleep(HOUR))),
        panic_of(|| is_ready(&mut sleep(Duration::ZERO))),
        panic_of(|| is_ready(&mut timeout(HOUR, pending::<()>()))),
        panic_of(|| tick_is_ready(&mut interval(HOUR))),
    ] {
        assert!(said.contains(context::NO_RUNTIME), "{said}");
    }
    assert_eq!(block_on(timeout(HOUR, ready(42))), Ok(42));
    assert_eq!(block_on(timeout_at(Instant::now(), ready(42))), Ok(42));
    drop(sleep(HOUR));
}

#[test]
fn after_shutdown_a_sleep_goes_on_with_another_runtime() {
    let mut world = World::new();
    let counter = world.waker();
    let waker = Waker::from(Arc::clone(&counter));
    let mut moves = sleep(5 * MS);
    let mut stays = sleep(HOUR);
    assert!(poll_once(&mut moves, &waker).is_pending());
    assert!(poll_once(&mut stays, &waker).is_pending());
    world.driver.reactor().shutdown();
    assert_eq!(counter.count(), 2, "both are woken");
    drop(waker);
    assert_eq!(Arc::strong_count(&counter), 1);
    let said = panic_of(|| is_ready(&mut stays));
    assert!(said.contains("shut down"), "{said}");
    let said = panic_of(|| is_ready(&mut sleep(HOUR)));
    assert!(said.contains("shut down"), "{said}");

    world.driver = Driver::new(1).unwrap();
    context::set(Some((world.driver.reactor(), 0)));
    let deadline = moves.deadline();
    world.drive(&mut moves);
    assert!(Instant::now() >= deadline);
    assert!(!is_ready(&mut stays));
}

#[test]
fn a_limit_counts_from_the_first_poll_that_waits() {
    let mut world = World::new();
    let mut limited = timeout(20 * MS, pending::<()>());
    thread::sleep(30 * MS);
    let start = Instant::now();
    assert!(!is_ready(&mut limited), "unpolled, its time did not pass");
    assert!(world.drive(limited).is_err());
    assert!(start.elapsed() >= 20 * MS);
}

#[test]
fn the_output_comes_before_the_limit() {
    let mut world = World::new();
    assert_eq!(world.drive(timeout(Duration::ZERO, ready(1))), Ok(1));
    let past = Instant::now() - HOUR;
    assert_eq!(world.drive(timeout_at(past, ready(2))), Ok(2));
    assert_eq!(
        world.drive(timeout(HOUR, async {
            sleep(MS).await;
            3
        })),
        Ok(3)
    );
    let mut polls = 0;
    let counting = poll_fn(|_| {
        polls += 1;
        Poll::<()>::Pending
    });
    assert!(world.drive(timeout(Duration::ZERO, counting)).is_err());
    assert_eq!(polls, 1);
    let both = timeout(2 * MS, sleep(HOUR));
    let (output, late) = world.drive(join(both, timeout_at(past, pending::<()>())));
    assert!(output.is_err() && late.is_err());
}

#[test]
fn a_limited_future_can_be_reached() {
    let mut limited = timeout(HOUR, ready(1));
    *limited.get_mut() = ready(2);
    assert_eq!(block_on(limited.get_ref().clone()), 2);
    assert_eq!(block_on(limited.into_inner()), 2);
}

#[test]
fn elapsed_is_an_io_error_too() {
    let mut world = World::new();
    let elapsed: Elapsed = world
        .drive(timeout(Duration::ZERO, pending::<()>()))
        .unwrap_err();
    let said = elapsed.to_string();
    let error = io::Error::from(elapsed);
    assert_eq!(error.kind(), io::ErrorKind::TimedOut);
    assert_eq!(error.to_string(), said);
}

/// Case R30c (tokio#4291, tokio#4314).
#[test]
fn a_limit_holds_for_a_future_that_burns_its_budget() {
    let mut world = World::new();
    let start = Instant::now();
    let mut limited = pin!(timeout(20 * MS, async {
        loop {
            budget::consume_budget().await;
        }
    }));
    let mut cx = Context::from_waker(Waker::noop());
    let mut polls = 0_u64;
    loop {
        let polled = budget::with_budget(|| limited.as_mut().poll(&mut cx));
        polls += 1;
        if let Poll::Ready(result) = polled {
            assert!(result.is_err());
            break;
        }
        world.driver.turn(Some(Duration::ZERO)).unwrap();
    }
    assert!(polls > 1 && start.elapsed() >= 20 * MS);
}

/// The same where the deadline has passed before the limit is looked at.
#[test]
fn a_limit_that_has_passed_holds_for_a_future_that_burns_its_budget() {
    let _world = World::new();
    let busy = || async {
        loop {
            budget::consume_budget().await;
        }
    };
    let mut limits: [Pin<Box<dyn Future<Output = bool>>>; 2] = [
        Box::pin(async { timeout(Duration::ZERO, busy()).await.is_err() }),
        Box::pin(async { timeout_at(Instant::now(), busy()).await.is_err() }),
    ];
    let mut cx = Context::from_waker(Waker::noop());
    for limited in &mut limits {
        let ends = (0..100)
            .map(|_| budget::with_budget(|| limited.as_mut().poll(&mut cx)))
            .find(Poll::is_ready);
        assert_eq!(ends, Some(Poll::Ready(true)), "it went on for ever");
    }
}

#[test]
fn an_interval_ticks_at_once_and_then_every_period() {
    let mut world = World::new();
    let start = Instant::now();
    let mut ticks = interval(5 * MS);
    assert_eq!(ticks.period(), 5 * MS);
    world.drive(async {
        let first = ticks.tick().await;
        assert!(first >= start && start.elapsed() < HOUR);
        for number in 1..6 {
            assert_eq!(ticks.tick().await, first + 5 * MS * number);
            assert!(Instant::now() >= first + 5 * MS * number);
        }
        let begin = Instant::now() + 10 * MS;
        assert_eq!(interval_at(begin, HOUR).tick().await, begin);
        assert!(Instant::now() >= begin);
    });
}

#[test]
fn missed_ticks_follow_the_policy() {
    let mut world = World::new();
    let period = 100 * MS;
    for policy in POLICIES {
        // Two and a half periods ago, so that this one is late and two are missed.
        let begin = Instant::now() - period * 5 / 2;
        let mut ticks = interval_at(begin, period);
        ticks.set_missed_tick_behavior(policy);
        assert_eq!(ticks.missed_tick_behavior(), policy);
        world.drive(async {
            assert_eq!(ticks.tick().await, begin);
            let second = ticks.tick().await;
            let came = Instant::now();
            match policy {
                MissedTickBehavior::Burst => {
                    assert_eq!(second, begin + period);
                    assert_eq!(ticks.tick().await, begin + period * 2);
                    assert_eq!(ticks.tick().await, begin + period * 3);
                }
                MissedTickBehavior::Delay => assert!(second >= begin + period * 7 / 2),
                MissedTickBehavior::Skip => {
                    let periods = (second - begin).as_nanos() / period.as_nanos();
                    assert!(periods >= 3);
                    assert_eq!(second, begin + period * periods as u32);
                }
            }
            assert!(came >= second, "{policy:?} is early");
        });
    }
}

#[test]
fn an_interval_can_be_moved() {
    let mut world = World::new();
    let mut ticks = interval(HOUR);
    assert!(tick_is_ready(&mut ticks));
    assert!(!tick_is_ready(&mut ticks));
    ticks.reset_immediately();
    let at = world.drive(ticks.tick());
    assert!(!tick_is_ready(&mut ticks));
    ticks.reset_after(3 * MS);
    assert!(world.drive(ticks.tick()) >= at + 3 * MS);
    let deadline = Instant::now() + 3 * MS;
    ticks.reset_at(deadline);
    assert_eq!(world.drive(ticks.tick()), deadline);
    ticks.reset();
    assert!(!tick_is_ready(&mut ticks));

    // A tick that is given up is not lost.
    let deadline = Instant::now() + 3 * MS;
    ticks.reset_at(deadline);
    let mut given_up = Box::pin(ticks.tick());
    assert!(!is_ready(&mut given_up));
    drop(given_up);
    assert_eq!(world.drive(ticks.tick()), deadline);
}

/// Case R29 (tokio#5183, tokio#6634, tokio#8384).
#[test]
fn no_duration_is_too_short_or_too_long() {
    let mut world = World::new();
    let now = Instant::now();
    for duration in [
        Duration::ZERO,
        Duration::from_nanos(1),
        Duration::from_secs(u64::MAX / 10),
        Duration::MAX,
    ] {
        let ends = duration < MS;
        let drive = |world: &mut World, sleep: &mut Sleep| match ends {
            true => world.drive(sleep),
            false => {
                assert!(!is_ready(sleep));
                world.driver.turn(Some(Duration::ZERO)).unwrap();
                assert!(!is_ready(sleep));
            }
        };
        drive(&mut world, &mut sleep(duration));
        drive(&mut world, &mut sleep_until(now + duration));
        let mut moved = sleep(HOUR);
        assert!(!is_ready(&mut moved));
        for _ in 0..2 {
            Pin::new(&mut moved).reset(Instant::now() + duration);
            drive(&mut world, &mut moved);
        }
        let mut limited = timeout(duration, pending::<()>());
        let mut limited_at = timeout_at(Instant::now() + duration, pending::<()>());
        if ends {
            assert!(world.drive(&mut limited).is_err());
            assert!(world.drive(&mut limited_at).is_err());
        } else {
            assert!(!is_ready(&mut limited) && !is_ready(&mut limited_at));
        }
        for policy in POLICIES {
            let period = duration.max(Duration::from_nanos(1));
            let mut ticks = interval(period);
            ticks.set_missed_tick_behavior(policy);
            assert!(tick_is_ready(&mut ticks), "the first is due at once");
            for reset in [
                |_: &mut Interval, _| {},
                |ticks: &mut Interval, _| ticks.reset(),
                Interval::reset_after,
                |ticks: &mut Interval, duration| ticks.reset_at(Instant::now() + duration),
            ] {
                reset(&mut ticks, duration);
                if ends {
                    world.drive(ticks.tick());
                } else {
                    assert!(!tick_is_ready(&mut ticks), "{policy:?} {duration:?}");
                }
            }
            let mut late = interval_at(now - HOUR, period);
            late.set_missed_tick_behavior(policy);
            assert!(tick_is_ready(&mut late));
            // Of ticks that are so close the next one may be due already, in a burst it is.
            match (ends, policy) {
                (true, MissedTickBehavior::Burst) => assert!(tick_is_ready(&mut late)),
                (true, _) => {}
                (false, _) => assert!(!tick_is_ready(&mut late)),
            }
        }
    }
}

/// Case R1 (tokio#3190): short timers of several threads under a poller that waits for long ones.
#[test]
fn a_waiting_poller_notices_each_new_timer() {
    let mut world = World::new();
    let reactor = world.driver.reactor();
    let mut background = sleep(HOUR);
    assert!(!is_ready(&mut background));
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        let sleepers: Vec<_> = (0..3)
            .map(|shard| {
                let reactor = reactor.clone();
                scope.spawn(move || {
                    context::set(Some((reactor, shard)));
                    let mut longest = Duration::ZERO;
                    for _ in 0..300 {
                        let start = Instant::now();
                        block_on(sleep(MS));
                        assert!(start.elapsed() >= MS, "early");
                        longest = longest.max(start.elapsed());
                    }
                    longest
                })
            })
            .collect();
        let stopper = scope.spawn(|| {
            let longest = sleepers.into_iter().map(|sleeper| sleeper.join().unwrap());
            let longest = longest.max();
            stop.store(true, SeqCst);
            reactor.wake();
            longest.unwrap()
        });
        while !stop.load(SeqCst) {
            world.driver.turn(None).unwrap();
        }
        // A timer that is slept through lasts an hour; the rest is the machine's.
        assert!(stopper.join().unwrap() < Duration::from_secs(5));
    });
}
