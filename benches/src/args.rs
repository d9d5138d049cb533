//! The command line.

use std::path::PathBuf;

/// What `--help` prints, and what follows a wrong command line.
pub(crate) const USAGE: &str = "\
usage: cargo run --release -p benches -- [ROW...] [OPTIONS]

  ROW            rows to run, by name or by the beginning of it (default: all)
  --rounds N     rounds, in each of which all systems take their turn (default 7; 3 with --quick)
  --peers LIST   systems to run, by name or by the beginning of it, separated by commas
  --quick        short samples: a few minutes for everything, for a first look only
  --list         names the rows and the systems
  --json FILE    also writes all figures to FILE
  --html FILE    also writes a page with everything: one file, no network needed
  --chart FILE   also writes an SVG picture: ours against tokio and async-executor

       cargo run --release -p benches -- instructions [--update]

  counts instructions under valgrind, holds ours against benches/instructions.txt, or rewrites that
";

/// What the command line asks for.
pub(crate) enum Command {
    /// Print the usage.
    Help,
    /// Name rows and peers.
    List,
    /// Run the benches.
    Run(Args),
}

/// Which rows to run, on which systems, and how.
#[derive(Default)]
pub(crate) struct Args {
    /// Beginnings of row names; empty means all.
    pub(crate) rows: Vec<String>,
    /// Beginnings of system names; empty means all.
    pub(crate) peers: Vec<String>,
    /// Number of rounds, if one was asked for.
    pub(crate) rounds: Option<usize>,
    /// Short samples.
    pub(crate) quick: bool,
    /// Where to write the figures.
    pub(crate) json: Option<PathBuf>,
    /// Where to write the page.
    pub(crate) html: Option<PathBuf>,
    /// Where to write the main chart.
    pub(crate) chart: Option<PathBuf>,
}

/// Reads the command line, without the program's own name.
pub(crate) fn parse(mut words: impl Iterator<Item = String>) -> Result<Command, String> {
    let mut args = Args::default();
    while let Some(word) = words.next() {
        let mut value = || words.next().ok_or(format!("{word} needs a value"));
        match word.as_str() {
            "--help" | "-h" => return Ok(Command::Help),
            "--list" => return Ok(Command::List),
            "--quick" => args.quick = true,
            "--json" => args.json = Some(value()?.into()),
            "--html" => args.html = Some(value()?.into()),
            "--chart" => args.chart = Some(value()?.into()),
            "--peers" => args.peers.extend(value()?.split(',').map(str::to_owned)),
            "--rounds" => match value()?.parse() {
                Ok(rounds) if rounds > 0 => args.rounds = Some(rounds),
                _ => return Err("--rounds takes a number of at least 1".to_owned()),
            },
            option if option.starts_with('-') => return Err(format!("unknown option {option}")),
            _ => args.rows.push(word),
        }
    }
    Ok(Command::Run(args))
}

/// Whether `name`, one of `names`, is wanted: a word that is a whole name means that one only, any
/// other word means all names that begin with it, and no words mean everything.
pub(crate) fn selects(wanted: &[String], names: &[String], name: &str) -> bool {
    let means = |word: &String| {
        if names.contains(word) {
            word == name
        } else {
            name.starts_with(word.as_str())
        }
    };
    wanted.is_empty() || wanted.iter().any(means)
}

/// # Errors
/// Names the first word that means none of `names`.
pub(crate) fn check(wanted: &[String], names: &[String]) -> Result<(), String> {
    match wanted
        .iter()
        .find(|word| !names.iter().any(|name| name.starts_with(word.as_str())))
    {
        Some(word) => Err(format!(
            "nothing is called {word}; --list names rows and systems"
        )),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(line: &str) -> Result<Command, String> {
        parse(line.split_whitespace().map(str::to_owned))
    }

    #[test]
    fn options_and_rows_mix_in_any_order() {
        let Ok(Command::Run(args)) = parsed("echo --rounds 9 --peers tokio,ours-2 yield --quick")
        else {
            panic!("a run was asked for");
        };
        assert_eq!(args.rows, ["echo", "yield"]);
        assert_eq!(args.peers, ["tokio", "ours-2"]);
        assert_eq!(args.rounds, Some(9));
        assert!(args.quick);
    }

    #[test]
    fn wrong_lines_are_refused() {
        for line in [
            "--rounds",
            "--rounds 0",
            "--rounds many",
            "--fast",
            "--json",
        ] {
            assert!(parsed(line).is_err(), "{line}");
        }
    }

    #[test]
    fn a_beginning_selects_all_and_a_whole_name_itself_only() {
        let names = ["echo_50", "echo_500", "fib"].map(str::to_owned);
        let chosen = |word: &str| {
            let wanted = [word.to_owned()];
            names
                .iter()
                .filter(|name| selects(&wanted, &names, name))
                .count()
        };
        assert_eq!(
            [
                chosen("echo"),
                chosen("echo_50"),
                chosen("fib"),
                chosen("x")
            ],
            [2, 1, 1, 0]
        );
        assert!(selects(&[], &names, "fib"));
    }

    #[test]
    fn a_word_that_means_nothing_is_an_error() {
        let names = ["fib".to_owned()];
        assert!(check(&["f".to_owned()], &names).is_ok());
        assert!(
            check(&["fib".to_owned(), "yeild".to_owned()], &names)
                .unwrap_err()
                .contains("yeild")
        );
    }
}
