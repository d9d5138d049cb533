//! Timers: those that never fire, which are most, and those that do.

use std::future::{Future, poll_fn, ready};
use std::pin::pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::Poll;
use std::time::{Duration, Instant};

use super::{AsyncRow, Metric, Program, Row, async_programs, less, timed_row};
use crate::countdown::Countdown;
use crate::harness::Sample;
use crate::peers::{AsyncPeer, PerAsyncPeer, Spawner, each_async, in_task};
use crate::usage::Usage;

/// Long enough never to fire.
const FAR: Duration = Duration::from_secs(60);
const LONGEST_SLEEP_MICROS: u64 = 100_000;

/// A sleep is created, polled once and dropped: what a cancelled timer costs.
pub(super) struct Create;

/// A timeout round a future that is ready at once: what it costs not to need it.
pub(super) struct Timeout;

/// 100,000 tasks (10,000 with `--quick`) sleep for 0 to 100 ms. Processor time per timer, spawning
/// included, and how late they woke: each reads the clock before and after its sleep.
pub(super) struct SleepStorm;

/// What the sleepers add up.
struct Lateness {
    sum: AtomicU64,
    worst: AtomicU64,
}

const SLEEPS: &[Metric] = &[
    less("cpu", "ns/timer"),
    less("mean_late", "us"),
    less("worst_late", "us"),
];

pub(super) fn rows() -> Vec<Row> {
    vec![
        timed_row(
            "timer_create",
            "create a sleep, poll it once, drop it",
            async_programs::<Create>,
        ),
        timed_row(
            "timer_timeout",
            "a timeout round a future that is ready",
            async_programs::<Timeout>,
        ),
        Row {
            metrics: SLEEPS,
            ..timed_row(
                "timer_sleeps",
                "100,000 tasks sleep 0-100 ms",
                each_async::<SleepStorm>,
            )
        },
    ]
}

impl AsyncRow for Create {
    const OPERATIONS: u64 = 100;

    fn run<P: AsyncPeer>(peer: &P, repetitions: u64) -> Duration {
        in_task(peer, async move {
            let start = Instant::now();
            for _ in 0..repetitions * Self::OPERATIONS {
                let mut sleep = pin!(P::sleep(FAR));
                let pending = poll_fn(|cx| Poll::Ready(sleep.as_mut().poll(cx).is_pending())).await;
                assert!(pending);
            }
            start.elapsed()
        })
    }
}

impl AsyncRow for Timeout {
    const OPERATIONS: u64 = 1000;

    fn run<P: AsyncPeer>(peer: &P, repetitions: u64) -> Duration {
        in_task(peer, async move {
            let start = Instant::now();
            for _ in 0..repetitions * Self::OPERATIONS {
                assert!(P::timeout(FAR, ready(())).await);
            }
            start.elapsed()
        })
    }
}

impl PerAsyncPeer for SleepStorm {
    type Item = Program;

    fn make<P: AsyncPeer>() -> Program {
        |plan, _| {
            let sleepers = if plan.quick { 10_000 } else { 100_000 };
            let peer = P::start();
            let before = Usage::now();
            let lateness = in_task(&peer, storm::<P>(peer.inside(), sleepers));
            let cpu = before.spent().cpu.as_nanos() as f64 / sleepers as f64;
            let mean = lateness.sum.load(Ordering::Relaxed) as f64 / sleepers as f64;
            let worst = lateness.worst.load(Ordering::Relaxed) as f64;
            Sample::of(vec![cpu, mean / 1e3, worst / 1e3])
        }
    }
}

async fn storm<P: AsyncPeer>(spawner: P::Inside, sleepers: u64) -> &'static Lateness {
    let awake = Countdown::leak(sleepers);
    let lateness: &'static Lateness = Box::leak(Box::new(Lateness {
        sum: AtomicU64::new(0),
        worst: AtomicU64::new(0),
    }));
    for number in 0..sleepers {
        // Spread evenly and in no order: the step has no factor in common with the range.
        let duration = Duration::from_micros(number * 61_803 % LONGEST_SLEEP_MICROS);
        spawner.detach(async move {
            let due = Instant::now() + duration;
            P::sleep(duration).await;
            let late = Instant::now().saturating_duration_since(due).as_nanos() as u64;
            lateness.sum.fetch_add(late, Ordering::Relaxed);
            lateness.worst.fetch_max(late, Ordering::Relaxed);
            awake.count();
        });
    }
    awake.wait().await;
    lateness
}
