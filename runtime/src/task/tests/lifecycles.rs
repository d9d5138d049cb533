//! The product of lifecycles: how a task ends, what becomes of its handle, when it is aborted, how it is woken.

use std::future::Future;
use std::panic::resume_unwind;
use std::pin::Pin;
use std::sync::Mutex;
use std::task::{Context, Poll, Waker};

use super::toy::{Tally, ToyScheduler};
use crate::sync::Arc;
use crate::task::AbortHandle;

#[derive(Clone, Copy, Debug, PartialEq)]
enum End {
    Completes,
    Panics,
    Pending,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Fate {
    Awaited,
    DroppedEarly,
    DroppedLate,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum AbortedWhen {
    Never,
    Before,
    During,
    After,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum WokenHow {
    ByValue,
    ByRef,
    ForeignByValue,
    ForeignByRef,
}

#[derive(Clone, Copy, Debug)]
struct Lifecycle {
    end: End,
    fate: Fate,
    aborted: AbortedWhen,
    woken: WokenHow,
}

#[test]
fn every_lifecycle_drops_and_frees_once() {
    let mut tried = 0;
    for end in [End::Completes, End::Panics, End::Pending] {
        for fate in [Fate::Awaited, Fate::DroppedEarly, Fate::DroppedLate] {
            for aborted in [
                AbortedWhen::Never,
                AbortedWhen::Before,
                AbortedWhen::During,
                AbortedWhen::After,
            ] {
                for woken in [
                    WokenHow::ByValue,
                    WokenHow::ByRef,
                    WokenHow::ForeignByValue,
                    WokenHow::ForeignByRef,
                ] {
                    live(Lifecycle {
                        end,
                        fate,
                        aborted,
                        woken,
                    });
                    tried += 1;
                }
            }
        }
    }
    assert_eq!(tried, 3 * 3 * 4 * 4);
}

/// The task is polled once and leaves its waker; the second poll is the one that it ends with.
fn live(case: Lifecycle) {
    let (scheduler, tally) = (ToyScheduler::new(), Tally::new());
    let (wakers, abort) = (
        Arc::new(Mutex::new(Vec::new())),
        Arc::new(Mutex::new(None::<AbortHandle>)),
    );
    let future = {
        let (wakers, abort, output) = (Arc::clone(&wakers), Arc::clone(&abort), tally.clone());
        let mut polls = 0;
        tally.future(move |cx| {
            polls += 1;
            wakers.lock().unwrap().push(cx.waker().clone());
            if polls == 1 {
                return Poll::Pending;
            }
            if case.aborted == AbortedWhen::During {
                abort.lock().unwrap().as_ref().expect("set").abort();
            }
            match case.end {
                End::Completes => Poll::Ready(output.output()),
                End::Panics => resume_unwind(Box::new("as asked")),
                End::Pending => Poll::Pending,
            }
        })
    };
    let (runnable, handle) = scheduler.create(future, tally.extra());
    *abort.lock().unwrap() = Some(handle.abort_handle());
    let mut handle = (case.fate != Fate::DroppedEarly).then_some(handle);

    if case.aborted == AbortedWhen::Before {
        abort.lock().unwrap().as_ref().unwrap().abort();
    }
    runnable.expect("the census is open").run();
    let waker = wakers.lock().unwrap().pop();
    if let Some(waker) = waker {
        wake(waker, case.woken);
    }
    while scheduler.run_one() {}
    if case.aborted == AbortedWhen::After {
        abort.lock().unwrap().as_ref().unwrap().abort();
        while scheduler.run_one() {}
    }

    let polled = case.aborted != AbortedWhen::Before;
    let polls = if polled { 2 } else { 0 };
    let completes = polled && case.end != End::Pending;
    let over = completes || case.aborted != AbortedWhen::Never;
    assert_eq!(tally.polls(), polls, "{case:?}");
    assert_eq!(tally.future_drops(), usize::from(over), "{case:?}");
    if case.fate == Fate::Awaited && over {
        let mut taken = handle.take().expect("not dropped");
        let polled = Pin::new(&mut taken).poll(&mut Context::from_waker(Waker::noop()));
        let Poll::Ready(output) = polled else {
            panic!("{case:?}: the handle stayed pending");
        };
        match output {
            Ok(_) => assert!(completes && case.end == End::Completes, "{case:?}"),
            Err(error) if error.is_panic() => {
                assert!(completes && case.end == End::Panics, "{case:?}");
            }
            Err(_) => assert!(!completes, "{case:?}"),
        }
    }
    drop(handle);
    assert_eq!(scheduler.live(), usize::from(!over));

    if !over {
        abort.lock().unwrap().as_ref().unwrap().abort();
        assert!(scheduler.run_one());
    }
    *abort.lock().unwrap() = None;
    wakers.lock().unwrap().clear();
    let outputs = usize::from(completes && case.end == End::Completes);
    assert_eq!(tally.output_drops(), outputs, "{case:?}");
    assert_eq!((tally.future_drops(), tally.frees()), (1, 1), "{case:?}");
    assert_eq!(scheduler.queued(), 0, "{case:?}");
}

fn wake(waker: Waker, how: WokenHow) {
    match how {
        WokenHow::ByValue => waker.wake(),
        WokenHow::ByRef => waker.wake_by_ref(),
        WokenHow::ForeignByValue => std::thread::spawn(|| waker.wake()).join().unwrap(),
        WokenHow::ForeignByRef => std::thread::spawn(move || waker.wake_by_ref())
            .join()
            .unwrap(),
    }
}
