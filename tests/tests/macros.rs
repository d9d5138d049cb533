//! `#[runtime::main]` and `#[runtime::test]`: what they accept, and which runtime they start.
//! The mistakes they report are tested in the `macros` package itself.

// The generated code must pass where these are denied.
#![deny(clippy::expect_used, clippy::unwrap_used, unreachable_code)]

use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::thread;
use std::time::Duration;

const LONG: Duration = Duration::from_secs(60);

/// Aborts the process with a report if the test that holds it does not end.
struct Watchdog {
    ended: Arc<(Mutex<bool>, Condvar)>,
}

impl Watchdog {
    fn new(test: &'static str) -> Self {
        let ended = Arc::new((Mutex::new(false), Condvar::new()));
        let watched = Arc::clone(&ended);
        thread::spawn(move || {
            let (flag, changed) = &*watched;
            let guard = flag.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
            let waited = changed.wait_timeout_while(guard, LONG, |ended| !*ended);
            let ended = waited.is_ok_and(|(ended, _)| *ended);
            if !ended {
                eprintln!("{test} did not end within {LONG:?}");
                std::process::abort();
            }
        });
        Watchdog { ended }
    }
}

impl Drop for Watchdog {
    fn drop(&mut self) {
        let (flag, changed) = &*self.ended;
        *flag.lock().unwrap_or_else(|poisoned| poisoned.into_inner()) = true;
        changed.notify_all();
    }
}

/// How many of `count` tasks, each busy for a moment, were seen running at the same time. Stops
/// early once that is `enough`.
async fn peak_of_running_tasks(count: usize, enough: usize) -> usize {
    static RUNNING: AtomicUsize = AtomicUsize::new(0);
    static MEASURING: AtomicBool = AtomicBool::new(false);
    while MEASURING.swap(true, Ordering::SeqCst) {
        runtime::time::sleep(Duration::from_millis(1)).await;
    }

    let peak = Arc::new(AtomicUsize::new(0));
    let tasks: Vec<_> = (0..count)
        .map(|_| {
            let peak = Arc::clone(&peak);
            runtime::spawn(async move {
                let running = RUNNING.fetch_add(1, Ordering::SeqCst) + 1;
                peak.fetch_max(running, Ordering::SeqCst);
                if peak.load(Ordering::SeqCst) < enough {
                    thread::sleep(Duration::from_millis(5));
                }
                RUNNING.fetch_sub(1, Ordering::SeqCst);
            })
        })
        .collect();
    for task in tasks {
        if let Err(error) = task.await {
            panic!("a task failed: {error:?}");
        }
    }
    MEASURING.store(false, Ordering::SeqCst);
    peak.load(Ordering::SeqCst)
}

/// The threads that poll a task which yields a few times.
async fn threads_of_a_task() -> Vec<thread::ThreadId> {
    let task = runtime::spawn(async {
        let mut threads = Vec::new();
        for _ in 0..8 {
            threads.push(thread::current().id());
            runtime::task::yield_now().await;
        }
        threads
    });
    match task.await {
        Ok(threads) => threads,
        Err(error) => panic!("the task failed: {error:?}"),
    }
}

mod return_types {
    use super::*;

    #[runtime::main]
    async fn nothing() {
        runtime::task::yield_now().await;
    }

    #[runtime::main]
    async fn failure() -> Result<u32, std::num::ParseIntError> {
        runtime::task::yield_now().await;
        let number: u32 = "no number".parse()?;
        Ok(number)
    }

    #[runtime::main]
    async fn exit_code() -> ExitCode {
        runtime::task::yield_now().await;
        ExitCode::from(7)
    }

    #[runtime::main]
    async fn opaque() -> impl Iterator<Item = u8> {
        runtime::task::yield_now().await;
        1..4u8
    }

    #[runtime::main]
    async fn where_clause() -> Vec<u8>
    where
        u8: Copy,
    {
        runtime::task::yield_now().await;
        vec![1]
    }

    #[runtime::main]
    async fn braces_in_the_type() -> Bytes<{ 1 + 1 }> {
        runtime::task::yield_now().await;
        Bytes([1, 2])
    }

    struct Bytes<const LENGTH: usize>([u8; LENGTH]);

    #[runtime::main]
    async fn never() -> ! {
        runtime::task::yield_now().await;
        panic!("no way back")
    }

    #[test]
    fn are_passed_through() {
        let _watchdog = Watchdog::new("return_types::are_passed_through");
        nothing();
        assert!(failure().is_err());
        assert_eq!(exit_code(), ExitCode::from(7));
        assert!(opaque().eq([1, 2, 3]));
        assert_eq!(where_clause(), [1]);
        assert_eq!(braces_in_the_type().0, [1, 2]);
    }

    #[test]
    #[should_panic(expected = "no way back")]
    fn may_be_the_never_type() {
        let _watchdog = Watchdog::new("return_types::may_be_the_never_type");
        let function: fn() -> ! = never;
        function();
    }
}

mod options {
    use super::*;

    #[runtime::main(worker_threads = 3)]
    async fn three_workers() -> usize {
        peak_of_running_tasks(300, 3).await
    }

    #[runtime::main(flavor = "multi_thread", worker_threads = 0x2_usize, rng_seed = 1_000)]
    async fn two_workers() -> usize {
        peak_of_running_tasks(300, 2).await
    }

    #[runtime::main(flavor = "current_thread")]
    async fn current_thread() -> Vec<thread::ThreadId> {
        threads_of_a_task().await
    }

    #[runtime::main(worker_threads = 1, background_threads = false, rng_seed = 7)]
    async fn no_background_threads() -> Vec<thread::ThreadId> {
        threads_of_a_task().await
    }

    #[test]
    fn worker_threads_run_side_by_side_up_to_their_number() {
        let _watchdog = Watchdog::new("options::worker_threads");
        assert_eq!(three_workers(), 3);
        assert_eq!(two_workers(), 2);
    }

    #[test]
    fn without_background_threads_the_caller_runs_everything() {
        let _watchdog = Watchdog::new("options::without_background_threads");
        let here = thread::current().id();
        assert_eq!(current_thread(), [here; 8]);
        assert_eq!(no_background_threads(), [here; 8]);
    }
}

mod surroundings {
    use super::*;

    mod renamed {
        pub(super) use ::runtime as other_name;
    }

    /// Were this module taken for the crate, the attributes would not compile here.
    #[allow(dead_code)]
    mod runtime {}

    #[::runtime::main(crate = "renamed::other_name", worker_threads = 1)]
    async fn through_another_path() -> u8 {
        helper().await
    }

    #[::runtime::main]
    async fn beside_a_module_of_the_same_name() -> u8 {
        helper().await
    }

    async fn helper() -> u8 {
        ::runtime::task::yield_now().await;
        5
    }

    #[test]
    fn the_crate_is_found_whatever_its_name() {
        let _watchdog = Watchdog::new("surroundings::the_crate_is_found");
        assert_eq!(through_another_path(), 5);
        assert_eq!(beside_a_module_of_the_same_name(), 5);
    }

    pub(crate) mod visible {
        /// Attributes and visibility stay on the outer function.
        #[must_use]
        #[::runtime::main]
        #[inline(never)]
        pub(crate) async fn outside() -> u8 {
            super::helper().await
        }
    }

    #[test]
    fn the_visibility_is_kept() {
        let _watchdog = Watchdog::new("surroundings::the_visibility_is_kept");
        assert_eq!(visible::outside(), 5);
    }

    macro_rules! function {
        ($visibility:vis $name:ident, $workers:literal, $result:ty, $body:block) => {
            #[::runtime::main(worker_threads = $workers)]
            $visibility async fn $name() -> $result $body
        };
    }

    function!(private, 1, u8, { helper().await });
    function!(pub(crate) shared, 2, u8, { helper().await });

    macro_rules! whole_item {
        ($item:item) => {
            #[::runtime::main]
            $item
        };
    }

    whole_item! {
        pub(crate) async fn whole() -> u8 { helper().await }
    }

    #[test]
    fn pieces_may_come_from_another_macro() {
        let _watchdog = Watchdog::new("surroundings::pieces_may_come_from_another_macro");
        assert_eq!(private(), 5);
        assert_eq!(shared(), 5);
        assert_eq!(whole(), 5);
    }
}

mod tests {
    use super::*;

    #[runtime::test]
    async fn have_one_worker() {
        let _watchdog = Watchdog::new("tests::have_one_worker");
        assert_eq!(peak_of_running_tasks(20, 2).await, 1);
    }

    #[runtime::test(worker_threads = 2)]
    async fn have_more_workers_on_request() {
        let _watchdog = Watchdog::new("tests::have_more_workers_on_request");
        assert_eq!(peak_of_running_tasks(300, 2).await, 2);
    }

    #[runtime::test]
    async fn may_return_a_result() -> Result<(), Box<dyn std::error::Error>> {
        let _watchdog = Watchdog::new("tests::may_return_a_result");
        let number: u8 = runtime::spawn(async { "8".parse() }).await??;
        assert_eq!(number, 8);
        Ok(())
    }

    #[runtime::test]
    #[should_panic(expected = "as it should")]
    async fn may_be_expected_to_panic() {
        let _watchdog = Watchdog::new("tests::may_be_expected_to_panic");
        runtime::task::yield_now().await;
        panic!("as it should");
    }

    #[runtime::test]
    #[ignore = "shows that ignored tests stay ignored"]
    async fn may_be_ignored() {
        panic!("this test is ignored");
    }
}
