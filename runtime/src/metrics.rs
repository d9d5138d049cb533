//! What the runtime counts, and the snapshot that users see.

use std::fmt;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

use crate::scheduler::Scheduler;
use crate::task::census::Scope;

/// A counter with one writer at a time, whoever has the seat: no read-modify-write, and readable by all.
#[derive(Debug, Default)]
pub(crate) struct Counter(AtomicU64);

impl Counter {
    pub(crate) fn add(&self, more: u64) {
        // Relaxed: a statistic. The seat passes between threads through the pool's lock.
        self.0
            .store(self.0.load(Relaxed).wrapping_add(more), Relaxed);
    }

    pub(crate) fn get(&self) -> u64 {
        self.0.load(Relaxed)
    }
}

/// The counters of one seat.
#[derive(Debug, Default)]
pub(crate) struct SeatCounts {
    pub(crate) polls: Counter,
    pub(crate) parks: Counter,
    pub(crate) unparks: Counter,
    pub(crate) empty_unparks: Counter,
    pub(crate) searches: Counter,
    pub(crate) steals: Counter,
    pub(crate) stolen_tasks: Counter,
    pub(crate) slot_steals: Counter,
    pub(crate) refills: Counter,
}

/// A snapshot of a runtime's counters and queue lengths, from [`Handle::metrics`](crate::Handle::metrics).
///
/// Counters start at zero with the runtime and only grow; each is exact for its worker, while the snapshot as
/// a whole is not taken at one instant. `Display` prints a small table.
///
/// ```
/// let rt = runtime::Builder::new().worker_threads(1).build()?;
/// rt.block_on(async { runtime::spawn(async {}).await }).unwrap();
/// let metrics = rt.metrics();
/// assert!(metrics.total(|worker| worker.polls) >= 1);
/// println!("{metrics}");
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Metrics {
    /// One entry for each worker seat, and for each extra one that was ever lent to a `block_on`.
    pub workers: Vec<WorkerMetrics>,
    /// Tasks waiting in the backlog: spawned or woken outside the workers.
    pub backlog_len: usize,
    /// Tasks that are not complete, blocking jobs aside.
    pub live_tasks: usize,
    /// Threads of the blocking pool.
    pub blocking_threads: usize,
    /// Blocking jobs that have not begun.
    pub blocking_queue_len: usize,
}

/// What one worker seat did, and what is queued there.
#[derive(Clone, Copy, Debug, Default)]
#[non_exhaustive]
pub struct WorkerMetrics {
    /// Polls of tasks and runs of forked jobs.
    pub polls: u64,
    /// Times that a thread gave this seat up to block.
    pub parks: u64,
    /// Times that a thread took it after blocking.
    pub unparks: u64,
    /// Unparks that found nothing to do.
    pub empty_unparks: u64,
    /// Searches of other seats' queues.
    pub searches: u64,
    /// Searches that took something from a lane, in one batch each.
    pub steals: u64,
    /// Tasks that came with them.
    pub stolen_tasks: u64,
    /// Tasks taken from another seat's slot.
    pub slot_steals: u64,
    /// Batches taken from the backlog.
    pub refills: u64,
    /// Tasks in the next slot now: 0 or 1.
    pub slot_len: usize,
    /// Tasks in the fork lane now.
    pub fork_len: usize,
    /// Tasks in the fair lane now.
    pub fair_len: usize,
}

impl Metrics {
    pub(crate) fn of(scheduler: &Scheduler) -> Self {
        let workers = scheduler.peers().map(|peer| {
            let counts = &peer.counts;
            WorkerMetrics {
                polls: counts.polls.get(),
                parks: counts.parks.get(),
                unparks: counts.unparks.get(),
                empty_unparks: counts.empty_unparks.get(),
                searches: counts.searches.get(),
                steals: counts.steals.get(),
                stolen_tasks: counts.stolen_tasks.get(),
                slot_steals: counts.slot_steals.get(),
                refills: counts.refills.get(),
                slot_len: usize::from(!peer.shelf.slot.is_empty()),
                fork_len: peer.shelf.fork.len(),
                fair_len: peer.shelf.fair.len(),
            }
        });
        let (blocking_threads, blocking_queue_len) = scheduler.blocking.sizes();
        Self {
            workers: workers.collect(),
            backlog_len: scheduler.backlog.len(),
            live_tasks: scheduler.live(Scope::Tasks),
            blocking_threads,
            blocking_queue_len,
        }
    }

    /// The sum over the workers of whatever `of` picks.
    pub fn total(&self, of: impl Fn(&WorkerMetrics) -> u64) -> u64 {
        self.workers.iter().map(of).sum()
    }
}

impl fmt::Display for Metrics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "{} tasks alive, {} in the backlog; {} blocking threads, {} jobs waiting",
            self.live_tasks, self.backlog_len, self.blocking_threads, self.blocking_queue_len
        )?;
        writeln!(
            f,
            "worker      polls     parks     empty  searches    steals     tasks   refills slot  fork  fair"
        )?;
        for (index, worker) in self.workers.iter().enumerate() {
            writeln!(
                f,
                "{index:>6} {:>10} {:>9} {:>9} {:>9} {:>9} {:>9} {:>9} {:>4} {:>5} {:>5}",
                worker.polls,
                worker.parks,
                worker.empty_unparks,
                worker.searches,
                worker.steals,
                worker.stolen_tasks + worker.slot_steals,
                worker.refills,
                worker.slot_len,
                worker.fork_len,
                worker.fair_len,
            )?;
        }
        Ok(())
    }
}
