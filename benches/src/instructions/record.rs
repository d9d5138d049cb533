//! The file of committed instruction counts, and the rule that new counts are held to.

use std::fmt::Write;

/// The form of ours that is held to its figure.
pub(super) const HELD: &str = "ours-ct";

/// By how much a figure may grow before it is a regression.
const TOLERANCE: f64 = 0.05;

/// Counts of one build.
#[derive(Debug, PartialEq)]
pub(super) struct Record {
    /// The compiler, as `rustc --version` names it.
    pub(super) rustc: String,
    /// The target triple.
    pub(super) target: String,
    /// The counts.
    pub(super) figures: Vec<Figure>,
}

/// One count.
#[derive(Debug, PartialEq)]
pub(super) struct Figure {
    /// The row.
    pub(super) row: String,
    /// The system.
    pub(super) system: String,
    /// Instructions per operation.
    pub(super) instructions: f64,
}

impl Record {
    /// Reads the file.
    ///
    /// # Errors
    /// Names the first line that is not understood.
    pub(super) fn parse(text: &str) -> Result<Record, String> {
        let mut record = Record {
            rustc: String::new(),
            target: String::new(),
            figures: Vec::new(),
        };
        for line in text.lines().map(str::trim) {
            let words: Vec<&str> = line.split_whitespace().collect();
            match words[..] {
                [] => {}
                [first, ..] if first.starts_with('#') => {}
                ["rustc", ..] => record.rustc = line.to_owned(),
                ["target", target] => record.target = target.to_owned(),
                [row, system, count] => record.figures.push(Figure {
                    row: row.to_owned(),
                    system: system.to_owned(),
                    instructions: count
                        .parse()
                        .map_err(|_| format!("not a number in the line: {line}"))?,
                }),
                _ => return Err(format!("not a row, a system and a figure: {line}")),
            }
        }
        Ok(record)
    }

    /// The file.
    pub(super) fn text(&self) -> String {
        let mut text = String::from(
            "# Instructions per operation on one worker, counted by callgrind. Written by\n\
             #   cargo run --release -p benches -- instructions --update\n\
             # CI fails if a figure of ours-ct grows by more than 5 %, or if the compiler or the target is\n\
             # another: update this file in the commit that changes them. The other systems are for comparison.\n",
        );
        let _ = writeln!(text, "{}\ntarget {}", self.rustc, self.target);
        let mut last = "";
        for figure in &self.figures {
            if figure.row != last {
                text.push('\n');
            }
            last = &figure.row;
            let _ = writeln!(
                text,
                "{:16}{:10}{:>9.1}",
                figure.row, figure.system, figure.instructions
            );
        }
        text
    }

    /// The count of a row on a system.
    pub(super) fn get(&self, row: &str, system: &str) -> Option<f64> {
        self.figures
            .iter()
            .find(|figure| figure.row == row && figure.system == system)
            .map(|figure| figure.instructions)
    }

    /// What is wrong with the new counts, held against these; empty if nothing is.
    pub(super) fn problems(&self, new: &Record) -> Vec<String> {
        let mut problems = Vec::new();
        for (what, old, new) in [
            ("compiler", &self.rustc, &new.rustc),
            ("target", &self.target, &new.target),
        ] {
            if old != new {
                problems.push(format!(
                    "the committed figures are of another {what}: {old}, and this is {new}. Counts of the \
                     two cannot be compared: run this with --update, on the code as it was before any \
                     other change, and commit the file together with the change of the {what}"
                ));
            }
        }
        if !problems.is_empty() {
            return problems;
        }
        let held = new.figures.iter().filter(|figure| figure.system == HELD);
        held.filter_map(|figure| {
            let now = figure.instructions;
            match self.get(&figure.row, HELD) {
                None => Some(format!(
                    "{} has no committed figure: add it with --update",
                    figure.row
                )),
                Some(before) if change(before, now) > TOLERANCE => Some(format!(
                    "{}: {now:.1} instructions, {:.1} % more than the {before:.1} committed. If that is \
                     worth its price, say why and commit the new figures (--update) with the change",
                    figure.row,
                    change(before, now) * 100.0,
                )),
                Some(_) => None,
            }
        })
        .collect()
    }

    /// Rows of ours that became so much cheaper that the old figure no longer guards them.
    pub(super) fn gains<'a>(&'a self, new: &'a Record) -> impl Iterator<Item = &'a str> {
        new.figures
            .iter()
            .filter(|figure| figure.system == HELD)
            .filter(|figure| {
                self.get(&figure.row, HELD)
                    .is_some_and(|before| change(before, figure.instructions) < -TOLERANCE)
            })
            .map(|figure| figure.row.as_str())
    }
}

/// By what share the figure grew.
pub(super) fn change(before: f64, now: f64) -> f64 {
    now / before - 1.0
}

/// The sum over all functions in a file that callgrind wrote.
pub(super) fn totals(profile: &str) -> Option<u64> {
    let line = profile
        .lines()
        .rev()
        .find_map(|line| line.strip_prefix("totals:"))?;
    line.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(counts: &[(&str, &str, f64)]) -> Record {
        let figure = |&(row, system, instructions): &(&str, &str, f64)| Figure {
            row: row.to_owned(),
            system: system.to_owned(),
            instructions,
        };
        Record {
            rustc: "rustc 1.95.0 (59807616e 2026-04-14)".to_owned(),
            target: "x86_64-unknown-linux-gnu".to_owned(),
            figures: counts.iter().map(figure).collect(),
        }
    }

    #[test]
    fn what_is_written_is_read_again() {
        let written = record(&[
            ("yield", HELD, 180.5),
            ("yield", "tokio-ct", 477.0),
            ("oneshot", HELD, 1200.0),
        ]);
        assert_eq!(Record::parse(&written.text()), Ok(written));
    }

    #[test]
    fn lines_that_mean_nothing_are_errors() {
        assert!(Record::parse("yield ours-ct many").is_err());
        assert!(Record::parse("yield ours-ct").is_err());
    }

    #[test]
    fn only_ours_and_only_growth_beyond_the_tolerance_is_a_problem() {
        let old = record(&[("yield", HELD, 100.0), ("yield", "tokio-ct", 100.0)]);
        let problems = |own, other| {
            old.problems(&record(&[
                ("yield", HELD, own),
                ("yield", "tokio-ct", other),
            ]))
            .len()
        };
        assert_eq!(problems(104.9, 200.0), 0);
        assert_eq!(problems(105.1, 100.0), 1);
        assert_eq!(problems(50.0, 100.0), 0);
    }

    #[test]
    fn a_row_without_a_figure_is_a_problem() {
        let old = record(&[]);
        assert_eq!(old.problems(&record(&[("yield", HELD, 1.0)])).len(), 1);
    }

    #[test]
    fn another_compiler_is_a_problem_whatever_the_figures() {
        let old = record(&[("yield", HELD, 100.0)]);
        let mut new = record(&[("yield", HELD, 100.0)]);
        new.rustc = "rustc 1.96.0".to_owned();
        assert_eq!(old.problems(&new).len(), 1);
    }

    #[test]
    fn gains_are_what_the_old_figure_no_longer_guards() {
        let old = record(&[("yield", HELD, 100.0), ("oneshot", HELD, 100.0)]);
        let new = record(&[("yield", HELD, 96.0), ("oneshot", HELD, 90.0)]);
        assert_eq!(old.gains(&new).collect::<Vec<_>>(), ["oneshot"]);
    }

    #[test]
    fn totals_are_the_last_such_line() {
        let profile = "events: Ir\nfn=(1) main\n1 5\ntotals: 38123456\n";
        assert_eq!(totals(profile), Some(38_123_456));
        assert_eq!(totals("events: Ir\n"), None);
    }
}
