//! Wakes against a poll: none is lost (I4), and a poll sees what was written before the wake it follows.

use super::*;
use crate::task::tests::toy::Tally;

/// Two flags, written relaxed: only the wake orders them before the poll that follows it.
#[derive(Default)]
struct Mail(AtomicUsize, AtomicUsize);

/// A task that is ready when it has seen both flags, polled once so that its waker can be had.
fn task_for(mail: &Arc<Mail>, tally: &Arc<Tally>) -> (Arc<ToyScheduler>, JoinHandle<()>, Waker) {
    let scheduler = ToyScheduler::new();
    let slot = WakerSlot::default();
    let handle = scheduler.spawn({
        let (mail, slot) = (Arc::clone(mail), slot.clone());
        let mut first = true;
        tally.future(move |cx| {
            if std::mem::take(&mut first) {
                slot.put(cx.waker());
            }
            if mail.0.load(Relaxed) == 1 && mail.1.load(Relaxed) == 1 {
                Poll::Ready(())
            } else {
                Poll::Pending
            }
        })
    });
    assert!(scheduler.run_one());
    (scheduler, handle, slot.take())
}

/// The body of the models below: two threads write and wake, the model's own thread polls.
fn two_wakers(first: fn(Waker), second: fn(Waker)) {
    let (mail, tally) = (Arc::new(Mail::default()), Tally::new());
    let (scheduler, mut handle, waker) = task_for(&mail, &tally);
    let other = thread::spawn({
        let (mail, waker) = (Arc::clone(&mail), waker.clone());
        move || {
            mail.0.store(1, Relaxed);
            first(waker);
        }
    });
    let another = thread::spawn({
        let mail = Arc::clone(&mail);
        move || {
            mail.1.store(1, Relaxed);
            second(waker);
        }
    });
    scheduler.run_until(|| handle.is_finished());
    other.join().unwrap();
    another.join().unwrap();
    assert!(output_of(&mut handle).is_ok());
    assert_eq!(
        tally.polls(),
        1 + scheduler.permits(),
        "each permit is one poll: the birth's, the wakes', the requeues'"
    );
    assert!(tally.polls() <= 3, "two wakes are two polls at most");
    assert_eq!(scheduler.queued(), 0);
    drop(handle);
    assert_eq!(tally.future_drops(), 1);
}

fn by_ref(waker: Waker) {
    waker.wake_by_ref();
}

/// R4: the waker that finds the task scheduled already must still publish what it wrote.
#[test]
fn a_poll_sees_what_was_written_before_wakes_by_ref() {
    check(3, || two_wakers(by_ref, by_ref));
}

#[test]
fn a_poll_sees_what_was_written_before_wakes_by_value() {
    check(3, || two_wakers(Waker::wake, Waker::wake));
}

#[test]
fn a_poll_sees_what_was_written_before_mixed_wakes() {
    check(3, || two_wakers(by_ref, Waker::wake));
}

/// The future wakes itself and another thread wakes it, both perhaps while it runs.
#[test]
fn a_wake_while_running_requeues_once() {
    check(3, || {
        let (scheduler, tally) = (ToyScheduler::new(), Tally::new());
        let (slot, flag) = (WakerSlot::default(), Arc::new(AtomicUsize::new(0)));
        let mut handle = scheduler.spawn({
            let (slot, flag) = (slot.clone(), Arc::clone(&flag));
            let mut polls = 0;
            tally.future(move |cx| {
                polls += 1;
                match polls {
                    1 => slot.put(cx.waker()),
                    2 => cx.waker().wake_by_ref(),
                    _ => {}
                }
                if polls > 2 && flag.load(Relaxed) == 1 {
                    Poll::Ready(())
                } else {
                    Poll::Pending
                }
            })
        });
        assert!(scheduler.run_one());
        let waker = slot.take();
        waker.wake_by_ref();
        let other = thread::spawn({
            let flag = Arc::clone(&flag);
            move || {
                flag.store(1, Relaxed);
                waker.wake();
            }
        });
        scheduler.run_until(|| handle.is_finished());
        other.join().unwrap();
        assert!(output_of(&mut handle).is_ok());
        assert_eq!(tally.polls(), 1 + scheduler.permits());
        assert!((3..=4).contains(&tally.polls()));
    });
}

/// The state that one run leaves is seen by the next, on another thread, though nothing but the task's own
/// word and the wake connects the two.
#[test]
fn a_task_moves_between_threads_with_what_it_wrote() {
    check(3, || {
        let (scheduler, tally) = (ToyScheduler::new(), Tally::new());
        let slot = WakerSlot::default();
        let mut handle = scheduler.spawn({
            let (slot, cell) = (slot.clone(), loom::cell::Cell::new(0));
            tally.future(move |cx| {
                cell.set(cell.get() + 1);
                slot.put(cx.waker());
                match cell.get() {
                    2 => Poll::Ready(cell.get()),
                    _ => Poll::Pending,
                }
            })
        });
        let other = thread::spawn({
            let scheduler = Arc::clone(&scheduler);
            move || scheduler.run_one()
        });
        // The wake may come while the other thread still polls, before it goes idle, or after.
        let waker = loop {
            match slot.try_take() {
                Some(waker) => break waker,
                None => thread::yield_now(),
            }
        };
        waker.wake();
        scheduler.run_until(|| handle.is_finished());
        other.join().unwrap();
        assert_eq!(output_of(&mut handle).unwrap(), 2);
    });
}
