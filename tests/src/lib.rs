//! What the behaviour tests share.
//!
//! - [`watchdog`]: no test can hang.
//! - [`rounds`]: short by default, long when asked.
//! - [`Counted`] and [`Drops`]: what was dropped, how often and where.
//! - [`Event`], [`eventually`], [`until`]: waiting for something, outside and inside a runtime.
//! - [`in_own_process`]: for what belongs to a whole process, such as its threads or descriptors.
//! - [`every_shape`] and its kin: the runtimes that most tests go through.

mod counted;
mod own_process;
mod runtimes;
mod waiting;
mod watchdog;

pub use counted::{Counted, Drops};
pub use own_process::{cpu_time, in_own_process, threads_of_this_process};
pub use runtimes::{Shape, every_shape, one_thread, with_workers};
pub use waiting::{Event, eventually, ready_now, until};
pub use watchdog::{Watchdog, watchdog};

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// `default`, times what the environment variable `RUNTIME_TEST_ROUNDS` says.
///
/// # Panics
///
/// If the variable is no number.
pub fn rounds(default: usize) -> usize {
    default * rounds_factor()
}

pub(crate) fn rounds_factor() -> usize {
    match std::env::var("RUNTIME_TEST_ROUNDS") {
        Ok(factor) => factor.parse().expect("RUNTIME_TEST_ROUNDS is a number"),
        Err(_) => 1,
    }
}

/// The text of a panic.
///
/// # Panics
///
/// If the payload is no text.
pub fn panic_text(payload: &(dyn Any + Send)) -> &str {
    match payload.downcast_ref::<String>() {
        Some(text) => text,
        None => payload.downcast_ref::<&str>().expect("a panic with a text"),
    }
}

/// The text with which `code` panics.
///
/// # Panics
///
/// If it does not.
pub fn panic_text_of<R>(code: impl FnOnce() -> R) -> String {
    match catch_unwind(AssertUnwindSafe(code)) {
        Ok(_) => panic!("no panic where one is documented"),
        Err(payload) => panic_text(&*payload).to_owned(),
    }
}
