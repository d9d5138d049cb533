//! The I/O and timer half of `runtime`: readiness, deadlines and sockets over `mio`.
//!
//! It knows [`Waker`](std::task::Waker)s, never tasks (invariant I7), and holds no unsafe code.
//! Read it in this order:
//!
//! 1. [`net`]: what a user touches: sockets, each a system socket and its [`Registration`].
//! 2. [`Registration`]: how an operation that would block becomes a waiting waker; below it
//!    `source` (one source's state), `readiness` (its packed word) and `waiters` (its wakers).
//! 3. `registry`: which token belongs to which source, and when a token may be used again.
//! 4. [`Driver`]: waits for the system, then wakes whoever is ready and every timer that is due;
//!    `deadline_timer` gives its wait a precise end.
//! 5. [`Reactor`]: the shared side of it: interrupts a wait, starts and ends registrations.
//! 6. [`time`], over `timers` and `clock`: sleeping, intervals, deadlines.
//! 7. [`context`] and [`budget`]: which reactor a thread uses, and how much one poll may do.
#![forbid(unsafe_code)]

pub mod net;

mod readiness;
mod registration;
mod registry;
mod source;
mod waiters;

mod deadline_timer;
mod driver;
mod handle;

mod clock;
pub mod time;
mod timers;

pub mod budget;
pub mod context;

pub use mio::Interest;
pub use mio::event::Source;

pub use clock::Clock;
pub use driver::Driver;
pub use handle::Reactor;
pub use readiness::{Direction, ReadyEvent};
pub use registration::Registration;
