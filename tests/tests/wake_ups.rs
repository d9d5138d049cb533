//! No wake is lost: while a task is polled, while a worker goes to sleep, under foreign executors.

use std::future::{Future, poll_fn};
use std::sync::atomic::{
    AtomicBool, AtomicUsize,
    Ordering::{Acquire, Release, SeqCst},
};
use std::sync::{Arc, OnceLock, mpsc};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

use futures::channel::oneshot;
use futures::executor;
use futures::lock::Mutex;
use runtime::task::yield_now;
use runtime::{Builder, Runtime};
use tests::{every_shape, one_thread, rounds, watchdog, with_workers};

// tokio#3190
#[test]
fn a_short_timer_is_on_time_while_the_driver_waits_for_a_long_one() {
    const ON_TIME: Duration = Duration::from_millis(100);
    let dog = watchdog(100, "a_short_timer_is_on_time");
    let rt = with_workers(4);
    dog.watch(rt.handle());
    // The fault repeats; what other programs do to a shared machine does not.
    let mut gaps = Vec::new();
    while gaps.len() < 4 && gaps.iter().all(|gap| *gap >= ON_TIME) {
        gaps.push(largest_gap(&rt, Duration::from_secs(rounds(2) as u64)));
    }
    assert!(gaps.iter().any(|gap| *gap < ON_TIME), "{gaps:?}");
}

/// The longest that a task waited for its sleep of a millisecond, while the root sleeps for long.
fn largest_gap(rt: &Runtime, time: Duration) -> Duration {
    let (stop, stopped) = oneshot::channel();
    let ticker = rt.spawn(async move {
        let end = Instant::now() + time;
        let mut largest_gap = Duration::ZERO;
        let mut ticks = 0;
        while Instant::now() < end {
            let before = Instant::now();
            runtime::time::sleep(Duration::from_millis(1)).await;
            largest_gap = largest_gap.max(before.elapsed());
            ticks += 1;
        }
        stop.send(()).unwrap();
        (ticks, largest_gap)
    });
    rt.block_on(async {
        let long = async {
            loop {
                runtime::time::sleep(Duration::from_secs(10)).await;
            }
        };
        futures::future::select(stopped, Box::pin(long)).await;
    });
    let (ticks, largest_gap) = rt.block_on(ticker).unwrap();
    assert!(ticks > 100, "{ticks} ticks");
    largest_gap
}

// tokio#1768, tokio#1788
#[test]
fn no_wake_is_lost_between_search_and_sleep() {
    let dog = watchdog(100, "no_wake_is_lost_between_search_and_sleep");
    for workers in [1, 2] {
        let rt = with_workers(workers);
        dog.watch(rt.handle());
        rt.block_on(async {
            for _ in 0..rounds(25_000) {
                let mutex = Arc::new(Mutex::new(0));
                let (sender, receiver) = oneshot::channel();
                let other = Arc::clone(&mutex);
                drop(runtime::spawn(async move {
                    for _ in 0..5 {
                        *other.lock().await += 1;
                    }
                    sender.send(()).unwrap();
                }));
                for _ in 0..5 {
                    *mutex.lock().await += 1;
                }
                receiver.await.unwrap();
                assert_eq!(*mutex.lock().await, 10);
            }
        });
    }
}

/// A place for one number that is not 0, and the waker of whoever takes from it, which is stored once and only
/// ever woken by reference.
#[derive(Default)]
struct Mailbox {
    number: AtomicUsize,
    taken: AtomicBool,
    taker: OnceLock<Waker>,
}

impl Mailbox {
    fn put(&self, number: usize) {
        self.number.store(number, Release);
        if let Some(taker) = self.taker.get() {
            taker.wake_by_ref();
        }
    }

    /// The first poll stores the waker; the polls after rely on it.
    async fn take(&self) -> usize {
        poll_fn(|cx| {
            if !self.taken.swap(true, SeqCst) {
                self.taker.set(cx.waker().clone()).unwrap();
            }
            match self.number.swap(0, Acquire) {
                0 => Poll::Pending,
                number => Poll::Ready(number),
            }
        })
        .await
    }
}

/// Through `wake`, another entry of the waker's table than `wake_by_ref`.
#[allow(clippy::waker_clone_wake)]
fn wake_by_value(waker: &Waker) {
    waker.clone().wake();
}

struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

// tokio#7632, tokio#7622
#[test]
fn a_wake_by_reference_during_the_poll_leads_to_another_poll_that_sees_what_was_written() {
    let dog = watchdog(100, "a_wake_by_reference_during_the_poll");
    for workers in [1, 2] {
        let rt = with_workers(workers);
        dog.watch(rt.handle());
        let items = rounds(30_000);
        let (to_task, to_thread) = (Arc::new(Mailbox::default()), Arc::new(Mailbox::default()));
        let task = {
            let (to_task, to_thread) = (Arc::clone(&to_task), Arc::clone(&to_thread));
            rt.spawn(async move {
                for expected in 1..=items {
                    assert_eq!(to_task.take().await, expected);
                    to_thread.put(expected);
                }
            })
        };
        let waker = Waker::from(Arc::new(Unpark(thread::current())));
        let mut cx = Context::from_waker(&waker);
        for item in 1..=items {
            to_task.put(item);
            let mut answer = Box::pin(to_thread.take());
            loop {
                match answer.as_mut().poll(&mut cx) {
                    Poll::Ready(number) => {
                        assert_eq!(number, item);
                        break;
                    }
                    // Seldom asleep, so that the answer often comes into the midst of a poll.
                    Poll::Pending if item % 8 == 0 => thread::park(),
                    Poll::Pending => thread::yield_now(),
                }
            }
        }
        executor::block_on(task).unwrap();
    }
}

#[test]
fn a_task_that_wakes_itself_is_polled_again() {
    let _dog = watchdog(60, "a_task_that_wakes_itself_is_polled_again");
    for shape in every_shape() {
        let rt = shape.build();
        for by_value in [false, true] {
            let mut polls = 0;
            let task = rt.spawn(poll_fn(move |cx| {
                polls += 1;
                if polls == 1000 {
                    return Poll::Ready(());
                }
                // Woken twice is polled once.
                cx.waker().wake_by_ref();
                if by_value {
                    wake_by_value(cx.waker());
                }
                Poll::Pending
            }));
            rt.block_on(task).unwrap();
        }
        assert_eq!(rt.metrics().total(|worker| worker.polls), 2000, "{shape:?}");
    }
}

// tokio#6996
#[test]
fn yielding_works_inside_a_foreign_block_on_on_a_worker() {
    let dog = watchdog(60, "yielding_works_inside_a_foreign_block_on");
    for shape in every_shape() {
        let rt = shape.build();
        dog.watch(rt.handle());
        let task = rt.spawn(async {
            executor::block_on(async {
                for _ in 0..10 {
                    yield_now().await;
                }
                5
            })
        });
        assert_eq!(rt.block_on(task).unwrap(), 5);
        rt.block_on(async { executor::block_on(yield_now()) });
    }
}

#[test]
fn wakers_work_from_many_threads_at_once() {
    let dog = watchdog(60, "wakers_work_from_many_threads_at_once");
    let rt = with_workers(2);
    dog.watch(rt.handle());
    let (count, waker) = (
        Arc::new(AtomicUsize::new(0)),
        Arc::new(OnceLock::<Waker>::new()),
    );
    let all = 4 * rounds(5_000);
    let task = {
        let (count, waker) = (Arc::clone(&count), Arc::clone(&waker));
        rt.spawn(poll_fn(move |cx| {
            waker.get_or_init(|| cx.waker().clone());
            // The last increment comes before a wake, which must lead to a poll that sees it.
            if count.load(Acquire) == all {
                Poll::Ready(())
            } else {
                Poll::Pending
            }
        }))
    };
    assert!(tests::eventually(|| waker.get().is_some()));
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for n in 0..all / 4 {
                    count.fetch_add(1, Release);
                    match waker.get().unwrap() {
                        waker if n % 2 == 0 => waker.wake_by_ref(),
                        waker => wake_by_value(waker),
                    }
                }
            });
        }
    });
    executor::block_on(task).unwrap();
}

#[test]
fn wakers_outlive_their_task_and_runtime() {
    let _dog = watchdog(60, "wakers_outlive_their_task_and_runtime");
    let rt = one_thread();
    let kept = Arc::new(OnceLock::<Waker>::new());
    let keeps = Arc::clone(&kept);
    let task = rt.spawn(poll_fn(move |cx| {
        keeps.get_or_init(|| cx.waker().clone());
        Poll::Ready(7)
    }));
    assert_eq!(rt.block_on(task).unwrap(), 7);
    let waker = kept.get().unwrap().clone();
    assert!(waker.will_wake(kept.get().unwrap()));
    waker.wake_by_ref();
    drop(rt);
    waker.wake_by_ref();
    wake_by_value(&waker);
    thread::spawn(move || waker.wake()).join().unwrap();
}

#[test]
fn a_future_moves_between_workers_and_runtimes_of_handles() {
    let dog = watchdog(60, "a_future_moves_between_workers");
    let (first, second) = (
        with_workers(1),
        Builder::new().worker_threads(2).build().unwrap(),
    );
    dog.watch(first.handle());
    // A chain of handles across two runtimes, each wake crossing from one to the other.
    let mut task = first.spawn(async { 0 });
    for n in 0..200 {
        let rt = if n % 2 == 0 { &second } else { &first };
        let before = task;
        task = rt.spawn(async move {
            yield_now().await;
            before.await.unwrap() + 1
        });
    }
    assert_eq!(first.block_on(task).unwrap(), 200);
}

/// How long a task, on one of two workers of which the other is parked, waits for its next poll after
/// `wake`, when it has spawned one that computes in the same poll.
fn polled_again_after(wake: fn(Waker)) -> Duration {
    let rt = with_workers(2);
    let (done, result) = mpsc::channel();
    // Nobody is in `block_on`: both workers are background threads.
    drop(rt.spawn(async move {
        let mut busy = None;
        // Long enough for the other worker to park.
        runtime::time::sleep(Duration::from_millis(30)).await;
        let mut since = None;
        poll_fn(|cx| {
            if since.is_some() {
                return Poll::Ready(());
            }
            wake(cx.waker().clone());
            busy = Some(runtime::spawn(async { thread::sleep(LONG) }));
            since = Some(Instant::now());
            Poll::Pending
        })
        .await;
        done.send(since.unwrap().elapsed()).unwrap();
        busy.unwrap().await.unwrap();
    }));
    result.recv().unwrap()
}

const LONG: Duration = Duration::from_secs(1);

#[test]
fn a_task_woken_in_its_own_poll_does_not_wait_behind_what_it_spawned() {
    let _dog = watchdog(60, "a_task_woken_in_its_own_poll");
    let by_another_thread = polled_again_after(|waker| {
        thread::spawn(move || waker.wake()).join().unwrap();
    });
    let by_itself = polled_again_after(|waker| waker.wake());
    for waited in [by_another_thread, by_itself] {
        assert!(waited < LONG / 2, "{waited:?}");
    }
}
