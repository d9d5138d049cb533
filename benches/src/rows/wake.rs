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

use super::flood::{Eighty, flood};
use super::{Metric, Program, Row, less, timed_row};
use crate::bell::Bell;
use crate::harness::Sample;
use crate::peers::{AsyncPeer, PerAsyncPeer, Spawner, each_async, in_task};
use crate::statistics::percentile;
use crate::usage::Usage;

/// How long the ringing thread sleeps in between: long enough for everyone to be parked again.
const GAP: Duration = Duration::from_micros(300);

/// Wakes while nothing else happens.
pub(super) struct Idle;

/// Wakes beside a flood of tasks of 5 us that takes 80 % of what two workers have to give.
pub(super) struct Busy;

/// What the ringing thread and the listening task look at.
struct Scene {
    bell: Bell,
    start: Instant,
    /// When the bell was last rung, in nanoseconds since the start.
    rung_at: AtomicU64,
    /// How often it was rung.
    rung: AtomicU32,
    /// How often it was heard.
    heard: AtomicU32,
    /// Whether no more will be rung.
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
            let time = Duration::from_millis(if plan.quick { 150 } else { 500 });
            let peer = P::start();
            let scene = Scene::leak();
            let ringer = thread::spawn(move || scene.ring(time));
            let waits = in_task(&peer, scene.listen());
            let cpu = ringer.join().expect("the ringing thread does not panic");
            Sample::of(vec![
                micros(&waits, 0.5),
                cpu.as_nanos() as f64 / 1e3 / waits.len() as f64,
            ])
        }
    }
}

impl PerAsyncPeer for Busy {
    type Item = Program;

    fn make<P: AsyncPeer>() -> Program {
        |plan, _| {
            let time = Duration::from_millis(if plan.quick { 200 } else { 1000 });
            let peer = P::start();
            let scene = Scene::leak();
            let spawner = peer.inside();
            let waits = in_task(&peer, async move {
                let listener = spawner.spawn(scene.listen());
                let ringer = thread::spawn(move || scene.ring(time));
                flood::<P, Eighty>(spawner, time, None).await;
                let waits = listener.await;
                ringer.join().expect("the ringing thread does not panic");
                waits
            });
            Sample::of(vec![micros(&waits, 0.5), micros(&waits, 0.99)])
        }
    }
}

impl Scene {
    fn leak() -> &'static Scene {
        Box::leak(Box::new(Scene {
            bell: Bell::default(),
            start: Instant::now(),
            rung_at: AtomicU64::new(0),
            rung: AtomicU32::new(0),
            heard: AtomicU32::new(0),
            ended: AtomicBool::new(false),
        }))
    }

    /// Rings for so long, each time after the last ring was heard: a time and not a number, so that a
    /// system that hears late does not take for ever. The process's processor time meanwhile.
    fn ring(&self, time: Duration) -> Duration {
        let before = Usage::now();
        let begin = Instant::now();
        while begin.elapsed() < time {
            thread::sleep(GAP);
            let rung = self.rung.load(Ordering::Relaxed);
            if self.heard.load(Ordering::Relaxed) == rung {
                let now = self.start.elapsed().as_nanos() as u64;
                self.rung_at.store(now, Ordering::Relaxed);
                self.rung.store(rung + 1, Ordering::Relaxed);
                self.bell.ring();
            }
        }
        // The last ring asks for nothing but to end; one that is not heard yet is heard with it.
        self.ended.store(true, Ordering::Relaxed);
        self.bell.ring();
        before.spent().cpu
    }

    /// Listens to the end. The waits from ring to poll, in nanoseconds, sorted.
    async fn listen(&self) -> Vec<u32> {
        let mut waits = Vec::with_capacity(10_000);
        let mut ended = false;
        while !ended {
            self.bell.heard().await;
            // All of these were written before the ring that was heard.
            ended = self.ended.load(Ordering::Relaxed);
            let rung = self.rung.load(Ordering::Relaxed);
            if self.heard.load(Ordering::Relaxed) < rung {
                let rung_at = Duration::from_nanos(self.rung_at.load(Ordering::Relaxed));
                let wait = (self.start.elapsed() - rung_at).as_nanos();
                waits.push(u32::try_from(wait).unwrap_or(u32::MAX));
                self.heard.store(rung, Ordering::Relaxed);
            }
        }
        waits.sort_unstable();
        waits
    }
}

/// A percentile of sorted nanoseconds, in microseconds.
fn micros(waits: &[u32], share: f64) -> f64 {
    f64::from(percentile(waits, share)) / 1e3
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_ring_is_heard_once() {
        let scene = Scene::leak();
        let ringer = thread::spawn(move || scene.ring(Duration::from_millis(20)));
        let waits = futures::executor::block_on(scene.listen());
        ringer.join().unwrap();
        assert_eq!(waits.len(), scene.rung.load(Ordering::Relaxed) as usize);
        assert!(!waits.is_empty());
    }
}
