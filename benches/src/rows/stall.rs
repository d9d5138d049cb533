//! Tasks that block their worker although they should not: how long the others wait for it.
//!
//! Nobody writes such a task on purpose, and every program has one: a lock held for long, a file on a
//! slow disk, a long computation. The worker is gone for as long; what counts is whether what it left
//! behind is gone too: the tasks in its queue, or the poller that it was the last to wait in.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{OnceLock, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use super::echo::SMALL_BUFFER;
use super::{Metric, Program, Row, less, timed_row};
use crate::bell::Bell;
use crate::countdown::Countdown;
use crate::harness::{Plan, Sample};
use crate::peers::{AsyncPeer, PerAsyncPeer, Spawner, each_async};

const WORKERS: u32 = 2;
const READY_TASKS: u64 = 100;
/// The timer beside the blocked worker.
const TIMER: Duration = Duration::from_millis(50);
/// How soon the worker that waits in the poller gets an event, and blocks.
const SOON: Duration = Duration::from_millis(10);
/// Longer than any worker blocks: after that, a sample has failed.
const PATIENCE: Duration = Duration::from_secs(10);

/// Both workers block, each with 50 ready tasks in its queue: when the last of the tasks has run.
pub(super) struct Tasks;

/// A worker waits in the poller, is woken by a timer and blocks: how late another timer is.
pub(super) struct Timer;

/// A worker waits in the poller, is woken by a timer and blocks: how long an echo over TCP takes.
pub(super) struct Echo;

const LAST: &[Metric] = &[less("", "ms")];
const LATE: &[Metric] = &[less("", "ms late")];

pub(super) fn rows() -> Vec<Row> {
    let row = |name, about, metrics, programs| Row {
        metrics,
        workers: Some(2),
        ..timed_row(name, about, programs)
    };
    vec![
        row(
            "stall_tasks",
            "100 ready tasks beside 2 workers blocked for 1 s: last one done",
            LAST,
            each_async::<Tasks>,
        ),
        row(
            "stall_timer",
            "a timer of 50 ms beside a worker blocked for 1 s, which had the poller",
            LATE,
            each_async::<Timer>,
        ),
        row(
            "stall_echo",
            "a TCP echo beside a worker blocked for 1 s, which had the poller",
            LATE,
            each_async::<Echo>,
        ),
    ]
}

fn block_time(plan: &Plan) -> Duration {
    Duration::from_millis(if plan.quick { 200 } else { 1000 })
}

fn millis(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

/// What the tasks of [`Tasks`] look at.
struct Scene {
    blockers: AtomicU32,
    /// When both workers had been found.
    start: OnceLock<Instant>,
    /// When the last ready task ran, in nanoseconds since then.
    last: AtomicU64,
    done: &'static Countdown,
}

impl PerAsyncPeer for Tasks {
    type Item = Program;

    fn make<P: AsyncPeer>() -> Program {
        |plan, _| {
            let time = block_time(plan);
            let peer = P::start();
            let scene: &'static Scene = Box::leak(Box::new(Scene {
                blockers: AtomicU32::new(0),
                start: OnceLock::new(),
                last: AtomicU64::new(0),
                done: Countdown::leak(u64::from(WORKERS) + READY_TASKS),
            }));
            for _ in 0..WORKERS {
                let spawner = peer.inside();
                peer.outside()
                    .detach(async move { block_beside_tasks(&spawner, scene, time) });
            }
            peer.block_on(scene.done.wait());
            let blockers = scene.blockers.load(Ordering::Relaxed);
            assert_eq!(blockers, WORKERS, "only one of two workers ever ran a task");
            let last = Duration::from_nanos(scene.last.load(Ordering::Relaxed));
            Sample::of(vec![millis(last)])
        }
    }
}

/// When both workers are in here, fills its own worker's queue, then blocks it.
fn block_beside_tasks<S: Spawner>(spawner: &S, scene: &'static Scene, time: Duration) {
    scene.blockers.fetch_add(1, Ordering::Relaxed);
    let called = Instant::now();
    while scene.blockers.load(Ordering::Relaxed) < WORKERS {
        if called.elapsed() > PATIENCE {
            // To panic in here would leave the root waiting. It sees by the number what happened.
            scene.blockers.store(u32::MAX, Ordering::Relaxed);
        }
        thread::sleep(Duration::from_micros(100));
    }
    let start = *scene.start.get_or_init(Instant::now);
    for _ in 0..READY_TASKS / u64::from(WORKERS) {
        spawner.detach(async move {
            let now = start.elapsed().as_nanos() as u64;
            scene.last.fetch_max(now, Ordering::Relaxed);
            scene.done.count();
        });
    }
    thread::sleep(time);
    scene.done.count();
}

impl PerAsyncPeer for Timer {
    type Item = Program;

    fn make<P: AsyncPeer>() -> Program {
        |plan, _| {
            let time = block_time(plan);
            let peer = P::start();
            let done = Countdown::leak(2);
            let late: &'static AtomicU64 = Box::leak(Box::new(AtomicU64::new(0)));
            peer.outside().detach(async move {
                let due = Instant::now() + TIMER;
                P::sleep(TIMER).await;
                late.store(due.elapsed().as_nanos() as u64, Ordering::Relaxed);
                done.count();
            });
            peer.outside().detach(async move {
                P::sleep(SOON).await;
                thread::sleep(time);
                done.count();
            });
            peer.block_on(done.wait());
            let late = Duration::from_nanos(late.load(Ordering::Relaxed));
            Sample::of(vec![millis(late)])
        }
    }
}

impl PerAsyncPeer for Echo {
    type Item = Program;

    fn make<P: AsyncPeer>() -> Program {
        |plan, _| {
            let time = block_time(plan);
            let peer = P::start();
            let done = Countdown::leak(1);
            let connected: &'static Bell = Box::leak(Box::default());
            let (blocking, blocked) = mpsc::channel();

            let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port is free");
            let address = listener.local_addr().expect("it is bound");
            let spawner = peer.inside();
            peer.outside().detach(async move {
                // Serves until the system ends.
                let _ = P::echo::<SMALL_BUFFER>(spawner, listener).await;
            });
            peer.outside().detach(async move {
                connected.heard().await;
                P::sleep(SOON).await;
                let _ = blocking.send(());
                thread::sleep(time);
                done.count();
            });
            let client = thread::spawn(move || echo_beside(address, connected, &blocked));
            peer.block_on(done.wait());
            let took = client.join().expect("the server answers some time");
            Sample::of(vec![millis(took)])
        }
    }
}

/// Connects, is answered once, lets a worker block, and sees how long an answer takes then.
fn echo_beside(server: SocketAddr, connected: &Bell, blocked: &mpsc::Receiver<()>) -> Duration {
    let mut stream = TcpStream::connect(server).expect("the server listens");
    stream
        .set_read_timeout(Some(PATIENCE))
        .expect("sockets have timeouts");
    stream.set_nodelay(true).expect("sockets have this option");
    let first = round_trip(&mut stream);
    connected.ring();
    first.expect("an idle server answers");
    blocked
        .recv_timeout(PATIENCE)
        .expect("the blocking task runs");
    thread::sleep(SOON);
    let start = Instant::now();
    round_trip(&mut stream).expect("the server answers");
    start.elapsed()
}

fn round_trip(stream: &mut TcpStream) -> std::io::Result<()> {
    let mut message = [7; 64];
    stream.write_all(&message)?;
    stream.read_exact(&mut message)
}
