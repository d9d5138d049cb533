//! Side-by-side benches: this runtime beside its peers, in one run.
//!
//! ```text
//! cargo run --release -p benches -- [ROW...] [--rounds N] [--peers LIST] [--quick] [--list] [--json FILE] [--html FILE]
//! ```
//!
//! # How it measures
//! Every row is one program that is generic over the system which runs it, so only the system
//! differs. In each round all systems take their turn (each round begins with another one), each
//! freshly started and warmed up; what counts is the median over the rounds, beside the best round.
//! A timed row is repeated until one sample takes long enough to be read from the clock, and that
//! number is found once per system in the first round. Processor time and context switches are the
//! whole process's, per operation, while the sample ran.
//!
//! The summary sets ours beside the best of the peers with as many workers in the same run (of systems
//! that have two forms with one worker, with a thread of its own and in `block_on` alone, the better one:
//! a process of a single thread pays less for each system call). At least 1 means not behind. Absolute
//! figures belong to the machine, the ratio is what decides. Below 1 the verdict is *behind* only if the
//! middle halves of both systems' rounds lie apart; otherwise it is *unclear*, and more rounds may tell. A
//! sample that panics makes the verdict *failed*, and the exit status not zero. A row is marked
//! *disturbed* when other programs took more than a few per cent of the machine while it ran: on a machine
//! with two cores, one busy neighbour turns every comparison of two workers into one of one. Last come the
//! targets: what we have set out to reach, and by how much it is met or missed.
//!
//! # How it is laid out, in the order of reading
//! - [`peers`]: what a system must offer, and a file for each system;
//! - [`rows`]: what is measured, a file for each family of rows;
//! - [`harness`]: rounds, turns, calibration;
//! - [`standing`] and [`targets`]: how ours stands beside the others, and what was to be reached;
//! - [`report`] and [`json`]: the tables, the file;
//! - [`html`], [`svg`] and [`chart`]: the page, its drawings, and the main chart for README;
//! - [`instructions`]: the instruction gate, a command of its own;
//! - [`apart`]: a process for each sample of a system whose threads would stay (smol);
//! - [`child`]: the processes that some rows start (this program again, with a hidden command).
//!
//! Linux only: it reads `/proc`.

mod apart;
mod args;
mod bell;
mod chart;
mod child;
mod countdown;
mod echo;
mod harness;
mod html;
mod instructions;
mod json;
mod pace;
mod peers;
mod random;
mod report;
mod rows;
mod setting;
mod standing;
mod statistics;
mod svg;
mod targets;
mod usage;
mod watchdog;
mod work;

use std::path::Path;
use std::process::ExitCode;

use args::{Args, Command};
use harness::RowResult;
use setting::Setting;

fn main() -> ExitCode {
    let mut words = std::env::args().skip(1).peekable();
    if words.next_if(|word| word == child::COMMAND).is_some() {
        child::run(&words.collect::<Vec<_>>());
        return ExitCode::SUCCESS;
    }
    if words
        .next_if(|word| word == instructions::COMMAND)
        .is_some()
    {
        return instructions::run(words);
    }
    match args::parse(words) {
        Ok(Command::Help) => print!("{}", args::USAGE),
        Ok(Command::List) => list(),
        Ok(Command::Run(args)) => return run(&args),
        Err(problem) => {
            eprintln!("{problem}\n\n{}", args::USAGE);
            return ExitCode::from(2);
        }
    }
    ExitCode::SUCCESS
}

fn run(args: &Args) -> ExitCode {
    let results = match harness::run(args) {
        Ok(results) => results,
        Err(problem) => {
            eprintln!("{problem}");
            return ExitCode::from(2);
        }
    };
    report::summary(&results);
    if let Some(path) = &args.json
        && let Err(error) = std::fs::write(path, json::text(&results))
    {
        eprintln!("cannot write {}: {error}", path.display());
        return ExitCode::FAILURE;
    }
    if let Err(problem) = pictures(args, &results) {
        eprintln!("{problem}");
        return ExitCode::FAILURE;
    }
    let failed = results
        .iter()
        .any(|result| result.systems.iter().any(|system| system.failures > 0));
    if failed {
        ExitCode::FAILURE
    } else {
        ExitCode::SUCCESS
    }
}

/// Writes the page and the chart, where they are asked for.
fn pictures(args: &Args, results: &[RowResult]) -> Result<(), String> {
    let setting = Setting::of(args, results);
    let write = |path: &Path, text: String| {
        std::fs::write(path, text)
            .map_err(|error| format!("cannot write {}: {error}", path.display()))
    };
    if let Some(path) = &args.html {
        write(path, html::text(results, &setting))?;
    }
    if let Some(path) = &args.chart {
        let chart = chart::text(results, &setting);
        let chart =
            chart.ok_or("no row of the chart was run on ours-2 and a peer with 2 workers")?;
        write(path, chart)?;
    }
    Ok(())
}

fn list() {
    println!("rows:");
    for row in rows::all() {
        println!("  {:18} {}", row.name, row.about);
    }
    println!("peers:");
    for name in peers::names() {
        println!("  {name}");
    }
}
