//! The backlog: tasks spawned or woken from outside the workers, which refill from it in batches. It can be
//! given a capacity, for producers that outrun the workers.
//!
//! What is bounded is the number of tasks that were submitted from outside and have not begun to run. Only
//! `try_spawn`, `spawn_when_free` and `spawn_or_run` ask for room; plain `spawn` counts, but is never refused.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::task::{Poll, Waker};

use crossbeam_deque::{Injector, Steal, Worker};

use crate::sync::{Mutex, lock};
use crate::task::refs::Runnable;

/// The least that one refill takes, if there is as much.
const REFILL_FLOOR: usize = 8;

/// The most that one refill takes: what the injector hands out at once.
const REFILL_CEILING: usize = 32;

pub(crate) struct Backlog {
    injector: Injector<Runnable>,
    admission: Option<Admission>,
}

impl Backlog {
    pub(crate) fn new(capacity: Option<usize>) -> Self {
        Self {
            injector: Injector::new(),
            admission: capacity.map(Admission::new),
        }
    }

    pub(crate) fn push(&self, task: Runnable) {
        self.injector.push(task);
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.injector.is_empty()
    }

    pub(crate) fn len(&self) -> usize {
        self.injector.len()
    }

    /// Takes one task to run and, into `lane`, a worker's share of the rest.
    pub(crate) fn refill(&self, lane: &Worker<Runnable>, workers: usize) -> Option<Runnable> {
        if self.injector.is_empty() {
            return None;
        }
        let share = (self.injector.len() / workers).clamp(REFILL_FLOOR, REFILL_CEILING);
        loop {
            match self.injector.steal_batch_with_limit_and_pop(lane, share) {
                Steal::Success(task) => return Some(task),
                Steal::Empty => return None,
                Steal::Retry => std::hint::spin_loop(),
            }
        }
    }

    pub(crate) fn admission(&self) -> Option<&Admission> {
        self.admission.as_ref()
    }
}

/// The places of a bounded backlog, and who waits for one.
pub(crate) struct Admission {
    capacity: usize,
    state: Mutex<Places>,
}

struct Places {
    used: usize,
    /// Waiting submitters, the oldest first. One that leaves while it is chosen passes the choice on.
    waiting: VecDeque<(u64, Waker)>,
    next_ticket: u64,
}

impl Admission {
    fn new(capacity: usize) -> Self {
        let places = Places {
            used: 0,
            waiting: VecDeque::new(),
            next_ticket: 0,
        };
        Self {
            capacity,
            state: Mutex::new(places),
        }
    }

    /// Takes a place, if there is one; it is given back by the task's first run.
    #[must_use]
    pub(crate) fn try_acquire(&self) -> bool {
        let mut places = lock(&self.state);
        let free = places.used < self.capacity;
        places.used += usize::from(free);
        free
    }

    /// Takes a place beyond the capacity if need be: for `spawn`, which is never refused.
    pub(crate) fn acquire_anyway(&self) {
        lock(&self.state).used += 1;
    }

    /// Gives a place back, and wakes whoever waited longest.
    pub(crate) fn release(&self) {
        let next = {
            let mut places = lock(&self.state);
            places.used -= 1;
            if places.used < self.capacity {
                places.waiting.pop_front()
            } else {
                None
            }
        };
        if let Some((_, waker)) = next {
            waker.wake();
        }
    }

    /// Waits for a place and takes it. Cancel safe: dropped while it waits, it holds none.
    pub(crate) async fn acquire(&self) {
        let mut ticket = Ticket {
            admission: self,
            number: None,
        };
        poll_fn(|cx| {
            let mut places = lock(&self.state);
            if places.used < self.capacity {
                places.used += 1;
                let stale = ticket
                    .number
                    .take()
                    .and_then(|number| places.forget(number));
                drop(places);
                drop(stale);
                return Poll::Ready(());
            }
            drop(places);
            // Cloned outside the lock, and put in under it with a second look at the count.
            let waker = cx.waker().clone();
            let mut places = lock(&self.state);
            if places.used < self.capacity {
                drop(places);
                waker.wake();
                return Poll::Pending;
            }
            let stale = places.stand(&mut ticket.number, waker);
            drop(places);
            drop(stale);
            Poll::Pending
        })
        .await;
    }
}

impl Places {
    /// Joins the line, or, for a submitter that stands in it and was polled again, keeps the turn and changes
    /// the waker; gives back the old one.
    fn stand(&mut self, ticket: &mut Option<u64>, waker: Waker) -> Option<Waker> {
        let standing = self
            .waiting
            .iter_mut()
            .find(|(number, _)| Some(*number) == *ticket);
        if let Some((_, old)) = standing {
            return Some(std::mem::replace(old, waker));
        }
        *ticket = Some(self.next_ticket);
        self.waiting.push_back((self.next_ticket, waker));
        self.next_ticket += 1;
        None
    }

    fn forget(&mut self, ticket: u64) -> Option<Waker> {
        let at = self
            .waiting
            .iter()
            .position(|(number, _)| *number == ticket)?;
        self.waiting.remove(at).map(|(_, waker)| waker)
    }
}

/// A submitter's place in the line; dropped early, it leaves it, or passes its wake on.
struct Ticket<'a> {
    admission: &'a Admission,
    number: Option<u64>,
}

impl Drop for Ticket<'_> {
    fn drop(&mut self) {
        let Some(number) = self.number.take() else {
            return;
        };
        let (own, next) = {
            let mut places = lock(&self.admission.state);
            match places.forget(number) {
                Some(own) => (Some(own), None),
                // It was chosen, and does not come: the next one may.
                None if places.used < self.admission.capacity => (None, places.waiting.pop_front()),
                None => (None, None),
            }
        };
        drop(own);
        if let Some((_, waker)) = next {
            waker.wake();
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests;
