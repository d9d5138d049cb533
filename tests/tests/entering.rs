//! The runtime of a thread: who has one, and what is said where there is none.

use std::thread;

use runtime::{Builder, Handle, task};
use tests::{every_shape, one_thread, panic_text_of, watchdog, with_workers};

/// What the documentation says where there is no runtime.
const NO_RUNTIME: &str = "no runtime on this thread: call this from a task, inside `Runtime::block_on` or under \
     `#[runtime::main]`, or enter one with `Handle::enter`";

#[test]
fn without_a_runtime_the_message_says_what_to_do() {
    let _dog = watchdog(60, "without_a_runtime_the_message_says_what_to_do");
    assert_eq!(panic_text_of(Handle::current), NO_RUNTIME);
    assert_eq!(panic_text_of(|| runtime::spawn(async {})), NO_RUNTIME);
    assert_eq!(panic_text_of(|| runtime::spawn_blocking(|| {})), NO_RUNTIME);
    assert_eq!(
        panic_text_of(|| task::Builder::new().name("x").spawn(async {})),
        NO_RUNTIME
    );
    assert_eq!(Handle::try_current().unwrap_err().to_string(), NO_RUNTIME);
}

#[test]
fn the_panic_is_the_callers() {
    let _dog = watchdog(60, "the_panic_is_the_callers");
    tests::in_own_process("the_panic_is_the_callers", || {
        static PLACES: std::sync::Mutex<Vec<String>> = std::sync::Mutex::new(Vec::new());
        std::panic::set_hook(Box::new(|info| {
            let place = info.location().unwrap().file().to_owned();
            PLACES.lock().unwrap().push(place);
        }));
        // A path to the function would have the standard library call it.
        #[allow(clippy::redundant_closure)]
        panic_text_of(|| Handle::current());
        panic_text_of(|| runtime::spawn(async {}));
        panic_text_of(|| runtime::block_on(async { runtime::block_on(async {}) }));
        let _ = std::panic::take_hook();
        for place in PLACES.lock().unwrap().iter() {
            assert!(place.ends_with("entering.rs"), "{place}");
        }
    });
}

#[test]
fn an_entered_runtime_is_found_until_the_guard_is_dropped() {
    let _dog = watchdog(60, "an_entered_runtime_is_found_until_the_guard_is_dropped");
    for shape in every_shape() {
        let rt = shape.build();
        let guard = rt.enter();
        let spawned = runtime::spawn(async { 1 });
        let blocking = runtime::spawn_blocking(|| 2);
        drop(guard);
        assert!(Handle::try_current().is_err());
        assert_eq!(rt.block_on(spawned).unwrap(), 1);
        assert_eq!(rt.block_on(blocking).unwrap(), 2);
    }
}

#[test]
fn guards_nest() {
    let _dog = watchdog(60, "guards_nest");
    let (outer, inner) = (one_thread(), one_thread());
    let outer_guard = outer.enter();
    let inner_guard = inner.handle().enter();
    let to_inner = runtime::spawn(async {});
    drop(inner_guard);
    let to_outer = runtime::spawn(async {});
    drop(outer_guard);
    inner.block_on(task::yield_now());
    assert!(to_inner.is_finished() && !to_outer.is_finished());
    outer.block_on(task::yield_now());
    assert!(to_outer.is_finished());
}

#[test]
fn a_guard_can_be_of_a_runtime_that_is_a_temporary() {
    let _dog = watchdog(60, "a_guard_can_be_of_a_runtime_that_is_a_temporary");
    // That it compiles is the point: it does not if the guard itself has a destructor.
    fn spawn_on_a_temporary() -> std::io::Result<task::JoinHandle<()>> {
        let _guard = Builder::new_current_thread().build()?.enter();
        Ok(runtime::spawn(async {}))
    }
    // The runtime is gone when its statement ends; the guard outlives it without harm.
    let task = spawn_on_a_temporary().unwrap();
    let result = futures::executor::block_on(task);
    assert!(result.unwrap_err().is_cancelled());
    assert!(Handle::try_current().is_err());
}

#[test]
fn tasks_and_jobs_know_their_runtime() {
    let _dog = watchdog(60, "tasks_and_jobs_know_their_runtime");
    for shape in every_shape() {
        let rt = shape.build();
        let other = one_thread();
        let current = || Handle::current().spawn(async { 5 });
        // Also where another runtime is entered around.
        let _guard = other.enter();
        rt.block_on(async {
            assert_eq!(current().await.unwrap(), 5);
            let in_task = runtime::spawn(async move { current().await.unwrap() });
            assert_eq!(in_task.await.unwrap(), 5);
            let in_job = runtime::spawn_blocking(current).await.unwrap();
            assert_eq!(in_job.await.unwrap(), 5);
        });
    }
}

#[test]
fn a_task_knows_its_id_and_block_on_is_none() {
    let _dog = watchdog(60, "a_task_knows_its_id_and_block_on_is_none");
    assert!(panic_text_of(task::id).contains("outside a task"));
    for shape in every_shape() {
        let rt = shape.build();
        rt.block_on(async {
            assert!(task::try_id().is_none());
            let first = runtime::spawn(async { task::id() });
            let second = runtime::spawn(async { task::id() });
            let (first_id, second_id) = (first.id(), second.id());
            assert_eq!(first.await.unwrap(), first_id);
            assert_eq!(second.await.unwrap(), second_id);
            assert_ne!(first_id, second_id);
            assert!(task::try_id().is_none());
        });
    }
}

#[test]
fn a_handle_works_from_any_thread() {
    let dog = watchdog(60, "a_handle_works_from_any_thread");
    let rt = with_workers(2);
    dog.watch(rt.handle());
    let handle = rt.handle().clone();
    let sum = thread::spawn(move || {
        let tasks: Vec<_> = (0..100).map(|n| handle.spawn(async move { n })).collect();
        handle.block_on(async {
            let mut sum = 0;
            for task in tasks {
                sum += task.await.unwrap();
            }
            sum
        })
    });
    assert_eq!(sum.join().unwrap(), 4950);
}
