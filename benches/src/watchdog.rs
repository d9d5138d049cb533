//! Ends the program when something in it hangs, and says what.

use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// How long one system may take for one sample of a row. The slowest takes about a second.
const LIMIT: Duration = Duration::from_secs(60);

/// A thread that aborts the process when the work last announced takes too long.
pub(crate) struct Watchdog {
    watched: Arc<Mutex<Option<Watched>>>,
}

struct Watched {
    label: String,
    until: Instant,
}

impl Watchdog {
    /// Starts the thread; nothing is watched yet.
    pub(crate) fn start() -> Watchdog {
        let watched = Arc::new(Mutex::new(None));
        let seen = watched.clone();
        thread::Builder::new()
            .name("watchdog".to_owned())
            .spawn(move || watch(&seen))
            .expect("a thread can be started");
        Watchdog { watched }
    }

    /// From now on the work called `label` has its time; what was watched before is done.
    pub(crate) fn watch(&self, label: String) {
        self.set(Some(Watched {
            label,
            until: Instant::now() + LIMIT,
        }));
    }

    /// Nothing is watched any more.
    pub(crate) fn rest(&self) {
        self.set(None);
    }

    fn set(&self, watched: Option<Watched>) {
        *self.watched.lock().unwrap_or_else(PoisonError::into_inner) = watched;
    }
}

fn watch(watched: &Mutex<Option<Watched>>) {
    loop {
        let wait = {
            let watched = watched.lock().unwrap_or_else(PoisonError::into_inner);
            let now = Instant::now();
            match &*watched {
                Some(work) if work.until <= now => {
                    eprintln!("{} took over {LIMIT:?}: it hangs; aborting", work.label);
                    std::process::abort();
                }
                Some(work) => work.until - now,
                None => LIMIT,
            }
        };
        // Sleeps through all samples that end in time, so as not to disturb them: when it wakes, it
        // looks at what is watched by then.
        thread::sleep(wait);
    }
}
