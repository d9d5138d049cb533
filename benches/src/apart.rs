//! Samples that are taken in a process of their own, for systems whose threads stay as long as the
//! process.
//!
//! The process runs the same program of the same row and sends back one line: how often the row was
//! repeated, then what it cost per operation, if it has operations, then its figures.

use std::time::Duration;

use crate::child;
use crate::harness::{Plan, Sample};
use crate::rows;

/// The word of the hidden command line.
pub(crate) const COMMAND: &str = "sample";

/// Stands for a cost per operation that the row does not have.
const NONE: &str = "-";

/// Has the sample taken, as the row's program would take it here.
pub(crate) fn sample(row: &str, system: &str, plan: &Plan, repetitions: &mut u64) -> Sample {
    let [millis, quick, known] = [
        plan.time.as_millis().to_string(),
        plan.quick.to_string(),
        repetitions.to_string(),
    ];
    let mut process = child::start(&[COMMAND, row, system, &millis, &quick, &known]);
    let (found, sample) = parse(&process.line()).expect("a line with a sample");
    *repetitions = found;
    sample
}

/// The part within that process: takes the sample and prints it.
///
/// # Panics
/// If the words are not those that the function above sends.
pub(crate) fn report([row, system, millis, quick, known]: [&str; 5]) {
    let plan = Plan {
        time: Duration::from_millis(millis.parse().expect("a number")),
        quick: quick.parse().expect("true or false"),
    };
    let mut repetitions = known.parse().expect("a number");
    let mut rows = rows::all().into_iter();
    let row = rows.find(|known| known.name == row).expect("a row's name");
    let mut programs = (row.programs)().into_iter();
    let program = programs
        .find(|program| program.name == system)
        .expect("a system's name");
    let sample = (program.item)(&plan, &mut repetitions);
    println!("{}", text(repetitions, &sample));
}

fn text(repetitions: u64, sample: &Sample) -> String {
    let [cpu, switches] = match sample.per_operation {
        Some((cpu, switches)) => [cpu.to_string(), switches.to_string()],
        None => [NONE, NONE].map(str::to_owned),
    };
    let mut words = vec![repetitions.to_string(), cpu, switches];
    words.extend(sample.values.iter().map(f64::to_string));
    words.join(" ")
}

fn parse(line: &str) -> Option<(u64, Sample)> {
    let mut words = line.split(' ');
    let repetitions = words.next()?.parse().ok()?;
    let per_operation = match [words.next()?, words.next()?] {
        [NONE, NONE] => None,
        [cpu, switches] => Some((cpu.parse().ok()?, switches.parse().ok()?)),
    };
    let values = words
        .map(|word| word.parse().ok())
        .collect::<Option<Vec<f64>>>()?;
    Some((
        repetitions,
        Sample {
            values,
            per_operation,
        },
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_gives_back_the_sample() {
        for per_operation in [None, Some((12.5, 0.000_31))] {
            let sent = Sample {
                values: vec![1.0, 0.1 + 0.2],
                per_operation,
            };
            let (repetitions, sample) = parse(&text(7, &sent)).unwrap();
            assert_eq!(repetitions, 7);
            assert_eq!(sample.values, sent.values);
            assert_eq!(sample.per_operation, per_operation);
        }
    }

    #[test]
    fn other_lines_are_no_samples() {
        for line in ["", "ready", "7", "7 -", "7 - 1 2", "7 - - x"] {
            assert!(parse(line).is_none(), "{line}");
        }
    }
}
