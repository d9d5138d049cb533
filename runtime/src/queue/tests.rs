//! Which task of a seat runs next: the slot and its limit, the lanes in turn, late mode and its ends.

use super::*;
use crate::sync::Arc;
use crate::task::tests::toy::ToyScheduler;

/// A seat's queues, and tasks that are told apart by their ids.
struct Bench {
    scheduler: Arc<ToyScheduler>,
    lanes: Lanes,
    shelf: Shelf,
}

impl Bench {
    fn new() -> Self {
        let (lanes, shelf) = Lanes::new();
        Self {
            scheduler: ToyScheduler::new(),
            lanes,
            shelf,
        }
    }

    /// A new task; ids count from one.
    fn task(&self) -> Runnable {
        self.scheduler.detached()
    }

    /// Pushes a new task; whether work became visible.
    fn push(&self, origin: Origin, now: u32) -> bool {
        self.lanes.push(&self.shelf, self.task(), origin, now)
    }

    fn spawn(&self, count: usize, now: u32) {
        for _ in 0..count {
            self.push(Origin::Spawned, now);
        }
    }

    /// The id of the next task, which is run.
    fn pop(&self, now: u32) -> Option<u64> {
        let task = self.lanes.pop(&self.shelf, now)?;
        let id = task.as_task().expect("no stack jobs here").id().get().get();
        task.run();
        Some(id)
    }

    fn pop_all(&self, now: u32) -> Vec<u64> {
        std::iter::from_fn(|| self.pop(now)).collect()
    }
}

impl Drop for Bench {
    fn drop(&mut self) {
        self.lanes.drain(&self.shelf, Runnable::run);
    }
}

#[test]
fn only_a_displaced_task_is_visible() {
    let bench = Bench::new();
    assert!(
        !bench.push(Origin::Spawned, 0),
        "it lands in the empty slot"
    );
    assert!(!bench.shelf.has_visible_work());
    assert!(bench.push(Origin::Woken, 0), "it displaces the first");
    assert!(bench.shelf.has_visible_work());
    assert_eq!(bench.shelf.lanes_len(), 1);
    assert_eq!((bench.lanes.fork.len(), bench.lanes.fair.len()), (1, 0));
    assert!(bench.push(Origin::Woken, 0));
    assert_eq!((bench.lanes.fork.len(), bench.lanes.fair.len()), (1, 1));
}

#[test]
fn the_slot_runs_next_then_the_newest_spawn() {
    let bench = Bench::new();
    bench.spawn(4, 0);
    assert_eq!(bench.pop_all(0), [4, 3, 2, 1]);
}

#[test]
fn woken_tasks_are_served_oldest_first() {
    let bench = Bench::new();
    for _ in 0..4 {
        bench.push(Origin::Woken, 0);
    }
    assert_eq!(bench.pop_all(0), [4, 1, 2, 3]);
}

#[test]
fn the_lanes_take_turns() {
    let bench = Bench::new();
    bench.spawn(3, 0);
    for _ in 0..3 {
        bench.push(Origin::Woken, 0);
    }
    bench.lanes.flush_slot(&bench.shelf, 0);
    assert!(bench.shelf.slot.is_empty());
    assert_eq!(bench.pop_all(0), [3, 4, 2, 5, 1, 6]);
}

/// A pair of tasks that wake each other through the slot must let the lanes have their turn.
#[test]
fn the_slot_runs_three_times_in_a_row_at_most() {
    let bench = Bench::new();
    bench.spawn(3, 0);
    bench.lanes.flush_slot(&bench.shelf, 0);
    let mut from_slot = Vec::new();
    for _ in 0..8 {
        let task = bench.task();
        let id = task.as_task().unwrap().id().get().get();
        bench.lanes.push(&bench.shelf, task, Origin::Woken, 0);
        from_slot.push(bench.pop(0) == Some(id));
    }
    let expected = [true, true, true, false, true, true, true, false];
    assert_eq!(from_slot, expected);
    assert_eq!(SLOT_RUNS, 3);
}

#[test]
fn a_slot_beyond_its_limit_still_runs_when_the_lanes_are_empty() {
    let bench = Bench::new();
    for round in 1..10 {
        bench.push(Origin::Woken, 0);
        assert_eq!(bench.pop(0), Some(round));
    }
    assert_eq!(bench.pop(0), None);
}

#[test]
fn an_old_lane_is_served_oldest_first_until_its_oldest_is_young() {
    let bench = Bench::new();
    bench.spawn(3, 0);
    bench.lanes.flush_slot(&bench.shelf, 0);
    let late = LATE + 1;
    bench.spawn(3, late);
    bench.lanes.flush_slot(&bench.shelf, late);
    // 1 to 3 are late; 4 is the first that is not, and ends late mode; then the newest again.
    assert_eq!(bench.pop_all(late), [1, 2, 3, 4, 6, 5]);
    assert!(!bench.lanes.late.get());
}

#[test]
fn a_lane_is_not_late_at_the_limit() {
    let bench = Bench::new();
    bench.spawn(3, 0);
    bench.lanes.flush_slot(&bench.shelf, 0);
    assert_eq!(bench.pop_all(LATE), [3, 2, 1]);
}

/// Between two looks the newest is taken, however old the lane: the look is what costs.
#[test]
fn the_oldest_is_looked_at_once_in_a_while() {
    let bench = Bench::new();
    bench.spawn(2, LATE);
    bench.lanes.flush_slot(&bench.shelf, LATE);
    let now = LATE + 1;
    assert_eq!(bench.pop(now), Some(1), "a look: the oldest, though young");
    assert!(!bench.lanes.late.get());
    bench.spawn(2, now + 1);
    bench.lanes.flush_slot(&bench.shelf, now + 1);
    let next = now + LATE;
    assert_eq!(bench.pop(next), Some(4), "no look yet");
    assert_eq!(bench.pop(next + 1), Some(2), "the oldest: 2 is late");
    assert!(bench.lanes.late.get());
    assert_eq!(
        bench.pop(next + 1),
        Some(3),
        "not late: the end of late mode"
    );
    assert!(!bench.lanes.late.get());
}

#[test]
fn late_mode_ends_when_the_oldest_has_children() {
    let bench = Bench::new();
    bench.spawn(4, 0);
    bench.lanes.flush_slot(&bench.shelf, 0);
    let late = LATE + 1;
    assert_eq!(bench.pop(late), Some(1));
    assert!(bench.lanes.late.get());
    // Task 1 forks into 5 and 6.
    bench.spawn(2, late);
    assert_eq!(bench.pop(late), Some(6), "the slot");
    assert_eq!(bench.pop(late), Some(5), "newest first again");
    assert!(!bench.lanes.late.get());
    assert_eq!(bench.pop_all(late), [4, 3, 2]);
}

#[test]
fn late_mode_goes_on_when_the_oldest_has_no_children() {
    let bench = Bench::new();
    bench.spawn(4, 0);
    bench.lanes.flush_slot(&bench.shelf, 0);
    let late = LATE + 1;
    assert_eq!(bench.pop_all(late), [1, 2, 3, 4]);
}

#[test]
fn a_flood_with_children_stays_late() {
    let bench = Bench::new();
    bench.spawn(FAN_OUT + 2, 0);
    bench.lanes.flush_slot(&bench.shelf, 0);
    let late = LATE + 1;
    assert_eq!(bench.pop(late), Some(1));
    bench.spawn(2, late);
    bench.lanes.flush_slot(&bench.shelf, late);
    assert!(bench.lanes.fork.len() >= FAN_OUT);
    assert_eq!(bench.pop(late), Some(2), "oldest first still");
    assert!(bench.lanes.late.get());
}

#[test]
fn an_empty_lane_is_not_late() {
    let bench = Bench::new();
    bench.spawn(2, 0);
    bench.lanes.flush_slot(&bench.shelf, 0);
    let late = LATE + 1;
    assert_eq!(bench.pop(late), Some(1));
    assert!(bench.lanes.late.get());
    assert_eq!(bench.pop(late), Some(2));
    assert_eq!(bench.pop(late), None);
    assert!(!bench.lanes.late.get());
}

#[test]
fn coarse_time_wraps() {
    assert_eq!(stamp_of(1023), 0);
    assert_eq!(stamp_of(1024), 1);
    assert_eq!(stamp_of(u64::from(u32::MAX) << 10), u32::MAX);
    assert_eq!(stamp_of(1 << 42), 0);
    let bench = Bench::new();
    let before = u32::MAX - 10;
    bench.lanes.looked_at.set(before);
    bench.spawn(2, before);
    bench.lanes.flush_slot(&bench.shelf, before);
    let after = before.wrapping_add(LATE + 1);
    assert!(after < before, "the stamp has wrapped");
    assert_eq!(bench.pop(after), Some(1));
    assert!(bench.lanes.late.get());
}

#[test]
fn a_drain_takes_everything() {
    let bench = Bench::new();
    bench.spawn(3, 0);
    for _ in 0..3 {
        bench.push(Origin::Woken, 0);
    }
    let mut drained = 0;
    bench.lanes.drain(&bench.shelf, |task| {
        drained += 1;
        task.run();
    });
    assert_eq!(drained, 6);
    assert!(bench.shelf.slot.is_empty() && !bench.shelf.has_visible_work());
}
