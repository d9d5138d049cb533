//! A program in three phases, as batch jobs are: numbers are generated, sorted, and saved as text.
//!
//! A task for each row of numbers, all of one phase before the next. The tasks are large (from a
//! tenth of a millisecond to some), of three kinds: making memory, computing, and calls into the kernel
//! that write files. With so few and large tasks, a runtime can only lose: by workers that sleep while
//! there is work, or by getting in its way.

use std::fmt::Write;
use std::fs;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Instant;

use super::{Metric, Program, Row, less, timed_row};
use crate::countdown::Countdown;
use crate::harness::{Plan, Sample};
use crate::peers::{
    AsyncPeer, ClosurePeer, ClosureSpawner, Entry, PerAsyncPeer, PerClosurePeer, Spawner,
    each_async, each_closure, in_task,
};
use crate::random::Random;

const ROWS: usize = 800;
const QUICK_ROWS: usize = 40;
const NUMBERS: usize = 100_000;

/// All three phases; a figure for each.
pub(super) struct Phases;

/// What the tasks share: the rows, and where they are saved.
struct Book {
    rows: Vec<Mutex<Vec<u32>>>,
    folder: Folder,
}

/// A folder of this process's own, removed with all that is in it.
struct Folder(PathBuf);

#[derive(Clone, Copy)]
enum Phase {
    Generate,
    Sort,
    Save,
}

const TIMES: &[Metric] = &[
    less("generate", "ms"),
    less("sort", "ms"),
    less("save", "ms"),
];

const PHASES: [Phase; 3] = [Phase::Generate, Phase::Sort, Phase::Save];

pub(super) fn rows() -> Vec<Row> {
    vec![Row {
        metrics: TIMES,
        workers: Some(2),
        ..timed_row(
            "phases",
            "800 rows of 100,000 random numbers: generated, sorted, saved as text",
            programs,
        )
    }]
}

impl PerAsyncPeer for Phases {
    type Item = Program;

    fn make<P: AsyncPeer>() -> Program {
        |plan, _| {
            let peer = P::start();
            let spawner = peer.inside();
            let book = Book::new(plan);
            Sample::of(in_task(&peer, async move {
                let mut times = Vec::new();
                for phase in PHASES {
                    let start = Instant::now();
                    let tasks: Vec<_> = (0..book.rows.len())
                        .map(|row| {
                            let book = book.clone();
                            spawner.spawn(async move { book.work(phase, row) })
                        })
                        .collect();
                    for task in tasks {
                        task.await;
                    }
                    times.push(start.elapsed().as_secs_f64() * 1e3);
                }
                times
            }))
        }
    }
}

impl PerClosurePeer for Phases {
    type Item = Program;

    fn make<P: ClosurePeer>() -> Program {
        |plan, _| {
            let peer = P::start();
            let book = Book::new(plan);
            let phase = |phase| {
                let start = Instant::now();
                let countdown = Countdown::leak(book.rows.len() as u64);
                let (book, spawner) = (book.clone(), peer.inside());
                peer.outside().run(move || {
                    for row in 0..book.rows.len() {
                        let book = book.clone();
                        spawner.run(move || {
                            book.work(phase, row);
                            // Before the count: the last one to go removes the folder, and that is no
                            // part of any phase.
                            drop(book);
                            countdown.count();
                        });
                    }
                });
                futures::executor::block_on(countdown.wait());
                start.elapsed().as_secs_f64() * 1e3
            };
            Sample::of(PHASES.map(phase).to_vec())
        }
    }
}

fn programs() -> Vec<Entry<Program>> {
    let mut programs = each_async::<Phases>();
    programs.extend(each_closure::<Phases>());
    programs
}

impl Book {
    fn new(plan: &Plan) -> Arc<Book> {
        let rows = if plan.quick { QUICK_ROWS } else { ROWS };
        Arc::new(Book {
            rows: (0..rows).map(|_| Mutex::default()).collect(),
            folder: Folder::new(),
        })
    }

    /// One phase of one row.
    fn work(&self, phase: Phase, row: usize) {
        let mut numbers = self.rows[row].lock().expect("no task panics");
        match phase {
            Phase::Generate => {
                let mut random = Random::new(row as u64);
                *numbers = (0..NUMBERS).map(|_| random.next_u32()).collect();
            }
            Phase::Sort => numbers.sort_unstable(),
            Phase::Save => {
                let file = self.folder.0.join(row.to_string());
                fs::write(file, text(&numbers)).expect("a temporary file can be written");
            }
        }
    }
}

impl Folder {
    fn new() -> Folder {
        static MADE: AtomicU64 = AtomicU64::new(0);
        let number = MADE.fetch_add(1, Ordering::Relaxed);
        let name = format!("runtime-benches-{}-{number}", std::process::id());
        let path = std::env::temp_dir().join(name);
        fs::create_dir(&path).expect("there is a place for temporary files");
        Folder(path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // Whatever is left is in the place for temporary files.
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// The numbers in decimal, a line for each.
fn text(numbers: &[u32]) -> String {
    // Ten digits at most, and the end of the line.
    let mut text = String::with_capacity(numbers.len() * 11);
    for number in numbers {
        writeln!(text, "{number}").expect("a string takes everything");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn a_row_is_saved_in_order_and_the_folder_goes() {
        let plan = Plan {
            time: Duration::ZERO,
            quick: true,
        };
        let book = Book::new(&plan);
        for phase in PHASES {
            book.work(phase, 3);
        }
        let path = book.folder.0.clone();
        let saved = fs::read_to_string(path.join("3")).unwrap();
        let numbers: Vec<u32> = saved.lines().map(|line| line.parse().unwrap()).collect();
        assert_eq!(numbers.len(), NUMBERS);
        assert!(numbers.is_sorted());
        drop(book);
        assert!(!path.exists());
    }
}
