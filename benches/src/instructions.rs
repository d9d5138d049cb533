//! The instruction gate: how many instructions an operation takes on one worker, counted by callgrind.
//!
//! ```text
//! cargo run --release -p benches -- instructions [--update]
//! ```
//!
//! A count does not depend on what else the machine does, so a regression of a few per cent shows even
//! where times vary by half. Each row runs twice in a process of its own under valgrind, the second
//! time with twice as many operations; the difference is theirs alone, without start-up and end.
//!
//! Our figures are held against `instructions.txt` beside this crate's manifest. The exit status is not
//! zero if one grew by more than 5 %. A change that is worth its price says so by changing the file
//! in the same commit, with `--update`. Counts belong to a compiler and a target, and the file names both: with
//! another compiler or target, the gate fails too and asks for the update in the commit that changes
//! the toolchain, so that it is never silently off. The peers' figures are there for comparison only.
//!
//! What is held is `ours-ct`, the form without a thread of its own, whose counts repeat to a thousandth.
//! `ours-1` counts nearly the same, but has a thread that sleeps and wakes when the kernel chooses; it is
//! shown beside the peers, and not held to a figure.

mod record;

use std::fmt::Write;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};

use self::record::{Figure, Record};
use crate::child;
use crate::rows::{Counted, counted};
use crate::watchdog::Watchdog;

/// The word on the command line that asks for this.
pub(crate) const COMMAND: &str = "instructions";

/// The committed figures.
const FILE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/instructions.txt");

/// Who is counted: systems of one worker, ours first.
const SYSTEMS: [&str; 4] = ["ours-ct", "ours-1", "tokio-ct", "asx-1"];

/// What we have set out to reach: row, must, moonshot.
const TARGETS: [(&str, f64, f64); 3] = [
    ("spawn_await", 800.0, 400.0),
    ("yield", 300.0, 150.0),
    ("pingpong", 630.0, 450.0),
];

/// Counts, prints the table, and holds ours against the file or rewrites it.
pub(crate) fn run(words: impl Iterator<Item = String>) -> ExitCode {
    let words: Vec<String> = words.collect();
    let update = match words.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        [] => false,
        ["--update"] => true,
        _ => {
            eprintln!("{COMMAND} takes only --update");
            return ExitCode::from(2);
        }
    };
    match count_and_judge(update) {
        Ok(()) => ExitCode::SUCCESS,
        Err(problem) => {
            eprintln!("\n{problem}");
            ExitCode::FAILURE
        }
    }
}

/// The hidden child: runs a row on a system for a number of repetitions.
pub(crate) fn repeat(row: &str, system: &str, repetitions: u64) {
    let row = counted()
        .into_iter()
        .find(|counted| counted.name == row)
        .expect("the parent knows the rows");
    let program = (row.programs)()
        .into_iter()
        .find(|entry| entry.name == system)
        .expect("the parent knows the systems");
    (program.item)(repetitions);
}

fn count_and_judge(update: bool) -> Result<(), String> {
    let committed = match fs::read_to_string(FILE) {
        Ok(text) => Some(Record::parse(&text)?),
        Err(error) if error.kind() == ErrorKind::NotFound => None,
        Err(error) => return Err(format!("cannot read {FILE}: {error}")),
    };
    let counted = count()?;
    print!("{}", table(&counted, committed.as_ref()));
    if let Some(setting) = foreign_profile() {
        return Err(format!(
            "built with {setting}: only the release profile of Cargo.toml is held against the file"
        ));
    }
    if update {
        fs::write(FILE, counted.text()).map_err(|error| format!("cannot write {FILE}: {error}"))?;
        println!("\nwritten to {FILE}");
        return Ok(());
    }
    let Some(committed) = committed else {
        return Err(format!("there is no {FILE} yet: write it with --update"));
    };
    let problems = committed.problems(&counted);
    for row in committed.gains(&counted) {
        println!("{row} became cheaper: keep what was won, with --update");
    }
    if problems.is_empty() {
        println!("\nno row of ours grew by more than 5 %");
        return Ok(());
    }
    Err(problems.join("\n"))
}

/// A setting that makes this build another one than everybody's release build. Cargo rebuilds when one of
/// these changes.
fn foreign_profile() -> Option<&'static str> {
    let overrides = [
        (
            "CARGO_PROFILE_RELEASE_LTO",
            option_env!("CARGO_PROFILE_RELEASE_LTO"),
        ),
        (
            "CARGO_PROFILE_RELEASE_CODEGEN_UNITS",
            option_env!("CARGO_PROFILE_RELEASE_CODEGEN_UNITS"),
        ),
        (
            "CARGO_PROFILE_RELEASE_OPT_LEVEL",
            option_env!("CARGO_PROFILE_RELEASE_OPT_LEVEL"),
        ),
        (
            "RUSTFLAGS",
            option_env!("RUSTFLAGS").filter(|flags| !flags.is_empty()),
        ),
    ];
    if cfg!(debug_assertions) {
        return Some("debug assertions");
    }
    overrides
        .into_iter()
        .find_map(|(name, value)| value.map(|_| name))
}

fn count() -> Result<Record, String> {
    let watchdog = Watchdog::start();
    let output = Output::new();
    let mut figures = Vec::new();
    for row in counted() {
        for system in SYSTEMS {
            watchdog.watch(format!("{} on {system} under callgrind", row.name));
            figures.push(Figure {
                row: row.name.to_owned(),
                system: system.to_owned(),
                instructions: per_operation(&row, system, &output.0)?,
            });
        }
    }
    watchdog.rest();
    Ok(Record {
        rustc: env!("BENCHES_RUSTC").to_owned(),
        target: env!("BENCHES_TARGET").to_owned(),
        figures,
    })
}

fn per_operation(row: &Counted, system: &str, output: &Path) -> Result<f64, String> {
    let once = total(row, system, row.repetitions, output)?;
    let twice = total(row, system, 2 * row.repetitions, output)?;
    let more = twice.checked_sub(once).ok_or(format!(
        "{} on {system}: twice the work took fewer instructions",
        row.name
    ))?;
    Ok(more as f64 / (row.operations * row.repetitions) as f64)
}

/// All instructions of a process that runs the row.
fn total(row: &Counted, system: &str, repetitions: u64, output: &Path) -> Result<u64, String> {
    let program = std::env::current_exe().map_err(|error| error.to_string())?;
    let run = Command::new("valgrind")
        .arg("--tool=callgrind")
        .arg(format!("--callgrind-out-file={}", output.display()))
        .arg(program)
        .args([child::COMMAND, COMMAND, row.name, system])
        .arg(repetitions.to_string())
        .stdin(Stdio::null())
        .output();
    let run = match run {
        Ok(run) => run,
        Err(error) if error.kind() == ErrorKind::NotFound => {
            return Err("valgrind is not installed (Debian: apt-get install valgrind)".to_owned());
        }
        Err(error) => return Err(format!("cannot run valgrind: {error}")),
    };
    let profile = fs::read_to_string(output).ok();
    match profile.as_deref().and_then(record::totals) {
        Some(total) if run.status.success() => Ok(total),
        _ => Err(format!(
            "{} on {system} under valgrind: {}\n{}",
            row.name,
            run.status,
            String::from_utf8_lossy(&run.stderr)
        )),
    }
}

/// Where callgrind writes; removed at the end.
struct Output(PathBuf);

impl Output {
    fn new() -> Output {
        let name = format!("benches-callgrind-{}", std::process::id());
        Output(std::env::temp_dir().join(name))
    }
}

impl Drop for Output {
    fn drop(&mut self) {
        // There is none if valgrind never ran.
        let _ = fs::remove_file(&self.0);
    }
}

fn table(counted: &Record, committed: Option<&Record>) -> String {
    let mut text = format!(
        "instructions per operation, one worker; {}, {}\n{:18}",
        counted.rustc, counted.target, "row"
    );
    for system in SYSTEMS {
        let _ = write!(text, "{system:>10}");
    }
    let _ = writeln!(text, "{:>11}{:>9}  targets", "committed", "change");
    for row in rows_of(counted) {
        let _ = write!(text, "{row:18}");
        for system in SYSTEMS {
            let figure = counted.get(row, system).map_or("-".to_owned(), one_place);
            let _ = write!(text, "{figure:>10}");
        }
        let own = counted.get(row, record::HELD);
        let before = committed.and_then(|record| record.get(row, record::HELD));
        let change = before.zip(own).map_or("-".to_owned(), |(before, now)| {
            format!("{:+.1} %", record::change(before, now) * 100.0)
        });
        let _ = writeln!(
            text,
            "{:>11}{change:>9}  {}",
            before.map_or("-".to_owned(), one_place),
            own.map_or(String::new(), |own| targets(row, own)),
        );
    }
    text
}

fn rows_of(record: &Record) -> impl Iterator<Item = &str> {
    record
        .figures
        .iter()
        .filter(|figure| figure.system == record::HELD)
        .map(|figure| figure.row.as_str())
}

/// `must 800 met, moonshot 400 MISSED by 12 %`.
fn targets(row: &str, own: f64) -> String {
    let Some((_, must, moonshot)) = TARGETS.iter().find(|(name, ..)| *name == row) else {
        return String::new();
    };
    [("must", must), ("moonshot", moonshot)]
        .map(|(level, limit)| {
            let off = (own / limit - 1.0).abs() * 100.0;
            let word = if own <= *limit { "met" } else { "MISSED" };
            format!("{level} {limit} {word} by {off:.0} %")
        })
        .join(", ")
}

fn one_place(value: f64) -> String {
    format!("{value:.1}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_say_by_how_much() {
        assert_eq!(
            targets("yield", 180.0),
            "must 300 met by 40 %, moonshot 150 MISSED by 20 %"
        );
        assert_eq!(targets("oneshot", 180.0), "");
    }

    #[test]
    fn the_committed_file_can_be_read_and_has_every_row() {
        let record = Record::parse(&fs::read_to_string(FILE).unwrap()).unwrap();
        for row in counted() {
            assert!(record.get(row.name, record::HELD).is_some(), "{}", row.name);
        }
    }
}
