//! The accounting of seats: who gets one, who is lent one, who waits, and what goes out of circulation.

use super::*;

/// Two workers' seats, and at most three callers.
fn two_seats() -> Seats<&'static str> {
    Seats::new(vec!["first", "second"], 3)
}

fn parker() -> Arc<Parker> {
    Parker::new(None)
}

/// Whether the parker of this thread has a token; consumes it.
fn has_token(parker: &Parker) -> bool {
    let none = parker.enter_driver();
    if none {
        parker.leave_driver();
    }
    !none
}

#[test]
fn seats_are_taken_in_order_and_come_back() {
    let seats = two_seats();
    assert_eq!(seats.acquire(), Some("first"));
    assert_eq!(seats.acquire(), Some("second"));
    assert_eq!(seats.acquire(), None);
    seats.release("first");
    assert_eq!(seats.acquire(), Some("first"));
}

#[test]
fn callers_are_counted_up_to_the_most() {
    let seats = two_seats();
    assert!(seats.add_caller(&Parker::new(None)));
    assert!(!seats.callers_have_all());
    assert!(seats.add_caller(&Parker::new(None)));
    assert!(seats.callers_have_all());
    assert!(seats.add_caller(&Parker::new(None)));
    assert!(
        !seats.add_caller(&Parker::new(None)),
        "a fourth gets no seat"
    );
    seats.remove_caller();
    assert!(seats.add_caller(&Parker::new(None)));
}

/// While there are as many callers as workers, a free seat is theirs, also while they are parked.
#[test]
fn a_background_thread_gets_no_seat_that_a_caller_will_want() {
    let seats = two_seats();
    assert!(seats.add_caller(&Parker::new(None)));
    assert_eq!(seats.acquire(), Some("first"), "one is left for it");
    seats.release("first");
    assert!(seats.add_caller(&Parker::new(None)));
    assert_eq!(seats.acquire(), None);
    seats.remove_caller();
    assert_eq!(seats.acquire(), Some("first"));
}

#[test]
fn a_caller_is_lent_a_seat_when_none_is_free() {
    let seats = two_seats();
    let never = || panic!("a seat is free");
    assert_eq!(seats.acquire_or_lend(never), Some("first"));
    assert_eq!(seats.acquire_or_lend(never), Some("second"));
    assert!(!seats.has_surplus());
    assert_eq!(seats.acquire_or_lend(|| Some("lent")), Some("lent"));
    assert!(seats.has_surplus());
    assert_eq!(seats.acquire_or_lend(|| None), None, "too many");
}

#[test]
fn whoever_gives_a_seat_up_first_takes_the_surplus_out() {
    let seats = two_seats();
    let first = seats.acquire().unwrap();
    let second = seats.acquire().unwrap();
    let lent = seats.acquire_or_lend(|| Some("lent")).unwrap();
    seats.release(first);
    assert!(!seats.has_surplus(), "it went out of circulation");
    assert_eq!(seats.acquire(), None);
    seats.release(lent);
    assert_eq!(seats.acquire(), Some("lent"), "a seat like any other now");
    seats.release(second);
    assert_eq!(seats.acquire(), Some("second"));
    let spare = seats.acquire_or_lend(|| panic!("one is spare"));
    assert_eq!(spare, Some("first"));
}

#[test]
fn seats_in_circulation_are_workers_plus_surplus() {
    let seats = two_seats();
    let mut made = 0;
    let mut out: Vec<_> = (0..5)
        .map(|_| {
            seats.acquire_or_lend(|| {
                made += 1;
                Some("lent")
            })
        })
        .map(Option::unwrap)
        .collect();
    assert_eq!(made, 3);
    for left in [true, true, false, false, false] {
        seats.release(out.pop().unwrap());
        assert_eq!(seats.has_surplus(), left);
    }
    let free = std::iter::from_fn(|| seats.acquire()).count();
    assert_eq!(free, 2);
}

#[test]
fn a_displaced_thread_is_woken_when_a_caller_leaves() {
    let seats = two_seats();
    let (one, other) = (parker(), parker());
    assert!(seats.add_caller(&Parker::new(None)) && seats.add_caller(&Parker::new(None)));
    assert_eq!(seats.acquire_or_queue(&one), None);
    assert_eq!(seats.acquire_or_queue(&other), None);
    seats.remove_caller();
    let woken = [has_token(&one), has_token(&other)];
    assert_eq!(woken.iter().filter(|woken| **woken).count(), 1);
    let woken = if woken[0] { &one } else { &other };
    assert_eq!(seats.acquire_or_queue(woken), Some("first"));
    seats.remove_caller();
    let last = if Arc::ptr_eq(woken, &one) {
        &other
    } else {
        &one
    };
    assert!(has_token(last));
    assert_eq!(seats.acquire_or_queue(last), Some("second"));
}

#[test]
fn a_thread_stands_in_the_line_once() {
    let seats = two_seats();
    let parker = parker();
    assert!(seats.add_caller(&Parker::new(None)) && seats.add_caller(&Parker::new(None)));
    for _ in 0..3 {
        assert_eq!(seats.acquire_or_queue(&parker), None);
    }
    assert_eq!(lock(&seats.pool).displaced.len(), 1);
    seats.remove_caller();
    assert_eq!(seats.acquire_or_queue(&parker), Some("first"));
    assert!(lock(&seats.pool).displaced.is_empty());
}

#[test]
fn a_shutdown_wakes_every_displaced_thread() {
    let seats = two_seats();
    let parkers = [parker(), parker()];
    assert!(seats.add_caller(&Parker::new(None)) && seats.add_caller(&Parker::new(None)));
    for parker in &parkers {
        assert_eq!(seats.acquire_or_queue(parker), None);
    }
    seats.wake_displaced();
    assert!(parkers.iter().all(|parker| has_token(parker)));
    assert!(lock(&seats.pool).displaced.is_empty());
}

#[test]
fn seats_draw_different_numbers_from_one_seed() {
    let draw = |index, seed| {
        let seat = Seat::new(index, seed);
        [(); 4].map(|()| seat.random())
    };
    assert_eq!(draw(0, 7), draw(0, 7), "seeded");
    assert_ne!(draw(0, 7), draw(1, 7));
    assert_ne!(draw(0, 7), draw(0, 8));
    // A seed that would give the generator its fixed point.
    assert_ne!(draw(0, 0x9E37_79B9_7F4A_7C15), [0; 4]);
}
