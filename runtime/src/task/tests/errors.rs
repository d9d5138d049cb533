//! How a failed task is told: the words and the payload.

use std::error::Error;
use std::future::Future;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind, panic_any, resume_unwind};
use std::pin::Pin;
use std::task::{Context, Poll, Waker};

use super::toy::ToyScheduler;
use crate::task::JoinError;

/// The error of a task that runs `body`; its id is 1.
fn error_of(body: impl FnOnce() + Send + 'static) -> JoinError {
    let scheduler = ToyScheduler::new();
    let mut handle = scheduler.spawn(async move { body() });
    assert!(scheduler.run_one());
    match Pin::new(&mut handle).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(Err(error)) => error,
        _ => panic!("the task did not fail"),
    }
}

fn cancelled() -> JoinError {
    let scheduler = ToyScheduler::new();
    let mut handle = scheduler.spawn(async {});
    handle.abort();
    assert!(scheduler.run_one());
    match Pin::new(&mut handle).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(Err(error)) => error,
        _ => panic!("the task was not cancelled"),
    }
}

#[test]
fn a_cancelled_task_says_so() {
    let error = cancelled();
    assert!(error.is_cancelled() && !error.is_panic());
    assert_eq!(error.to_string(), "task 1 was cancelled");
    assert_eq!(format!("{error:?}"), "JoinError::Cancelled(Id(1))");
    assert_eq!(error.id().to_string(), "1");
    assert!(error.source().is_none());
}

#[test]
fn a_panic_says_its_message() {
    let literal = error_of(|| resume_unwind(Box::new("oh")));
    assert!(literal.is_panic() && !literal.is_cancelled());
    assert_eq!(literal.to_string(), "task 1 panicked with message \"oh\"");
    assert_eq!(
        format!("{literal:?}"),
        "JoinError::Panic(Id(1), \"oh\", ...)"
    );
    let formatted = error_of(|| resume_unwind(Box::new(format!("{} {}", "oh", "dear"))));
    let text = formatted.to_string();
    assert_eq!(text, "task 1 panicked with message \"oh dear\"");
}

#[test]
fn a_panic_that_is_not_text_says_only_that() {
    let error = error_of(|| resume_unwind(Box::new(17_u8)));
    assert_eq!(error.to_string(), "task 1 panicked");
    assert_eq!(format!("{error:?}"), "JoinError::Panic(Id(1), ...)");
}

#[test]
fn the_payload_comes_out_as_it_went_in() {
    #[derive(Debug, PartialEq)]
    struct Custom(u32);
    let error = error_of(|| panic_any(Custom(5)));
    let payload = error.try_into_panic().expect("it panicked");
    assert_eq!(*payload.downcast::<Custom>().unwrap(), Custom(5));
    let six = std::hint::black_box(6);
    let error = error_of(move || panic!("number {six}"));
    assert_eq!(
        error.into_panic().downcast_ref::<String>().unwrap(),
        "number 6"
    );
}

#[test]
fn a_cancelled_task_has_no_payload() {
    let error = cancelled().try_into_panic().expect_err("given back");
    assert!(error.is_cancelled());
    let panicked = catch_unwind(AssertUnwindSafe(|| cancelled().into_panic()));
    let message = panicked.expect_err("documented panic");
    let message = message.downcast_ref::<String>().expect("formatted");
    assert!(
        message.contains("`JoinError::into_panic` on a task that was cancelled"),
        "{message}"
    );
}

#[test]
fn an_io_error_keeps_the_kind_and_the_words() {
    let error = io::Error::from(cancelled());
    assert_eq!(error.kind(), io::ErrorKind::Interrupted);
    assert_eq!(error.to_string(), "task 1 was cancelled");
    let error = io::Error::from(error_of(|| resume_unwind(Box::new("oh"))));
    assert_eq!(error.kind(), io::ErrorKind::Other);
}
