//! The census: exact counts, and the watch for zero.

use std::iter::{empty, once};
use std::task::Waker;

use super::toy::{ToyScheduler, WakeCount};
use crate::sync::Arc;
use crate::task::census::{Census, Scope, Tally};

#[test]
fn every_task_counts_until_it_is_complete() {
    let scheduler = ToyScheduler::new();
    let mut tasks: Vec<_> = (0..10).map(|_| scheduler.detached()).collect();
    assert_eq!(scheduler.live(), 10);
    for left in [9, 8, 7] {
        tasks.remove(3).run();
        assert_eq!(scheduler.live(), left);
    }
    tasks.extend((0..5).map(|_| scheduler.detached()));
    assert_eq!(scheduler.live(), 12);
    for task in tasks {
        task.run();
    }
    assert_eq!(scheduler.live(), 0);
    assert_eq!(scheduler.registry.census.ended(Scope::All, empty), 15);
}

#[test]
fn it_is_the_sum_that_counts_not_where() {
    let (census, seats) = (Census::new(), [Tally::default(), Tally::default()]);
    let live = || census.live(Scope::Tasks, || seats.iter());
    assert!(census.birth_outside());
    seats[0].count_birth();
    assert_eq!(live(), 2);
    seats[1].count_end();
    assert_eq!(live(), 1);
    seats[1].count_end();
    assert_eq!(live(), 0);
}

#[test]
fn a_closed_census_counts_and_says_so() {
    let census = Census::new();
    census.close();
    assert!(!census.birth_outside());
    assert_eq!(census.live(Scope::Tasks, empty), 1);
    census.end_outside(empty);
    assert_eq!(census.live(Scope::Tasks, empty), 0);
}

#[test]
fn a_watch_at_zero_is_over_at_once() {
    let (census, count) = (Census::new(), WakeCount::new());
    assert!(!census.watch(Scope::All, Waker::from(Arc::clone(&count)), empty));
    assert_eq!(Arc::strong_count(&count), 1, "the waker is not kept");
    assert_eq!(count.get(), 0);
}

#[test]
fn whoever_is_last_wakes_the_watcher_once() {
    let scheduler = ToyScheduler::new();
    let census = &scheduler.registry.census;
    let tasks = [(); 3].map(|()| scheduler.detached());
    let count = WakeCount::new();
    assert!(census.watch(Scope::Tasks, Waker::from(Arc::clone(&count)), empty));
    let mut woken = Vec::new();
    for task in tasks {
        task.run();
        woken.push(count.get());
    }
    assert_eq!(woken, [0, 0, 1]);
    assert_eq!(Arc::strong_count(&count), 1);
    scheduler.detached().run();
    assert_eq!(count.get(), 1, "called once");
}

#[test]
fn a_worker_tells_the_watcher_when_it_looks() {
    let (census, seat, count) = (Census::new(), Tally::default(), WakeCount::new());
    seat.count_birth();
    let waker = Waker::from(Arc::clone(&count));
    assert!(census.watch(Scope::Tasks, waker, || once(&seat)));
    census.check(|| once(&seat));
    assert_eq!(count.get(), 0, "one is alive");
    seat.count_end();
    census.check(|| once(&seat));
    assert_eq!(count.get(), 1);
}

#[test]
fn blocking_jobs_count_only_where_asked() {
    let (census, count) = (Census::new(), WakeCount::new());
    census.job_birth();
    assert_eq!(census.live(Scope::Tasks, empty), 0);
    assert_eq!(census.live(Scope::All, empty), 1);
    assert!(!census.watch(Scope::Tasks, Waker::noop().clone(), empty));

    assert!(census.watch(Scope::All, Waker::from(Arc::clone(&count)), empty));
    assert!(census.birth_outside());
    census.end_outside(empty);
    assert_eq!(count.get(), 0, "a job is left");
    census.job_end(empty);
    assert_eq!(count.get(), 1);
}

#[test]
fn a_second_watch_takes_the_place_of_the_first() {
    let scheduler = ToyScheduler::new();
    let task = scheduler.detached();
    let counts = [WakeCount::new(), WakeCount::new()];
    for count in &counts {
        let waker = Waker::from(Arc::clone(count));
        assert!(scheduler.registry.census.watch(Scope::Tasks, waker, empty));
    }
    assert_eq!(Arc::strong_count(&counts[0]), 1);
    task.run();
    assert_eq!((counts[0].get(), counts[1].get()), (0, 1));
}
