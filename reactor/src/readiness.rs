//! What is known about one source, packed into one atomic word: flags below, a tick above.
//!
//! | flag           | meaning                                | set by            | cleared by            |
//! |----------------|----------------------------------------|-------------------|-----------------------|
//! | `READABLE`     | a read may succeed                     | an event          | `clear` for reading   |
//! | `WRITABLE`     | a write may succeed                    | an event          | `clear` for writing   |
//! | `READ_CLOSED`  | the peer sends no more                 | an event          | nobody                |
//! | `WRITE_CLOSED` | the peer takes no more                 | an event          | nobody                |
//! | `ERROR`        | an error was reported                  | an event          | `clear`, either way   |
//! | `SHUTDOWN`     | the reactor was shut down              | `shut_down`       | nobody                |
//! | `HELD`         | reading has to wait, whatever is ready | `hold`            | `release`             |
//! | `URGENT`       | reads may stop at a mark short of more | an event          | `clear` for reading   |
//!
//! Sources are registered edge-triggered: the system reports a change once. The race to prevent is
//! therefore the forgotten event: an operation finds nothing, an event arrives, and only then does
//! the operation clear the readiness it started from, the new event's with it. Each event bumps the
//! tick, and `clear` does nothing unless the tick is still the one the operation started from.

use std::fmt;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::{AcqRel, Acquire};

/// One of the two ways data flows through a source; each has its own readiness and its own waiters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// From the peer to us: reading, accepting.
    Read,
    /// From us to the peer: writing, and being connected.
    Write,
}

/// That a source was ready, and when: what an operation starts from, and what
/// [`Registration::clear_ready`](crate::Registration::clear_ready) wants back if it found nothing.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct ReadyEvent {
    direction: Direction,
    seen: Snapshot,
}

/// Flags to be set in a [`Readiness`].
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Flags(usize);

/// The value of a [`Readiness`] at one moment.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Snapshot(usize);

/// The packed word of one source.
pub(crate) struct Readiness(AtomicUsize);

const READABLE: usize = 1;
const WRITABLE: usize = 1 << 1;
const READ_CLOSED: usize = 1 << 2;
const WRITE_CLOSED: usize = 1 << 3;
const ERROR: usize = 1 << 4;
const SHUTDOWN: usize = 1 << 5;
const HELD: usize = 1 << 6;
const URGENT: usize = 1 << 7;

/// One step of the tick, which takes all bits above the flags and wraps.
const TICK: usize = 1 << 8;

impl ReadyEvent {
    /// What the source was ready for.
    pub fn direction(&self) -> Direction {
        self.direction
    }

    /// Whether the peer sends no more: reads give what has arrived, then nothing.
    pub fn is_read_closed(&self) -> bool {
        self.seen.has(READ_CLOSED)
    }

    /// Whether the peer takes no more: writes fail.
    pub fn is_write_closed(&self) -> bool {
        self.seen.has(WRITE_CLOSED)
    }

    /// Whether no event came between `self` and `other`.
    pub(crate) fn same_tick(self, other: ReadyEvent) -> bool {
        self.seen.tick() == other.seen.tick()
    }

    /// Whether the peer sent urgent data: a read stops at its mark, also if there is more behind it.
    pub(crate) fn is_urgent(&self) -> bool {
        self.seen.has(URGENT)
    }

    /// Whether the system reported an error; the next operation, or `take_error`, says which.
    pub fn is_error(&self) -> bool {
        self.seen.has(ERROR)
    }
}

impl fmt::Debug for ReadyEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ReadyEvent")
            .field("direction", &self.direction)
            .field("seen", &self.seen)
            .finish()
    }
}

impl Flags {
    /// Nothing is ready.
    pub(crate) const NONE: Flags = Flags(0);
    /// Both directions are ready.
    pub(crate) const BOTH: Flags = Flags(READABLE | WRITABLE);

    /// What an event of the system says. An error or a hang-up makes both directions ready, so that
    /// whoever waits learns of it from its own operation.
    pub(crate) fn of_event(event: &mio::event::Event) -> Flags {
        let error = event.is_error();
        let read_closed = event.is_read_closed();
        // An error alone closes nothing: datagram sockets and sockets with an error queue report one and
        // go on, also when the peer has ended its side. What is closed stays ready for good, so only
        // what is certain may count; and after a real end with an error no operation says `WouldBlock`.
        let write_closed = event.is_write_closed() && !error;
        let hang_up = read_closed && write_closed;
        let mut flags = 0;
        for (flag, holds) in [
            (READABLE, event.is_readable() || error || hang_up),
            (WRITABLE, event.is_writable() || error || hang_up),
            (READ_CLOSED, read_closed),
            (WRITE_CLOSED, write_closed),
            (ERROR, error),
            (URGENT, event.is_priority()),
        ] {
            if holds {
                flags |= flag;
            }
        }
        Flags(flags)
    }

    /// Whether waiters of `direction` have something to look at.
    pub(crate) fn concern(self, direction: Direction) -> bool {
        self.0 & ready_mask(direction) != 0
    }

    #[cfg(test)]
    pub(crate) const READABLE: Flags = Flags(READABLE);
    #[cfg(test)]
    pub(crate) const READ_CLOSED: Flags = Flags(READ_CLOSED);
    #[cfg(test)]
    pub(crate) const ERROR: Flags = Flags(READABLE | WRITABLE | ERROR);
}

impl Snapshot {
    /// The event an operation in `direction` may start from, if it is ready.
    pub(crate) fn ready(self, direction: Direction) -> Option<ReadyEvent> {
        let held = direction == Direction::Read && self.has(HELD);
        let ready = self.has(ready_mask(direction)) && !held;
        ready.then_some(ReadyEvent {
            direction,
            seen: self,
        })
    }

    pub(crate) fn is_shut_down(self) -> bool {
        self.has(SHUTDOWN)
    }

    fn has(self, flags: usize) -> bool {
        self.0 & flags != 0
    }

    fn tick(self) -> usize {
        self.0 / TICK
    }
}

impl fmt::Debug for Snapshot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const NAMES: [(usize, &str); 8] = [
            (READABLE, "READABLE"),
            (WRITABLE, "WRITABLE"),
            (READ_CLOSED, "READ_CLOSED"),
            (WRITE_CLOSED, "WRITE_CLOSED"),
            (ERROR, "ERROR"),
            (SHUTDOWN, "SHUTDOWN"),
            (HELD, "HELD"),
            (URGENT, "URGENT"),
        ];
        for (_, name) in NAMES.iter().filter(|(flag, _)| self.has(*flag)) {
            write!(f, "{name} ")?;
        }
        write!(f, "tick {}", self.tick())
    }
}

// Every change is a release and every look an acquire: whoever acts on a flag also sees what its
// setter did before. That an event and a new waiter do not miss each other is not these orderings'
// doing but the waiters' lock's, see `SourceState`.
impl Readiness {
    pub(crate) fn new(initial: Flags) -> Readiness {
        Readiness(AtomicUsize::new(initial.0))
    }

    pub(crate) fn load(&self) -> Snapshot {
        Snapshot(self.0.load(Acquire))
    }

    /// Adds what an event says, under a new tick.
    pub(crate) fn set(&self, flags: Flags) {
        self.update(|word| Some((word | flags.0).wrapping_add(TICK)));
    }

    /// Takes back the readiness `event` stood for, unless another event has come since. What is
    /// closed stays. Returns the word as it is now.
    pub(crate) fn clear(&self, event: ReadyEvent) -> Snapshot {
        let open = match event.direction {
            Direction::Read => READABLE | ERROR | URGENT,
            Direction::Write => WRITABLE | ERROR,
        };
        self.update(|word| (Snapshot(word).tick() == event.seen.tick()).then_some(word & !open))
    }

    /// Makes every later operation fail.
    pub(crate) fn shut_down(&self) {
        self.update(|word| Some((word | SHUTDOWN).wrapping_add(TICK)));
    }

    /// Makes reading wait until [`release`](Self::release), whatever becomes ready.
    pub(crate) fn hold(&self) {
        self.0.fetch_or(HELD, AcqRel);
    }

    /// Ends a [`hold`](Self::hold).
    pub(crate) fn release(&self) {
        self.0.fetch_and(!HELD, AcqRel);
    }

    /// Replaces the word by what `change` makes of it, or leaves it; returns what it is now.
    fn update(&self, change: impl Fn(usize) -> Option<usize>) -> Snapshot {
        match self.0.fetch_update(AcqRel, Acquire, &change) {
            Ok(before) => Snapshot(change(before).unwrap_or(before)),
            Err(unchanged) => Snapshot(unchanged),
        }
    }
}

impl fmt::Debug for Readiness {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.load().fmt(f)
    }
}

fn ready_mask(direction: Direction) -> usize {
    match direction {
        Direction::Read => READABLE | READ_CLOSED,
        Direction::Write => WRITABLE | WRITE_CLOSED,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every set of flags x every set an event in between brings (or no event) x both directions.
    #[test]
    fn clear_takes_only_what_was_seen() {
        for before in 0..TICK / 2 {
            for between in (0..TICK / 2).map(Some).chain([None]) {
                for direction in [Direction::Read, Direction::Write] {
                    check_clear(before, between, direction);
                }
            }
        }
    }

    fn check_clear(before: usize, between: Option<usize>, direction: Direction) {
        let readiness = Readiness::new(Flags(before));
        let event = ReadyEvent {
            direction,
            seen: readiness.load(),
        };
        if let Some(flags) = between {
            readiness.set(Flags(flags));
        }
        let unseen = readiness.load();
        let after = readiness.clear(event);
        assert_eq!(after, readiness.load());
        if between.is_some() {
            assert_eq!(after, unseen, "an event between was lost");
            return;
        }
        let open = if direction == Direction::Read {
            READABLE
        } else {
            WRITABLE
        };
        assert_eq!(after.0, before & !(open | ERROR));
        assert!(!after.has(open));
        assert_eq!(after.has(READ_CLOSED), before & READ_CLOSED != 0);
        assert_eq!(after.has(WRITE_CLOSED), before & WRITE_CLOSED != 0);
    }

    #[test]
    fn the_tick_wraps_without_touching_the_flags() {
        let readiness = Readiness(AtomicUsize::new(!(TICK - 1) | READABLE));
        let event = readiness.load().ready(Direction::Read).unwrap();
        readiness.set(Flags(WRITABLE));
        assert_eq!(readiness.load(), Snapshot(READABLE | WRITABLE));
        readiness.clear(event);
        assert!(readiness.load().ready(Direction::Read).is_some());
    }

    #[test]
    fn what_is_closed_stays_ready() {
        let readiness = Readiness::new(Flags(READABLE | READ_CLOSED));
        let event = readiness.load().ready(Direction::Read).unwrap();
        let event = readiness.clear(event).ready(Direction::Read).unwrap();
        assert!(event.is_read_closed() && !event.is_write_closed() && !event.is_error());
    }

    #[test]
    fn a_hold_hides_readable_but_not_writable() {
        let readiness = Readiness::new(Flags::BOTH);
        readiness.hold();
        readiness.set(Flags::READABLE);
        assert_eq!(readiness.load().ready(Direction::Read), None);
        assert!(readiness.load().ready(Direction::Write).is_some());
        readiness.release();
        assert!(readiness.load().ready(Direction::Read).is_some());
    }

    #[test]
    fn debug_names_the_flags() {
        let readiness = Readiness::new(Flags::NONE);
        readiness.set(Flags(READABLE | WRITE_CLOSED));
        readiness.shut_down();
        assert_eq!(
            format!("{readiness:?}"),
            "READABLE WRITE_CLOSED SHUTDOWN tick 2"
        );
    }
}
