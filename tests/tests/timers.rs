//! Sleeping, time limits and intervals through the runtime, extreme durations included.

use std::future::{pending, ready};
use std::pin::pin;
use std::task::Poll;
use std::time::Duration;

use futures::future::{join_all, select};
use runtime::time::{
    self, Instant, MissedTickBehavior, error::Elapsed, interval, interval_at, sleep, sleep_until,
    timeout, timeout_at,
};
use tests::{Shape, every_shape, ready_now, rounds, watchdog};

const MS: Duration = Duration::from_millis(1);

/// Room for a slow machine: later than this is wrong.
const LATE: Duration = Duration::from_secs(10);

const BEHAVIORS: [MissedTickBehavior; 3] = [
    MissedTickBehavior::Burst,
    MissedTickBehavior::Delay,
    MissedTickBehavior::Skip,
];

fn in_every_shape<F: Future<Output = ()>>(name: &str, test: impl Fn(Shape) -> F) {
    let dog = watchdog(100, name);
    for shape in every_shape() {
        dog.step(format!("{shape:?}"));
        let rt = shape.build();
        dog.watch(rt.handle());
        rt.block_on(test(shape));
    }
}

/// Durations that never come to an end within a test.
fn endless() -> [Duration; 3] {
    let tenth = Duration::from_secs(u64::MAX / 10);
    [tenth, Duration::MAX, Duration::from_secs(u64::MAX)]
}

#[test]
fn a_sleep_is_never_early_and_not_much_late() {
    in_every_shape("a_sleep_is_never_early", |_| async {
        for wait in [
            Duration::ZERO,
            Duration::from_nanos(1),
            MS / 10,
            MS,
            7 * MS,
            40 * MS,
        ] {
            let start = std::time::Instant::now();
            sleep(wait).await;
            assert!((wait..wait + LATE).contains(&start.elapsed()), "{wait:?}");
        }
        let deadline = Instant::now() + 3 * MS;
        sleep_until(deadline).await;
        assert!(Instant::now() >= deadline);
        // A moment that has passed.
        sleep_until(deadline).await;
    });
}

#[test]
fn many_timers_fire_each_at_its_time() {
    in_every_shape("many_timers_fire_each_at_its_time", |_| async {
        let timers = (0..1000_u32).map(|n| {
            runtime::spawn(async move {
                let (start, wait) = (Instant::now(), MS / 4 * (n % 97));
                sleep(wait).await;
                assert!(start.elapsed() >= wait);
                // Most timers are cancelled.
                drop(timeout(LATE, ready(())).await);
                let mut cancelled = Box::pin(sleep(LATE));
                assert!(ready_now(cancelled.as_mut()).is_pending());
            })
        });
        for timer in join_all(timers.collect::<Vec<_>>()).await {
            timer.unwrap();
        }
    });
}

#[test]
fn the_earlier_of_two_wins() {
    in_every_shape("the_earlier_of_two_wins", |_| async {
        for _ in 0..rounds(5) {
            let start = Instant::now();
            select(sleep(100 * LATE), sleep(2 * MS)).await;
            assert!(start.elapsed() < LATE);
        }
    });
}

#[test]
fn a_timer_set_from_another_thread_wakes_the_one_that_waits() {
    let dog = watchdog(60, "a_timer_set_from_another_thread");
    for shape in every_shape().filter(|shape| shape.background) {
        let rt = shape.build();
        dog.watch(rt.handle());
        for _ in 0..20 {
            // The workers sleep by now, without a deadline.
            std::thread::sleep(MS);
            let _guard = rt.enter();
            futures::executor::block_on(sleep(2 * MS));
        }
    }
}

#[test]
fn a_sleep_can_be_moved() {
    in_every_shape("a_sleep_can_be_moved", |_| async {
        let start = Instant::now();
        let mut moved = pin!(sleep(100 * LATE));
        assert!(ready_now(moved.as_mut()).is_pending());
        moved.as_mut().reset(start + 3 * MS);
        moved.as_mut().await;
        assert!(start.elapsed() >= 3 * MS && moved.is_elapsed());
        assert_eq!(moved.deadline(), start + 3 * MS);

        let later = Instant::now() + 10 * MS;
        moved.as_mut().reset(Instant::now() + MS);
        assert!(ready_now(moved.as_mut()).is_pending());
        moved.as_mut().reset(later);
        moved.as_mut().await;
        assert!(Instant::now() >= later);
    });
}

#[test]
fn a_timeout_gives_the_output_or_the_error() {
    in_every_shape("a_timeout_gives_the_output_or_the_error", |_| async {
        assert_eq!(timeout(LATE, ready(1)).await, Ok(1));
        assert_eq!(
            timeout(Duration::ZERO, ready(1)).await,
            Ok(1),
            "the future comes first"
        );
        let start = Instant::now();
        let elapsed: Elapsed = timeout(5 * MS, pending::<()>()).await.unwrap_err();
        assert!((5 * MS..LATE).contains(&start.elapsed()));
        let error = std::io::Error::from(elapsed);
        assert_eq!(error.kind(), std::io::ErrorKind::TimedOut);
        let deadline = Instant::now() + 2 * MS;
        assert!(timeout_at(deadline, pending::<()>()).await.is_err());
        assert!(Instant::now() >= deadline);
        let in_time = timeout(LATE, async {
            sleep(MS).await;
            runtime::spawn(async { 2 }).await.unwrap()
        });
        assert_eq!(in_time.await, Ok(2));
    });
}

#[test]
fn an_interval_ticks_at_once_and_then_regularly() {
    in_every_shape("an_interval_ticks_at_once", |_| async {
        let start = Instant::now();
        let mut ticks = interval(4 * MS);
        assert!(ready_now(pin!(ticks.tick())).is_ready());
        for n in 1..=5 {
            ticks.tick().await;
            assert!(start.elapsed() >= n * 4 * MS);
        }
        assert!(start.elapsed() < LATE);
        let first = Instant::now() + 5 * MS;
        let mut ticks = interval_at(first, MS);
        assert_eq!(ticks.tick().await, first);
        assert!(Instant::now() >= first);
    });
}

#[test]
fn missed_ticks_are_caught_up_moved_or_skipped() {
    in_every_shape("missed_ticks", |_| async {
        // Periods so long that a slow machine does not miss ticks of its own.
        let period = 200 * MS;
        for behavior in BEHAVIORS {
            let begin = Instant::now() - 2 * period - period / 2;
            let mut ticks = interval_at(begin, period);
            ticks.set_missed_tick_behavior(behavior);
            assert_eq!(ticks.missed_tick_behavior(), behavior);
            assert_eq!(ready_now(pin!(ticks.tick())), Poll::Ready(begin));
            let mut caught_up = 0;
            while ready_now(pin!(ticks.tick())).is_ready() {
                caught_up += 1;
            }
            let expected = if behavior == MissedTickBehavior::Burst {
                2
            } else {
                0
            };
            assert_eq!(caught_up, expected, "{behavior:?}");
            if behavior == MissedTickBehavior::Skip {
                // It keeps the rhythm.
                assert_eq!(ticks.tick().await, begin + 3 * period);
            }
        }
    });
}

// tokio#5183, tokio#6634, tokio#8384
#[test]
fn extreme_durations_neither_panic_nor_fire() {
    in_every_shape("extreme_durations", |_| async {
        for wait in endless() {
            let never = async {
                assert!(timeout(3 * MS, sleep(wait)).await.is_err());
                let limited = timeout(wait, sleep(MS));
                assert!(limited.await.is_ok());
                let mut limited = pin!(timeout(wait, pending::<()>()));
                assert!(ready_now(limited.as_mut()).is_pending());

                let mut moved = pin!(sleep(MS));
                assert!(ready_now(moved.as_mut()).is_pending());
                moved.as_mut().reset(Instant::now() + wait);
                sleep(2 * MS).await;
                assert!(ready_now(moved.as_mut()).is_pending());
                moved.as_mut().reset(Instant::now());
                moved.await;
            };
            never.await;
            for behavior in BEHAVIORS {
                let mut ticks = interval(wait);
                ticks.set_missed_tick_behavior(behavior);
                ticks.tick().await;
                assert!(
                    ready_now(pin!(ticks.tick())).is_pending(),
                    "{behavior:?} {wait:?}"
                );
                ticks.reset();
                ticks.reset_after(wait);
                ticks.reset_at(Instant::now() + wait);
                assert!(ready_now(pin!(ticks.tick())).is_pending());
                ticks.reset_immediately();
                ticks.tick().await;
            }
        }
    });
}

// As above.
#[test]
fn durations_next_to_nothing_fire_at_once() {
    in_every_shape("durations_next_to_nothing", |_| async {
        let start = Instant::now();
        for wait in [Duration::ZERO, Duration::from_nanos(1)] {
            for _ in 0..50 {
                sleep(wait).await;
                assert!(timeout(wait, pending::<()>()).await.is_err());
                let mut moved = pin!(sleep(LATE));
                assert!(ready_now(moved.as_mut()).is_pending());
                moved.as_mut().reset(Instant::now() + wait);
                moved.await;
            }
        }
        for behavior in BEHAVIORS {
            let mut ticks = interval(Duration::from_nanos(1));
            ticks.set_missed_tick_behavior(behavior);
            for _ in 0..100 {
                ticks.tick().await;
            }
            ticks.reset_after(Duration::ZERO);
            ticks.tick().await;
        }
        assert!(start.elapsed() < LATE);
    });
}

#[test]
fn a_period_of_zero_is_refused() {
    let _dog = watchdog(60, "a_period_of_zero_is_refused");
    let text = runtime::block_on(async { tests::panic_text_of(|| interval(Duration::ZERO)) });
    assert!(text.contains("period"), "{text}");
}

#[test]
fn a_timer_that_is_not_polled_costs_nothing_and_needs_no_runtime() {
    let _dog = watchdog(60, "a_timer_that_is_not_polled");
    drop(sleep(MS));
    drop(time::timeout(MS, pending::<()>()));
    fn check<T: Send + Sync>(_: &T) {}
    check(&sleep(MS));
}

#[test]
fn a_timer_may_move_to_another_runtime_before_its_first_poll() {
    let _dog = watchdog(60, "a_timer_may_move");
    for shape in every_shape() {
        let first = shape.build();
        let guard = first.enter();
        let sleep = sleep(2 * MS);
        drop(guard);
        drop(first);
        shape.build().block_on(sleep);
    }
}
