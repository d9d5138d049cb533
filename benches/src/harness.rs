//! Rounds, turns and calibration: who is measured when, and how often a row is repeated.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use crate::apart;
use crate::args::{Args, check, selects};
use crate::peers::{self, Entry};
use crate::report;
use crate::rows::{self, Program, Row};
use crate::statistics::median;
use crate::usage::{Neighbours, Usage};
use crate::watchdog::Watchdog;

/// How to take a sample.
pub(crate) struct Plan {
    /// About how long a timed sample takes.
    pub(crate) time: Duration,
    /// Whether rows of a fixed size should take a smaller one.
    pub(crate) quick: bool,
}

/// One measurement of a row on a system.
pub(crate) struct Sample {
    /// A figure for each of the row's metrics.
    pub(crate) values: Vec<f64>,
    /// Processor nanoseconds and context switches per operation, if the row has operations.
    pub(crate) per_operation: Option<(f64, f64)>,
}

/// A row with what was measured.
pub(crate) struct RowResult {
    /// The row.
    pub(crate) row: Row,
    /// Each system that was asked for.
    pub(crate) systems: Vec<SystemResult>,
    /// The share of the machine, 0 to 1, that other programs took meanwhile.
    pub(crate) others: f64,
}

/// What was measured on one system.
pub(crate) struct SystemResult {
    /// The system.
    pub(crate) name: String,
    /// Its workers.
    pub(crate) workers: usize,
    /// A sample for each round that did not fail.
    pub(crate) samples: Vec<Sample>,
    /// Rounds that failed.
    pub(crate) failures: usize,
}

/// Runs what the command line asks for, and prints each row when it is done.
///
/// # Errors
/// If no row or no system has such a name.
pub(crate) fn run(args: &Args) -> Result<Vec<RowResult>, String> {
    let plan = Plan {
        time: Duration::from_millis(if args.quick { 15 } else { 60 }),
        quick: args.quick,
    };
    let rounds = args.rounds.unwrap_or(if args.quick { 3 } else { 7 });
    let rows = rows::all();
    let row_names: Vec<String> = rows.iter().map(|row| row.name.to_owned()).collect();
    let peer_names = peers::names();
    check(&args.rows, &row_names)?;
    check(&args.peers, &peer_names)?;
    let watchdog = Watchdog::start();
    let mut results = Vec::new();
    for row in rows
        .into_iter()
        .filter(|row| selects(&args.rows, &row_names, row.name))
    {
        let mut programs = (row.programs)();
        programs.retain(|program| {
            row.workers.is_none_or(|workers| workers == program.workers)
                && selects(&args.peers, &peer_names, &program.name)
        });
        if programs.is_empty() {
            continue;
        }
        if row.slow && args.quick && args.rows.is_empty() {
            println!(
                "\n{}: slow, skipped by --quick unless it is named",
                row.name
            );
            continue;
        }
        let result = run_row(row, programs, rounds, &plan, &watchdog);
        report::row(&result);
        results.push(result);
    }
    watchdog.rest();
    match results.is_empty() {
        true => Err("none of these systems can run these rows".to_owned()),
        false => Ok(results),
    }
}

/// Warms up, then measures `run`, which repeats a row as often as it is told and says how long that
/// took. `repetitions` is 0 before the first sample of a system, which finds the number.
pub(crate) fn timed(
    plan: &Plan,
    repetitions: &mut u64,
    operations: u64,
    mut run: impl FnMut(u64) -> Duration,
) -> Sample {
    match *repetitions {
        0 => *repetitions = calibrated(plan.time, &mut run),
        known => drop(run((known / 8).max(1))),
    }
    let before = Usage::now();
    let time = run(*repetitions);
    let spent = before.spent();
    let operations = (operations * *repetitions) as f64;
    Sample {
        values: vec![time.as_nanos() as f64 / operations],
        per_operation: Some((
            spent.cpu.as_nanos() as f64 / operations,
            spent.switches as f64 / operations,
        )),
    }
}

impl Sample {
    /// One of a row without operations.
    pub(crate) fn of(values: Vec<f64>) -> Sample {
        Sample {
            values,
            per_operation: None,
        }
    }
}

impl SystemResult {
    /// The figures of one metric, in the order of the rounds.
    pub(crate) fn values(&self, metric: usize) -> Vec<f64> {
        self.samples
            .iter()
            .map(|sample| sample.values[metric])
            .collect()
    }

    /// The median of one metric, if any round succeeded.
    pub(crate) fn median(&self, metric: usize) -> Option<f64> {
        median_of(self.values(metric))
    }

    /// Median processor nanoseconds per operation, where the row has operations.
    pub(crate) fn cpu(&self) -> Option<f64> {
        median_of(
            self.samples
                .iter()
                .filter_map(|sample| Some(sample.per_operation?.0))
                .collect(),
        )
    }

    /// Median context switches per operation, where the row has operations.
    pub(crate) fn switches(&self) -> Option<f64> {
        median_of(
            self.samples
                .iter()
                .filter_map(|sample| Some(sample.per_operation?.1))
                .collect(),
        )
    }
}

fn run_row(
    row: Row,
    programs: Vec<Entry<Program>>,
    rounds: usize,
    plan: &Plan,
    watchdog: &Watchdog,
) -> RowResult {
    let mut systems: Vec<SystemResult> = programs
        .iter()
        .map(|program| SystemResult {
            name: program.name.clone(),
            workers: program.workers,
            samples: Vec::new(),
            failures: 0,
        })
        .collect();
    let mut repetitions = vec![0; programs.len()];
    let neighbours = Neighbours::watch();
    for round in 0..rounds.min(row.max_rounds) {
        for turn in 0..programs.len() {
            // Nobody is always first, or always after the same one's last threads.
            let index = (turn + round) % programs.len();
            let program = &programs[index];
            let label = format!("row {} on {}, round {}", row.name, program.name, round + 1);
            if row.slow {
                watchdog.rest();
            } else {
                watchdog.watch(label.clone());
            }
            match catch_unwind(AssertUnwindSafe(|| {
                if program.process_wide {
                    return apart::sample(row.name, &program.name, plan, &mut repetitions[index]);
                }
                (program.item)(plan, &mut repetitions[index])
            })) {
                Ok(sample) => systems[index].samples.push(sample),
                Err(_) => {
                    systems[index].failures += 1;
                    eprintln!("{label}: failed, see above; the run goes on without this sample")
                }
            }
        }
    }
    RowResult {
        row,
        systems,
        others: neighbours.share(),
    }
}

/// How many repetitions take about `time`; runs some, which also warms up.
fn calibrated(time: Duration, run: &mut impl FnMut(u64) -> Duration) -> u64 {
    let mut count = 1;
    loop {
        let taken = run(count).max(Duration::from_nanos(1));
        let whole = time.as_secs_f64() / taken.as_secs_f64() * count as f64;
        // A tenth of the time is long enough to be believed.
        if taken * 10 >= time {
            return (whole.round() as u64).max(1);
        }
        // Early repetitions are slow: step towards the number, not all the way.
        count = ((whole / 4.0) as u64).clamp(count + 1, count * 16);
    }
}

fn median_of(values: Vec<f64>) -> Option<f64> {
    (!values.is_empty()).then(|| median(&values))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calibration_finds_the_number_that_takes_the_time() {
        let each = Duration::from_micros(3);
        let found = calibrated(Duration::from_millis(60), &mut |count| each * count as u32);
        assert_eq!(found, 20_000);
    }

    #[test]
    fn what_takes_longer_than_the_time_runs_once() {
        let found = calibrated(Duration::from_millis(1), &mut |count| {
            Duration::from_millis(80) * count as u32
        });
        assert_eq!(found, 1);
    }

    #[test]
    fn samples_are_per_operation_and_later_ones_keep_the_number() {
        let plan = Plan {
            time: Duration::from_micros(100),
            quick: true,
        };
        let mut repetitions = 0;
        let mut run = |count: u64| Duration::from_nanos(1000 * count);
        let first = timed(&plan, &mut repetitions, 10, &mut run);
        assert_eq!((first.values[0], repetitions), (100.0, 100));
        timed(&plan, &mut repetitions, 10, &mut run);
        assert_eq!(repetitions, 100);
    }
}
