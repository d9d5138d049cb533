//! `--name value` arguments on the command line.

use std::fmt::Display;
use std::process;
use std::str::FromStr;
use std::{env, thread};

/// The command line of an example: pairs of `--name value` or `--name=value`.
pub struct Arguments {
    usage: &'static str,
    pairs: Vec<(String, String)>,
}

impl Arguments {
    /// Reads the command line. Prints `usage` and ends the process where it is asked to
    /// (`--help`), or where it cannot read what was written; `names` are the known arguments.
    pub fn from_command_line(usage: &'static str, names: &[&str]) -> Self {
        let words: Vec<String> = env::args().skip(1).collect();
        if words.iter().any(|word| word == "--help" || word == "-h") {
            println!("{usage}");
            process::exit(0);
        }
        match pairs(words, names) {
            Ok(pairs) => Arguments { usage, pairs },
            Err(message) => give_up(usage, &message),
        }
    }

    /// The value of `--name`, or `default` where it was not given.
    pub fn get<T>(&self, name: &str, default: T) -> T
    where
        T: FromStr<Err: Display>,
    {
        self.find(name).unwrap_or(default)
    }

    /// The value of `--name`, if it was given.
    pub fn find<T>(&self, name: &str) -> Option<T>
    where
        T: FromStr<Err: Display>,
    {
        let (_, written) = self.pairs.iter().find(|(known, _)| known == name)?;
        match written.parse() {
            Ok(value) => Some(value),
            Err(error) => give_up(
                self.usage,
                &format!("--{name} cannot be `{written}`: {error}"),
            ),
        }
    }

    /// The value of `--workers`; one for each core where it was not given.
    pub fn workers(&self) -> usize {
        self.find("workers")
            .unwrap_or_else(|| thread::available_parallelism().map_or(1, usize::from))
    }
}

fn pairs(words: Vec<String>, names: &[&str]) -> Result<Vec<(String, String)>, String> {
    let mut pairs: Vec<(String, String)> = Vec::new();
    let mut words = words.into_iter();
    while let Some(word) = words.next() {
        let Some(argument) = word.strip_prefix("--") else {
            return Err(format!("`{word}` is not of the form --name"));
        };
        let (name, value) = match argument.split_once('=') {
            Some((name, value)) => (name, Some(value.to_owned())),
            None => (argument, None),
        };
        if !names.contains(&name) {
            return Err(format!("there is no argument --{name}"));
        }
        if pairs.iter().any(|(known, _)| known == name) {
            return Err(format!("--{name} is given twice"));
        }
        let value = value
            .or_else(|| words.next())
            .ok_or_else(|| format!("--{name} needs a value"))?;
        pairs.push((name.to_owned(), value));
    }
    Ok(pairs)
}

fn give_up(usage: &str, message: &str) -> ! {
    eprintln!("{message}\n\n{usage}");
    process::exit(2);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(line: &str) -> Result<Vec<(String, String)>, String> {
        pairs(
            line.split_whitespace().map(str::to_owned).collect(),
            &["addr", "size"],
        )
    }

    #[test]
    fn both_forms_of_a_value_are_read() {
        let pairs = read("--addr 127.0.0.1:0 --size=64").unwrap();
        let arguments = Arguments { usage: "", pairs };
        assert_eq!(arguments.get("addr", String::new()), "127.0.0.1:0");
        assert_eq!(arguments.get("size", 1), 64);
        assert_eq!(arguments.get("seconds", 5), 5);
        assert_eq!(arguments.find::<u32>("seconds"), None);
    }

    #[test]
    fn mistakes_are_named() {
        assert_eq!(
            read("addr").unwrap_err(),
            "`addr` is not of the form --name"
        );
        assert_eq!(read("--port 1").unwrap_err(), "there is no argument --port");
        assert_eq!(read("--size").unwrap_err(), "--size needs a value");
        assert_eq!(
            read("--size 1 --size=2").unwrap_err(),
            "--size is given twice"
        );
    }
}
