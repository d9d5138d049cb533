//! Fairness: tasks that do the same work should get the same share, also beside others that are woken
//! all the time.
//!
//! The pairs that play ping-pong are what a scheduler likes to favour: each message makes the partner
//! ready, and to run it at once is fast. A system that only does that leaves the rest behind; one whose
//! workers never look at each other's queues leaves the longer queue behind.

use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use futures::StreamExt;
use futures::channel::mpsc;

use super::{Metric, Program, Row, less, timed_row};
use crate::countdown::Countdown;
use crate::harness::Sample;
use crate::peers::{AsyncPeer, PerAsyncPeer, Spawner, each_async, in_task};

const PAIRS: u64 = 4;
const YIELDERS: u64 = 1000;

const WARM_UP: u8 = 0;
const COUNT: u8 = 1;
const END: u8 = 2;

/// The most polls that any of 1000 yielding tasks got, divided by the fewest.
pub(super) struct Fairness;

/// What all tasks of a sample look at.
struct Scene {
    phase: AtomicU8,
    most: AtomicU64,
    fewest: AtomicU64,
    ended: &'static Countdown,
}

const SPREAD: &[Metric] = &[less("", "times")];

pub(super) fn rows() -> Vec<Row> {
    vec![Row {
        metrics: SPREAD,
        workers: Some(2),
        ..timed_row(
            "fairness",
            "1000 yielding tasks beside 4 ping-pong pairs: most / fewest polls",
            each_async::<Fairness>,
        )
    }]
}

impl PerAsyncPeer for Fairness {
    type Item = Program;

    fn make<P: AsyncPeer>() -> Program {
        |plan, _| {
            let time = Duration::from_millis(if plan.quick { 300 } else { 1500 });
            let peer = P::start();
            let scene: &'static Scene = Box::leak(Box::new(Scene {
                phase: AtomicU8::new(WARM_UP),
                most: AtomicU64::new(0),
                fewest: AtomicU64::new(u64::MAX),
                ended: Countdown::leak(2 * PAIRS + YIELDERS),
            }));
            in_task(&peer, run::<P>(peer.inside(), scene, time));
            let most = scene.most.load(Ordering::Relaxed);
            // A task that got nothing at all counts as if it had got one poll, to leave a number.
            let fewest = scene.fewest.load(Ordering::Relaxed).max(1);
            Sample::of(vec![most as f64 / fewest as f64])
        }
    }
}

async fn run<P: AsyncPeer>(spawner: P::Inside, scene: &'static Scene, time: Duration) {
    for _ in 0..PAIRS {
        let (there, arriving) = mpsc::unbounded();
        let (back, returning) = mpsc::unbounded();
        spawner.detach(ping(scene, there, returning));
        spawner.detach(pong(scene, arriving, back));
    }
    for _ in 0..YIELDERS {
        spawner.detach(yielder::<P>(scene));
    }
    // A thread of its own tells the time: a timer of the system might starve with the rest.
    thread::spawn(move || {
        thread::sleep(time / 10);
        scene.phase.store(COUNT, Ordering::Relaxed);
        thread::sleep(time);
        scene.phase.store(END, Ordering::Relaxed);
    });
    scene.ended.wait().await;
}

async fn yielder<P: AsyncPeer>(scene: &'static Scene) {
    let mut polls = 0;
    loop {
        match scene.phase.load(Ordering::Relaxed) {
            WARM_UP => {}
            COUNT => polls += 1,
            _ => break,
        }
        P::yield_now().await;
    }
    scene.most.fetch_max(polls, Ordering::Relaxed);
    scene.fewest.fetch_min(polls, Ordering::Relaxed);
    scene.ended.count();
}

async fn ping(
    scene: &'static Scene,
    there: mpsc::UnboundedSender<()>,
    mut returning: mpsc::UnboundedReceiver<()>,
) {
    while scene.phase.load(Ordering::Relaxed) != END {
        there.unbounded_send(()).expect("the partner waits");
        returning.next().await.expect("the partner answers");
    }
    // The sender goes with this task, and so the partner ends.
    scene.ended.count();
}

async fn pong(
    scene: &'static Scene,
    mut arriving: mpsc::UnboundedReceiver<()>,
    back: mpsc::UnboundedSender<()>,
) {
    while arriving.next().await.is_some() {
        back.unbounded_send(()).expect("the first task waits");
    }
    scene.ended.count();
}
