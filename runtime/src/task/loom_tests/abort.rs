//! An abort against a poll, a wake and the completion: the future is dropped once, by the runner.

use super::*;
use crate::task::tests::toy::Tally;

/// A pending task that was polled once; it says on which thread its future was dropped.
struct Pending {
    scheduler: Arc<ToyScheduler>,
    tally: Arc<Tally>,
    handle: JoinHandle<()>,
    waker: Waker,
}

/// Tells, when it is dropped, whether that was on the thread that made it.
struct DropsAtHome {
    home: thread::ThreadId,
}

impl Drop for DropsAtHome {
    fn drop(&mut self) {
        if thread::current().id() != self.home {
            // Not an assertion: its panic would be contained as the task's own.
            crate::panic::scheduler_bug("an abort dropped a future on the aborting thread");
        }
    }
}

fn pending() -> Pending {
    let (scheduler, tally) = (ToyScheduler::new(), Tally::new());
    let slot = WakerSlot::default();
    let (runnable, handle) = scheduler.create(
        {
            let slot = slot.clone();
            let home = DropsAtHome {
                home: thread::current().id(),
            };
            tally.future(move |cx| {
                let _ = &home;
                slot.put(cx.waker());
                Poll::Pending
            })
        },
        tally.extra(),
    );
    scheduler.push(runnable.expect("the census is open"));
    assert!(scheduler.run_one());
    let waker = slot.take();
    Pending {
        scheduler,
        tally,
        handle,
        waker,
    }
}

impl Pending {
    /// Runs until the task was cancelled, and checks that everything went once.
    fn finish(mut self, others: Vec<thread::JoinHandle<()>>) {
        self.scheduler.run_until(|| self.handle.is_finished());
        for other in others {
            other.join().unwrap();
        }
        assert!(output_of(&mut self.handle).unwrap_err().is_cancelled());
        drop(self.handle);
        self.tally.expect(self.tally.polls(), 1, 0, 0);
        drop(self.waker);
        assert_eq!(self.tally.frees(), 1);
        assert_eq!(self.scheduler.queued(), 0);
    }
}

#[test]
fn an_abort_against_a_poll() {
    check(3, || {
        let task = pending();
        task.waker.wake_by_ref();
        let abort = task.handle.abort_handle();
        let other = thread::spawn(move || abort.abort());
        task.finish(vec![other]);
    });
}

#[test]
fn an_abort_against_a_wake() {
    check(3, || {
        let task = pending();
        let abort = task.handle.abort_handle();
        let waker = task.waker.clone();
        let others = vec![
            thread::spawn(move || abort.abort()),
            thread::spawn(move || waker.wake()),
        ];
        task.finish(others);
    });
}

#[test]
fn two_aborts() {
    check(3, || {
        let task = pending();
        let aborts = [task.handle.abort_handle(), task.handle.abort_handle()];
        let others = aborts.map(|abort| thread::spawn(move || abort.abort()));
        task.finish(others.into());
    });
}

#[test]
fn an_abort_against_the_completion() {
    check(3, || {
        let (scheduler, tally) = (ToyScheduler::new(), Tally::new());
        let future = {
            let output = tally.clone();
            tally.future(move |_| Poll::Ready(output.output()))
        };
        let (runnable, mut handle) = scheduler.create(future, tally.extra());
        scheduler.push(runnable.expect("the census is open"));
        let abort = handle.abort_handle();
        let other = thread::spawn(move || abort.abort());
        scheduler.run_until(|| handle.is_finished());
        other.join().unwrap();
        match output_of(&mut handle) {
            Ok(output) => {
                tally.expect(1, 1, 0, 0);
                drop(output);
            }
            Err(error) => {
                assert!(error.is_cancelled());
                tally.expect(0, 1, 0, 0);
            }
        }
        assert_eq!(
            scheduler.queued(),
            0,
            "an abort of a complete task is nothing"
        );
        drop(handle);
        assert_eq!(tally.output_drops(), tally.polls());
        assert_eq!(tally.frees(), 1);
    });
}
