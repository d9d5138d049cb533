//! The registry of live tasks: who is there to cancel at shutdown, and to show in a dump.
//!
//! One shard for each worker seat, under a lock that only that worker usually takes, and a few for everybody
//! else. A shard holds the scheduler's reference to each task, so a walk from another thread finds cells that
//! are alive. Blocking jobs stand in a shard of their own: a shutdown does not wait for them, since a started
//! one cannot be cancelled.
//!
//! A task often completes on another worker than it was spawned on. If that worker took the shard's lock for each,
//! it would meet the spawner there all the time. So it leaves the key in the shard's `returned` list, which has a
//! lock of its own, and takes a batch of them out at once when there are [`BATCH`]. Until then the cell, whose
//! future is gone, stays allocated; everybody who counts takes `returned` off. Lock order: a shard's `tasks`,
//! then its `returned`, then the next shard.

use std::task::Waker;

use super::refs::TaskRef;
use crate::sync::atomic::AtomicU8;
use crate::sync::atomic::Ordering::Relaxed;
use crate::sync::{CachePadded, Mutex, lock};

/// Shards for tasks spawned outside the workers; few in the models, where each is a lock more to explore.
const OUTSIDE: usize = if cfg!(loom) { 2 } else { 4 };

/// Keys that are taken out of a shard at once.
const BATCH: usize = if cfg!(loom) { 2 } else { 64 };

pub(crate) struct Registry {
    shards: Box<[Shard]>,
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

/// Where a task stands: the shard and the place in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Key {
    pub(crate) shard: usize,
    pub(crate) index: usize,
}

#[derive(Default)]
struct Shard {
    tasks: CachePadded<Mutex<Tasks>>,
    /// Keys of tasks that are complete and still stand in `tasks`.
    returned: CachePadded<Mutex<Vec<u32>>>,
}

#[derive(Default)]
struct Tasks {
    slots: Vec<Option<TaskRef>>,
    free: Vec<u32>,
    closed: bool,
}

impl Registry {
    /// `seats`: how many shards to keep for worker seats.
    pub(crate) fn new(seats: usize) -> Self {
        Self {
            shards: (0..seats + OUTSIDE + 1).map(|_| Shard::default()).collect(),
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
        let mut tasks = lock(&self.shards[task.shard()].tasks);
        if tasks.closed {
            return Err(task);
        }
        let key = tasks
            .free
            .pop()
            .map_or(tasks.slots.len(), |key| key as usize);
        // Before the task can run: its permit is still in the spawner's hand.
        task.set_registry_key(key);
        if key == tasks.slots.len() {
            tasks.slots.push(Some(task));
        } else {
            tasks.slots[key] = Some(task);
        }
        Ok(())
    }

    /// Gives up the scheduler's reference to a task that is complete. A task that was refused is in no shard.
    pub(crate) fn remove(&self, registered: Option<Key>) {
        let Some(Key { shard, index: key }) = registered else {
            return;
        };
        let is_local = crate::context::home_shard() == Some(shard);
        let shard = &self.shards[shard];
        // Relaxed: a watcher sets the flag before it counts, under the locks. If it counted in this shard before
        // we changed it, the lock made the flag visible to us when we look again below; if after, it counted
        // this task as gone.
        let empty = if is_local || self.watched.load(Relaxed) != 0 {
            shard.take_out(key)
        } else {
            shard.leave(key)
        };
        let watched = match self.watched.load(Relaxed) {
            0 => return,
            1 => Scope::Tasks,
            _ => Scope::All,
        };
        if !is_local {
            // The last flush may have been before we left the key.
            shard.take_out_returned();
        }
        if empty && self.live(watched) == 0 {
            let waker = lock(&self.on_empty).take();
            if let Some(waker) = waker {
                waker.wake();
            }
        }
    }

    /// How many tasks are alive. Exact: all shards are locked together, since a task in one may spawn into another
    /// and end while they are counted one by one.
    pub(crate) fn live(&self, scope: Scope) -> usize {
        let guards: Vec<_> = self
            .shards_of(scope)
            .iter()
            .map(|shard| (lock(&shard.tasks), lock(&shard.returned)))
            .collect();
        guards
            .iter()
            .map(|(tasks, returned)| tasks.slots.len() - tasks.free.len() - returned.len())
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
            lock(&shard.tasks).closed = true;
        }
    }

    /// Whether `insert` refuses.
    pub(crate) fn is_closed(&self) -> bool {
        lock(&self.shards[0].tasks).closed
    }

    /// A reference to each live task; those of blocking jobs last.
    pub(crate) fn snapshot(&self) -> Vec<TaskRef> {
        let mut live = Vec::new();
        for shard in &self.shards {
            let tasks = lock(&shard.tasks);
            live.extend(
                tasks
                    .slots
                    .iter()
                    .flatten()
                    .filter(|task| !task.is_complete())
                    .cloned(),
            );
        }
        live
    }

    /// Frees the cells that are left of complete tasks.
    pub(crate) fn flush(&self) {
        for shard in &self.shards {
            shard.take_out_returned();
        }
    }

    fn shards_of(&self, scope: Scope) -> &[Shard] {
        match scope {
            Scope::Tasks => &self.shards[..self.shards.len() - 1],
            Scope::All => &self.shards,
        }
    }
}

impl Shard {
    /// Removes one task; whether that left the shard empty.
    fn take_out(&self, key: usize) -> bool {
        let mut tasks = lock(&self.tasks);
        let reference = tasks.slots[key].take();
        tasks.free.push(key as u32);
        let empty = tasks.slots.len() == tasks.free.len() + lock(&self.returned).len();
        drop(tasks);
        // Outside the lock: it may be the last reference, and a free runs what the task's name left (I6).
        drop(reference);
        empty
    }

    /// Leaves the key of one task, and takes a batch out if there is one. Whether the shard may be empty: yes,
    /// since only the other lock would tell.
    fn leave(&self, key: usize) -> bool {
        let batch = {
            let mut returned = lock(&self.returned);
            returned.push(key as u32);
            returned.len() >= BATCH
        };
        if batch {
            self.take_out_returned();
        }
        true
    }

    fn take_out_returned(&self) {
        let mut tasks = lock(&self.tasks);
        let keys = std::mem::take(&mut *lock(&self.returned));
        let references: Vec<_> = keys
            .iter()
            .map(|key| tasks.slots[*key as usize].take())
            .collect();
        tasks.free.extend(keys);
        drop(tasks);
        drop(references);
    }
}
