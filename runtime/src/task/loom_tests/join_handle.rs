//! The handle against the completion: the output and the join waker are dropped once, the cell is freed once.

use super::*;
use crate::task::Extra;
use crate::task::tests::toy::{CountedOutput, Tally, WakeCount};

type Task = (Arc<ToyScheduler>, JoinHandle<CountedOutput>);

/// A task in the queue that is ready at once.
fn ready_task(tally: &Arc<Tally>) -> Task {
    let scheduler = ToyScheduler::new();
    let output = Arc::clone(tally);
    let future = tally.future(move |_| Poll::Ready(output.output()));
    let (runnable, handle) = scheduler.create(future, tally.extra());
    scheduler.push(runnable.expect("the census is open"));
    (scheduler, handle)
}

fn poll_with<T>(handle: &mut JoinHandle<T>, waker: &Waker) -> Poll<Result<T, JoinError>> {
    pin!(handle).poll(&mut Context::from_waker(waker))
}

#[test]
fn a_handle_that_waits_gets_the_output() {
    check(3, || {
        let tally = Tally::new();
        let (scheduler, handle) = ready_task(&tally);
        let other = thread::spawn(move || wait_for(handle).is_ok());
        assert!(scheduler.run_one());
        assert!(other.join().unwrap());
        tally.expect(1, 1, 1, 1);
    });
}

/// The handle is polled with one waker, then with another, while the task completes.
#[test]
fn a_waker_that_is_replaced_against_the_completion() {
    check(3, || {
        let tally = Tally::new();
        let (scheduler, mut handle) = ready_task(&tally);
        let first = WakeCount::new();
        let other = thread::spawn({
            let first = Waker::from(Arc::clone(&first));
            move || match poll_with(&mut handle, &first) {
                Poll::Ready(output) => output.is_ok(),
                Poll::Pending => wait_for(handle).is_ok(),
            }
        });
        assert!(scheduler.run_one());
        assert!(other.join().unwrap());
        assert_eq!(Arc::strong_count(&first), 1, "its clones were dropped once");
        assert!(first.get() <= 1);
        tally.expect(1, 1, 1, 1);
    });
}

/// The handle is polled again with the same waker: its bits are compared while the completer may take it.
#[test]
fn the_same_waker_again_against_the_completion() {
    check(3, || {
        let tally = Tally::new();
        let (scheduler, mut handle) = ready_task(&tally);
        let count = WakeCount::new();
        let other = thread::spawn({
            let waker = Waker::from(Arc::clone(&count));
            move || {
                for _ in 0..2 {
                    if poll_with(&mut handle, &waker).is_ready() {
                        return None;
                    }
                }
                Some(handle)
            }
        });
        assert!(scheduler.run_one());
        if let Some(mut handle) = other.join().unwrap() {
            assert_eq!(
                count.get(),
                1,
                "pending twice: the waker was left and woken"
            );
            assert!(output_of(&mut handle).is_ok());
        }
        assert_eq!(Arc::strong_count(&count), 1);
        tally.expect(1, 1, 1, 1);
    });
}

#[test]
fn a_handle_that_is_dropped_against_the_completion() {
    check(3, || {
        let tally = Tally::new();
        let (scheduler, handle) = ready_task(&tally);
        let other = thread::spawn(move || drop(handle));
        assert!(scheduler.run_one());
        other.join().unwrap();
        tally.expect(1, 1, 1, 1);
    });
}

#[test]
fn a_handle_with_a_waker_that_is_dropped_against_the_completion() {
    check(3, || {
        let tally = Tally::new();
        let (scheduler, mut handle) = ready_task(&tally);
        let count = WakeCount::new();
        assert!(poll_with(&mut handle, &Waker::from(Arc::clone(&count))).is_pending());
        let other = thread::spawn(move || drop(handle));
        assert!(scheduler.run_one());
        other.join().unwrap();
        assert_eq!(Arc::strong_count(&count), 1);
        assert!(count.get() <= 1);
        tally.expect(1, 1, 1, 1);
    });
}

/// How a waker that outlives its task ends.
fn last_waker(end: fn(Waker)) {
    let (scheduler, tally) = (ToyScheduler::new(), Tally::new());
    let slot = WakerSlot::default();
    let future = {
        let slot = slot.clone();
        tally.future(move |cx| {
            slot.put(cx.waker());
            Poll::Ready(())
        })
    };
    let (runnable, handle) = scheduler.create(future, tally.extra());
    runnable.expect("the census is open").run();
    let waker = slot.take();
    let other = thread::spawn(move || end(waker));
    drop(handle);
    other.join().unwrap();
    tally.expect(1, 1, 0, 1);
}

#[test]
fn the_last_waker_dropped_elsewhere_frees_the_cell() {
    check(3, || last_waker(drop));
}

#[test]
fn the_last_waker_woken_elsewhere_frees_the_cell() {
    check(3, || last_waker(Waker::wake));
}

#[test]
fn a_waker_that_is_woken_against_the_completion() {
    check(3, || {
        let (scheduler, tally) = (ToyScheduler::new(), Tally::new());
        let slot = WakerSlot::default();
        let future = {
            let slot = slot.clone();
            let mut first = true;
            tally.future(move |cx| {
                if std::mem::take(&mut first) {
                    slot.put(cx.waker());
                    return Poll::Pending;
                }
                Poll::Ready(())
            })
        };
        let (runnable, handle) = scheduler.create(future, tally.extra());
        runnable.expect("the census is open").run();
        let waker = slot.take();
        waker.wake_by_ref();
        let other = thread::spawn(move || waker.wake());
        scheduler.run_until(|| handle.is_finished());
        drop(handle);
        other.join().unwrap();
        assert_eq!(scheduler.queued(), 0);
        tally.expect(2, 1, 0, 1);
    });
}

/// An extra whose free must come after every look at it, on whichever thread either happens.
struct Looked(AtomicUsize);

impl Extra for Looked {
    fn name(&self) -> Option<&str> {
        self.0.load(Relaxed);
        None
    }
}

impl Drop for Looked {
    fn drop(&mut self) {
        // Loom reports the loads that are not ordered before this.
        self.0.with_mut(|looked| *looked = 1);
    }
}

#[test]
fn a_cell_is_freed_after_everybody_has_looked() {
    check(3, || {
        let scheduler = ToyScheduler::new();
        let (runnable, handle) = scheduler.create(async {}, Looked(AtomicUsize::new(0)));
        let runnable = runnable.expect("the census is open");
        assert!(runnable.register(|task| scheduler.registry.insert(task, 0)));
        let reference = scheduler.registry.snapshot().pop().expect("registered");
        runnable.run();
        let other = thread::spawn(move || drop(handle));
        assert_eq!(reference.name(), None);
        drop(reference);
        other.join().unwrap();
    });
}
