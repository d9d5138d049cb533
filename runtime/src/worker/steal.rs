//! Whom to steal from, and what: half of a victim's lanes in one batch, both lanes; a slot only as the last
//! resort.

use crossbeam_deque::{Steal, Stealer, Worker as Lane};

use super::Worker;
use crate::builder::StealOrder;
use crate::scheduler::Scheduler;
use crate::seat::{Peer, Seat, Seated};
use crate::task::refs::Runnable;

/// The most that one steal takes.
const BATCH: usize = 64;

/// In queues shorter than this a turn comes soon in any case.
const LONG: usize = 16;

/// So many rebalances lie between two comparisons of speed.
const WINDOW: u8 = 7;

impl Worker {
    /// Looks into every other seat, as a searcher if there are not too many. The searcher's place is kept when
    /// nothing is found: parking gives it up.
    pub(super) fn search(&self, seat: &Seat) -> Option<Runnable> {
        let seats = self.scheduler.seat_count();
        if seats == 1 || !(seat.searching.get() || self.scheduler.sleep.try_search()) {
            return None;
        }
        seat.searching.set(true);
        seat.peer.counts.searches.add(1);
        let first = first_victim(&self.scheduler, seat);
        let others = || others(seat, first, seats);
        others()
            .find_map(|victim| self.steal_from(seat, self.scheduler.peer(victim)))
            // Something may have come in while we looked elsewhere.
            .or_else(|| self.refill(seat))
            .or_else(|| {
                others().find_map(|victim| self.steal_slot(seat, self.scheduler.peer(victim)))
            })
    }

    /// A busy worker evens out with one victim: nobody is idle to do it for the two of them.
    pub(super) fn rebalance(&self, seat: &Seat) {
        let seats = self.scheduler.seat_count();
        if seats == 1 {
            return;
        }
        let victim = self.scheduler.peer(first_victim(&self.scheduler, seat));
        if victim.index == seat.index() {
            return;
        }
        let (theirs, ours) = (victim.shelf.lanes_len(), seat.peer.shelf.lanes_len());
        if theirs <= 2 * ours + 8 {
            return self.even_out(seat, victim);
        }
        // Each to its own lane: threads that wait in `join` look for forked jobs in the fork lanes alone.
        let (forked, woken) = take_half(seat, victim);
        if let Some(forked) = forked {
            seat.lanes.fork.push(forked);
        }
        if let Some(woken) = woken {
            seat.lanes.fair.push(woken);
        }
        self.offer(seat);
    }

    /// Queues of about the same length need not be served at the same speed: one worker's slot may be busy, or another
    /// program have half of its core. So tasks come over as far as those here get more turns than those there, by what
    /// both workers served since they were last compared: a quarter of the way, for what has been seen may be chance.
    fn even_out(&self, seat: &Seat, victim: &Peer) {
        let served = [victim, &seat.peer].map(|peer| peer.shelf.fair_served.get());
        let (index, before, looks) = seat.compared.get();
        if index != victim.index || looks == WINDOW {
            seat.compared.set((victim.index, served, 0));
        } else {
            seat.compared.set((index, before, looks + 1));
        }
        if index != victim.index || looks < WINDOW {
            return;
        }
        let [slow, fast] = [0, 1].map(|who| (served[who] - before[who]) as usize);
        let (theirs, ours) = (victim.shelf.fair.len(), seat.lanes.fair.len());
        let surplus = (theirs * fast).saturating_sub(ours * slow) / (slow + fast).max(1);
        let share = (surplus / 4).min(BATCH);
        if theirs < LONG || surplus * 8 < theirs || share == 0 {
            return;
        }
        if let Steal::Success(task) = victim
            .shelf
            .fair
            .steal_batch_with_limit_and_pop(&seat.lanes.fair, share)
        {
            seat.lanes.fair.push(task);
            self.offer(seat);
        }
    }

    /// Half of the victim's lanes; one task is returned to run.
    fn steal_from(&self, seat: &Seat, victim: &Peer) -> Option<Runnable> {
        let (forked, woken) = take_half(seat, victim);
        if woken.is_none() {
            return forked;
        }
        if let Some(forked) = forked {
            seat.lanes.fork.push(forked);
        }
        woken
    }

    /// A slot is its owner's to run next, and taking it away costs more than it gains, unless the owner is held
    /// up: so only if it was there at our last search too, in the same poll.
    fn steal_slot(&self, seat: &Seat, victim: &Peer) -> Option<Runnable> {
        if victim.shelf.slot.is_empty() {
            return None;
        }
        let sighting = (victim.index, victim.counts.polls.get());
        if seat.seen_slot.replace(sighting) != sighting {
            return None;
        }
        let (task, _) = victim.shelf.slot.take()?;
        seat.peer.counts.slot_steals.add(1);
        Some(task)
    }
}

/// For a worker that waits in `join`: forked work of another seat. It may be a task, which is not for running
/// there.
pub(crate) fn from_fork_lanes(seated: &Seated) -> Option<Runnable> {
    let (scheduler, seat) = (&seated.scheduler, &seated.seat);
    let seats = scheduler.seat_count();
    let job = others(seat, first_victim(scheduler, seat), seats)
        .find_map(|victim| steal_batch(&scheduler.peer(victim).shelf.fork, &seat.lanes.fork))
        .or_else(|| scheduler.backlog.take_job())?;
    seat.peer.counts.steals.add(1);
    seat.peer.counts.stolen_tasks.add(1);
    if seat.peer.shelf.has_visible_work() {
        // As `Worker::offer`: the rest of the batch was out of sight for a moment.
        scheduler.notify();
    }
    Some(job)
}

/// Half of the victim's fork lane and half of its fair lane into ours, but for one task of each, which are
/// returned.
fn take_half(seat: &Seat, victim: &Peer) -> (Option<Runnable>, Option<Runnable>) {
    let before = seat.peer.shelf.lanes_len();
    let forked = steal_batch(&victim.shelf.fork, &seat.lanes.fork);
    let woken = steal_batch(&victim.shelf.fair, &seat.lanes.fair);
    let taken = usize::from(forked.is_some()) + usize::from(woken.is_some());
    if taken > 0 {
        seat.peer.counts.steals.add(1);
        let batch = seat.peer.shelf.lanes_len().saturating_sub(before);
        seat.peer.counts.stolen_tasks.add((taken + batch) as u64);
    }
    (forked, woken)
}

fn first_victim(scheduler: &Scheduler, seat: &Seat) -> usize {
    let seats = scheduler.seat_count();
    match scheduler.steal_order {
        StealOrder::Random => (seat.random() % seats as u64) as usize,
        StealOrder::RoundRobin => {
            let next = seat.next_victim.get();
            seat.next_victim.set(next.wrapping_add(1));
            next % seats
        }
        StealOrder::Longest => {
            let lengths = scheduler
                .peers()
                .map(|peer| peer.shelf.lanes_len())
                .enumerate();
            lengths
                .max_by_key(|(_, length)| *length)
                .map_or(0, |(at, _)| at)
        }
    }
}

/// Every seat but our own, from `first` on.
fn others(seat: &Seat, first: usize, seats: usize) -> impl Iterator<Item = usize> {
    let own = seat.index();
    (0..seats)
        .map(move |step| (first + step) % seats)
        .filter(move |at| *at != own)
}

fn steal_batch(from: &Stealer<Runnable>, to: &Lane<Runnable>) -> Option<Runnable> {
    loop {
        match from.steal_batch_with_limit_and_pop(to, BATCH) {
            Steal::Success(task) => return Some(task),
            Steal::Empty => return None,
            Steal::Retry => std::hint::spin_loop(),
        }
    }
}
