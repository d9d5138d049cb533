//! Time: sleeping, time limits, intervals.
//!
//! - [`sleep`] and [`sleep_until`] wait for a moment; a [`Sleep`] can be moved to another one.
//! - [`timeout`] and [`timeout_at`] end a future that takes too long.
//! - [`interval`] ticks again and again, and can do so in three ways when a tick was missed.
//!
//! Nothing here is ever early. How late it is depends on the load, and on a grain: timers of the same
//! grain fire together, so that thousands of them in a millisecond take a few wake-ups of the system
//! only. It is 16 microseconds for short waits and a sixteenth of longer ones, half a millisecond at most. Any [`Duration`] may be asked for; one that
//! reaches beyond the next 500 years never ends.
//!
//! A timer belongs to the runtime of the thread that first polls it. Time is read from that
//! runtime's [`Clock`]; so is [`Instant::now`].
//!
//! ```no_run
//! use runtime::time::{self, Duration};
//!
//! # runtime::block_on(async {
//! time::sleep(Duration::from_millis(100)).await;
//!
//! let slow = time::sleep(Duration::from_secs(3600));
//! assert!(time::timeout(Duration::from_millis(10), slow).await.is_err());
//! # })
//! ```

mod instant;
mod interval;
mod sleep;
mod timeout;

pub use std::time::Duration;

pub use self::instant::Instant;
pub use self::interval::{Interval, MissedTickBehavior, interval, interval_at};
pub use self::sleep::{Sleep, sleep, sleep_until};
pub use self::timeout::{Timeout, error, timeout, timeout_at};
pub use crate::clock::Clock;
