//! Gives a wait a precise end. The system's own wait counts in milliseconds; on Linux a timer of
//! the system, itself one of the things waited for, ends it to the microsecond. Elsewhere the
//! milliseconds are rounded up. Never early, either way. (The only file that asks for Linux.)

use std::io;
use std::time::Duration;

#[cfg(target_os = "linux")]
pub(crate) use linux::DeadlineTimer;
#[cfg(not(target_os = "linux"))]
pub(crate) use portable::DeadlineTimer;

#[cfg(target_os = "linux")]
mod linux {
    use super::{Duration, io};
    use std::os::fd::{AsRawFd, OwnedFd};

    use mio::unix::SourceFd;
    use mio::{Interest, Registry, Token};
    use rustix::time::{
        Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create,
        timerfd_settime,
    };

    /// A timerfd. It is registered edge-triggered and setting it anew forgets old expirations, so it
    /// is never read.
    #[derive(Debug)]
    pub(crate) struct DeadlineTimer {
        timer: OwnedFd,
        /// The deadline the timer will report, `u64::MAX` if none.
        armed: u64,
    }

    impl DeadlineTimer {
        /// A timer whose expiry the system reports as `token`.
        pub(crate) fn new(system: &Registry, token: Token) -> io::Result<DeadlineTimer> {
            let flags = TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC;
            let timer = timerfd_create(TimerfdClockId::Monotonic, flags)?;
            system.register(&mut SourceFd(&timer.as_raw_fd()), token, Interest::READABLE)?;
            Ok(DeadlineTimer {
                timer,
                armed: u64::MAX,
            })
        }

        /// Prepares a wait that ends when `deadline`, `left` from now, is reached. Returns the
        /// timeout to wait with, given the caller's own.
        pub(crate) fn prepare(
            &mut self,
            deadline: u64,
            left: Duration,
            timeout: Option<Duration>,
        ) -> io::Result<Option<Duration>> {
            if deadline != self.armed {
                let it_value = Timespec {
                    tv_sec: left.as_secs().try_into().unwrap_or(i64::MAX),
                    tv_nsec: left.subsec_nanos().into(),
                };
                let once = Timespec {
                    tv_sec: 0,
                    tv_nsec: 0,
                };
                let spec = Itimerspec {
                    it_interval: once,
                    it_value,
                };
                timerfd_settime(&self.timer, TimerfdTimerFlags::empty(), &spec)?;
                self.armed = deadline;
            }
            Ok(timeout)
        }

        /// To be called when the system reports the token: a deadline is reported once.
        pub(crate) fn fired(&mut self) {
            self.armed = u64::MAX;
        }
    }
}

#[cfg(not(target_os = "linux"))]
mod portable {
    use super::{Duration, io};

    use mio::{Registry, Token};

    /// The timeout of the wait itself.
    #[derive(Debug)]
    pub(crate) struct DeadlineTimer;

    impl DeadlineTimer {
        pub(crate) fn new(_system: &Registry, _token: Token) -> io::Result<DeadlineTimer> {
            Ok(DeadlineTimer)
        }

        pub(crate) fn prepare(
            &mut self,
            _deadline: u64,
            left: Duration,
            timeout: Option<Duration>,
        ) -> io::Result<Option<Duration>> {
            // The wait itself rounds up to whole milliseconds.
            Ok(Some(timeout.map_or(left, |timeout| timeout.min(left))))
        }

        pub(crate) fn fired(&mut self) {}
    }
}
