//! Which token belongs to which source.
//!
//! A token is what the system hands back with an event. Between the moment the system puts an event
//! into the driver's buffer and the moment the driver looks its token up, the source may be removed
//! and another one be added. Two things keep such a stale event from the newcomer (invariant I8):
//!
//! - A slot given up while a turn is under way stays empty until the next turn begins. An event in
//!   the buffer of this turn was put there before, so its token can only meet the empty slot.
//! - A token carries, beside the slot's key, a generation that differs from source to source.
//!   Should the system report an old token ever later, it does not match.

use std::fmt;
use std::io;
use std::mem;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Waker;

use slab::Slab;

use crate::readiness::Flags;
use crate::source::{SourceState, shut_down_error};

/// All sources of one reactor.
#[derive(Debug, Default)]
pub(crate) struct Sources {
    table: Mutex<Table>,
    registered: AtomicUsize,
}

/// Key and generation of a source's slot, packed: what the system knows a source by.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct SourceToken(usize);

#[derive(Debug, Default)]
struct Table {
    slots: Slab<Slot>,
    /// Keys of the slots that were given up during the present turn.
    given_up: Vec<usize>,
    last_generation: usize,
    turn_under_way: bool,
    shut_down: bool,
}

#[derive(Debug)]
struct Slot {
    generation: usize,
    /// `None` once the slot is given up.
    source: Option<Arc<SourceState>>,
}

/// The lower part of a token holds the key, the rest the generation: half and half, but on 32-bit
/// targets 20 bits, since a million sources are conceivable there and 65 thousand too few.
const KEY_BITS: u32 = if usize::BITS >= 64 { 32 } else { 20 };
const KEY_MASK: usize = (1 << KEY_BITS) - 1;
/// The last keys are left out, so that no source's token is one of the driver's own.
const MAX_KEY: usize = KEY_MASK - 16;

impl Sources {
    /// Adds a source that is at first ready for `initial`.
    ///
    /// # Errors
    ///
    /// If the reactor was shut down, or there are more sources than tokens.
    pub(crate) fn add(&self, initial: Flags) -> io::Result<(Arc<SourceState>, SourceToken)> {
        let source = Arc::new(SourceState::new(initial));
        let token = self.lock().add(Arc::clone(&source))?;
        self.registered.fetch_add(1, Relaxed);
        Ok((source, token))
    }

    /// Removes a source; nothing happens if it is removed already.
    pub(crate) fn remove(&self, token: SourceToken) {
        let removed = self.lock().remove(token);
        if removed.is_some() {
            self.registered.fetch_sub(1, Relaxed);
        }
    }

    /// Whether any source is registered. Relaxed: it is a hint, and who relies on it has other
    /// reasons to see a recent value.
    pub(crate) fn any(&self) -> bool {
        self.registered.load(Relaxed) != 0
    }

    /// Before the system is asked for events: slots given up since the last turn become free.
    pub(crate) fn begin_turn(&self) {
        let mut table = self.lock();
        table.free_given_up();
        table.turn_under_way = true;
    }

    /// After the system was asked: tells each source its event, drops stale ones, and moves the
    /// wakers to wake to `woken`. Ends the turn. The sources' own locks are taken inside the
    /// table's, never the other way round.
    pub(crate) fn end_turn(
        &self,
        events: impl Iterator<Item = (SourceToken, Flags)>,
        woken: &mut Vec<Waker>,
    ) {
        let mut table = self.lock();
        for (token, flags) in events {
            if let Some(source) = table.find(token) {
                source.mark(flags, woken);
            }
        }
        table.turn_under_way = false;
    }

    /// Makes all operations fail from now on and moves every waker to `woken`.
    pub(crate) fn shut_down(&self, woken: &mut Vec<Waker>) {
        let mut table = self.lock();
        table.shut_down = true;
        for (_, slot) in &table.slots {
            if let Some(source) = &slot.source {
                source.shut_down(woken);
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Table {
    fn add(&mut self, source: Arc<SourceState>) -> io::Result<SourceToken> {
        if self.shut_down {
            return Err(shut_down_error());
        }
        let entry = self.slots.vacant_entry();
        if entry.key() > MAX_KEY {
            return Err(io::Error::other(
                "too many sources registered with one runtime",
            ));
        }
        let token = SourceToken::new(entry.key(), self.last_generation.wrapping_add(1));
        self.last_generation = token.generation();
        entry.insert(Slot {
            generation: token.generation(),
            source: Some(source),
        });
        Ok(token)
    }

    /// Gives the source back, so that it is dropped, with the wakers it may hold, after the lock.
    fn remove(&mut self, token: SourceToken) -> Option<Arc<SourceState>> {
        let slot = self.slots.get_mut(token.key())?;
        if slot.generation != token.generation() {
            return None;
        }
        let source = slot.source.take()?;
        if self.turn_under_way {
            self.given_up.push(token.key());
        } else {
            self.slots.remove(token.key());
        }
        Some(source)
    }

    fn find(&self, token: SourceToken) -> Option<&Arc<SourceState>> {
        let slot = self.slots.get(token.key())?;
        slot.source
            .as_ref()
            .filter(|_| slot.generation == token.generation())
    }

    fn free_given_up(&mut self) {
        let mut keys = mem::take(&mut self.given_up);
        for key in keys.drain(..) {
            self.slots.remove(key);
        }
        self.given_up = keys;
    }
}

impl SourceToken {
    /// The token the system reported; it may be stale.
    pub(crate) fn from_system(token: mio::Token) -> SourceToken {
        SourceToken(token.0)
    }

    pub(crate) fn for_system(self) -> mio::Token {
        mio::Token(self.0)
    }

    fn new(key: usize, generation: usize) -> SourceToken {
        debug_assert!(key <= MAX_KEY);
        SourceToken((generation << KEY_BITS) | key)
    }

    fn key(self) -> usize {
        self.0 & KEY_MASK
    }

    fn generation(self) -> usize {
        self.0 >> KEY_BITS
    }
}

impl fmt::Debug for SourceToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "slot {} generation {}", self.key(), self.generation())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::readiness::Direction;
    use std::task::Context;

    /// Ends a turn in which the system reported `token` readable; returns how many were woken.
    fn end_turn_with(sources: &Sources, token: SourceToken) -> usize {
        let mut woken = Vec::new();
        sources.end_turn([(token, Flags::READABLE)].into_iter(), &mut woken);
        woken.len()
    }

    fn wait_for_read(source: &SourceState) {
        let mut cx = Context::from_waker(Waker::noop());
        assert!(source.poll_ready(&mut cx, Direction::Read).is_pending());
    }

    #[test]
    fn an_event_reaches_its_source() {
        let sources = Sources::default();
        let (source, token) = sources.add(Flags::NONE).unwrap();
        wait_for_read(&source);
        sources.begin_turn();
        assert_eq!(end_turn_with(&sources, token), 1);
        assert!(source.ready_now(Direction::Read).is_some());
        assert!(source.ready_now(Direction::Write).is_none());
    }

    #[test]
    fn a_slot_is_free_only_after_the_turn_it_was_given_up_in() {
        let sources = Sources::default();
        let (_, old) = sources.add(Flags::NONE).unwrap();
        sources.begin_turn();
        sources.remove(old);
        let (newcomer, new) = sources.add(Flags::NONE).unwrap();
        assert_ne!(new.key(), old.key());
        wait_for_read(&newcomer);
        assert_eq!(end_turn_with(&sources, old), 0);
        sources.begin_turn();
        let (_, reused) = sources.add(Flags::NONE).unwrap();
        assert_eq!(reused.key(), old.key());
        assert_ne!(reused, old);
    }

    #[test]
    fn between_turns_a_slot_is_free_at_once_but_its_token_stays_stale() {
        let sources = Sources::default();
        let (_, old) = sources.add(Flags::NONE).unwrap();
        sources.remove(old);
        let (newcomer, new) = sources.add(Flags::NONE).unwrap();
        assert_eq!(new.key(), old.key());
        wait_for_read(&newcomer);
        sources.begin_turn();
        assert_eq!(
            end_turn_with(&sources, old),
            0,
            "a stale event reached a new owner"
        );
        assert!(newcomer.ready_now(Direction::Read).is_none());
    }

    #[test]
    fn removing_twice_counts_once() {
        let sources = Sources::default();
        let (_, first) = sources.add(Flags::NONE).unwrap();
        sources.remove(first);
        let (_, second) = sources.add(Flags::NONE).unwrap();
        sources.remove(first);
        assert!(sources.any());
        sources.remove(second);
        assert!(!sources.any());
        assert!(sources.lock().slots.is_empty());
    }

    #[test]
    fn generations_wrap_without_reaching_into_the_key() {
        let sources = Sources::default();
        sources.lock().last_generation = usize::MAX >> KEY_BITS;
        let (_, token) = sources.add(Flags::NONE).unwrap();
        assert_eq!((token.key(), token.generation()), (0, 0));
        assert_eq!(SourceToken::from_system(token.for_system()), token);
        sources.remove(token);
        assert!(!sources.any());
    }

    #[test]
    fn after_shutdown_waiters_are_woken_and_nothing_is_added() {
        let sources = Sources::default();
        let (source, _) = sources.add(Flags::NONE).unwrap();
        wait_for_read(&source);
        let mut woken = Vec::new();
        sources.shut_down(&mut woken);
        assert_eq!(woken.len(), 1);
        assert!(source.ready_now(Direction::Write).unwrap().is_err());
        let refused = sources.add(Flags::NONE).unwrap_err();
        assert!(refused.to_string().contains("shut down"));
    }
}
