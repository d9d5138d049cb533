//! The wakers that wait for one direction of one source, and how they are woken.

use std::mem;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::task::Waker;

use slab::Slab;

/// The wakers of one direction. They come in two kinds, since only a future can say when it stops
/// waiting:
///
/// - *polled*: left behind by a `poll_*` call, which has nowhere to keep a place and no moment to
///   give one back. A task that polls under ever new wakers would fill the list without end, so it
///   is bounded: when it is full all of them are woken, and who still waits comes back. The bound
///   begins at [`FEWEST_POLLED`] and doubles each time until an event comes, so that as many as
///   really wait soon fit; it ends at [`MOST_POLLED`].
/// - *awaiting*: each belongs to a future (`readable().await` and the like) that replaces it at
///   every poll and removes it when dropped, so there are only as many as wait, and any number may.
///
/// Nothing in here runs a waker's code (I6): wakers are cloned before they are handed in, and what
/// is not needed goes back to the caller, who drops or wakes it after letting go of the lock.
#[derive(Debug, Default)]
pub(crate) struct Waiters {
    /// In here and not in a list: mostly one task polls, and a busy server visits thousands of these,
    /// each of which should be few cache lines.
    first_polled: Option<Waker>,
    more: Option<Box<MoreWaiters>>,
}

#[derive(Debug, Default)]
struct MoreWaiters {
    polled: Vec<Waker>,
    /// How often the polled ones were flushed since the last event.
    flushes: u32,
    awaiting: Slab<Option<Waker>>,
}

/// A future's place among the awaiting, once it has one.
pub(crate) type Place = Option<usize>;

/// Distinct wakers of the polled kind before they are flushed for the first time, and at most.
const FEWEST_POLLED: usize = 16;
const MOST_POLLED: usize = 1 << 14;

impl Waiters {
    /// Adds a polled waker. Returns it if it is there already, and moves the others to `flushed` if
    /// there are too many.
    pub(crate) fn add_polled(&mut self, waker: Waker, flushed: &mut Vec<Waker>) -> Option<Waker> {
        match &self.first_polled {
            None => {
                self.first_polled = Some(waker);
                return None;
            }
            Some(known) if known.will_wake(&waker) => return Some(waker),
            Some(_) => {}
        }
        let MoreWaiters {
            polled, flushes, ..
        } = &mut **self.more.get_or_insert_default();
        if polled.iter().any(|known| known.will_wake(&waker)) {
            return Some(waker);
        }
        if polled.len() + 1 == (FEWEST_POLLED << (*flushes).min(20)).min(MOST_POLLED) {
            *flushes += 1;
            flushed.extend(self.first_polled.replace(waker));
            flushed.append(polled);
            return None;
        }
        polled.push(waker);
        None
    }

    /// Puts a future's waker in its place; returns the one that was there.
    pub(crate) fn put(&mut self, place: &mut Place, waker: Waker) -> Option<Waker> {
        let awaiting = &mut self.more.get_or_insert_default().awaiting;
        match *place {
            Some(key) => awaiting[key].replace(waker),
            None => {
                *place = Some(awaiting.insert(Some(waker)));
                None
            }
        }
    }

    /// Gives a future's place back; returns the waker left in it.
    pub(crate) fn remove(&mut self, place: &mut Place) -> Option<Waker> {
        let more = self.more.as_mut()?;
        place.take().and_then(|key| more.awaiting.remove(key))
    }

    /// Moves every waker to `woken`. Futures keep their places.
    pub(crate) fn take_all(&mut self, woken: &mut Vec<Waker>) {
        woken.extend(self.first_polled.take());
        if let Some(more) = &mut self.more {
            woken.append(&mut more.polled);
            more.flushes = 0;
            woken.extend(
                more.awaiting
                    .iter_mut()
                    .filter_map(|(_, waker)| waker.take()),
            );
        }
    }
}

/// Wakes all of `wakers`, keeps the buffer, and returns how many there were. To be called with no
/// lock held (I6). A waker that panics does not keep the others from being woken.
pub(crate) fn wake_all(wakers: &mut Vec<Waker>) -> usize {
    let count = wakers.len();
    for waker in wakers.drain(..) {
        if let Err(payload) = catch_unwind(AssertUnwindSafe(|| waker.wake())) {
            // The panic hook has reported it, and whoever waits for something else is not to blame.
            // The payload is leaked because its destructor may panic as well.
            mem::forget(payload);
        }
    }
    count
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
    use std::task::Wake;

    #[derive(Default)]
    struct Count(AtomicUsize);

    impl Wake for Count {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Relaxed);
        }
    }

    struct Bomb;

    impl Wake for Bomb {
        fn wake(self: Arc<Self>) {
            std::panic::resume_unwind(Box::new("a waker's panic"));
        }
    }

    fn waker() -> Waker {
        Waker::from(Arc::<Count>::default())
    }

    fn polled(waiters: &Waiters) -> usize {
        let more = waiters.more.as_ref().map_or(0, |more| more.polled.len());
        usize::from(waiters.first_polled.is_some()) + more
    }

    #[test]
    fn the_same_waker_is_kept_once() {
        let mut waiters = Waiters::default();
        let mut flushed = Vec::new();
        let same = waker();
        assert!(waiters.add_polled(same.clone(), &mut flushed).is_none());
        assert!(waiters.add_polled(same.clone(), &mut flushed).is_some());
        waiters.take_all(&mut flushed);
        assert_eq!(flushed.len(), 1);
    }

    #[test]
    fn polled_wakers_are_bounded() {
        let mut waiters = Waiters::default();
        let mut flushed = Vec::new();
        for _ in 0..40_000 {
            waiters.add_polled(waker(), &mut flushed);
            assert!(polled(&waiters) <= MOST_POLLED);
        }
        waiters.take_all(&mut flushed);
        assert_eq!(flushed.len(), 40_000, "each was woken or still waits");
        for _ in 0..100 {
            waiters.add_polled(waker(), &mut flushed);
            assert!(
                polled(&waiters) <= 4 * FEWEST_POLLED,
                "an event starts over"
            );
        }
    }

    #[test]
    fn those_who_come_back_are_let_wait() {
        for count in [17, 100, 5000] {
            let mut waiters = Waiters::default();
            let mut coming: Vec<_> = (0..count).map(|_| waker()).collect();
            let mut rounds = 0;
            while !coming.is_empty() {
                let mut flushed = Vec::new();
                for waker in coming.drain(..) {
                    waiters.add_polled(waker, &mut flushed);
                }
                coming = flushed;
                rounds += 1;
                assert!(rounds < 20, "{count} wake each other for ever");
            }
            assert_eq!(polled(&waiters), count);
        }
    }

    #[test]
    fn a_place_is_kept_until_it_is_given_back() {
        let mut waiters = Waiters::default();
        let mut woken = Vec::new();
        let mut places = [None; 40];
        for place in &mut places {
            assert!(waiters.put(place, waker()).is_none());
        }
        assert!(
            waiters.put(&mut places[0], waker()).is_some(),
            "replaced, not added"
        );
        waiters.take_all(&mut woken);
        assert_eq!(woken.len(), 40);
        for place in &mut places {
            assert!(waiters.remove(place).is_none(), "its waker was taken");
            assert!(waiters.remove(place).is_none());
        }
        assert!(waiters.more.is_none_or(|more| more.awaiting.is_empty()));
    }

    #[test]
    fn a_panicking_waker_spares_the_others() {
        let count = Arc::<Count>::default();
        let mut wakers = vec![
            count.clone().into(),
            Waker::from(Arc::new(Bomb)),
            count.clone().into(),
        ];
        assert_eq!(wake_all(&mut wakers), 3);
        assert_eq!(count.0.load(Relaxed), 2);
        assert!(wakers.is_empty());
    }
}
