//! A seat is what a thread needs to run tasks: the owner's half of one set of queues. There are as many as
//! workers, so that no more than that many threads run tasks; a thread gives its seat up while it is parked.
//!
//! ## Who sits when
//!
//! Background threads and threads in `block_on` ("callers") take seats from one pool.
//!
//! - A thread about to block releases its seat, and takes one when it wakes.
//! - A background thread that wakes and finds none for it is *displaced*: callers have the seats. It waits,
//!   outside the idle list, until a caller leaves; it must first stop searching and pass its wake on
//!   (`worker.rs`).
//! - A caller that finds none free is lent an extra one, so that it need not run its future beside the
//!   workers, with two wakes of a sleeping core for each operation. `surplus` counts the extra seats in
//!   circulation: whoever gives up a seat while there is a surplus takes that seat out of circulation, and a
//!   busy background thread gives up its own when it sees one.
//!
//! Hence: seats in circulation = workers + surplus, and the surplus goes down as soon as any worker comes to
//! the end of a poll. The race to prevent is a seat that is free while a displaced thread waits and nobody
//! else will use it: `acquire_or_queue` looks for a free seat under the lock under which it joins the line,
//! and `remove_caller` looks into the line under the lock under which it counts the caller out.

use std::cell::Cell;

use crate::metrics::SeatCounts;
use crate::park::Parker;
use crate::queue::{Lanes, Shelf, stamp_of};
use crate::scheduler::Scheduler;
use crate::sync::atomic::AtomicUsize;
use crate::sync::atomic::Ordering::Relaxed;
use crate::sync::{Arc, CachePadded, Mutex, lock};
use crate::task::census::Tally;
use crate::task::running::Running;

/// The owner's half of a seat. One thread at a time has it.
pub(crate) struct Seat {
    pub(crate) peer: Arc<CachePadded<Peer>>,
    pub(crate) lanes: Lanes,
    /// This worker is counted as searching; guards the count against being taken down twice.
    pub(crate) searching: Cell<bool>,
    /// This worker wakes what the driver found: one after the other to the fair lane, and one notification for all.
    pub(crate) dispatching: Cell<bool>,
    /// The last unpark has not found anything yet.
    pub(crate) just_unparked: Cell<bool>,
    /// Picks since the start, and the pick at which the clock is read next.
    pub(crate) tick: Cell<u32>,
    pub(crate) clock_at: Cell<u32>,
    /// Picks between two readings of the clock.
    pub(crate) clock_every: Cell<u32>,
    /// The last reading, in nanoseconds.
    pub(crate) now: Cell<u64>,
    pub(crate) rng: Cell<u64>,
    /// Where the next search begins, in round-robin order.
    pub(crate) next_victim: Cell<usize>,
    /// Whom the last comparison of speed was with, what both had served then, and looks since.
    pub(crate) compared: Cell<(usize, [u64; 2], u8)>,
    /// A block of task ids that are this seat's to hand out.
    pub(crate) ids: Cell<(u64, u64)>,
    /// The slot that the last search saw but did not take: whose, and in which poll.
    pub(crate) seen_slot: Cell<(usize, u64)>,
}

/// What everybody can see of a seat.
pub(crate) struct Peer {
    pub(crate) index: usize,
    pub(crate) shelf: Shelf,
    pub(crate) counts: SeatCounts,
    /// Births and ends of tasks on this seat.
    pub(crate) tally: Tally,
    pub(crate) running: Running,
}

/// A seat in use, with its scheduler: what a thread has while it is a worker.
pub(crate) struct Seated {
    pub(crate) scheduler: Arc<Scheduler>,
    pub(crate) seat: Seat,
}

impl std::ops::Deref for Seated {
    type Target = Seat;

    fn deref(&self) -> &Seat {
        &self.seat
    }
}

impl Seat {
    pub(crate) fn new(index: usize, seed: u64) -> Self {
        let (lanes, shelf) = Lanes::new();
        let peer = Peer {
            index,
            shelf,
            counts: SeatCounts::default(),
            tally: Tally::default(),
            running: Running::new(),
        };
        Self {
            peer: Arc::new(CachePadded(peer)),
            lanes,
            searching: Cell::new(false),
            dispatching: Cell::new(false),
            just_unparked: Cell::new(false),
            tick: Cell::new(0),
            clock_at: Cell::new(1),
            clock_every: Cell::new(64),
            now: Cell::new(0),
            next_victim: Cell::new(index + 1),
            // Spread, and never zero: the generator would stay there.
            rng: Cell::new((seed ^ (index as u64 + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15)) | 1),
            compared: Cell::new((usize::MAX, [0, 0], 0)),
            ids: Cell::new((0, 0)),
            seen_slot: Cell::new((usize::MAX, 0)),
        }
    }

    pub(crate) fn index(&self) -> usize {
        self.peer.index
    }

    /// Moves the slot's task where others find it.
    pub(crate) fn flush_slot(&self) {
        self.lanes
            .flush_slot(&self.peer.shelf, stamp_of(self.now.get()));
    }

    /// The next random number (xorshift64*; Vigna, "An experimental exploration of Marsaglia's xorshift
    /// generators, scrambled").
    pub(crate) fn random(&self) -> u64 {
        let mut x = self.rng.get();
        x ^= x >> 12;
        x ^= x << 25;
        x ^= x >> 27;
        self.rng.set(x);
        x.wrapping_mul(0x2545_F491_4F6C_DD1D)
    }
}

/// The pool of seats. Generic over the seat, so that the models can have small ones.
pub(crate) struct Seats<S> {
    pool: Mutex<Pool<S>>,
    /// Extra seats in circulation. Changes under the lock; read without it as a hint.
    surplus: AtomicUsize,
}

struct Pool<S> {
    free: Vec<S>,
    /// Out of circulation, kept for the next caller that must be lent one.
    spare: Vec<S>,
    displaced: Vec<Arc<Parker>>,
    /// Callers that wait beside the workers, since there are too many.
    refused: Vec<Arc<Parker>>,
    /// Threads in `block_on`, and how many may be.
    callers: usize,
    most_callers: usize,
    workers: usize,
}

impl<S> Seats<S> {
    /// `seats` in the order in which they are to be taken.
    pub(crate) fn new(mut seats: Vec<S>, most_callers: usize) -> Self {
        seats.reverse();
        let pool = Pool {
            workers: seats.len(),
            free: seats,
            spare: Vec::new(),
            displaced: Vec::new(),
            refused: Vec::new(),
            callers: 0,
            most_callers,
        };
        Self {
            pool: Mutex::new(pool),
            surplus: AtomicUsize::new(0),
        }
    }

    /// A free seat, for a background thread.
    pub(crate) fn acquire(&self) -> Option<S> {
        lock(&self.pool).take_for_background()
    }

    /// A thread begins a `block_on`. False if there are too many for each to get a seat: it is in a line then, and
    /// `parker` is woken when it may try again, or it leaves the line with [`Seats::leave_line`].
    #[must_use]
    pub(crate) fn add_caller(&self, parker: &Arc<Parker>) -> bool {
        let mut pool = lock(&self.pool);
        pool.refused.retain(|other| !Arc::ptr_eq(other, parker));
        let room = pool.callers < pool.most_callers;
        if room {
            pool.callers += 1;
        } else {
            pool.refused.push(Arc::clone(parker));
        }
        room
    }

    /// The reverse of [`Seats::add_caller`]. The seat has been released; wakes a thread that waits for one: a
    /// displaced one, and a caller that was refused.
    pub(crate) fn remove_caller(&self) {
        let (displaced, refused) = {
            let mut pool = lock(&self.pool);
            pool.callers -= 1;
            (pool.displaced.pop(), pool.refused.pop())
        };
        for parker in displaced.iter().chain(&refused) {
            parker.unpark();
        }
    }

    /// A caller that was refused goes without having had a seat. If it was woken to try again, the next one may.
    pub(crate) fn leave_line(&self, parker: &Arc<Parker>) {
        let next = {
            let mut pool = lock(&self.pool);
            pool.refused.retain(|other| !Arc::ptr_eq(other, parker));
            if pool.callers < pool.most_callers {
                pool.refused.pop()
            } else {
                None
            }
        };
        if let Some(parker) = next {
            parker.unpark();
        }
    }

    /// Whether callers leave no seat to the background threads.
    pub(crate) fn callers_have_all(&self) -> bool {
        let pool = lock(&self.pool);
        pool.callers >= pool.workers
    }

    /// A seat for a caller: a free one, else one that is lent; `make` makes a new one, or says that there
    /// are too many.
    pub(crate) fn acquire_or_lend(&self, make: impl FnOnce() -> Option<S>) -> Option<S> {
        let mut pool = lock(&self.pool);
        if let Some(seat) = pool.free.pop() {
            return Some(seat);
        }
        let seat = pool.spare.pop().or_else(make)?;
        self.surplus.store(self.surplus.load(Relaxed) + 1, Relaxed);
        Some(seat)
    }

    /// A thread gives its seat up, because it blocks or leaves. One that there is too much of goes out of
    /// circulation.
    pub(crate) fn release(&self, seat: S) {
        let mut pool = lock(&self.pool);
        let surplus = self.surplus.load(Relaxed);
        if surplus > 0 {
            self.surplus.store(surplus - 1, Relaxed);
            pool.spare.push(seat);
        } else {
            pool.free.push(seat);
        }
    }

    /// Whether a busy background thread should give its seat up. A hint.
    pub(crate) fn has_surplus(&self) -> bool {
        self.surplus.load(Relaxed) > 0
    }

    /// A background thread without a seat: takes a free one, or joins the line of the displaced; the caller
    /// then blocks on its parker and tries again.
    pub(crate) fn acquire_or_queue(&self, parker: &Arc<Parker>) -> Option<S> {
        let mut pool = lock(&self.pool);
        // It may be in the line from the last time, if something else than `release` woke it.
        pool.displaced.retain(|other| !Arc::ptr_eq(other, parker));
        let seat = pool.take_for_background();
        if seat.is_none() {
            pool.displaced.push(Arc::clone(parker));
        }
        seat
    }

    /// Wakes every displaced thread: shutdown.
    pub(crate) fn wake_displaced(&self) {
        let displaced = std::mem::take(&mut lock(&self.pool).displaced);
        for parker in displaced {
            parker.unpark();
        }
    }
}

impl<S> Pool<S> {
    /// Callers come first: a background thread gets none while they have as many as there are workers, also
    /// while one of them is parked and its seat free. It would wait in the driver in the caller's place, and
    /// every event would cross threads.
    fn take_for_background(&mut self) -> Option<S> {
        if self.callers < self.workers {
            self.free.pop()
        } else {
            None
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests;
