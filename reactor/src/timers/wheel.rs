//! A hierarchical timing wheel: timers ordered just as far as firing them needs.
//!
//! Time is cut into ticks of 2^14 nanoseconds (16.4 us). A tick number of 50 bits is read as nine
//! digits of six bits; each digit has a level of 64 slots. A timer stands on the level of the
//! highest digit in which its tick differs from the present tick (`elapsed`), in the slot of its own
//! digit there; one that is due now, on level 0. Nine levels hold every tick that nanoseconds in a
//! `u64` can name, so there is no overflow list.
//!
//! What follows from that placement, and everything below rests on it:
//!
//! - W1 On each level the occupied slots lie ahead of the present digit (on level 0 also at it), so
//!   the next one is the lowest set bit, and no slot wraps round.
//! - W2 All timers of a level are due before all timers of a higher one.
//! - W3 It stays true while `elapsed` moves on to anything before the next occupied slot's start.
//! - W4 Timers of the same tick are always in the same list, in the order in which they were
//!   inserted.
//!
//! Inserting and removing are a few writes each. When `elapsed` comes to a slot above level 0, the
//! slot's timers move to lower levels, which happens to a timer at most eight times, and never to
//! the many that are cancelled early.
//!
//! A timer fires at the first boundary of a tick at or after its deadline: never early.

use std::task::Waker;

/// Timers with their wakers, by deadline. Knows no clock: it is told what time it is.
#[derive(Debug)]
pub(crate) struct Wheel {
    /// The tick up to which timers have fired.
    elapsed: u64,
    /// Per level, which slots have timers.
    occupied: [u64; LEVELS],
    slots: [[WheelSlot; SLOTS]; LEVELS],
    entries: Vec<Entry>,
    /// The first of the free entries, linked by `next`.
    free: u32,
}

/// Names a timer in a wheel. When the timer has fired or was removed, its entry serves another one,
/// and the key names nothing any more: the generations differ. (They would meet again after 2^32
/// timers in the same entry, which a key kept that long would have to hit exactly.)
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TimerKey {
    index: u32,
    generation: u32,
}

/// The timers of one slot: a ring of entries, since that has a first and a last with one field.
#[derive(Clone, Copy, Debug)]
struct WheelSlot {
    first: u32,
    /// Of the slot's timers, the tick of the first; too early if that was removed.
    earliest: u64,
}

#[derive(Debug)]
struct Entry {
    tick: u64,
    /// None in a free entry.
    waker: Option<Waker>,
    previous: u32,
    next: u32,
    generation: u32,
    level: u8,
    /// The slot on that level, or [`UNLINKED`].
    slot: u8,
}

/// A tick is this power of two, in nanoseconds.
const TICK_BITS: u32 = 14;
const DIGIT_BITS: u32 = 6;
const SLOTS: usize = 1 << DIGIT_BITS;
const LEVELS: usize = (u64::BITS - TICK_BITS).div_ceil(DIGIT_BITS) as usize;

/// No entry.
const NIL: u32 = u32::MAX;
/// The slot of a timer that never fires.
const UNLINKED: u8 = u8::MAX;

impl Wheel {
    pub(crate) fn new() -> Wheel {
        let empty = WheelSlot {
            first: NIL,
            earliest: u64::MAX,
        };
        Wheel {
            elapsed: 0,
            occupied: [0; LEVELS],
            slots: [[empty; SLOTS]; LEVELS],
            entries: Vec::new(),
            free: NIL,
        }
    }

    /// Adds a timer. Returns its key and the time at which it fires, `u64::MAX` for never: that is
    /// what a deadline of `u64::MAX` means, and any that is less than a tick before it.
    ///
    /// # Panics
    ///
    /// With more than 2^32 timers.
    #[inline]
    pub(crate) fn insert(&mut self, deadline: u64, waker: Waker) -> (TimerKey, u64) {
        let index = self.allocate(waker);
        let key = TimerKey {
            index,
            generation: self.entries[index as usize].generation,
        };
        match deadline.checked_add((1 << TICK_BITS) - 1) {
            None => (key, u64::MAX),
            Some(rounded_up) => {
                // A tick that has passed already fires with the present one.
                let tick = (rounded_up >> TICK_BITS).max(self.elapsed);
                self.link(index, tick);
                (key, tick << TICK_BITS)
            }
        }
    }

    /// Removes a timer; returns its waker. `None` if it has fired or was removed before.
    #[inline]
    pub(crate) fn remove(&mut self, key: TimerKey) -> Option<Waker> {
        self.waker_mut(key)?;
        self.unlink(key.index);
        self.release(key.index)
    }

    /// The waker of a timer. `None` if it has fired or was removed.
    #[inline]
    pub(crate) fn waker_mut(&mut self, key: TimerKey) -> Option<&mut Waker> {
        let entry = self.entries.get_mut(key.index as usize)?;
        if entry.generation != key.generation {
            return None;
        }
        entry.waker.as_mut()
    }

    /// Moves on to `now`: the wakers of all timers that are due go to `due`, in the order of their
    /// ticks.
    pub(crate) fn advance(&mut self, now: u64, due: &mut Vec<Waker>) {
        let now = now >> TICK_BITS;
        while let Some((level, slot)) = self.next_slot() {
            let start = self.start_of(level, slot);
            if start > now {
                break;
            }
            self.elapsed = start;
            self.empty_slot(level, slot, due);
        }
        self.elapsed = self.elapsed.max(now);
    }

    /// When the next timer fires, `u64::MAX` if none will. Never too late; too early if the timer
    /// that it was about has been removed. After [`advance`](Self::advance) it is later than the
    /// time advanced to.
    pub(crate) fn next_expiry(&self) -> u64 {
        match self.next_slot() {
            Some((level, slot)) => self.slots[level][slot].earliest << TICK_BITS,
            None => u64::MAX,
        }
    }

    /// The wakers of all timers that are left.
    pub(crate) fn into_wakers(self) -> impl Iterator<Item = Waker> {
        self.entries.into_iter().filter_map(|entry| entry.waker)
    }

    /// Whether no timer is left.
    #[cfg(test)]
    pub(crate) fn is_empty(&self) -> bool {
        self.entries.iter().all(|entry| entry.waker.is_none())
    }

    /// The occupied slot that starts first (W1, W2).
    fn next_slot(&self) -> Option<(usize, usize)> {
        let level = self.occupied.iter().position(|&slots| slots != 0)?;
        Some((level, self.occupied[level].trailing_zeros() as usize))
    }

    /// The first tick of a slot: the digits above are those of the present (W1).
    fn start_of(&self, level: usize, slot: usize) -> u64 {
        let shift = DIGIT_BITS * level as u32;
        let above = shift + DIGIT_BITS;
        (self.elapsed >> above << above) | (slot as u64) << shift
    }

    /// Fires the timers of a slot of level 0, moves those of another one to lower levels. `elapsed`
    /// is the start of the slot.
    fn empty_slot(&mut self, level: usize, slot: usize, due: &mut Vec<Waker>) {
        let first = self.slots[level][slot].first;
        self.slots[level][slot].first = NIL;
        self.occupied[level] &= !(1 << slot);
        let mut index = first;
        loop {
            let Entry { tick, next, .. } = self.entries[index as usize];
            if level == 0 {
                due.extend(self.release(index));
            } else {
                self.link(index, tick);
            }
            if next == first {
                break;
            }
            index = next;
        }
    }

    /// Appends an entry to the list of its tick's slot.
    #[inline]
    fn link(&mut self, index: u32, tick: u64) {
        let differing = (tick ^ self.elapsed) | (SLOTS as u64 - 1);
        let level = (differing.ilog2() / DIGIT_BITS) as usize;
        let slot = (tick >> (DIGIT_BITS * level as u32)) as usize % SLOTS;
        let WheelSlot { first, earliest } = &mut self.slots[level][slot];
        let (previous, next) = if *first == NIL {
            *first = index;
            *earliest = tick;
            self.occupied[level] |= 1 << slot;
            (index, index)
        } else {
            *earliest = tick.min(*earliest);
            let next = *first;
            let last = &mut self.entries[next as usize].previous;
            let previous = std::mem::replace(last, index);
            self.entries[previous as usize].next = index;
            (previous, next)
        };
        let entry = &mut self.entries[index as usize];
        entry.tick = tick;
        entry.level = level as u8;
        entry.slot = slot as u8;
        (entry.previous, entry.next) = (previous, next);
    }

    /// Takes an entry out of its list.
    #[inline]
    fn unlink(&mut self, index: u32) {
        let entry = &self.entries[index as usize];
        let (previous, next) = (entry.previous, entry.next);
        let (level, slot) = (entry.level as usize, entry.slot);
        if slot == UNLINKED {
            return;
        }
        let first = &mut self.slots[level][slot as usize].first;
        if next == index {
            *first = NIL;
            self.occupied[level] &= !(1 << slot);
            return;
        }
        if *first == index {
            *first = next;
        }
        self.entries[previous as usize].next = next;
        self.entries[next as usize].previous = previous;
    }

    /// An entry that is in no list. Entries are used again and never given back, so that in a steady
    /// state nothing is allocated.
    #[inline]
    fn allocate(&mut self, waker: Waker) -> u32 {
        let index = self.free;
        match self.entries.get_mut(index as usize) {
            Some(entry) => {
                self.free = entry.next;
                entry.waker = Some(waker);
                entry.slot = UNLINKED;
                index
            }
            None => self.grow(waker),
        }
    }

    #[cold]
    fn grow(&mut self, waker: Waker) -> u32 {
        let index = u32::try_from(self.entries.len()).unwrap_or(NIL);
        assert!(index != NIL, "a wheel holds fewer than 2^32 timers");
        self.entries.push(Entry {
            tick: 0,
            waker: Some(waker),
            previous: NIL,
            next: NIL,
            generation: 0,
            level: 0,
            slot: UNLINKED,
        });
        index
    }

    /// Frees an entry that is in no list, and with it its keys; returns its waker.
    #[inline]
    fn release(&mut self, index: u32) -> Option<Waker> {
        let entry = &mut self.entries[index as usize];
        entry.generation = entry.generation.wrapping_add(1);
        entry.next = self.free;
        self.free = index;
        entry.waker.take()
    }
}

#[cfg(test)]
mod tests;
