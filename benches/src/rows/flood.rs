//! Overload: requests come in by the clock, more than two workers can serve. How long does one wait?
//!
//! A task, the pump, looks at the clock, spawns a task for each request that has come due since it last
//! looked, and lets the others run. The wait of a request is counted from the time it was due until it
//! is first polled. From the time it was spawned would flatter a system that starves the pump: what is
//! not spawned does not wait. At 1.3 times of what two workers serve the queue grows all the time, and
//! serving the oldest first keeps the longest wait near what the overload itself makes of it; at 0.7
//! times no request should wait at all.

use std::future::poll_fn;
use std::marker::PhantomData;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::task::Poll;
use std::thread;
use std::time::{Duration, Instant};

use super::{Metric, Program, Row, less, timed_row};
use crate::bell::Bell;
use crate::countdown::Countdown;
use crate::harness::Sample;
use crate::pace::spin;
use crate::peers::{AsyncPeer, Handles, PerAsyncPeer, Spawner, each_async, in_task};
use crate::statistics::percentile;

/// How long a request takes its worker.
const WORK: Duration = Duration::from_micros(5);
const WORKERS: f64 = 2.0;
/// How often the outside thread wakes the pump.
const TICK: Duration = Duration::from_micros(100);
/// The most requests of a sample.
const MOST: usize = 600_000;

/// How long each request waited, in microseconds. Static, because one sample runs at a time, and memory
/// that is new for each would cost the tasks page faults.
static WAITS: [AtomicU32; MOST] = [const { AtomicU32::new(0) }; MOST];

/// One sample of flood `F`.
pub(super) struct FloodSample<F>(PhantomData<F>);

/// What is special about a flood.
pub(super) trait Flood: 'static {
    /// Requests, as a multiple of what two workers serve.
    const LOAD: f64 = 1.3;
    /// Whether the pump keeps the handles, and takes those of finished tasks out.
    const KEEPS_HANDLES: bool = false;
    /// Whether the pump waits to be woken by a thread outside, rather than yields.
    const WOKEN_FROM_OUTSIDE: bool = false;
    /// Whether a request has its work done by two children.
    const HAS_CHILDREN: bool = false;
    /// The figures, from all waits in microseconds and in order.
    fn figures(waits: &[u32]) -> Vec<f64> {
        vec![percentile(waits, 0.99).into()]
    }
}

/// Nobody waits for the tasks.
struct Detached;
/// The pump keeps the handles in a set.
struct Kept;
/// An outside thread wakes the pump.
struct Outside;
/// Each request awaits two children, which do half the work each.
struct Children;
/// Detached, at 0.7 times of what two workers serve.
struct Seventy;

/// Detached, at 0.8 times of what two workers serve: the load of another row.
pub(super) struct Eighty;

/// What all tasks of a sample look at.
struct Scene {
    start: Instant,
    interval: Duration,
    requests: u32,
    served: &'static Countdown,
}

const WAIT: &[Metric] = &[less("", "p99 us")];
const WAITS_70: &[Metric] = &[less("p99", "us"), less("max", "us")];

pub(super) fn rows() -> Vec<Row> {
    let row = |name, about, programs| Row {
        metrics: WAIT,
        workers: Some(2),
        ..timed_row(name, about, programs)
    };
    vec![
        row(
            "flood_detached",
            "1.3x of what 2 workers serve, detached: wait p99",
            each_async::<FloodSample<Detached>>,
        ),
        row(
            "flood_handles",
            "the same, handles kept in a set",
            each_async::<FloodSample<Kept>>,
        ),
        row(
            "flood_outside",
            "the same, detached, pump woken from outside",
            each_async::<FloodSample<Outside>>,
        ),
        row(
            "flood_children",
            "the same, detached, each awaits two children",
            each_async::<FloodSample<Children>>,
        ),
        Row {
            metrics: WAITS_70,
            ..row(
                "flood_70",
                "0.7x of what 2 workers serve, detached: wait",
                each_async::<FloodSample<Seventy>>,
            )
        },
    ]
}

impl Flood for Detached {}

impl Flood for Kept {
    const KEEPS_HANDLES: bool = true;
}

impl Flood for Outside {
    const WOKEN_FROM_OUTSIDE: bool = true;
}

impl Flood for Children {
    const HAS_CHILDREN: bool = true;
}

impl Flood for Seventy {
    const LOAD: f64 = 0.7;

    fn figures(waits: &[u32]) -> Vec<f64> {
        [0.99, 1.0]
            .map(|share| percentile(waits, share).into())
            .to_vec()
    }
}

impl Flood for Eighty {
    const LOAD: f64 = 0.8;
}

impl<F: Flood> PerAsyncPeer for FloodSample<F> {
    type Item = Program;

    fn make<P: AsyncPeer>() -> Program {
        |plan, _| {
            let time = Duration::from_millis(if plan.quick { 200 } else { 1000 });
            let peer = P::start();
            let ticker = F::WOKEN_FROM_OUTSIDE.then(Ticker::start);
            let bell = ticker.as_ref().map(|ticker| ticker.bell.clone());
            let requests = in_task(&peer, flood::<P, F>(peer.inside(), time, bell));
            let mut waits: Vec<u32> = WAITS[..requests as usize]
                .iter()
                .map(|wait| wait.load(Ordering::Relaxed))
                .collect();
            waits.sort_unstable();
            Sample::of(F::figures(&waits))
        }
    }
}

/// Floods the system for `time`, and waits until it has served everything. How many requests there were.
pub(super) async fn flood<P: AsyncPeer, F: Flood>(
    spawner: P::Inside,
    time: Duration,
    bell: Option<Arc<Bell>>,
) -> u32 {
    let scene = Scene::begin(F::LOAD, time);
    let mut handles = P::handles();
    let mut spawned = 0;
    while spawned < scene.requests {
        let due = scene.due();
        for number in spawned..due {
            if F::HAS_CHILDREN {
                spawner.detach(parent(spawner.clone(), scene, number));
            } else if F::KEEPS_HANDLES {
                handles.spawn(&spawner, request(scene, number));
            } else {
                spawner.detach(request(scene, number));
            }
        }
        spawned = due;
        if F::KEEPS_HANDLES {
            poll_fn(|cx| {
                let _ = handles.poll_drain(cx);
                Poll::Ready(())
            })
            .await;
        }
        match &bell {
            Some(bell) => bell.heard().await,
            None => P::yield_now().await,
        }
    }
    poll_fn(|cx| handles.poll_drain(cx)).await;
    scene.served.wait().await;
    scene.requests
}

async fn request(scene: &'static Scene, number: u32) {
    scene.first_poll_of(number);
    spin(WORK);
    scene.served.count();
}

async fn parent<S: Spawner>(spawner: S, scene: &'static Scene, number: u32) {
    scene.first_poll_of(number);
    let children = [(); 2].map(|()| spawner.spawn(async { spin(WORK / 2) }));
    for child in children {
        child.await;
    }
    scene.served.count();
}

impl Scene {
    /// From now on requests come in. Leaked: tasks carry a plain reference to it, so that no reference
    /// count of ours is measured with them.
    fn begin(load: f64, time: Duration) -> &'static Scene {
        let interval = WORK.div_f64(load * WORKERS);
        let requests = (time.as_nanos() / interval.as_nanos()) as u32;
        assert!(requests as usize <= MOST, "there is a place for each wait");
        Box::leak(Box::new(Scene {
            start: Instant::now(),
            interval,
            requests,
            served: Countdown::leak(requests.into()),
        }))
    }

    /// How many requests have come in up to now.
    fn due(&self) -> u32 {
        let due = self.start.elapsed().as_nanos() / self.interval.as_nanos();
        due.min(self.requests.into()) as u32
    }

    fn first_poll_of(&self, number: u32) {
        let wait = self.start.elapsed() - self.interval * number;
        WAITS[number as usize].store(wait.as_micros() as u32, Ordering::Relaxed);
    }
}

/// An outside thread that rings a bell all the time, until it is dropped.
struct Ticker {
    bell: Arc<Bell>,
    ended: Arc<AtomicBool>,
    thread: Option<thread::JoinHandle<()>>,
}

impl Ticker {
    fn start() -> Ticker {
        let bell = Arc::<Bell>::default();
        let ended = Arc::new(AtomicBool::new(false));
        let thread = thread::spawn({
            let (bell, ended) = (bell.clone(), ended.clone());
            move || {
                while !ended.load(Ordering::Relaxed) {
                    thread::sleep(TICK);
                    bell.ring();
                }
            }
        });
        Ticker {
            bell,
            ended,
            thread: Some(thread),
        }
    }
}

impl Drop for Ticker {
    fn drop(&mut self) {
        self.ended.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            thread.join().expect("the ticker does not panic");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_overload_has_more_requests_than_two_workers_have_time_for() {
        let scene = Scene::begin(1.3, Duration::from_millis(10));
        let work = WORK * scene.requests;
        let time = Duration::from_millis(20);
        assert!(work > time.mul_f64(1.29) && work < time.mul_f64(1.31));
    }

    #[test]
    fn all_requests_come_in_and_no_more() {
        let scene = Scene::begin(1.3, Duration::from_micros(100));
        thread::sleep(Duration::from_millis(1));
        assert_eq!(scene.due(), scene.requests);
    }
}
