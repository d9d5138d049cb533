//! (a) One queue under one lock; who finds it empty waits on a condition.
//!
//! The simplest pool that is right, and the one that most programs have written for themselves: what
//! every other design is measured against.

use std::collections::VecDeque;
use std::sync::{Condvar, Mutex};

use super::{Design, Job};

/// The queue and its condition.
pub(crate) struct OneQueue {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    jobs: VecDeque<Job>,
    stopping: bool,
}

impl Design for OneQueue {
    const LETTER: char = 'a';

    type Local = ();

    fn new(workers: usize) -> (Self, Vec<()>) {
        let shared = OneQueue {
            state: Mutex::default(),
            changed: Condvar::new(),
        };
        (shared, vec![(); workers])
    }

    fn submit(&self, job: Job) {
        self.state.lock().unwrap().jobs.push_back(job);
        self.changed.notify_one();
    }

    fn work(&self, _: usize, (): ()) {
        let mut state = self.state.lock().unwrap();
        loop {
            if let Some(job) = state.jobs.pop_front() {
                drop(state);
                job();
                state = self.state.lock().unwrap();
            } else if state.stopping {
                return;
            } else {
                state = self.changed.wait(state).unwrap();
            }
        }
    }

    fn stop(&self) {
        self.state.lock().unwrap().stopping = true;
        self.changed.notify_all();
    }
}
