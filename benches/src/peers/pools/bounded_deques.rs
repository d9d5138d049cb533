//! (c) A bounded deque for each worker, all under one lock, and two conditions: jobs are dealt out in
//! turn, a worker takes its whole deque at once, and whoever finds a deque full, and full still after
//! giving way once, runs the job itself.
//!
//! One lock for a batch instead of one for a job, and memory that is bounded: at the price of jobs that
//! nobody can take from the worker who holds the batch.

use std::collections::VecDeque;
use std::mem;
use std::sync::{Condvar, Mutex, MutexGuard};
use std::thread;

use super::{Design, Job};

/// Most jobs in one deque.
const CAPACITY: usize = 1024;

/// The deques of all workers, and each one's condition.
pub(crate) struct BoundedDeques {
    state: Mutex<State>,
    filled: Vec<Condvar>,
}

struct State {
    deques: Vec<VecDeque<Job>>,
    /// Whose turn it is to get a job.
    next: usize,
    stopping: bool,
}

impl Design for BoundedDeques {
    const LETTER: char = 'c';

    /// The batch that is being run. It and the deque change places, so that neither ever grows.
    type Local = VecDeque<Job>;

    fn new(workers: usize) -> (Self, Vec<Self::Local>) {
        let deques = || {
            (0..workers)
                .map(|_| VecDeque::with_capacity(CAPACITY))
                .collect::<Vec<_>>()
        };
        let shared = BoundedDeques {
            state: Mutex::new(State {
                deques: deques(),
                next: 0,
                stopping: false,
            }),
            filled: (0..workers).map(|_| Condvar::new()).collect(),
        };
        (shared, deques())
    }

    fn submit(&self, job: Job) {
        let mut state = self.state.lock().unwrap();
        let index = state.next;
        state.next = (index + 1) % self.filled.len();
        if state.is_closed(index) {
            drop(state);
            thread::yield_now();
            state = self.state.lock().unwrap();
        }
        self.put(state, index, job);
    }

    fn work(&self, index: usize, mut batch: VecDeque<Job>) {
        loop {
            let mut state = self.state.lock().unwrap();
            while state.deques[index].is_empty() {
                if state.stopping {
                    return;
                }
                state = self.filled[index].wait(state).unwrap();
            }
            mem::swap(&mut batch, &mut state.deques[index]);
            drop(state);
            batch.drain(..).for_each(|job| job());
        }
    }

    fn stop(&self) {
        self.state.lock().unwrap().stopping = true;
        self.filled.iter().for_each(Condvar::notify_one);
    }
}

impl BoundedDeques {
    /// Puts the job where its turn is, or runs it if that deque is full.
    fn put(&self, mut state: MutexGuard<'_, State>, index: usize, job: Job) {
        if state.is_closed(index) {
            drop(state);
            return job();
        }
        let deque = &mut state.deques[index];
        deque.push_back(job);
        // Only a worker whose deque was empty can be waiting.
        let first = deque.len() == 1;
        drop(state);
        if first {
            self.filled[index].notify_one();
        }
    }
}

impl State {
    /// Whether the deque takes no job: it is full, or its worker may have ended already.
    fn is_closed(&self, index: usize) -> bool {
        self.stopping || self.deques[index].len() == CAPACITY
    }
}
