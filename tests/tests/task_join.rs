//! `task::join` for futures: the second one as a task of its own.

use std::future::{Future, pending};
use std::panic::{AssertUnwindSafe, resume_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

use futures::FutureExt;
use runtime::task::{self, yield_now};
use runtime::{Builder, Handle};
use tests::{Drops, every_shape, panic_text, ready_now, until, watchdog};

/// What a recursion saw of the number of live tasks.
#[derive(Default)]
struct Peak {
    calls: AtomicUsize,
    live_tasks: AtomicUsize,
}

impl Peak {
    fn sample(&self) {
        if self.calls.fetch_add(1, SeqCst).is_multiple_of(16) {
            let live = Handle::current().metrics().live_tasks;
            self.live_tasks.fetch_max(live, SeqCst);
        }
    }
}

fn fib(n: u64, peak: Arc<Peak>) -> Pin<Box<dyn Future<Output = u64> + Send>> {
    Box::pin(async move {
        peak.sample();
        if n < 2 {
            return n;
        }
        let (a, b) = task::join(fib(n - 1, Arc::clone(&peak)), fib(n - 2, peak)).await;
        a + b
    })
}

/// Both branches as tasks.
fn fib_of_tasks(n: u64, peak: Arc<Peak>) -> Pin<Box<dyn Future<Output = u64> + Send>> {
    Box::pin(async move {
        peak.sample();
        if n < 2 {
            return n;
        }
        let a = runtime::spawn(fib_of_tasks(n - 1, Arc::clone(&peak)));
        let b = runtime::spawn(fib_of_tasks(n - 2, peak));
        a.await.unwrap() + b.await.unwrap()
    })
}

#[test]
fn it_gives_both_outputs() {
    let _dog = watchdog(60, "it_gives_both_outputs");
    for shape in every_shape() {
        let rt = shape.build();
        let outputs = rt.block_on(async {
            let borrowed = String::from("a");
            // The first one may borrow, the second one is a task.
            let first = async {
                yield_now().await;
                borrowed.len()
            };
            task::join(first, async { task::try_id().is_some() }).await
        });
        assert_eq!(outputs, (1, true));
    }
}

#[test]
fn a_recursion_keeps_about_as_many_tasks_alive_as_it_is_deep() {
    let dog = watchdog(100, "a_recursion_keeps_few_tasks_alive");
    for workers in [1, 2] {
        for by_tasks in [false, true] {
            let rt = Builder::new().worker_threads(workers).build().unwrap();
            dog.watch(rt.handle());
            let peak = Arc::new(Peak::default());
            let result = rt.block_on(match by_tasks {
                false => fib(20, Arc::clone(&peak)),
                true => fib_of_tasks(20, Arc::clone(&peak)),
            });
            assert_eq!(result, 6765);
            let live = peak.live_tasks.load(SeqCst);
            assert!(
                live < 500,
                "{live} live tasks; {workers} workers, {by_tasks}"
            );
            assert!(live > 2, "it was measured");
        }
    }
}

#[test]
fn dropped_while_pending_it_drops_the_first_and_aborts_the_second() {
    let _dog = watchdog(60, "dropped_while_pending");
    for shape in every_shape() {
        for polled_second in [false, true] {
            let rt = shape.build();
            let (firsts, seconds) = (Drops::new(), Drops::new());
            rt.block_on(async {
                let (first, second) = (firsts.guard(), seconds.guard());
                let never = |guard| async move {
                    let _guard = guard;
                    pending::<()>().await;
                };
                let mut both = Box::pin(task::join(never(first), never(second)));
                assert!(ready_now(both.as_mut()).is_pending());
                if polled_second {
                    for _ in 0..5 {
                        yield_now().await;
                    }
                }
                drop(both);
                assert_eq!(firsts.count(), 1);
                until(|| seconds.count() == 1).await;
            });
            assert!(seconds.tasks()[0].is_some(), "it was dropped as a task");
            assert_eq!(rt.metrics().live_tasks, 0, "{shape:?}");
        }
    }
}

#[test]
fn dropped_before_it_is_polled_it_starts_nothing() {
    let _dog = watchdog(60, "dropped_before_it_is_polled");
    let rt = tests::one_thread();
    let drops = Drops::new();
    let (first, second) = (drops.guard(), drops.guard());
    let both = task::join(async move { drop(first) }, async move { drop(second) });
    drop(both);
    assert_eq!((drops.count(), rt.metrics().live_tasks), (2, 0));
}

#[test]
fn panics_of_either_come_out() {
    let _dog = watchdog(60, "panics_of_either_come_out");
    async fn panics(says: Option<&'static str>) {
        yield_now().await;
        if let Some(says) = says {
            resume_unwind(Box::new(says));
        }
    }
    for shape in every_shape() {
        let rt = shape.build();
        rt.block_on(async {
            for (first, second, expected) in [
                (Some("first"), None, "first"),
                (None, Some("second"), "second"),
                (Some("first"), Some("second"), "first"),
            ] {
                let both = task::join(panics(first), panics(second));
                let panic = AssertUnwindSafe(both).catch_unwind().await.unwrap_err();
                assert_eq!(panic_text(&*panic), expected);
            }
            // The first one's panic aborts the second.
            let drops = Drops::new();
            let guard = drops.guard();
            let never = async move {
                let _guard = guard;
                pending::<()>().await;
            };
            let both = task::join(panics(Some("first")), never);
            AssertUnwindSafe(both).catch_unwind().await.unwrap_err();
            until(|| drops.count() == 1).await;
        });
    }
}
