//! The wheel against an ordered map, and at the places where levels meet.

use super::*;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::task::Wake;

use proptest::prelude::*;

const TICK: u64 = 1 << TICK_BITS;
/// The last tick that has an end.
const LAST_TICK: u64 = u64::MAX >> TICK_BITS;
const YEAR: u64 = 365 * 24 * 60 * 60 * 1_000_000_000;

/// Names of the timers that fired, in order.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<usize>>>);

struct Alarm {
    name: usize,
    log: Log,
}

/// A wheel, and what it should do.
#[derive(Default)]
struct Checked {
    wheel: Wheel,
    log: Log,
    now: u64,
    /// Those that wait, by tick and then by name: names go up.
    model: BTreeMap<(u64, usize), u64>,
    /// By name: key, and tick (`None` if it never fires). They stay when the timer is gone.
    timers: Vec<(TimerKey, Option<u64>)>,
    cancelled: bool,
}

#[derive(Clone, Debug)]
enum Step {
    InsertAfter(u64),
    InsertAt(u64),
    /// One of those inserted so far, gone or not.
    Remove(prop::sample::Index),
    Advance(u64),
    /// To just before something fires.
    AdvanceAlmost,
    AdvanceToNext,
}

impl Wake for Alarm {
    fn wake(self: Arc<Self>) {
        self.log.0.lock().unwrap().push(self.name);
    }
}

impl Default for Wheel {
    fn default() -> Wheel {
        Wheel::new()
    }
}

impl Log {
    fn waker(&self, name: usize) -> Waker {
        let log = self.clone();
        Waker::from(Arc::new(Alarm { name, log }))
    }

    /// The names in `due`.
    fn names(&self, due: Vec<Waker>) -> Vec<usize> {
        due.into_iter().for_each(Waker::wake);
        std::mem::take(&mut self.0.lock().unwrap())
    }
}

impl Checked {
    fn apply(&mut self, step: &Step) {
        match step {
            Step::InsertAfter(delay) => self.insert(self.now.saturating_add(*delay)),
            Step::InsertAt(deadline) => self.insert(*deadline),
            Step::Remove(index) if !self.timers.is_empty() => {
                self.remove(index.index(self.timers.len()));
            }
            Step::Remove(_) => {}
            Step::Advance(delay) => self.advance(self.now.saturating_add(*delay)),
            Step::AdvanceAlmost => match self.next_in_model() {
                u64::MAX => {}
                next => self.advance(self.now.max(next.saturating_sub(1))),
            },
            Step::AdvanceToNext => match self.next_in_model() {
                u64::MAX => {}
                next => self.advance(self.now.max(next)),
            },
        }
        let expected = self.next_in_model();
        let expiry = self.wheel.next_expiry();
        assert!(expiry <= expected, "{expiry} is later than {expected}");
        if !self.cancelled {
            assert_eq!(expiry, expected, "not the best bound");
        }
    }

    fn insert(&mut self, deadline: u64) {
        let name = self.timers.len();
        let (key, fires_at) = self.wheel.insert(deadline, self.log.waker(name));
        let tick = (u128::from(deadline).div_ceil(TICK.into()) as u64).max(self.now / TICK);
        let tick = (tick <= LAST_TICK).then_some(tick);
        self.timers.push((key, tick));
        match tick {
            Some(tick) => {
                assert_eq!(fires_at, tick * TICK);
                self.model.insert((tick, name), deadline);
            }
            None => assert_eq!(fires_at, u64::MAX),
        }
    }

    fn remove(&mut self, name: usize) {
        let (key, tick) = self.timers[name];
        let waker = self.wheel.remove(key);
        match tick {
            Some(tick) => {
                let was_there = self.model.remove(&(tick, name)).is_some();
                assert_eq!(waker.is_some(), was_there, "timer {name}");
                self.cancelled |= was_there;
            }
            None => self.timers[name].1 = Some(0),
        }
        assert_eq!(
            self.log.names(Vec::from_iter(waker.clone())).len(),
            usize::from(waker.is_some())
        );
        assert!(self.wheel.remove(key).is_none(), "removed twice");
        assert!(self.wheel.waker_mut(key).is_none());
    }

    fn advance(&mut self, now: u64) {
        let mut due = Vec::new();
        self.wheel.advance(now, &mut due);
        self.now = now;
        let left = self.model.split_off(&(now / TICK + 1, 0));
        let expected = std::mem::replace(&mut self.model, left);
        assert!(expected.values().all(|&deadline| deadline <= now), "early");
        let expected: Vec<_> = expected.into_keys().map(|(_, name)| name).collect();
        assert_eq!(self.log.names(due), expected, "at {now}");
        let next = self.wheel.next_expiry();
        assert!(next > now || next == u64::MAX, "the poller would not wait");
    }

    fn next_in_model(&self) -> u64 {
        match self.model.first_key_value() {
            Some((&(tick, _), _)) => tick * TICK,
            None => u64::MAX,
        }
    }
}

/// Spans of time that matter to the wheel: near every whole number of slots of every level.
fn spans() -> impl Strategy<Value = u64> {
    let near_slots = (0..=LEVELS as u32, 0_u64..=65, -2_i64..=2, -1_i64..=1).prop_map(
        |(level, slots, nanos, ticks)| {
            let span = u128::from(slots) << (TICK_BITS + DIGIT_BITS * level);
            let span = u64::try_from(span).unwrap_or(u64::MAX);
            span.saturating_add_signed(nanos)
                .saturating_add_signed(ticks * TICK as i64)
        },
    );
    prop_oneof![
        8 => near_slots,
        2 => 0..100 * TICK,
        1 => (0_u64..500, 0..TICK).prop_map(|(years, nanos)| years * YEAR + nanos),
        1 => any::<u64>(),
        1 => (0..2 * TICK).prop_map(|nanos| u64::MAX - nanos),
    ]
}

fn steps() -> impl Strategy<Value = Step> {
    prop_oneof![
        6 => spans().prop_map(Step::InsertAfter),
        2 => spans().prop_map(Step::InsertAt),
        3 => any::<prop::sample::Index>().prop_map(Step::Remove),
        1 => (0..8 * TICK).prop_map(Step::Advance),
        1 => spans().prop_map(|span| Step::Advance(span >> 8)),
        1 => spans().prop_map(Step::Advance),
        1 => Just(Step::AdvanceAlmost),
        2 => Just(Step::AdvanceToNext),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn it_does_what_an_ordered_map_does(steps in prop::collection::vec(steps(), 1..120)) {
        let mut checked = Checked::default();
        for step in &steps {
            checked.apply(step);
        }
        checked.advance(u64::MAX);
        prop_assert!(checked.model.is_empty());
    }

    /// Without removals the bound for the next expiry is exact, which `apply` asserts.
    #[test]
    fn the_next_expiry_is_exact(steps in prop::collection::vec(
        steps().prop_filter("no removals", |step| !matches!(step, Step::Remove(_))), 1..120,
    )) {
        let mut checked = Checked::default();
        for step in &steps {
            checked.apply(step);
        }
        prop_assert!(!checked.cancelled);
    }
}

#[test]
fn timers_round_each_level_boundary_fire_in_their_tick() {
    for level in 0..=LEVELS as u32 {
        let boundary = 1_u64
            .checked_shl(TICK_BITS + DIGIT_BITS * level)
            .unwrap_or(u64::MAX - TICK);
        for start in [0, 1, TICK - 1, TICK, boundary / 2, boundary - TICK] {
            let mut checked = Checked::default();
            checked.advance(start);
            for deadline in [-1 - TICK as i64, -1, 0, 1, TICK as i64]
                .map(|offset| boundary.saturating_add_signed(offset))
            {
                checked.insert(deadline);
            }
            let mut wakeups = 0;
            while !checked.model.is_empty() {
                checked.apply(&Step::AdvanceAlmost);
                checked.apply(&Step::AdvanceToNext);
                wakeups += 1;
            }
            assert!(wakeups <= 5, "woken in vain between levels");
        }
    }
}

#[test]
fn a_year_of_uptime_wraps_no_slot() {
    let mut checked = Checked::default();
    let step = YEAR / 1000 + 7;
    for round in 0..2000 {
        checked.apply(&Step::InsertAfter(step / 3 + round));
        checked.apply(&Step::InsertAfter(step * 5));
        checked.apply(&Step::Advance(step));
    }
    assert!(checked.now > 2 * YEAR);
    assert_eq!(checked.model.len(), 5);
}

#[test]
fn a_timer_for_the_past_fires_at_the_next_look() {
    let mut checked = Checked::default();
    checked.advance(1000 * TICK + 5);
    checked.apply(&Step::InsertAt(0));
    checked.apply(&Step::InsertAt(999 * TICK));
    assert!(checked.wheel.next_expiry() <= checked.now);
    checked.apply(&Step::Advance(0));
    assert!(checked.model.is_empty());
}

#[test]
fn never_is_never() {
    let mut wheel = Wheel::new();
    let keys = [u64::MAX, u64::MAX - TICK + 2]
        .map(|deadline| wheel.insert(deadline, Waker::noop().clone()).0);
    assert_eq!(wheel.next_expiry(), u64::MAX);
    let mut due = Vec::new();
    wheel.advance(u64::MAX, &mut due);
    assert!(due.is_empty());
    for key in keys {
        assert!(wheel.waker_mut(key).is_some());
        assert!(wheel.remove(key).is_some());
    }
    assert!(wheel.is_empty());
}

#[test]
fn a_key_names_one_timer_only() {
    let mut wheel = Wheel::new();
    let mut due = Vec::new();
    let (fired, fires_at) = wheel.insert(1, Waker::noop().clone());
    wheel.advance(fires_at, &mut due);
    assert_eq!(due.len(), 1);
    let (removed, _) = wheel.insert(u64::MAX, Waker::noop().clone());
    assert!(wheel.remove(removed).is_some());
    let (current, _) = wheel.insert(5 * TICK, Waker::noop().clone());
    assert_eq!(
        [fired.index, removed.index],
        [current.index; 2],
        "the entry serves again"
    );
    for stale in [fired, removed] {
        assert!(wheel.waker_mut(stale).is_none());
        assert!(wheel.remove(stale).is_none());
    }
    assert!(wheel.remove(current).is_some());
}

#[test]
fn a_steady_state_allocates_nothing() {
    let mut wheel = Wheel::new();
    let mut due = Vec::new();
    for round in 0..10_000 {
        let keys = [3, 300, 30_000, u64::MAX / TICK].map(|ticks| {
            let deadline = (round + ticks).saturating_mul(TICK);
            wheel.insert(deadline, Waker::noop().clone()).0
        });
        wheel.remove(keys[1]);
        wheel.remove(keys[3]);
        if round % 3 == 0 {
            wheel.remove(keys[2]);
        } else {
            wheel.remove(keys[0]);
            wheel.advance(round * TICK, &mut due);
            wheel.remove(keys[2]);
        }
        due.clear();
    }
    assert!(wheel.entries.len() < 16, "{} entries", wheel.entries.len());
}

#[test]
fn what_is_left_can_be_taken_out() {
    let mut wheel = Wheel::new();
    for deadline in [0, 1, YEAR, u64::MAX] {
        wheel.insert(deadline, Waker::noop().clone());
    }
    let (removed, _) = wheel.insert(2, Waker::noop().clone());
    wheel.remove(removed);
    assert_eq!(wheel.into_wakers().count(), 4);
}
