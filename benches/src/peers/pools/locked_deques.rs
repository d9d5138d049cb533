//! (b) A deque for each worker, each under a lock of its own. The owner takes the front, thieves take
//! the back, and who finds nothing yields the processor and looks again.
//!
//! Nobody ever sleeps, so nobody is ever woken: fast in a benchmark, and the whole machine busy while
//! there is nothing to do.

use std::cell::Cell;
use std::collections::VecDeque;
use std::ptr;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;

use super::{Design, Job};

/// The deques of all workers.
pub(crate) struct LockedDeques {
    deques: Vec<Mutex<VecDeque<Job>>>,
    /// Whose turn it is to get a job from outside.
    next: AtomicUsize,
    stopping: AtomicBool,
}

thread_local! {
    /// The pool whose worker this thread is, compared but never followed, and the worker's number.
    static WORKER: Cell<(*const LockedDeques, usize)> = const { Cell::new((ptr::null(), 0)) };
}

impl Design for LockedDeques {
    const LETTER: char = 'b';

    type Local = ();

    fn new(workers: usize) -> (Self, Vec<()>) {
        let shared = LockedDeques {
            deques: (0..workers).map(|_| Mutex::default()).collect(),
            next: AtomicUsize::new(0),
            stopping: AtomicBool::new(false),
        };
        (shared, vec![(); workers])
    }

    fn submit(&self, job: Job) {
        let (pool, own) = WORKER.get();
        let index = if ptr::eq(pool, self) {
            own
        } else {
            self.next.fetch_add(1, Ordering::Relaxed) % self.deques.len()
        };
        self.deques[index].lock().unwrap().push_back(job);
    }

    fn work(&self, index: usize, (): ()) {
        WORKER.set((self, index));
        loop {
            // Read before the search: what was submitted before the pool was stopped is then found.
            let stopping = self.stopping.load(Ordering::Acquire);
            match self.own(index).or_else(|| self.stolen(index)) {
                Some(job) => job(),
                // Jobs to come are those of running jobs, whose workers will run them.
                None if stopping => return,
                None => thread::yield_now(),
            }
        }
    }

    fn stop(&self) {
        self.stopping.store(true, Ordering::Release);
    }
}

impl LockedDeques {
    fn own(&self, index: usize) -> Option<Job> {
        self.deques[index].lock().unwrap().pop_front()
    }

    fn stolen(&self, index: usize) -> Option<Job> {
        (1..self.deques.len())
            .map(|step| (index + step) % self.deques.len())
            .find_map(|victim| self.deques[victim].lock().unwrap().pop_back())
    }
}
