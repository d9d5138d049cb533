//! What the reactor keeps for one registered source: its readiness and who waits for it.
//!
//! An event and a new waiter must not miss each other. The event sets the readiness first and then,
//! under the waiters' lock, takes the wakers; the waiter, under the same lock, looks at the
//! readiness once more before it leaves its waker. Whichever of the two comes second under the lock
//! sees what the other did: the waiter finds the readiness set, or the event finds the waker.

use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Wake, Waker};

use crate::budget;
use crate::readiness::{Direction, Flags, Readiness, ReadyEvent, Snapshot};
use crate::waiters::{Place, Waiters, wake_all};

/// The state of one source, shared by its [`Registration`](crate::Registration) and the registry.
#[derive(Debug)]
pub(crate) struct SourceState {
    readiness: Readiness,
    waiters: Mutex<BothWaiters>,
}

#[derive(Debug, Default)]
struct BothWaiters {
    read: Waiters,
    write: Waiters,
}

/// Waits until a source is ready in one direction. Cancel safe.
#[derive(Debug)]
#[must_use = "futures do nothing unless polled"]
pub(crate) struct ReadyFuture<'a> {
    source: &'a SourceState,
    direction: Direction,
    place: Place,
}

/// Ends a hold when woken.
struct Release(Arc<SourceState>);

impl SourceState {
    pub(crate) fn new(initial: Flags) -> SourceState {
        let readiness = Readiness::new(initial);
        SourceState {
            readiness,
            waiters: Mutex::default(),
        }
    }

    /// The event an operation in `direction` may start from right now, if there is one.
    #[inline]
    pub(crate) fn ready_now(&self, direction: Direction) -> Option<io::Result<ReadyEvent>> {
        outcome(self.readiness.load(), direction)
    }

    /// The same, leaving the task's waker behind if there is none.
    #[inline]
    pub(crate) fn poll_ready(
        &self,
        cx: &mut Context<'_>,
        direction: Direction,
    ) -> Poll<io::Result<ReadyEvent>> {
        match self.ready_now(direction) {
            Some(outcome) => Poll::Ready(outcome),
            None => self.wait(cx, direction, Waiters::add_polled),
        }
    }

    /// Waits until there is such an event.
    pub(crate) fn ready(&self, direction: Direction) -> ReadyFuture<'_> {
        ReadyFuture {
            source: self,
            direction,
            place: None,
        }
    }

    /// Takes back what `event` stood for. Returns true if the source counts as ready all the same
    /// though nothing new has happened: it is closed, and stays ready for good.
    pub(crate) fn clear(&self, event: ReadyEvent) -> bool {
        self.readiness
            .clear(event)
            .ready(event.direction())
            .is_some_and(|now| now.same_tick(event))
    }

    /// Adds what an event says and moves those it concerns to `woken`.
    pub(crate) fn mark(&self, flags: Flags, woken: &mut Vec<Waker>) {
        self.readiness.set(flags);
        let mut waiters = self.lock();
        for direction in [Direction::Read, Direction::Write] {
            if flags.concern(direction) {
                waiters.of(direction).take_all(woken);
            }
        }
    }

    /// Makes every later operation fail and moves all waiters to `woken`.
    pub(crate) fn shut_down(&self, woken: &mut Vec<Waker>) {
        self.readiness.shut_down();
        let mut waiters = self.lock();
        waiters.read.take_all(woken);
        waiters.write.take_all(woken);
    }

    /// Makes reading wait, whatever becomes ready, until the returned waker is woken.
    pub(crate) fn hold(self: &Arc<Self>) -> Waker {
        self.readiness.hold();
        Waker::from(Arc::new(Release(Arc::clone(self))))
    }

    fn release(&self) {
        self.readiness.release();
        let mut woken = Vec::new();
        self.lock().read.take_all(&mut woken);
        wake_all(&mut woken);
    }

    /// The second look (see the top of the file), and if that finds nothing either, `leave` puts the
    /// task's waker among the waiters. What `leave` returns or adds to its list is not needed there,
    /// and is dropped or woken outside of the lock.
    fn wait(
        &self,
        cx: &mut Context<'_>,
        direction: Direction,
        leave: impl FnOnce(&mut Waiters, Waker, &mut Vec<Waker>) -> Option<Waker>,
    ) -> Poll<io::Result<ReadyEvent>> {
        let waker = cx.waker().clone();
        let mut flushed = Vec::new();
        let mut waiters = self.lock();
        if let Some(outcome) = self.ready_now(direction) {
            drop(waiters);
            return Poll::Ready(outcome);
        }
        let surplus = leave(waiters.of(direction), waker, &mut flushed);
        drop(waiters);
        drop(surplus);
        wake_all(&mut flushed);
        Poll::Pending
    }

    fn lock(&self) -> MutexGuard<'_, BothWaiters> {
        self.waiters.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl BothWaiters {
    fn of(&mut self, direction: Direction) -> &mut Waiters {
        match direction {
            Direction::Read => &mut self.read,
            Direction::Write => &mut self.write,
        }
    }
}

impl Future for ReadyFuture<'_> {
    type Output = io::Result<ReadyEvent>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.get_mut();
        std::task::ready!(budget::poll_proceed(cx));
        if let Some(outcome) = this.source.ready_now(this.direction) {
            return Poll::Ready(outcome);
        }
        let place = &mut this.place;
        let outcome = this.source.wait(cx, this.direction, |waiters, waker, _| {
            waiters.put(place, waker)
        });
        if outcome.is_pending() {
            budget::refund();
        }
        outcome
    }
}

impl Drop for ReadyFuture<'_> {
    fn drop(&mut self) {
        if self.place.is_some() {
            let mut waiters = self.source.lock();
            let left = waiters.of(self.direction).remove(&mut self.place);
            drop(waiters);
            drop(left);
        }
    }
}

impl Wake for Release {
    fn wake(self: Arc<Self>) {
        self.0.release();
    }
}

fn outcome(seen: Snapshot, direction: Direction) -> Option<io::Result<ReadyEvent>> {
    if seen.is_shut_down() {
        return Some(Err(shut_down_error()));
    }
    seen.ready(direction).map(Ok)
}

/// What operations on a source fail with once its runtime is gone.
#[cold]
pub(crate) fn shut_down_error() -> io::Error {
    io::Error::other("the runtime this socket belongs to was shut down")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::pin::pin;
    use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

    #[derive(Default)]
    struct Counter(AtomicUsize);

    impl Wake for Counter {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, SeqCst);
        }
    }

    fn counter() -> (Arc<Counter>, Waker) {
        let counter = Arc::<Counter>::default();
        (Arc::clone(&counter), counter.into())
    }

    fn mark_and_wake(source: &SourceState, flags: Flags) -> usize {
        let mut woken = Vec::new();
        source.mark(flags, &mut woken);
        wake_all(&mut woken)
    }

    #[test]
    fn each_direction_wakes_its_own_waiters_and_an_error_wakes_both() {
        let source = SourceState::new(Flags::NONE);
        let (reader, reader_waker) = counter();
        let (writer, writer_waker) = counter();
        let poll = |waker, direction| source.poll_ready(&mut Context::from_waker(waker), direction);
        assert!(poll(&reader_waker, Direction::Read).is_pending());
        assert!(poll(&writer_waker, Direction::Write).is_pending());
        assert_eq!(mark_and_wake(&source, Flags::READ_CLOSED), 1);
        assert_eq!((reader.0.load(SeqCst), writer.0.load(SeqCst)), (1, 0));

        let source = SourceState::new(Flags::NONE);
        let mut read = pin!(source.ready(Direction::Read));
        let mut write = pin!(source.ready(Direction::Write));
        assert!(
            read.as_mut()
                .poll(&mut Context::from_waker(&reader_waker))
                .is_pending()
        );
        assert!(
            write
                .as_mut()
                .poll(&mut Context::from_waker(&writer_waker))
                .is_pending()
        );
        assert_eq!(mark_and_wake(&source, Flags::ERROR), 2);
        assert!(
            read.poll(&mut Context::from_waker(&reader_waker))
                .is_ready()
        );
        assert!(
            write
                .poll(&mut Context::from_waker(&writer_waker))
                .is_ready()
        );
    }

    #[test]
    fn a_future_polled_by_another_task_wakes_that_one() {
        let source = SourceState::new(Flags::NONE);
        let (first, first_waker) = counter();
        let (second, second_waker) = counter();
        let mut ready = pin!(source.ready(Direction::Read));
        assert!(
            ready
                .as_mut()
                .poll(&mut Context::from_waker(&first_waker))
                .is_pending()
        );
        assert!(
            ready
                .as_mut()
                .poll(&mut Context::from_waker(&second_waker))
                .is_pending()
        );
        drop(first_waker);
        assert_eq!(Arc::strong_count(&first), 1, "the replaced waker is gone");
        assert_eq!(mark_and_wake(&source, Flags::READABLE), 1);
        assert_eq!(second.0.load(SeqCst), 1);
    }

    #[test]
    fn only_what_is_closed_stays_ready_after_a_clear() {
        let source = SourceState::new(Flags::BOTH);
        let event = source.ready_now(Direction::Read).unwrap().unwrap();
        assert!(!source.clear(event));
        assert!(source.ready_now(Direction::Read).is_none());
        mark_and_wake(&source, Flags::READ_CLOSED);
        let event = source.ready_now(Direction::Read).unwrap().unwrap();
        assert!(source.clear(event), "closed, with nothing new");
    }

    #[test]
    fn the_end_of_a_hold_wakes_the_readers() {
        let source = Arc::new(SourceState::new(Flags::BOTH));
        let (reader, waker) = counter();
        let resume = source.hold();
        let mut cx = Context::from_waker(&waker);
        assert!(source.poll_ready(&mut cx, Direction::Read).is_pending());
        assert!(source.poll_ready(&mut cx, Direction::Write).is_ready());
        resume.wake();
        assert_eq!(reader.0.load(SeqCst), 1);
        assert!(source.poll_ready(&mut cx, Direction::Read).is_ready());
    }

    /// The race at the top of the file: the event comes between the first look and the lock.
    #[test]
    fn the_second_look_finds_an_event_that_missed_the_waiter() {
        let source = SourceState::new(Flags::NONE);
        assert!(source.ready_now(Direction::Read).is_none());
        assert_eq!(mark_and_wake(&source, Flags::READABLE), 0);
        let mut cx = Context::from_waker(Waker::noop());
        let leave = |_: &mut Waiters, _, _: &mut Vec<Waker>| panic!("it would wait for ever");
        assert!(source.wait(&mut cx, Direction::Read, leave).is_ready());
    }
}
