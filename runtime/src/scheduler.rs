//! The scheduler: everything that the workers of one runtime share, and where a runnable task goes.

use std::io;
use std::sync::OnceLock;
use std::task::Waker;

use reactor::{Driver, Reactor};

use crate::backlog::Backlog;
use crate::blocking::BlockingPool;
use crate::builder::{Config, StealOrder};
use crate::context;
use crate::park::Parker;
use crate::queue::stamp_of;
use crate::seat::{Peer, Seat, Seats};
use crate::sleep::Sleep;
use crate::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use crate::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize};
use crate::sync::{Arc, CachePadded, Mutex, lock};
use crate::task::Schedule;
use crate::task::census::{Scope, Tally};
use crate::task::refs::{Runnable, TaskRef};
use crate::task::registry::{Key, Registry};
use crate::task::running::Seen;
use crate::task::slot::Origin;

/// Seats that can be lent beyond the workers' own.
const LENDABLE: usize = 256;

pub(crate) struct Scheduler {
    /// By seat index, as far as `seat_count` says; the rest is not made yet.
    peers: Box<[OnceLock<Arc<CachePadded<Peer>>>]>,
    seat_count: AtomicUsize,
    pub(crate) seats: Seats<Seat>,
    pub(crate) sleep: CachePadded<Sleep>,
    pub(crate) backlog: CachePadded<Backlog>,
    pub(crate) registry: Registry,
    pub(crate) blocking: BlockingPool,
    /// Whoever parks first takes it out and waits in it (leader and followers). Taken out and not locked:
    /// the wakers that it wakes run under no lock (I6).
    driver: Mutex<Option<Box<Driver>>>,
    reactor: Reactor,
    /// When somebody last looked for I/O, in nanoseconds of the clock.
    pub(crate) last_turn: CachePadded<AtomicU64>,
    /// Workers leave their loops.
    stop: AtomicBool,
    pub(crate) workers: usize,
    /// Whether the runtime has threads of its own.
    pub(crate) background_threads: bool,
    pub(crate) steal_order: StealOrder,
    seed: u64,
}

/// Ids are unique in the process, not only in a runtime.
static NEXT_ID: std::sync::atomic::AtomicU64 = std::sync::atomic::AtomicU64::new(1);

/// Ids handed to a seat at once.
const ID_BLOCK: u64 = 1024;

impl Scheduler {
    pub(crate) fn new(config: &Config) -> io::Result<Arc<Self>> {
        let driver = Driver::new(config.workers)?;
        let reactor = driver.reactor();
        let seed = config.seed.unwrap_or_else(random_seed);

        let peers: Box<[OnceLock<_>]> = (0..config.workers + LENDABLE)
            .map(|_| OnceLock::new())
            .collect();
        let seats: Vec<Seat> = (0..config.workers)
            .map(|index| Seat::new(index, seed))
            .collect();
        for seat in &seats {
            let _ = peers[seat.index()].set(Arc::clone(&seat.peer));
        }
        Ok(Arc::new(Self {
            peers,
            seat_count: AtomicUsize::new(config.workers),
            seats: Seats::new(seats, LENDABLE),
            sleep: CachePadded(Sleep::new(config.workers)),
            backlog: CachePadded(Backlog::new(config.backlog_capacity)),
            registry: Registry::new(config.workers),
            blocking: BlockingPool::new(config),
            driver: Mutex::new(Some(Box::new(driver))),
            reactor,
            last_turn: CachePadded(AtomicU64::new(0)),
            stop: AtomicBool::new(false),
            workers: config.workers,
            background_threads: config.background_threads,
            steal_order: config.steal_order,
            seed,
        }))
    }

    pub(crate) fn reactor(&self) -> &Reactor {
        &self.reactor
    }

    /// The runtime's time in nanoseconds.
    pub(crate) fn nanos(&self) -> u64 {
        let clock = self.reactor.clock();
        clock.nanos(clock.now())
    }

    /// What can be seen of every seat that was ever taken into use.
    pub(crate) fn peers(&self) -> impl ExactSizeIterator<Item = &Arc<CachePadded<Peer>>> {
        // Acquire pairs with the Release in `lend_seat`: as many are in place.
        let count = self.seat_count.load(Acquire);
        self.peers[..count]
            .iter()
            .map(|peer| peer.get().expect("published by seat_count"))
    }

    pub(crate) fn peer(&self, index: usize) -> &Arc<CachePadded<Peer>> {
        self.peers[index].get().expect("published by seat_count")
    }

    pub(crate) fn seat_count(&self) -> usize {
        self.seat_count.load(Acquire)
    }

    /// A seat for a thread in `block_on`: a free one, else one that is lent; `None` if too many are.
    pub(crate) fn caller_seat(&self) -> Option<Seat> {
        self.seats.acquire_or_lend(|| {
            // Under the pool's lock, so that indices are given out one at a time.
            let index = self.seat_count.load(Relaxed);
            let place = self.peers.get(index)?;
            let seat = Seat::new(index, self.seed);
            let _ = place.set(Arc::clone(&seat.peer));
            // Release pairs with the Acquire in `peers`.
            self.seat_count.store(index + 1, Release);
            Some(seat)
        })
    }

    /// How many tasks are alive.
    pub(crate) fn live(&self, scope: Scope) -> usize {
        self.registry.census.live(scope, || self.tallies())
    }

    /// How many tasks and blocking jobs have ended so far.
    pub(crate) fn ended(&self) -> usize {
        let ended = self.registry.census.ended(Scope::All, || self.tallies());
        usize::try_from(ended).unwrap_or(usize::MAX)
    }

    /// Calls `waker` once when no task of `scope` is alive; false if none is now, and it will not be called.
    #[must_use]
    pub(crate) fn watch_empty(&self, scope: Scope, waker: Waker) -> bool {
        self.registry.census.watch(scope, waker, || self.tallies())
    }

    /// The tasks that workers are polling.
    pub(crate) fn running(&self) -> impl Iterator<Item = Seen> {
        self.peers().filter_map(|peer| peer.running.get())
    }

    /// If a shutdown waits for the last task to end: tells it.
    pub(crate) fn check_census(&self) {
        self.registry.census.check(|| self.tallies());
    }

    fn tallies(&self) -> impl Iterator<Item = &Tally> {
        self.peers().map(|peer| &peer.tally)
    }

    /// Whether there is work that any worker may take: what is looked at before anybody falls asleep.
    pub(crate) fn has_visible_work(&self) -> bool {
        !self.backlog.is_empty() || self.peers().any(|peer| peer.shelf.has_visible_work())
    }

    /// Wakes a worker for work that has become visible, if nobody is awake for it.
    pub(crate) fn notify(&self) {
        self.sleep.notify_one();
    }

    /// The same for a forked job, but without the fence: a wake that is missed by a hair costs parallelism for one
    /// job, which its own frame then runs.
    pub(crate) fn notify_of_fork(&self) {
        if self.sleep.wants_wake() {
            self.notify();
        }
    }

    /// Queues a task from outside the workers.
    pub(crate) fn submit(&self, task: Runnable) {
        self.backlog.push(task);
        self.notify();
    }

    /// Queues a task that was spawned or woken on the thread that has `seat`.
    pub(crate) fn push_local(&self, seat: &Seat, task: Runnable, origin: Origin) {
        if seat.dispatching.get() {
            return seat.lanes.fair.push(task);
        }
        let now = stamp_of(seat.now.get());
        if seat.lanes.push(&seat.peer.shelf, task, origin, now) {
            self.notify();
        }
    }

    pub(crate) fn is_stopping(&self) -> bool {
        // Acquire pairs with the Release in `stop`.
        self.stop.load(Acquire)
    }

    /// Makes every worker leave its loop, wherever it waits.
    pub(crate) fn stop(&self) {
        self.stop.store(true, Release);
        // The locks of the two lists order the flag before a thread that joins one after us looks at it.
        self.sleep.wake_all();
        self.seats.wake_displaced();
    }

    /// A new task id: from the seat's block if there is a seat.
    pub(crate) fn next_id(&self, seat: Option<&Seat>) -> u64 {
        let Some(seat) = seat else {
            // Relaxed: ids are unique, nothing is ordered by them.
            return NEXT_ID.fetch_add(1, Relaxed);
        };
        let (mut next, mut end) = seat.ids.get();
        if next == end {
            next = NEXT_ID.fetch_add(ID_BLOCK, Relaxed);
            end = next + ID_BLOCK;
        }
        seat.ids.set((next + 1, end));
        next
    }

    /// The driver, if nobody has it.
    pub(crate) fn take_driver(&self) -> Option<Box<Driver>> {
        lock(&self.driver).take()
    }

    pub(crate) fn put_driver_back(&self, driver: Box<Driver>) {
        *lock(&self.driver) = Some(driver);
    }

    /// A parker for this thread.
    pub(crate) fn parker(&self) -> Arc<Parker> {
        Parker::new(Some(self.reactor.clone()))
    }
}

impl Schedule for Scheduler {
    fn schedule(this: &Arc<Self>, task: Runnable) {
        let outside = context::with_seat(this, |seat| match seat {
            Some(seat) => {
                this.push_local(seat, task, Origin::Woken);
                None
            }
            None => Some(task),
        });
        if let Some(task) = outside {
            // T6: once the task is in the backlog it may complete, and the last other reference to the
            // scheduler go, before `submit` has woken anybody.
            let keep = Arc::clone(this);
            keep.submit(task);
        }
    }

    fn reschedule(this: &Arc<Self>, task: Runnable) {
        let outside = context::with_seat(this, |seat| match seat {
            Some(seat) => {
                // A task that only yields is no new work, and wakes nobody. Beside others it is one more than this
                // worker can run: what is first may take long. No fence: in a saturated pool that would be paid for every yield,
                // and a wake missed by a hair is made up for when it comes by here again.
                let one_more = this.sleep.wants_wake()
                    && (!seat.peer.shelf.slot.is_empty() || !seat.lanes.are_empty());
                seat.lanes.fair.push(task);
                if one_more {
                    this.notify();
                }
                None
            }
            None => Some(task),
        });
        if let Some(task) = outside {
            let keep = Arc::clone(this);
            keep.submit(task);
        }
    }

    fn started(this: &Arc<Self>) {
        if let Some(admission) = this.backlog.admission() {
            admission.release();
        }
    }

    fn is_closing(this: &Arc<Self>) -> bool {
        this.registry.census.is_closed()
    }

    fn register(this: &Arc<Self>, task: TaskRef) -> Result<(), TaskRef> {
        let seat = context::with_seat(this, |seat| seat.map(|seat| seat.index()));
        this.registry.insert(task, this.registry.shard_for(seat))
    }

    fn release(this: &Arc<Self>, registered: Option<Key>) {
        let census = &this.registry.census;
        if let Some(key) = registered {
            this.registry.remove(key);
            if key.shard == this.registry.blocking_shard() as usize {
                return census.job_end(|| this.tallies());
            }
        }
        let counted = context::with_seat(this, |seat| match seat {
            Some(seat) => {
                seat.peer.tally.count_end();
                true
            }
            None => false,
        });
        if !counted {
            census.end_outside(|| this.tallies());
        }
    }
}

/// A seed for runtimes that were given none: different from run to run, without a dependency.
fn random_seed() -> u64 {
    use std::hash::{BuildHasher, Hasher, RandomState};
    RandomState::new().build_hasher().finish()
}
