//! Waking a task from an outside thread: how long until it runs, and what it costs.
//!
//! A thread that does not belong to the system rings a bell that one task listens to, then sleeps for a
//! while, again and again. It is what a callback, a signal handler or a foreign event loop does. When the
//! runtime is idle, what counts is the way out of a parked thread, and how many threads were woken for
//! one task: the processor time is the whole process's, the ringing thread's included, which is the same
//! on every system. When the pool is busy, what counts is how soon a worker looks at what came from
//! outside.

use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use super::{Metric, Program, Row, less, timed_row};
use crate::bell::Bell;
use crate::countdown::Countdown;
use crate::harness::Sample;
use crate::pace::spin;
use crate::peers::{AsyncPeer, PerAsyncPeer, Spawner, each_async, in_task};
use crate::statistics::percentile;
use crate::usage::Usage;

/// How long the ringing thread sleeps in between: long enough for everyone to be parked again.
const GAP: Duration = Duration::from_micros(300);

/// Tasks that keep the pool busy. Each works for a fifth of its period: together, 8 of them take 1.6 of
/// two workers.
const LOADERS: u32 = 8;
const PERIOD: Duration = Duration::from_millis(5);
/// A loader works in slices, and lets others run after each.
const SLICE: Duration = Duration::from_micros(5);
const SLICES: u32 = 200;

/// Wakes while nothing else happens.
pub(super) struct Idle;

/// Wakes while tasks keep two workers busy for 80 % of the time.
pub(super) struct Busy;

/// What the ringing thread and the tasks look at.
struct Scene {
    bell: Bell,
    start: Instant,
    /// When the bell was last rung, in nanoseconds since the start.
    rung_at: AtomicU64,
    /// How often it was heard.
    heard: AtomicU32,
    /// Whether the listener has heard all.
    ended: AtomicBool,
}

const IDLE: &[Metric] = &[less("p50", "us"), less("cpu", "us/wake")];
const BUSY: &[Metric] = &[less("p50", "us"), less("p99", "us")];

pub(super) fn rows() -> Vec<Row> {
    vec![
        Row {
            metrics: BUSY,
            workers: Some(2),
            ..timed_row(
                "wake_busy",
                "wake from outside while the pool is 80 % busy",
                each_async::<Busy>,
            )
        },
        Row {
            metrics: IDLE,
            ..timed_row(
                "wake_idle",
                "wake from outside while the runtime is idle",
                each_async::<Idle>,
            )
        },
    ]
}

impl PerAsyncPeer for Idle {
    type Item = Program;

    fn make<P: AsyncPeer>() -> Program {
        |plan, _| {
            let wakes = if plan.quick { 300 } else { 1000 };
            let peer = P::start();
            let scene = Scene::leak();
            let ringer = thread::spawn(move || scene.ring(wakes));
            let waits = in_task(&peer, scene.listen(wakes));
            let cpu = ringer.join().expect("the ringing thread does not panic");
            Sample::of(vec![
                micros(&waits, 0.5),
                cpu.as_nanos() as f64 / 1e3 / f64::from(wakes),
            ])
        }
    }
}

impl PerAsyncPeer for Busy {
    type Item = Program;

    fn make<P: AsyncPeer>() -> Program {
        |plan, _| {
            let wakes = if plan.quick { 400 } else { 2000 };
            let peer = P::start();
            let scene = Scene::leak();
            let waits = in_task(&peer, beside_load::<P>(peer.inside(), scene, wakes));
            Sample::of(vec![micros(&waits, 0.5), micros(&waits, 0.99)])
        }
    }
}

/// Starts the load, then lets the bell be rung. The waits, sorted.
async fn beside_load<P: AsyncPeer>(
    spawner: P::Inside,
    scene: &'static Scene,
    wakes: u32,
) -> Vec<u32> {
    let done = Countdown::leak(LOADERS.into());
    for number in 0..LOADERS {
        spawner.detach(async move {
            load::<P>(scene, PERIOD * number / LOADERS).await;
            done.count();
        });
    }
    let listener = spawner.spawn(scene.listen(wakes));
    thread::spawn(move || {
        thread::sleep(2 * PERIOD);
        scene.ring(wakes);
    });
    let waits = listener.await;
    scene.ended.store(true, Ordering::Relaxed);
    done.wait().await;
    waits
}

/// Works for a fifth of each period, the first of which begins after `delay`. Late is caught up with, so
/// that a system with coarse timers has as much work as the others.
async fn load<P: AsyncPeer>(scene: &'static Scene, delay: Duration) {
    let mut begin = Instant::now() + delay;
    while !scene.ended.load(Ordering::Relaxed) {
        let early = begin.saturating_duration_since(Instant::now());
        if !early.is_zero() {
            P::sleep(early).await;
        }
        for _ in 0..SLICES {
            spin(SLICE);
            P::yield_now().await;
        }
        begin += PERIOD;
    }
}

impl Scene {
    fn leak() -> &'static Scene {
        Box::leak(Box::new(Scene {
            bell: Bell::default(),
            start: Instant::now(),
            rung_at: AtomicU64::new(0),
            heard: AtomicU32::new(0),
            ended: AtomicBool::new(false),
        }))
    }

    /// Rings so often, each time after the last ring was heard. The process's processor time meanwhile.
    fn ring(&self, wakes: u32) -> Duration {
        thread::sleep(GAP * 10);
        let before = Usage::now();
        for number in 0..wakes {
            thread::sleep(GAP);
            while self.heard.load(Ordering::Relaxed) < number {
                thread::sleep(GAP);
            }
            let now = self.start.elapsed().as_nanos() as u64;
            self.rung_at.store(now, Ordering::Relaxed);
            self.bell.ring();
        }
        before.spent().cpu
    }

    /// Hears the bell so often. The waits from ring to poll, sorted.
    async fn listen(&self, wakes: u32) -> Vec<u32> {
        let mut waits = Vec::with_capacity(wakes as usize);
        for number in 0..wakes {
            self.bell.heard().await;
            // Written before the ring that was heard.
            let rung_at = Duration::from_nanos(self.rung_at.load(Ordering::Relaxed));
            waits.push((self.start.elapsed() - rung_at).as_nanos() as u32);
            self.heard.store(number + 1, Ordering::Relaxed);
        }
        waits.sort_unstable();
        waits
    }
}

/// A percentile of sorted nanoseconds, in microseconds.
fn micros(waits: &[u32], share: f64) -> f64 {
    f64::from(percentile(waits, share)) / 1e3
}
