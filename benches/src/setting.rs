//! Where and how a run was made: figures mean nothing without it.

use std::fs;
use std::thread;
use std::time::{SystemTime, UNIX_EPOCH};

use crate::args::Args;
use crate::harness::RowResult;
use crate::standing::DISTURBED;

/// The lock file that this program was built with.
const LOCK: &str = include_str!("../../Cargo.lock");

/// The crates whose versions a reader wants to know.
const PEERS: [&str; 5] = ["tokio", "smol", "async-executor", "rayon", "monoio"];

/// What is told about a run.
pub(crate) struct Setting {
    /// Each with its name, in the order of telling.
    pub(crate) facts: Vec<(&'static str, String)>,
}

impl Setting {
    /// Of the run that has just ended.
    pub(crate) fn of(args: &Args, results: &[RowResult]) -> Setting {
        let facts = vec![
            ("Date", today()),
            ("Processor", processor()),
            ("Cores", cores().to_string()),
            ("Kernel", kernel()),
            (
                "Compiler",
                format!("{}, {}", env!("BENCHES_RUSTC"), env!("BENCHES_TARGET")),
            ),
            ("Peers", peers()),
            ("Rounds", rounds(args, results)),
            ("Disturbed rows", disturbed(results)),
        ];
        Setting { facts }
    }

    /// One line of the most important.
    pub(crate) fn line(&self) -> String {
        let wanted = self
            .facts
            .iter()
            .filter(|(name, _)| ["Date", "Processor"].contains(name));
        let mut words: Vec<String> = wanted.map(|(_, fact)| fact.clone()).collect();
        words.push(match cores() {
            1 => "1 core".to_owned(),
            cores => format!("{cores} cores"),
        });
        words.join(", ")
    }
}

/// The day, in UTC.
fn today() -> String {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    let days = since.map_or(0, |time| time.as_secs() / 86_400);
    let (year, month, day) = civil(days);
    format!("{year}-{month:02}-{day:02}")
}

/// Year, month and day of a number of days since 1970, counted in eras of 400 years that begin in March, so
/// that the leap day comes last.
fn civil(days: u64) -> (u64, u64, u64) {
    let days = days + 719_468;
    let (era, of_era) = (days / 146_097, days % 146_097);
    let year_of_era = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let from_march = (5 * of_year + 2) / 153;
    let day = of_year - (153 * from_march + 2) / 5 + 1;
    let month = if from_march < 10 {
        from_march + 3
    } else {
        from_march - 9
    };
    (era * 400 + year_of_era + u64::from(month <= 2), month, day)
}

fn processor() -> String {
    let text = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = text
        .lines()
        .find_map(|line| line.strip_prefix("model name")?.split_once(':'));
    model.map_or("unknown".to_owned(), |(_, name)| name.trim().to_owned())
}

fn cores() -> usize {
    thread::available_parallelism().map_or(1, usize::from)
}

fn kernel() -> String {
    let release = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    format!("Linux {}", release.trim())
}

fn peers() -> String {
    let versions = PEERS
        .iter()
        .filter_map(|name| Some(format!("{name} {}", version(LOCK, name)?)));
    versions.collect::<Vec<_>>().join(", ")
}

/// The version of a crate in a lock file.
fn version<'a>(lock: &'a str, name: &str) -> Option<&'a str> {
    let mut lines = lock.lines();
    lines.find(|line| {
        line.strip_prefix("name = ")
            .map(|name| name.trim_matches('"'))
            == Some(name)
    })?;
    lines
        .next()?
        .strip_prefix("version = \"")?
        .strip_suffix('"')
}

fn rounds(args: &Args, results: &[RowResult]) -> String {
    let systems = results.iter().flat_map(|result| &result.systems);
    let most = systems
        .map(|system| system.samples.len() + system.failures)
        .max();
    let quick = if args.quick {
        ", short samples (--quick): for a first look only"
    } else {
        ""
    };
    format!("{}{quick}", most.unwrap_or(0))
}

fn disturbed(results: &[RowResult]) -> String {
    let rows = results.iter().filter(|result| result.others > DISTURBED);
    match rows.count() {
        0 => "none".to_owned(),
        count => format!(
            "{count} of {}: other programs took more than {:.0} % of the machine meanwhile",
            results.len(),
            DISTURBED * 100.0
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_become_dates() {
        assert_eq!(civil(0), (1970, 1, 1));
        assert_eq!(civil(59), (1970, 3, 1));
        assert_eq!(civil(11_016), (2000, 2, 29));
        assert_eq!(civil(20_513), (2026, 3, 1));
        assert_eq!(civil(20_453), (2025, 12, 31));
    }

    #[test]
    fn versions_come_from_the_lock_file() {
        let lock = "[[package]]\nname = \"tokio-macros\"\nversion = \"2.6.0\"\n\n\
                    [[package]]\nname = \"tokio\"\nversion = \"1.54.1\"\n";
        assert_eq!(version(lock, "tokio"), Some("1.54.1"));
        assert_eq!(version(lock, "smol"), None);
        assert!(version(LOCK, "tokio").is_some());
    }
}
