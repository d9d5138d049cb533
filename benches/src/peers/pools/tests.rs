//! Nothing is lost: no job, no wake-up, no thread.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use super::*;
use crate::countdown::Countdown;
use crate::watchdog::Watchdog;

/// Runs every test on every design, with fewer, as many and more workers than cores.
fn everywhere(label: &str, test: &dyn Fn(Start)) {
    fn with<D: Design>(label: &str, test: &dyn Fn(Start)) {
        let watchdog = Watchdog::start();
        watchdog.watch(format!("{label}, pool {}", D::LETTER));
        test(&|| Box::new(Pool::<D, 1>::start()));
        test(&|| Box::new(Pool::<D, 2>::start()));
        test(&|| Box::new(Pool::<D, 5>::start()));
        watchdog.rest();
    }
    with::<OneQueue>(label, test);
    with::<LockedDeques>(label, test);
    with::<BoundedDeques>(label, test);
    with::<ChaseLev>(label, test);
}

/// Starts a pool.
type Start<'a> = &'a dyn Fn() -> Box<dyn AnyPool>;

/// A way to submit.
type Submit = Arc<dyn Fn(Job) + Send + Sync>;

/// A pool of any design.
trait AnyPool {
    fn submit(&self) -> Submit;
}

impl<D: Design, const W: usize> AnyPool for Pool<D, W> {
    fn submit(&self) -> Submit {
        let spawner = self.inside();
        Arc::new(move |job| spawner.run(job))
    }
}

/// A job that submits two of itself, `depth` deep.
fn tree(submit: Submit, depth: u32, countdown: &'static Countdown) -> Job {
    Box::new(move || {
        if depth > 0 {
            submit(tree(submit.clone(), depth - 1, countdown));
            submit(tree(submit.clone(), depth - 1, countdown));
        }
        countdown.count();
    })
}

fn wait(countdown: &Countdown) {
    futures::executor::block_on(countdown.wait());
}

#[test]
fn jobs_of_jobs_all_run() {
    everywhere("jobs of jobs", &|start| {
        let pool = start();
        for _ in 0..4 {
            let countdown = Countdown::leak((1 << 13) - 1);
            let submit = pool.submit();
            submit(tree(submit.clone(), 12, countdown));
            wait(countdown);
        }
    });
}

#[test]
fn jobs_of_many_outside_threads_all_run() {
    everywhere("jobs from outside", &|start| {
        let pool = start();
        let countdown = Countdown::leak(4 * 2000);
        thread::scope(|scope| {
            for _ in 0..4 {
                let submit = pool.submit();
                scope.spawn(move || {
                    (0..2000).for_each(|_| submit(Box::new(|| countdown.count())));
                });
            }
        });
        wait(countdown);
    });
}

#[test]
fn idle_workers_are_woken_each_time() {
    everywhere("waking idle workers", &|start| {
        let pool = start();
        let submit = pool.submit();
        for round in 0..400_u64 {
            let jobs = 1 + round % 3;
            let countdown = Countdown::leak(jobs);
            (0..jobs).for_each(|_| submit(Box::new(|| countdown.count())));
            wait(countdown);
            // Different distances from the moment at which the workers lie down.
            (0..round * 50 % 7000).for_each(|_| std::hint::spin_loop());
        }
    });
}

#[test]
fn a_pool_that_is_dropped_runs_what_it_was_given() {
    everywhere("dropping a pool", &|start| {
        for jobs in 0..100 {
            let ran = Arc::new(AtomicU64::new(0));
            let pool = start();
            let submit = pool.submit();
            for _ in 0..jobs {
                let (ran, inner) = (ran.clone(), submit.clone());
                submit(Box::new(move || {
                    let once_more = ran.clone();
                    inner(Box::new(move || {
                        once_more.fetch_add(1, Ordering::Relaxed);
                    }));
                    ran.fetch_add(1, Ordering::Relaxed);
                }));
            }
            drop(pool);
            assert_eq!(ran.load(Ordering::Relaxed), 2 * jobs);
        }
    });
}

#[test]
fn names_tell_design_and_workers() {
    assert_eq!(Pool::<OneQueue, 2>::name(), "pool-a-2");
    assert_eq!(Pool::<ChaseLev, 1>::name(), "pool-d-1");
}
