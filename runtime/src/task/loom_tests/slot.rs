//! The next slot: its owner swaps and takes while thieves take, and each permit changes hands once.

use super::*;
use crate::task::refs::Runnable;
use crate::task::slot::{Origin, Slot};
use crate::task::tests::toy::{Birth, Tally};

struct Shared {
    scheduler: Arc<ToyScheduler>,
    slot: Slot,
}

impl Shared {
    fn new() -> Arc<Self> {
        Arc::new(Self {
            scheduler: ToyScheduler::new(),
            slot: Slot::new(),
        })
    }

    /// A detached task whose future reads a cell that this thread has written.
    fn task(&self, tally: &Arc<Tally>) -> Runnable {
        let written = loom::cell::Cell::new(1);
        let future = tally.future(move |_| {
            written.set(written.get() + 1);
            Poll::Ready(())
        });
        let (task, _) = self.scheduler.born(future, tally.extra(), Birth::default());
        drop(JoinHandle::of(task.output));
        task.runnable
    }

    fn take_and_run(&self) {
        if let Some((task, _)) = self.slot.take() {
            task.run();
        }
    }

    fn thief(self: &Arc<Self>) -> thread::JoinHandle<()> {
        let shared = Arc::clone(self);
        thread::spawn(move || shared.take_and_run())
    }
}

#[test]
fn an_owner_that_takes_against_a_thief() {
    check(3, || {
        let (shared, tally) = (Shared::new(), Tally::new());
        let displaced = shared.slot.put(shared.task(&tally), Origin::Woken);
        assert_eq!(displaced, None);
        let thief = shared.thief();
        shared.take_and_run();
        thief.join().unwrap();
        tally.expect(1, 1, 0, 1);
    });
}

#[test]
fn an_owner_that_swaps_against_a_thief() {
    check(3, || {
        let shared = Shared::new();
        let tallies = [Tally::new(), Tally::new()];
        let thief = shared.thief();
        for (tally, origin) in tallies.iter().zip([Origin::Spawned, Origin::Woken]) {
            if let Some((task, from)) = shared.slot.put(shared.task(tally), origin) {
                assert_eq!(from, Origin::Spawned, "the tag travels with its task");
                task.run();
            }
        }
        shared.take_and_run();
        thief.join().unwrap();
        for tally in &tallies {
            tally.expect(1, 1, 0, 1);
        }
    });
}

#[test]
fn two_thieves() {
    check(3, || {
        let (shared, tally) = (Shared::new(), Tally::new());
        let displaced = shared.slot.put(shared.task(&tally), Origin::Spawned);
        assert_eq!(displaced, None);
        let thieves = [shared.thief(), shared.thief()];
        for thief in thieves {
            thief.join().unwrap();
        }
        tally.expect(1, 1, 0, 1);
        assert!(shared.slot.is_empty());
    });
}
