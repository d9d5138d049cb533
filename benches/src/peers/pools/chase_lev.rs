//! (d) A Chase-Lev deque for each worker: the owner takes the newest job, thieves the oldest, half of
//! the deque of a random victim at once. Jobs from outside go to a backlog, which is taken in batches
//! before anything is stolen.
//!
//! What crossbeam-deque is made for, and the design that most schedulers with work stealing share.

use std::cell::RefCell;
use std::ptr;
use std::sync::atomic::{AtomicUsize, Ordering, fence};
use std::sync::{Condvar, Mutex};
use std::thread;

use crossbeam_deque::{Injector, Steal, Stealer, Worker};

use super::{Design, Job};
use crate::random::Random;

/// How often a worker that finds nothing looks again, yielding in between, before it sleeps.
const SEARCHES: usize = 8;

/// The deques from the thieves' side, the backlog, and who sleeps.
pub(crate) struct ChaseLev {
    backlog: Injector<Job>,
    stealers: Vec<Stealer<Job>>,
    /// How many workers sleep and were not called yet: what submitting looks at.
    sleepers: AtomicUsize,
    calls: Mutex<Calls>,
    called: Condvar,
}

#[derive(Default)]
struct Calls {
    /// Calls that no sleeper has answered yet.
    pending: usize,
    stopping: bool,
}

/// What a worker's thread knows.
struct Own {
    pool: *const ChaseLev,
    deque: Worker<Job>,
}

thread_local! {
    /// The pool whose worker this thread is, compared but never followed, and the worker's deque.
    static OWN: RefCell<Option<Own>> = const { RefCell::new(None) };
}

impl Design for ChaseLev {
    const LETTER: char = 'd';

    type Local = Worker<Job>;

    fn new(workers: usize) -> (Self, Vec<Worker<Job>>) {
        let deques: Vec<_> = (0..workers).map(|_| Worker::new_lifo()).collect();
        let shared = ChaseLev {
            backlog: Injector::new(),
            stealers: deques.iter().map(Worker::stealer).collect(),
            sleepers: AtomicUsize::new(0),
            calls: Mutex::default(),
            called: Condvar::new(),
        };
        (shared, deques)
    }

    fn submit(&self, job: Job) {
        OWN.with_borrow(|own| match own {
            Some(own) if ptr::eq(own.pool, self) => own.deque.push(job),
            _ => self.backlog.push(job),
        });
        // Pairs with the fence in `sleep`: either the sleeper is seen here, or the job there.
        fence(Ordering::SeqCst);
        if self.sleepers.load(Ordering::Relaxed) > 0 {
            self.call_one();
        }
    }

    fn work(&self, index: usize, deque: Worker<Job>) {
        OWN.set(Some(Own { pool: self, deque }));
        let mut random = Random::new(index as u64 + 1);
        loop {
            let job = own_deque(Worker::pop).or_else(|| self.searched(index, &mut random));
            match job {
                Some(job) => job(),
                // Jobs to come are those of running jobs, whose workers will run them.
                None if self.sleep() => return,
                None => {}
            }
        }
    }

    fn stop(&self) {
        self.calls.lock().unwrap().stopping = true;
        self.called.notify_all();
    }
}

impl ChaseLev {
    /// Looks for a job of others a few times, then gives up.
    fn searched(&self, index: usize, random: &mut Random) -> Option<Job> {
        for _ in 0..SEARCHES {
            let found = own_deque(|deque| self.taken(index, deque, random));
            if found.is_some() {
                return found;
            }
            thread::yield_now();
        }
        None
    }

    /// A job from the backlog or from another worker; more of them come along into the own deque.
    fn taken(&self, index: usize, deque: &Worker<Job>, random: &mut Random) -> Option<Job> {
        let certain = |take: &dyn Fn() -> Steal<Job>| {
            loop {
                match take() {
                    Steal::Success(job) => return Some(job),
                    Steal::Empty => return None,
                    Steal::Retry => {}
                }
            }
        };
        let count = self.stealers.len();
        let first = random.next_u32() as usize % count;
        certain(&|| self.backlog.steal_batch_and_pop(deque)).or_else(|| {
            (first..first + count)
                .map(|number| number % count)
                .filter(|victim| *victim != index)
                .find_map(|victim| {
                    // Half, however many: the limit that the shorter name implies is 32.
                    certain(&|| {
                        self.stealers[victim].steal_batch_with_limit_and_pop(deque, usize::MAX)
                    })
                })
        })
    }

    /// Waits to be called, unless there is something to do. Whether the pool was stopped, and nothing is
    /// left to do.
    fn sleep(&self) -> bool {
        let mut calls = self.calls.lock().unwrap();
        self.sleepers.fetch_add(1, Ordering::Relaxed);
        // Pairs with the fence in `submit`.
        fence(Ordering::SeqCst);
        let idle = self.backlog.is_empty() && self.stealers.iter().all(Stealer::is_empty);
        if idle && !calls.stopping {
            while calls.pending == 0 && !calls.stopping {
                calls = self.called.wait(calls).unwrap();
            }
        }
        // A call has taken this one off the count already: it is answered, though it need not have
        // been this sleeper's. Without one, the count is still to be put right.
        match calls.pending.checked_sub(1) {
            Some(pending) => {
                calls.pending = pending;
                false
            }
            None => {
                self.sleepers.fetch_sub(1, Ordering::Relaxed);
                idle && calls.stopping
            }
        }
    }

    #[cold]
    fn call_one(&self) {
        let mut calls = self.calls.lock().unwrap();
        // Read again under the lock, under which alone it changes.
        if self.sleepers.load(Ordering::Relaxed) > 0 {
            self.sleepers.fetch_sub(1, Ordering::Relaxed);
            calls.pending += 1;
            drop(calls);
            self.called.notify_one();
        }
    }
}

/// What `take` makes of this worker's deque, which is not borrowed any more when the job runs.
fn own_deque(take: impl FnOnce(&Worker<Job>) -> Option<Job>) -> Option<Job> {
    OWN.with_borrow(|own| take(&own.as_ref().expect("this thread is a worker").deque))
}
