//! Configures and starts a runtime.

use std::io;
use std::time::Duration;

use crate::handle::Handle;
use crate::runtime::Runtime;
use crate::scheduler::Scheduler;
use crate::sync::Arc;
use crate::worker::Worker;

/// The most workers a runtime can have.
const MOST_WORKERS: usize = 1024;

/// Configures a [`Runtime`].
///
/// ```
/// let rt = runtime::Builder::new().worker_threads(2).thread_name("crunch").build()?;
/// assert_eq!(rt.block_on(async { 1 + 1 }), 2);
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Clone, Debug)]
#[must_use = "a builder does nothing until `build`"]
pub struct Builder {
    workers: Option<usize>,
    pub(crate) config: Config,
}

/// What the parts of a runtime are told.
#[derive(Clone, Debug)]
pub(crate) struct Config {
    pub(crate) workers: usize,
    pub(crate) background_threads: bool,
    pub(crate) thread_name: String,
    pub(crate) steal_order: StealOrder,
    pub(crate) seed: Option<u64>,
    pub(crate) backlog_capacity: Option<usize>,
    pub(crate) most_blocking_threads: usize,
    pub(crate) keep_alive: Duration,
}

/// In which order a worker without work looks into the others' queues.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum StealOrder {
    /// From a random one, then round. Spreads the thieves best.
    #[default]
    Random,
    /// From one further each time, then round.
    RoundRobin,
    /// From the one with the longest queues, then round. Costs a look at all of them first.
    Longest,
}

impl Default for Builder {
    fn default() -> Self {
        Self::new()
    }
}

impl Builder {
    /// A builder with the defaults: as many workers as the machine gives this process.
    pub fn new() -> Self {
        let config = Config {
            workers: 0,
            background_threads: true,
            thread_name: "runtime-worker".into(),
            steal_order: StealOrder::default(),
            seed: None,
            backlog_capacity: None,
            most_blocking_threads: 512,
            keep_alive: Duration::from_secs(10),
        };
        Self {
            workers: None,
            config,
        }
    }

    /// The same as [`Builder::new`], under the name that users of tokio know.
    pub fn new_multi_thread() -> Self {
        Self::new()
    }

    /// One worker and no thread of its own: tasks run only while a thread is in `block_on`, on that thread.
    pub fn new_current_thread() -> Self {
        Self::new().worker_threads(1).background_threads(false)
    }

    /// How many threads run tasks at most: 1 to 1024; [`Builder::build`] refuses anything else. A thread in
    /// `block_on` counts as one of them. Default: [`std::thread::available_parallelism`].
    pub fn worker_threads(mut self, workers: usize) -> Self {
        self.workers = Some(workers);
        self
    }

    /// Whether the runtime has threads of its own (the default), or runs tasks, timers and I/O only while some
    /// thread is in `block_on`. Blocking jobs have their threads either way.
    pub fn background_threads(mut self, background: bool) -> Self {
        self.config.background_threads = background;
        self
    }

    /// What the runtime's threads are called; a number or a purpose is added. Default: `runtime-worker`.
    pub fn thread_name(mut self, name: impl Into<String>) -> Self {
        self.config.thread_name = name.into();
        self
    }

    /// The order in which victims of a steal are tried. Default: [`StealOrder::Random`].
    pub fn steal_order(mut self, order: StealOrder) -> Self {
        self.config.steal_order = order;
        self
    }

    /// Makes the runtime's random choices repeatable, as far as thread timing lets them be. Default: a different
    /// seed for each runtime.
    pub fn rng_seed(mut self, seed: u64) -> Self {
        self.config.seed = Some(seed);
        self
    }

    /// Bounds the tasks that were submitted from outside the workers and have not begun to run, for
    /// [`Handle::try_spawn`], [`Handle::spawn_when_free`] and [`Handle::spawn_or_run`]; [`Handle::spawn`] counts
    /// but is never refused. At least 1; [`Builder::build`] refuses 0. Default: unbounded.
    pub fn backlog_capacity(mut self, tasks: usize) -> Self {
        self.config.backlog_capacity = Some(tasks);
        self
    }

    /// The most threads of the blocking pool; further jobs wait. At least 1. Default: 512.
    pub fn max_blocking_threads(mut self, threads: usize) -> Self {
        self.config.most_blocking_threads = threads;
        self
    }

    /// How long a thread of the blocking pool waits for a job before it ends. Default: 10 s.
    pub fn thread_keep_alive(mut self, keep_alive: Duration) -> Self {
        self.config.keep_alive = keep_alive;
        self
    }

    /// Starts the runtime.
    ///
    /// # Errors
    ///
    /// `InvalidInput` if an option is out of its range, saying which. Else the system's error: no descriptor for
    /// the reactor, or no thread to be had.
    pub fn build(self) -> io::Result<Runtime> {
        let mut config = self.config;
        config.workers = match self.workers {
            Some(workers) => workers,
            None => std::thread::available_parallelism().map_or(1, |n| n.get().min(MOST_WORKERS)),
        };
        in_range("worker_threads", config.workers, MOST_WORKERS)?;
        in_range(
            "max_blocking_threads",
            config.most_blocking_threads,
            usize::MAX,
        )?;
        in_range(
            "backlog_capacity",
            config.backlog_capacity.unwrap_or(1),
            usize::MAX,
        )?;

        if config.thread_name.contains('\0') {
            let message = "`Builder::thread_name` must not contain a NUL character";
            return Err(io::Error::new(io::ErrorKind::InvalidInput, message));
        }

        let scheduler = Scheduler::new(&config)?;
        let mut runtime = Runtime::new_with(Handle::of(scheduler));
        let threads = if config.background_threads {
            config.workers
        } else {
            0
        };
        for index in 0..threads {
            let scheduler = Arc::clone(runtime.handle().scheduler());
            let name = format!("{}-{index}", config.thread_name);
            let thread = std::thread::Builder::new()
                .name(name)
                .spawn(move || Worker::run_background(&scheduler))
                // What was started ends with `runtime`, which is dropped here.
                .map_err(|error| {
                    io::Error::new(
                        error.kind(),
                        format!("cannot start worker thread {index}: {error}"),
                    )
                })?;
            runtime.add_thread(thread);
        }
        Ok(runtime)
    }
}

fn in_range(option: &str, value: usize, most: usize) -> io::Result<()> {
    if (1..=most).contains(&value) {
        return Ok(());
    }
    let range = if most == usize::MAX {
        "at least 1".into()
    } else {
        format!("between 1 and {most}")
    };
    let message = format!("`Builder::{option}` must be {range}, but is {value}");
    Err(io::Error::new(io::ErrorKind::InvalidInput, message))
}
