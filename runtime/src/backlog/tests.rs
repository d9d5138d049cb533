//! Refills and admission: how much a worker takes, how many places there are, and whose turn it is.

use std::future::Future;
use std::pin::{Pin, pin};
use std::task::Context;

use super::*;
use crate::sync::Arc;
use crate::task::tests::toy::{ToyScheduler, WakeCount};

/// A backlog with tasks in it; what is left is run at the end.
struct Filled {
    backlog: Backlog,
    _scheduler: Arc<ToyScheduler>,
}

impl std::ops::Deref for Filled {
    type Target = Backlog;

    fn deref(&self) -> &Backlog {
        &self.backlog
    }
}

impl Drop for Filled {
    fn drop(&mut self) {
        while !refill(&self.backlog, 1).is_empty() {}
    }
}

fn filled(tasks: usize) -> Filled {
    let (scheduler, backlog) = (ToyScheduler::new(), Backlog::new(None));
    for _ in 0..tasks {
        backlog.push(scheduler.detached());
    }
    Filled {
        backlog,
        _scheduler: scheduler,
    }
}

/// Refills once and runs what came: the ids, in order.
fn refill(backlog: &Backlog, workers: usize) -> Vec<u64> {
    let lane = Worker::new_fifo();
    let first = backlog.refill(&lane, workers);
    let rest = std::iter::from_fn(|| lane.pop());
    first
        .into_iter()
        .chain(rest)
        .map(|task| {
            let id = task.as_task().unwrap().id().get().get();
            task.run();
            id
        })
        .collect()
}

/// A submitter in the line, polled by hand.
struct Submitter<'a> {
    future: Pin<Box<dyn Future<Output = ()> + 'a>>,
    wakes: Arc<WakeCount>,
}

impl<'a> Submitter<'a> {
    fn new(admission: &'a Admission) -> Self {
        Self {
            future: Box::pin(admission.acquire()),
            wakes: WakeCount::new(),
        }
    }

    /// One that has been polled and waits.
    #[track_caller]
    fn waiting(admission: &'a Admission) -> Self {
        let mut submitter = Self::new(admission);
        assert!(!submitter.got_a_place());
        submitter
    }

    fn got_a_place(&mut self) -> bool {
        let waker = Waker::from(Arc::clone(&self.wakes));
        let mut cx = Context::from_waker(&waker);
        self.future.as_mut().poll(&mut cx).is_ready()
    }
}

#[test]
fn an_empty_backlog_gives_nothing() {
    let backlog = filled(0);
    assert!(backlog.is_empty());
    assert_eq!(refill(&backlog, 1), []);
}

#[test]
fn a_refill_takes_the_oldest_and_at_least_the_floor() {
    let backlog = filled(20);
    assert_eq!(refill(&backlog, 100), [1, 2, 3, 4, 5, 6, 7, 8]);
    assert_eq!(backlog.len(), 20 - REFILL_FLOOR);
}

#[test]
fn a_refill_takes_a_workers_share_up_to_the_ceiling() {
    // Few enough to lie in one block of the injector, which hands out half of that at most.
    assert_eq!(refill(&filled(50), 5).len(), 10);
    assert_eq!(refill(&filled(50), 2).len(), 25);
    let backlog = filled(1000);
    let mut taken = Vec::new();
    while !backlog.is_empty() {
        let more = refill(&backlog, 1);
        assert!((1..=REFILL_CEILING).contains(&more.len()));
        taken.extend(more);
    }
    assert!(taken.is_sorted() && taken.len() == 1000, "oldest first");
}

#[test]
fn without_a_capacity_there_is_no_admission() {
    assert!(Backlog::new(None).admission().is_none());
    assert!(Backlog::new(Some(1)).admission().is_some());
}

#[test]
fn places_are_as_many_as_the_capacity() {
    let admission = Admission::new(2);
    assert!(admission.try_acquire() && admission.try_acquire());
    assert!(!admission.try_acquire());
    admission.release();
    assert!(admission.try_acquire());
    assert!(!admission.try_acquire());
}

#[test]
fn a_spawn_that_is_never_refused_counts_beyond_the_capacity() {
    let admission = Admission::new(1);
    admission.acquire_anyway();
    admission.acquire_anyway();
    let mut waiter = Submitter::waiting(&admission);
    admission.release();
    assert!(!admission.try_acquire(), "one place is still owed");
    assert_eq!(waiter.wakes.get(), 0);
    admission.release();
    assert_eq!(waiter.wakes.get(), 1);
    assert!(waiter.got_a_place());
}

#[test]
fn a_free_place_is_taken_at_once() {
    let admission = Admission::new(1);
    assert!(Submitter::new(&admission).got_a_place());
    assert!(!admission.try_acquire());
}

#[test]
fn whoever_waited_longest_is_woken_first() {
    let admission = Admission::new(1);
    assert!(admission.try_acquire());
    let mut waiting = [(); 3].map(|()| Submitter::waiting(&admission));
    for at in 0..3 {
        admission.release();
        let wakes: Vec<_> = waiting.iter().map(|waiter| waiter.wakes.get()).collect();
        let expected: Vec<_> = (0..3).map(|other| usize::from(other <= at)).collect();
        assert_eq!(wakes, expected);
        assert!(waiting[at].got_a_place());
        assert!(!admission.try_acquire());
    }
}

#[test]
fn a_waiter_that_leaves_the_line_is_not_chosen() {
    let admission = Admission::new(1);
    assert!(admission.try_acquire());
    let first = Submitter::waiting(&admission);
    let mut second = Submitter::waiting(&admission);
    let left = Arc::clone(&first.wakes);
    drop(first);
    assert_eq!(Arc::strong_count(&left), 1, "its waker went with it");
    admission.release();
    assert_eq!((left.get(), second.wakes.get()), (0, 1));
    assert!(second.got_a_place());
}

#[test]
fn a_chosen_waiter_that_leaves_passes_its_turn_on() {
    let admission = Admission::new(1);
    assert!(admission.try_acquire());
    let first = Submitter::waiting(&admission);
    let mut second = Submitter::waiting(&admission);
    admission.release();
    assert_eq!((first.wakes.get(), second.wakes.get()), (1, 0));
    drop(first);
    assert_eq!(second.wakes.get(), 1);
    assert!(second.got_a_place());
}

#[test]
fn a_waiter_that_is_polled_again_keeps_one_waker() {
    let admission = Admission::new(1);
    assert!(admission.try_acquire());
    let mut waiter = Submitter::waiting(&admission);
    for _ in 0..3 {
        assert!(!waiter.got_a_place());
    }
    assert_eq!(lock(&admission.state).waiting.len(), 1);
    drop(waiter);
    assert!(lock(&admission.state).waiting.is_empty());
}

#[test]
fn the_waker_of_the_last_poll_is_woken() {
    let admission = Admission::new(1);
    assert!(admission.try_acquire());
    let mut waiter = Submitter::waiting(&admission);
    let before = std::mem::replace(&mut waiter.wakes, WakeCount::new());
    assert!(!waiter.got_a_place());
    assert_eq!(Arc::strong_count(&before), 1, "replaced, so dropped");
    admission.release();
    assert_eq!((before.get(), waiter.wakes.get()), (0, 1));
}

/// A poll for another reason must not cost a submitter the turn that it has waited for.
#[test]
fn a_waiter_that_is_polled_again_keeps_its_turn() {
    let admission = Admission::new(1);
    assert!(admission.try_acquire());
    let mut first = Submitter::waiting(&admission);
    let second = Submitter::waiting(&admission);
    assert!(!first.got_a_place());
    admission.release();
    assert_eq!((first.wakes.get(), second.wakes.get()), (1, 0));
}

#[test]
fn nobody_takes_the_place_that_a_woken_waiter_was_given() {
    let admission = Admission::new(1);
    assert!(admission.try_acquire());
    let mut waiter = Submitter::waiting(&admission);
    admission.release();
    assert!(!admission.try_acquire(), "one that does not wait");
    let mut later = Submitter::waiting(&admission);
    assert!(!later.got_a_place(), "one that comes later");
    assert_eq!(waiter.wakes.get(), 1);
    assert!(waiter.got_a_place());
    admission.release();
    assert_eq!(later.wakes.get(), 1);
    assert!(later.got_a_place());
}

#[test]
fn a_submitter_that_got_its_place_frees_nothing_by_its_drop() {
    let admission = Admission::new(1);
    {
        let mut acquire = pin!(admission.acquire());
        let mut cx = Context::from_waker(Waker::noop());
        assert_eq!(acquire.as_mut().poll(&mut cx), Poll::Ready(()));
    }
    assert!(!admission.try_acquire());
}
