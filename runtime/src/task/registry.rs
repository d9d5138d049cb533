//! The registry of tasks that wait: so that a shutdown finds them to cancel, and a dump to show.
//!
//! A task that can run is in a queue, and one that runs is on a worker: both will be seen to. One that waits is
//! out of everybody's reach but for its wakers, so it is registered before its first poll that was not ready
//! ends, and stays until it is complete. Many tasks never wait, and cost nothing here. A few are registered when
//! they are born: those with a name, for reports, and those that a worker does not run. How many are alive is
//! counted elsewhere (`census.rs`).
//!
//! One shard for each worker seat, under a lock that only that worker usually takes, and a few for everybody
//! else. A shard holds the scheduler's reference to each task, so a walk from another thread finds cells that
//! are alive. Blocking jobs stand in a shard of their own.
//!
//! A task often completes on another worker than it was registered on. If that worker took the shard's lock for each,
//! the two would meet there all the time. So it leaves the key in the shard's `returned` list, which has a
//! lock of its own, and takes a batch of them out at once when there are [`BATCH`]. Until then the cell, whose
//! future is gone, stays allocated. Lock order: a shard's `tasks`, then its `returned`.

use super::census::Census;
use super::refs::TaskRef;
use crate::sync::{CachePadded, Mutex, lock};

/// Shards for those who are no workers; few in the models, where each is a lock more to explore.
const OUTSIDE: usize = if cfg!(loom) { 2 } else { 4 };

/// Keys that are taken out of a shard at once.
const BATCH: usize = if cfg!(loom) { 2 } else { 64 };

pub(crate) struct Registry {
    pub(crate) census: Census,
    shards: Box<[Shard]>,
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
}

impl Registry {
    /// `seats`: how many shards to keep for worker seats.
    pub(crate) fn new(seats: usize) -> Self {
        Self {
            census: Census::new(),
            shards: (0..seats + OUTSIDE + 1).map(|_| Shard::default()).collect(),
        }
    }

    /// The shard for a task that waits on `seat`, or (`None`) outside the workers.
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

    /// Takes the scheduler's reference in, on behalf of whoever holds the task's permit or polls it. `Err` gives it
    /// back: the runtime is shutting down and the caller must cancel the task.
    pub(crate) fn insert(&self, task: TaskRef, shard: u32) -> Result<(), TaskRef> {
        let mut tasks = lock(&self.shards[shard as usize].tasks);
        // Under the lock: `snapshot`, which follows the closing, takes it too. Either it finds the task, or the
        // closing is seen here.
        if self.census.is_closed() {
            return Err(task);
        }
        let key = tasks
            .free
            .pop()
            .map_or(tasks.slots.len(), |key| key as usize);
        task.set_registry_key(shard, key);
        if key == tasks.slots.len() {
            tasks.slots.push(Some(task));
        } else {
            tasks.slots[key] = Some(task);
        }
        Ok(())
    }

    /// Gives up the scheduler's reference to a task that is complete.
    pub(crate) fn remove(&self, key: Key) {
        let shard = &self.shards[key.shard];
        if crate::context::home_shard() == Some(key.shard) {
            shard.take_out(key.index);
        } else {
            shard.leave(key.index);
        }
    }

    /// A reference to each task that is registered and not complete; those of blocking jobs last.
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

    /// Frees the cells that are left of complete tasks in a seat's shard: it has nothing better to do.
    pub(crate) fn tidy(&self, seat: usize) {
        let shard = &self.shards[self.shard_for(Some(seat)) as usize];
        let left = !lock(&shard.returned).is_empty();
        if left {
            shard.take_out_returned();
        }
    }

    /// Frees the cells that are left of complete tasks.
    pub(crate) fn flush(&self) {
        for shard in &self.shards {
            shard.take_out_returned();
        }
    }
}

impl Shard {
    fn take_out(&self, key: usize) {
        let reference = {
            let mut tasks = lock(&self.tasks);
            tasks.free.push(key as u32);
            tasks.slots[key].take()
        };
        // Outside the lock: it may be the last reference, and a free runs what the task's name left (I6).
        drop(reference);
    }

    /// Leaves the key of one task, and takes a batch out if there is one.
    fn leave(&self, key: usize) {
        let batch = {
            let mut returned = lock(&self.returned);
            returned.push(key as u32);
            returned.len() >= BATCH
        };
        if batch {
            self.take_out_returned();
        }
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
