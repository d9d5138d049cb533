//! The backlog: tasks spawned or woken from outside the workers, which refill from it in batches. It can be
//! given a capacity, for producers that outrun the workers.
//!
//! What is bounded is the number of tasks that were submitted from outside and have not begun to run. Only
//! `try_spawn`, `spawn_when_free` and `spawn_or_run` ask for room; plain `spawn` counts, but is never refused.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::task::{Poll, Waker};

use crossbeam_deque::{Injector, Steal, Worker};

use crate::panic;
use crate::sync::{Mutex, lock};
use crate::task::raw::Kind;
use crate::task::refs::Runnable;

/// The least that one refill takes, if there is as much.
const REFILL_FLOOR: usize = 8;

/// The most that one refill takes: what the injector hands out at once.
const REFILL_CEILING: usize = 32;

pub(crate) struct Backlog {
    injector: Injector<Runnable>,
    /// Forked jobs of `join` whose thief left before it came to them. Apart, since the threads that wait for them
    /// run jobs, and no tasks.
    jobs: Injector<Runnable>,
    admission: Option<Admission>,
}

impl Backlog {
    pub(crate) fn new(capacity: Option<usize>) -> Self {
        Self {
            injector: Injector::new(),
            jobs: Injector::new(),
            admission: capacity.map(Admission::new),
        }
    }

    pub(crate) fn push(&self, task: Runnable) {
        match task.kind() {
            Kind::Task => self.injector.push(task),
            Kind::StackJob => self.jobs.push(task),
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.injector.is_empty() && self.jobs.is_empty()
    }

    pub(crate) fn len(&self) -> usize {
        self.injector.len() + self.jobs.len()
    }

    /// A forked job that was left behind.
    pub(crate) fn take_job(&self) -> Option<Runnable> {
        if self.jobs.is_empty() {
            return None;
        }
        loop {
            match self.jobs.steal() {
                Steal::Success(job) => return Some(job),
                Steal::Empty => return None,
                Steal::Retry => std::hint::spin_loop(),
            }
        }
    }

    /// Takes one task to run and, into `lane`, a worker's share of the rest.
    pub(crate) fn refill(&self, lane: &Worker<Runnable>, workers: usize) -> Option<Runnable> {
        if let Some(job) = self.take_job() {
            return Some(job);
        }
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

/// Waiting implies that no place is free: one that is given back goes to the first in the line at once, so that
/// nobody who comes later, or does not wait, takes it.
struct Places {
    used: usize,
    waiting: VecDeque<(u64, Waker)>,
    /// Tickets of those who were given a place and have not come for it yet.
    granted: Vec<u64>,
    next_ticket: u64,
}

impl Admission {
    fn new(capacity: usize) -> Self {
        let places = Places {
            used: 0,
            waiting: VecDeque::new(),
            granted: Vec::new(),
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

    /// Gives a place back, or on to whoever waited longest.
    pub(crate) fn release(&self) {
        let next = {
            let mut places = lock(&self.state);
            let next = if places.used <= self.capacity {
                places.waiting.pop_front()
            } else {
                None
            };
            match &next {
                Some((ticket, _)) => places.granted.push(*ticket),
                None => places.used -= 1,
            }
            next
        };
        if let Some((_, waker)) = next {
            // On the worker that has just begun the task whose place it was.
            panic::contained(|| waker.wake());
        }
    }

    /// Waits for a place and takes it. Cancel safe: dropped while it waits, it holds none.
    pub(crate) async fn acquire(&self) {
        let mut ticket = Ticket {
            admission: self,
            number: None,
        };
        poll_fn(|cx| {
            // Cloned, and what is replaced dropped, outside the lock: both may be user code (I6).
            let mut waker = cx.waker().clone();
            let mut places = lock(&self.state);
            let Some(number) = ticket.number else {
                if places.used < self.capacity {
                    places.used += 1;
                    drop(places);
                    return Poll::Ready(());
                }
                ticket.number = Some(places.next_ticket);
                let entry = (places.next_ticket, waker);
                places.next_ticket += 1;
                places.waiting.push_back(entry);
                return Poll::Pending;
            };
            if places.take_grant(number) {
                ticket.number = None;
                drop(places);
                return Poll::Ready(());
            }
            let place = places
                .waiting
                .iter_mut()
                .find(|(other, _)| *other == number);
            let (_, known) = place.expect("a ticket waits or was granted");
            std::mem::swap(known, &mut waker);
            drop(places);
            Poll::Pending
        })
        .await;
    }
}

impl Places {
    fn take_grant(&mut self, ticket: u64) -> bool {
        let at = self.granted.iter().position(|other| *other == ticket);
        at.map(|at| self.granted.swap_remove(at)).is_some()
    }

    fn leave_line(&mut self, ticket: u64) -> Option<Waker> {
        let at = self
            .waiting
            .iter()
            .position(|(other, _)| *other == ticket)?;
        self.waiting.remove(at).map(|(_, waker)| waker)
    }
}

/// A submitter's place in the line; dropped early, it leaves the line, or gives back what it was granted.
struct Ticket<'a> {
    admission: &'a Admission,
    number: Option<u64>,
}

impl Drop for Ticket<'_> {
    fn drop(&mut self) {
        let Some(number) = self.number.take() else {
            return;
        };
        let (granted, waker) = {
            let mut places = lock(&self.admission.state);
            (places.take_grant(number), places.leave_line(number))
        };
        drop(waker);
        if granted {
            self.admission.release();
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests;
