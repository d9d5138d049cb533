//! The registry of live tasks: who is there to cancel at shutdown, and to show in a dump.
//!
//! One shard for each worker seat, under a lock that only that worker usually takes, and a few for everybody
//! else. A shard holds the scheduler's reference to each task, so a walk from another thread finds cells that
//! are alive. Blocking jobs stand in a shard of their own: a shutdown does not wait for them, since a started
//! one cannot be cancelled.

use std::task::Waker;

use super::raw::Header;
use super::refs::TaskRef;
use crate::sync::atomic::AtomicU8;
use crate::sync::atomic::Ordering::Relaxed;
use crate::sync::{CachePadded, Mutex, lock};

/// Shards for tasks spawned outside the workers; few in the models, where each is a lock more to explore.
const OUTSIDE: usize = if cfg!(loom) { 2 } else { 4 };

pub(crate) struct Registry {
    shards: Box<[CachePadded<Mutex<Shard>>]>,
    /// Somebody waits for the registry to be empty: 0, or a [`Scope`].
    watched: AtomicU8,
    on_empty: Mutex<Option<Waker>>,
}

/// Which tasks count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Scope {
    /// All but blocking jobs.
    Tasks = 1,
    /// Blocking jobs too.
    All = 2,
}

#[derive(Default)]
struct Shard {
    tasks: Vec<Option<TaskRef>>,
    free: Vec<u32>,
    closed: bool,
}

impl Registry {
    /// `seats`: how many shards to keep for worker seats.
    pub(crate) fn new(seats: usize) -> Self {
        Self {
            shards: (0..seats + OUTSIDE + 1)
                .map(|_| CachePadded::default())
                .collect(),
            watched: AtomicU8::new(0),
            on_empty: Mutex::new(None),
        }
    }

    /// The shard for a task that is spawned on `seat`, or (`None`) outside the workers.
    pub(crate) fn shard_for(&self, seat: Option<usize>) -> u32 {
        let seats = self.shards.len() - OUTSIDE - 1;
        let shard = match seat {
            Some(seat) => seat % seats,
            None => seats + crate::context::thread_number() % OUTSIDE,
        };
        shard as u32
    }

    /// The shard of blocking jobs.
    pub(crate) fn blocking_shard(&self) -> u32 {
        (self.shards.len() - 1) as u32
    }

    /// Takes the scheduler's reference in. `Err` gives it back: the registry is closed and the caller must
    /// cancel the task.
    pub(crate) fn insert(&self, task: TaskRef) -> Result<(), TaskRef> {
        let mut shard = lock(&self.shards[task.shard()]);
        if shard.closed {
            return Err(task);
        }
        let key = shard
            .free
            .pop()
            .map_or(shard.tasks.len(), |key| key as usize);
        // Before the task can run: its permit is still in the spawner's hand.
        task.set_registry_key(key);
        if key == shard.tasks.len() {
            shard.tasks.push(Some(task));
        } else {
            shard.tasks[key] = Some(task);
        }
        Ok(())
    }

    /// Gives up the scheduler's reference to a task that is complete. A task that was refused is in no shard.
    pub(crate) fn remove(&self, task: &Header) {
        let Some((shard_index, key)) = task.registry_key() else {
            return;
        };
        let mut shard = lock(&self.shards[shard_index]);
        let reference = shard.tasks[key].take();
        shard.free.push(key as u32);
        let empty = shard.is_empty();
        drop(shard);
        // Outside the lock: it may be the last reference, and a free runs what the task's name left (I6).
        drop(reference);
        // Relaxed: a watcher sets this before it looks into the shards under their locks. If it looked into
        // ours before we removed, the lock made the flag visible to us; if after, it saw the shard empty.
        let watched = match self.watched.load(Relaxed) {
            0 => return,
            1 => Scope::Tasks,
            _ => Scope::All,
        };
        if empty && self.live(watched) == 0 {
            let waker = lock(&self.on_empty).take();
            if let Some(waker) = waker {
                waker.wake();
            }
        }
    }

    /// How many tasks are alive. Exact: all shards are locked together, since a task in
    /// one may spawn into another and end while they are counted one by one.
    pub(crate) fn live(&self, scope: Scope) -> usize {
        let guards: Vec<_> = self
            .shards_of(scope)
            .iter()
            .map(|shard| lock(shard))
            .collect();
        guards
            .iter()
            .map(|shard| shard.tasks.len() - shard.free.len())
            .sum()
    }

    /// Calls `waker` once when no task of `scope` is alive; false if none is now, and it will not be called.
    #[must_use]
    pub(crate) fn watch_empty(&self, scope: Scope, waker: Waker) -> bool {
        let previous = lock(&self.on_empty).replace(waker);
        drop(previous);
        self.watched.store(scope as u8, Relaxed);
        let waits = self.live(scope) != 0;
        if !waits {
            let waker = lock(&self.on_empty).take();
            drop(waker);
        }
        waits
    }

    /// From here on `insert` refuses.
    pub(crate) fn close(&self) {
        for shard in &self.shards {
            lock(shard).closed = true;
        }
    }

    /// Whether `insert` refuses.
    pub(crate) fn is_closed(&self) -> bool {
        lock(&self.shards[0]).closed
    }

    /// A reference to each live task; those of blocking jobs last.
    pub(crate) fn snapshot(&self) -> Vec<TaskRef> {
        let mut tasks = Vec::new();
        for shard in &self.shards {
            tasks.extend(lock(shard).tasks.iter().flatten().cloned());
        }
        tasks
    }

    fn shards_of(&self, scope: Scope) -> &[CachePadded<Mutex<Shard>>] {
        match scope {
            Scope::Tasks => &self.shards[..self.shards.len() - 1],
            Scope::All => &self.shards,
        }
    }
}

impl Shard {
    fn is_empty(&self) -> bool {
        self.tasks.len() == self.free.len()
    }
}
