//! A test that does not end is reported and ends the process.

use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use runtime::Handle;

/// From [`watchdog`]; the test has ended when it is dropped.
#[must_use = "dropped at once, it watches nothing"]
pub struct Watchdog(Arc<Watched>);

struct Watched {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    ended: bool,
    handle: Option<Handle>,
    step: String,
}

/// Aborts the process with a report if the guard is not dropped within `seconds` (times the factor of
/// [`rounds`](crate::rounds)). It is a thread of its own, outside of any runtime.
pub fn watchdog(seconds: u64, name: &str) -> Watchdog {
    let watched = Arc::new(Watched {
        state: Mutex::default(),
        changed: Condvar::new(),
    });
    let limit = Duration::from_secs(seconds) * crate::rounds_factor() as u32;
    let (name, watcher) = (name.to_owned(), Arc::clone(&watched));
    thread::spawn(move || watcher.watch(&name, limit));
    Watchdog(watched)
}

impl Watchdog {
    /// The report will show this runtime's metrics.
    pub fn watch(&self, handle: &Handle) {
        let previous = self.0.lock().handle.replace(handle.clone());
        drop(previous);
    }

    /// The report will say how far the test had come.
    pub fn step(&self, step: impl Into<String>) {
        self.0.lock().step = step.into();
    }
}

impl Drop for Watchdog {
    fn drop(&mut self) {
        self.0.lock().ended = true;
        self.0.changed.notify_all();
    }
}

impl Watched {
    fn lock(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn watch(&self, name: &str, limit: Duration) {
        let (state, _) = self
            .changed
            .wait_timeout_while(self.lock(), limit, |state| !state.ended)
            .unwrap_or_else(PoisonError::into_inner);
        if state.ended {
            return;
        }
        eprintln!(
            "\nthe test `{name}` did not end within {limit:?}; step: {:?}",
            state.step
        );
        if let Some(handle) = &state.handle {
            eprintln!("{handle:?}\n{}", handle.metrics());
        }
        std::process::abort();
    }
}
