//! Models of the task cell and of the next slot: the code that ships, on the toy scheduler.
//!
//! Futures in here never panic: an assertion in a poll would become the task's own panic. They return what
//! they saw, and the model asserts on that.

mod abort;
mod join_handle;
mod slot;
mod wake;

use std::future::Future;
use std::pin::pin;
use std::task::{Context, Poll, Waker};

use super::tests::toy::ToyScheduler;
use super::{JoinError, JoinHandle};
use crate::loom_tests::{Unpark, check};
use crate::park::Parker;
use crate::sync::atomic::AtomicUsize;
use crate::sync::atomic::Ordering::Relaxed;
use crate::sync::{Arc, thread};

/// Where a future leaves its waker for the model.
#[derive(Clone, Default)]
struct WakerSlot(std::sync::Arc<std::sync::Mutex<Option<Waker>>>);

impl WakerSlot {
    fn put(&self, waker: &Waker) {
        *self.0.lock().unwrap() = Some(waker.clone());
    }

    fn take(&self) -> Waker {
        self.try_take()
            .expect("the future was polled once and left its waker")
    }

    fn try_take(&self) -> Option<Waker> {
        self.0.lock().unwrap().take()
    }
}

/// Blocks this thread for the task's output.
fn wait_for<T>(handle: JoinHandle<T>) -> Result<T, JoinError> {
    let parker = Parker::new(None);
    let waker = Waker::from(Arc::new(Unpark(Arc::clone(&parker))));
    let mut handle = pin!(handle);
    loop {
        match handle.as_mut().poll(&mut Context::from_waker(&waker)) {
            Poll::Ready(output) => return output,
            Poll::Pending => parker.park(),
        }
    }
}

/// The output of a handle whose task is complete.
fn output_of<T>(handle: &mut JoinHandle<T>) -> Result<T, JoinError> {
    let mut cx = Context::from_waker(Waker::noop());
    match pin!(handle).poll(&mut cx) {
        Poll::Ready(output) => output,
        Poll::Pending => panic!("the task is not complete"),
    }
}
