//! Random programs against a model of the task cell: spawn, run, wake, abort, and drops of the handle, of its
//! copies and of wakers, in any order. After each step every counter is what the model says.

use std::future::Future;
use std::panic::resume_unwind;
use std::pin::Pin;
use std::sync::Mutex;
use std::task::{Context, Poll, Waker};

use proptest::prelude::*;

use super::toy::{CountedOutput, Tally, ToyScheduler, WakeCount};
use crate::sync::Arc;
use crate::task::{AbortHandle, JoinHandle};

/// What the future does at its next poll.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Script {
    leaves_waker: bool,
    wakes_itself: bool,
    aborts_itself: bool,
    end: Poll<Outcome>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Outcome {
    Output,
    Panic,
    Cancelled,
}

#[derive(Clone, Copy, Debug)]
enum Step {
    Run(Script),
    WakeByRef,
    WakeByValue,
    CloneWaker,
    DropWaker,
    Abort,
    PollHandle { same_waker: bool },
    DropHandle,
    CopyAbortHandle,
    DropAbortHandle,
}

fn any_step() -> impl Strategy<Value = Step> {
    let end = prop_oneof![
        4 => Just(Poll::Pending),
        1 => Just(Poll::Ready(Outcome::Output)),
        1 => Just(Poll::Ready(Outcome::Panic)),
    ];
    let script = (any::<bool>(), any::<bool>(), prop::bool::weighted(0.1), end).prop_map(
        |(leaves_waker, wakes_itself, aborts_itself, end)| Script {
            leaves_waker,
            wakes_itself,
            aborts_itself,
            end,
        },
    );
    prop_oneof![
        5 => script.prop_map(Step::Run),
        2 => Just(Step::WakeByRef),
        2 => Just(Step::WakeByValue),
        1 => Just(Step::CloneWaker),
        2 => Just(Step::DropWaker),
        1 => Just(Step::Abort),
        3 => any::<bool>().prop_map(|same_waker| Step::PollHandle { same_waker }),
        1 => Just(Step::DropHandle),
        1 => Just(Step::CopyAbortHandle),
        1 => Just(Step::DropAbortHandle),
    ]
}

/// What should be.
struct Expected {
    scheduled: bool,
    aborted: bool,
    outcome: Option<Outcome>,
    polls: usize,
    permits: usize,
    output_drops: usize,
    handle: bool,
    taken: bool,
    /// The join waker that is in place: which of the two.
    join_waker: Option<usize>,
    join_wakes: [usize; 2],
}

impl Expected {
    fn new() -> Self {
        Self {
            scheduled: true,
            aborted: false,
            outcome: None,
            polls: 0,
            permits: 0,
            output_drops: 0,
            handle: true,
            taken: false,
            join_waker: None,
            join_wakes: [0, 0],
        }
    }

    fn wake(&mut self) {
        if self.outcome.is_none() && !self.scheduled {
            self.scheduled = true;
            self.permits += 1;
        }
    }

    fn run(&mut self, script: Script) {
        if !std::mem::take(&mut self.scheduled) {
            return;
        }
        if self.aborted {
            return self.complete(Outcome::Cancelled);
        }
        self.polls += 1;
        self.aborted |= script.aborts_itself;
        match script.end {
            Poll::Ready(outcome) => self.complete(outcome),
            Poll::Pending if script.wakes_itself || script.aborts_itself => self.wake(),
            Poll::Pending => {}
        }
    }

    fn complete(&mut self, outcome: Outcome) {
        self.outcome = Some(outcome);
        if let Some(waker) = self.join_waker.take() {
            self.join_wakes[waker] += 1;
        }
        if !self.handle {
            self.output_drops += usize::from(outcome == Outcome::Output);
        }
    }

    fn drop_handle(&mut self) {
        self.handle = false;
        self.join_waker = None;
        if self.outcome == Some(Outcome::Output) && !self.taken {
            self.output_drops += 1;
        }
    }
}

/// What is.
struct Actual {
    scheduler: Arc<ToyScheduler>,
    tally: Arc<Tally>,
    script: Arc<Mutex<Option<Script>>>,
    wakers: Arc<Mutex<Vec<Waker>>>,
    handle: Option<JoinHandle<CountedOutput>>,
    aborts: Vec<AbortHandle>,
    joiners: [Arc<WakeCount>; 2],
    joiner: usize,
}

impl Actual {
    fn new() -> Self {
        let (scheduler, tally) = (ToyScheduler::new(), Tally::new());
        let script = Arc::new(Mutex::new(None::<Script>));
        let wakers = Arc::new(Mutex::new(Vec::new()));
        let own_abort = Arc::new(Mutex::new(None::<AbortHandle>));
        let future = {
            let (script, wakers, own_abort) =
                (script.clone(), Arc::clone(&wakers), own_abort.clone());
            let output = Arc::clone(&tally);
            tally.future(move |cx| {
                let now = script.lock().unwrap().take().expect("run sets it");
                if now.leaves_waker {
                    wakers.lock().unwrap().push(cx.waker().clone());
                }
                if now.wakes_itself {
                    cx.waker().wake_by_ref();
                }
                if now.aborts_itself {
                    own_abort.lock().unwrap().as_ref().expect("set").abort();
                }
                match now.end {
                    Poll::Pending => Poll::Pending,
                    Poll::Ready(Outcome::Output) => Poll::Ready(output.output()),
                    Poll::Ready(_) => resume_unwind(Box::new("as asked")),
                }
            })
        };
        let (runnable, handle) = scheduler.create(future, tally.extra());
        // The future owns it: a cycle that its drop at completion breaks.
        *own_abort.lock().unwrap() = Some(handle.abort_handle());
        scheduler.push(runnable.expect("the census is open"));
        Self {
            scheduler,
            tally,
            script,
            wakers,
            handle: Some(handle),
            aborts: Vec::new(),
            joiners: [WakeCount::new(), WakeCount::new()],
            joiner: 0,
        }
    }

    fn step(&mut self, step: Step, expected: &mut Expected) {
        match step {
            Step::Run(script) => {
                *self.script.lock().unwrap() = Some(script);
                assert_eq!(self.scheduler.run_one(), expected.scheduled);
                expected.run(script);
            }
            Step::WakeByRef => {
                let waker = self.wakers.lock().unwrap().last().cloned();
                if let Some(waker) = waker {
                    waker.wake_by_ref();
                    expected.wake();
                }
            }
            Step::WakeByValue => {
                let waker = self.wakers.lock().unwrap().pop();
                if let Some(waker) = waker {
                    waker.wake();
                    expected.wake();
                }
            }
            Step::CloneWaker => {
                let mut wakers = self.wakers.lock().unwrap();
                let last = wakers.last().cloned();
                wakers.extend(last);
            }
            Step::DropWaker => drop(self.wakers.lock().unwrap().pop()),
            Step::Abort => {
                let abort = self.handle.as_ref().map(JoinHandle::abort_handle);
                if let Some(abort) = abort.or_else(|| self.aborts.last().cloned()) {
                    abort.abort();
                    expected.aborted = true;
                    expected.wake();
                }
            }
            Step::PollHandle { same_waker } => self.poll_handle(same_waker, expected),
            Step::DropHandle => {
                if self.handle.take().is_some() {
                    expected.drop_handle();
                }
            }
            Step::CopyAbortHandle => {
                let copy = self.handle.as_ref().map(JoinHandle::abort_handle);
                self.aborts
                    .extend(copy.or_else(|| self.aborts.last().cloned()));
            }
            Step::DropAbortHandle => drop(self.aborts.pop()),
        }
    }

    fn poll_handle(&mut self, same_waker: bool, expected: &mut Expected) {
        let Some(handle) = self.handle.as_mut().filter(|_| !expected.taken) else {
            return;
        };
        if !same_waker {
            self.joiner = 1 - self.joiner;
        }
        let waker = Waker::from(Arc::clone(&self.joiners[self.joiner]));
        let polled = Pin::new(handle).poll(&mut Context::from_waker(&waker));
        let outcome = match polled {
            Poll::Pending => None,
            Poll::Ready(Ok(output)) => {
                drop(output);
                expected.output_drops += 1;
                Some(Outcome::Output)
            }
            Poll::Ready(Err(error)) if error.is_panic() => Some(Outcome::Panic),
            Poll::Ready(Err(_)) => Some(Outcome::Cancelled),
        };
        assert_eq!(outcome, expected.outcome);
        match outcome {
            Some(_) => expected.taken = true,
            None => expected.join_waker = Some(self.joiner),
        }
    }

    fn check(&self, expected: &Expected) {
        let complete = expected.outcome.is_some();
        let alive = !complete
            || self.handle.is_some()
            || !self.aborts.is_empty()
            || !self.wakers.lock().unwrap().is_empty();
        self.tally.expect(
            expected.polls,
            usize::from(complete),
            expected.output_drops,
            usize::from(!alive),
        );
        assert_eq!(self.scheduler.queued(), usize::from(expected.scheduled));
        assert_eq!(self.scheduler.permits(), expected.permits);
        assert_eq!(self.scheduler.live(), usize::from(!complete));
        if let Some(handle) = &self.handle {
            assert_eq!(handle.is_finished(), complete);
        }
        for (at, joiner) in self.joiners.iter().enumerate() {
            assert_eq!(joiner.get(), expected.join_wakes[at], "joiner {at}");
            let kept = 1 + usize::from(expected.join_waker == Some(at));
            assert_eq!(Arc::strong_count(joiner), kept, "joiner {at}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(512) })]

    #[test]
    fn every_program_does_what_the_model_says(program in prop::collection::vec(any_step(), 1..40)) {
        let (mut actual, mut expected) = (Actual::new(), Expected::new());
        actual.check(&expected);
        for step in program {
            actual.step(step, &mut expected);
            actual.check(&expected);
        }
        // Then everything goes, in the order that leaves the most to the last run.
        for step in [Step::Abort, Step::DropHandle] {
            actual.step(step, &mut expected);
            actual.check(&expected);
        }
        let last = Script { leaves_waker: false, wakes_itself: false, aborts_itself: false, end: Poll::Ready(Outcome::Output) };
        if expected.outcome.is_none() && !expected.aborted {
            // Nobody was left to abort it or wake it: the scheduler does, if it waits.
            actual.wakers.lock().unwrap().clear();
            actual.scheduler.registry.census.close();
            for task in actual.scheduler.registry.snapshot() {
                task.abort();
            }
            expected.aborted = true;
            expected.wake();
        }
        actual.step(Step::Run(last), &mut expected);
        actual.aborts.clear();
        actual.wakers.lock().unwrap().clear();
        actual.check(&expected);
        prop_assert_eq!(actual.tally.frees(), 1);
    }
}
