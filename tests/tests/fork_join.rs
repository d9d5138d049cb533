//! `join` for closures: two halves that borrow, in parallel where there is time, anywhere.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::thread;
use std::time::{Duration, Instant};

use futures::executor;
use runtime::{Builder, join};
use tests::{Drops, Event, every_shape, rounds, watchdog, with_workers};

fn fib(n: u64) -> u64 {
    if n < 2 {
        return n;
    }
    let (a, b) = join(|| fib(n - 1), || fib(n - 2));
    a + b
}

fn merge_sort(numbers: &mut [u32], spare: &mut [u32]) {
    if numbers.len() <= 16 {
        return numbers.sort_unstable();
    }
    let middle = numbers.len() / 2;
    let (left, right) = numbers.split_at_mut(middle);
    let (left_spare, right_spare) = spare.split_at_mut(middle);
    join(
        || merge_sort(left, left_spare),
        || merge_sort(right, right_spare),
    );

    let (mut lefts, mut rights) = (left.iter().peekable(), right.iter().peekable());
    for place in spare.iter_mut() {
        let from_left = match (lefts.peek(), rights.peek()) {
            (Some(a), Some(b)) => a <= b,
            (a, _) => a.is_some(),
        };
        *place = *if from_left {
            lefts.next()
        } else {
            rights.next()
        }
        .unwrap();
    }
    numbers.copy_from_slice(spare);
}

/// Numbers without an order that anybody would see.
fn shuffled(count: usize) -> Vec<u32> {
    let mut x = 1_u32;
    let next = || {
        x ^= x << 13;
        x ^= x >> 17;
        x ^= x << 5;
        x
    };
    std::iter::repeat_with(next).take(count).collect()
}

/// Calls `code` in the future of `block_on`, in a task, and on a blocking thread, of every shape.
fn everywhere<R: Send + 'static>(code: fn() -> R, mut check: impl FnMut(R)) {
    for shape in every_shape() {
        let rt = shape.build();
        check(rt.block_on(async { code() }));
        check(rt.block_on(rt.spawn(async move { code() })).unwrap());
        check(rt.block_on(rt.spawn_blocking(code)).unwrap());
    }
    check(code());
}

#[test]
fn recursion_is_right_everywhere() {
    let _dog = watchdog(60, "recursion_is_right_everywhere");
    everywhere(|| fib(16), |result| assert_eq!(result, 987));
}

#[test]
fn merge_sort_is_right_everywhere() {
    let _dog = watchdog(60, "merge_sort_is_right_everywhere");
    let sorted = || {
        let (mut numbers, mut spare) = (shuffled(20_000), vec![0; 20_000]);
        merge_sort(&mut numbers, &mut spare);
        numbers
    };
    let mut expected = shuffled(20_000);
    expected.sort_unstable();
    everywhere(sorted, |numbers| assert!(numbers == expected));
}

#[test]
fn both_halves_borrow_from_the_callers_stack() {
    let _dog = watchdog(60, "both_halves_borrow");
    let borrows = || {
        let mut words = [String::from("left"), String::from("right")];
        let [left, right] = &mut words;
        let (first, second) = join(
            || {
                left.push('!');
                left.len()
            },
            || {
                right.push('?');
                right.len()
            },
        );
        (words.concat(), first + second)
    };
    everywhere(borrows, |result| {
        assert_eq!(result, ("left!right?".into(), 11))
    });
}

#[test]
fn the_halves_run_at_the_same_time_on_two_workers() {
    let dog = watchdog(60, "the_halves_run_at_the_same_time");
    let rt = with_workers(2);
    dog.watch(rt.handle());
    rt.block_on(async {
        for _ in 0..20 {
            // Each waits for the other: this returns only if they are on two threads.
            let (a, b) = (Event::new(), Event::new());
            let meet = |mine: &Event, others: &Event| {
                mine.set();
                others.wait();
                thread::current().id()
            };
            let (first, second) = join(|| meet(&a, &b), || meet(&b, &a));
            assert!(first == thread::current().id() && second != first);
        }
    });
    assert!(
        rt.metrics()
            .total(|worker| worker.steals + worker.slot_steals)
            >= 1
    );
}

#[test]
fn a_single_worker_runs_the_second_half_itself() {
    let _dog = watchdog(60, "a_single_worker_runs_the_second_half");
    let rt = tests::one_thread();
    let here = thread::current().id();
    let order = AtomicUsize::new(0);
    let next = || (thread::current().id(), order.fetch_add(1, SeqCst));
    let result = rt.block_on(async { join(next, next) });
    assert_eq!(result, ((here, 0), (here, 1)));
}

#[test]
fn a_panic_comes_out_after_both_halves_have_ended() {
    fn panics(first: bool, second: bool) -> (Option<String>, usize) {
        let ended = AtomicUsize::new(0);
        let half = |panics: bool, name: &'static str| {
            thread::sleep(Duration::from_micros(50));
            ended.fetch_add(1, SeqCst);
            if panics {
                resume_unwind(Box::new(name.to_owned()));
            }
        };
        let joined = catch_unwind(AssertUnwindSafe(|| {
            join(|| half(first, "first"), || half(second, "second"))
        }));
        let panic = joined.err().map(|payload| *payload.downcast().unwrap());
        (panic, ended.load(SeqCst))
    }

    let dog = watchdog(60, "a_panic_comes_out_after_both_halves");
    for _ in 0..rounds(10) {
        for shape in every_shape() {
            dog.step(format!("{shape:?}"));
            let rt = shape.build();
            dog.watch(rt.handle());
            let root = |first, second| rt.block_on(async { panics(first, second) });
            let task = |first, second| {
                let task = rt.spawn(async move { panics(first, second) });
                rt.block_on(task).unwrap()
            };
            for run in [&root as &dyn Fn(_, _) -> _, &task] {
                assert_eq!(run(true, false), (Some("first".into()), 2), "{shape:?}");
                assert_eq!(run(false, true), (Some("second".into()), 2), "{shape:?}");
                assert_eq!(run(true, true), (Some("first".into()), 2), "{shape:?}");
                assert_eq!(run(false, false), (None, 2), "{shape:?}");
            }
            assert_eq!(rt.block_on(async { fib(10) }), 55);
        }
    }
}

#[test]
fn results_are_dropped_once_also_beside_a_panic() {
    let _dog = watchdog(60, "results_are_dropped_once");
    let rt = with_workers(2);
    let drops = Drops::new();
    for round in 1..=rounds(500) {
        rt.block_on(async {
            let joined = catch_unwind(AssertUnwindSafe(|| {
                join(
                    || drops.guard(),
                    || match round % 2 {
                        0 => resume_unwind(Box::new(())),
                        _ => drops.guard(),
                    },
                )
            }));
            drop(joined);
        });
    }
    assert_eq!(drops.count(), rounds(500) / 2 * 3);
}

#[test]
fn a_panic_in_a_nested_join_unwinds_through_all_of_them() {
    fn down(depth: u32, count: &AtomicUsize) {
        count.fetch_add(1, SeqCst);
        if depth == 0 {
            resume_unwind(Box::new("at the bottom"));
        }
        join(|| down(depth - 1, count), || down(depth - 1, count));
    }

    let _dog = watchdog(60, "a_panic_in_a_nested_join");
    for workers in [1, 2] {
        let rt = with_workers(workers);
        let count = AtomicUsize::new(0);
        let panic =
            rt.block_on(async { catch_unwind(AssertUnwindSafe(|| down(8, &count))).unwrap_err() });
        assert_eq!(panic.downcast_ref(), Some(&"at the bottom"));
        assert_eq!(
            count.load(SeqCst),
            (1 << 9) - 1,
            "every half was run to its end"
        );
    }
}

#[test]
fn tasks_go_on_beside_a_join_on_another_worker() {
    let dog = watchdog(60, "tasks_go_on_beside_a_join");
    let rt = with_workers(2);
    dog.watch(rt.handle());
    let (begun, release) = (Event::new(), Event::new());
    let (begins, held) = (begun.clone(), release.clone());
    // The worker in the join sleeps until the other one is done with the second half.
    let joins = rt.spawn(async move {
        join(
            || begun.wait(),
            || {
                begins.set();
                held.wait();
            },
        );
    });
    thread::sleep(Duration::from_millis(20));
    let start = Instant::now();
    release.set();
    executor::block_on(joins).unwrap();
    assert!(start.elapsed() < Duration::from_secs(10));
    assert_eq!(executor::block_on(rt.spawn(async { 1 })).unwrap(), 1);
}

#[test]
fn several_callers_join_at_once() {
    let dog = watchdog(100, "several_callers_join_at_once");
    let rt = with_workers(2);
    dog.watch(rt.handle());
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for _ in 0..rounds(10) {
                    assert_eq!(rt.block_on(async { fib(12) }), 144);
                    let task = rt.spawn(async { fib(12) });
                    assert_eq!(executor::block_on(task).unwrap(), 144);
                }
            });
        }
    });
}

#[test]
fn over_aligned_results_are_kept() {
    #[repr(align(128))]
    #[derive(Debug, PartialEq)]
    struct Wide(u8);

    let _dog = watchdog(60, "over_aligned_results_are_kept");
    let rt = with_workers(2);
    rt.block_on(async {
        let wide = |n| {
            move || {
                let wide = Wide(n);
                assert_eq!(std::ptr::from_ref(&wide).addr() % 128, 0);
                wide
            }
        };
        for _ in 0..100 {
            assert_eq!(join(wide(1), wide(2)), (Wide(1), Wide(2)));
        }
        // The same for a task's future and output.
        let held = Wide(3);
        let task = runtime::spawn(async move {
            runtime::task::yield_now().await;
            assert_eq!(std::ptr::from_ref(&held).addr() % 128, 0);
            held
        });
        assert_eq!(task.await.unwrap(), Wide(3));
    });
}

#[test]
fn halves_that_a_thread_took_and_left_behind_are_run() {
    let dog = watchdog(60, "halves_that_a_thread_took_and_left_behind");
    for workers in [1, 2] {
        let rt = Builder::new()
            .worker_threads(workers)
            .background_threads(false);
        let rt = rt.build().unwrap();
        dog.watch(rt.handle());
        let (took, left) = (Event::new(), Event::new());
        let ran = AtomicUsize::new(0);
        let half = || {
            ran.fetch_add(1, SeqCst);
            took.set();
        };
        thread::scope(|scope| {
            // A guest steals several halves at once, runs one, and has what it came for.
            scope.spawn(|| {
                rt.block_on(tests::until(|| took.is_set()));
                left.set();
            });
            rt.block_on(async {
                let inner = || join(|| left.wait(), half);
                join(|| join(|| join(inner, half), half), half);
            });
        });
        assert_eq!(ran.load(SeqCst), 4);
    }
}
