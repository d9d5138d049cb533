//! Building: how long a newcomer's first program takes to compile, and of how many crates it is made.
//!
//! Each system's hello world is built by cargo in a folder of its own that is empty before, in the
//! default release profile, with the versions of this workspace's lock file. What is downloaded is downloaded before the clock runs.
//! Nothing is measured about the program but that it says hello.

use std::env;
use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process_group};

use super::{Metric, Program, Row, less, timed_row};
use crate::harness::Sample;
use crate::peers::Entry;

/// Jobs that cargo runs at once, on every machine.
const JOBS: usize = 2;

/// How long one build may take before it is given up.
const LIMIT: Duration = Duration::from_secs(300);

/// The name of the crate that is built.
const NAME: &str = "hello";

const BUILD: &[Metric] = &[less("seconds", "s"), less("crates", "crates")];

const TOKIO_FULL: Hello = Hello {
    dependency: r#"tokio = { version = "1", features = ["full"] }"#,
    source: r#"#[tokio::main] async fn main() { println!("hello"); }"#,
};
const TOKIO_RT: Hello = Hello {
    dependency: r#"tokio = { version = "1", features = ["rt"] }"#,
    source: r#"
        fn main() {
            let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
            runtime.block_on(async { println!("hello"); });
        }"#,
};
const SMOL: Hello = Hello {
    dependency: r#"smol = "2""#,
    source: r#"fn main() { smol::block_on(async { println!("hello"); }); }"#,
};
const OURS: Hello = Hello {
    dependency: concat!(
        "runtime = { path = '",
        env!("CARGO_MANIFEST_DIR"),
        "/../runtime' }"
    ),
    source: r#"#[runtime::main] async fn main() { println!("hello"); }"#,
};

/// A program that says hello from within a future.
struct Hello {
    /// Its one dependency, as its manifest names it.
    dependency: &'static str,
    /// Its whole source.
    source: &'static str,
}

/// A folder for one build; removed when dropped.
struct Folder(PathBuf);

pub(super) fn rows() -> Vec<Row> {
    vec![Row {
        metrics: BUILD,
        // tokio with `rt` alone has neither timers nor sockets: a target, not a like for like.
        beside: &["tokio-full", "smol"],
        max_rounds: 1,
        slow: true,
        ..timed_row(
            "build_hello",
            "hello world, a clean release build by cargo with 2 jobs",
            programs,
        )
    }]
}

fn programs() -> Vec<Entry<Program>> {
    if let Err(error) = cargo().arg("--version").output() {
        eprintln!("build_hello is skipped: cargo cannot be run: {error}");
        return Vec::new();
    }
    let entry = |name: &str, item: Program| Entry {
        name: name.to_owned(),
        workers: JOBS,
        process_wide: false,
        item,
    };
    vec![
        entry("tokio-full", |_, _| TOKIO_FULL.sample()),
        entry("tokio-rt", |_, _| TOKIO_RT.sample()),
        entry("smol", |_, _| SMOL.sample()),
        entry("ours", |_, _| OURS.sample()),
    ]
}

impl Hello {
    /// Builds it once.
    ///
    /// # Panics
    /// If it cannot be built, or does not say hello.
    fn sample(&self) -> Sample {
        let folder = self.write().expect("a temporary folder can be written");
        let fetch = |more: &[&str]| {
            let words = [&["fetch", "--target", env!("BENCHES_TARGET")], more].concat();
            run(cargo().args(words).current_dir(&folder.0))
        };
        // Whatever the lock file names is here already; the network is for what it does not.
        if !fetch(&["--offline"]).status.success() {
            succeeded(&fetch(&[]));
        }
        let start = Instant::now();
        let build = run(cargo()
            .args(["build", "--release", "--offline", "--jobs"])
            .arg(JOBS.to_string())
            .current_dir(&folder.0));
        let seconds = start.elapsed().as_secs_f64();
        succeeded(&build);
        let program = folder.0.join("target/release").join(NAME);
        let hello = run(&mut Command::new(program));
        assert_eq!(hello.stdout, b"hello\n", "the program says hello");
        let crates = compiled(&String::from_utf8_lossy(&build.stderr));
        Sample::of(vec![seconds, crates as f64])
    }

    fn write(&self) -> io::Result<Folder> {
        let name = format!("benches-{NAME}-{}", std::process::id());
        let folder = Folder(env::temp_dir().join(name));
        fs::create_dir_all(folder.0.join("src"))?;
        fs::write(
            folder.0.join("Cargo.toml"),
            format!(
                "[package]\nname = \"{NAME}\"\nversion = \"0.0.0\"\nedition = \"2024\"\n\n\
                 [dependencies]\n{}\n\n[workspace]\n",
                self.dependency
            ),
        )?;
        fs::write(folder.0.join("src/main.rs"), self.source)?;
        let lock = Path::new(env!("CARGO_MANIFEST_DIR")).join("../Cargo.lock");
        fs::copy(lock, folder.0.join("Cargo.lock"))?;
        Ok(folder)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // What is left over in the folder for temporary files harms nobody.
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// cargo as a newcomer has it: without the settings that this program was built or started with.
fn cargo() -> Command {
    let mut cargo = Command::new(env::var_os("CARGO").unwrap_or_else(|| OsString::from("cargo")));
    for (name, _) in env::vars_os() {
        let name = name.to_string_lossy();
        if name.starts_with("CARGO_PROFILE_") || name.starts_with("CARGO_BUILD_") {
            cargo.env_remove(&*name);
        }
    }
    cargo
        .env_remove("RUSTFLAGS")
        .env_remove("CARGO_ENCODED_RUSTFLAGS")
        // A cache of compiled crates is no clean build.
        .env("RUSTC_WRAPPER", "")
        .env("CARGO_TARGET_DIR", "target")
        // The lines that name the crates.
        .env("CARGO_TERM_QUIET", "false")
        .env("CARGO_TERM_COLOR", "never");
    cargo
}

/// Runs a command to its end, in a process group of its own, which is killed after the limit.
fn run(command: &mut Command) -> Output {
    use std::os::unix::process::CommandExt;

    let process = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .process_group(0)
        .spawn()
        .expect("the command can be started");
    let group = Pid::from_child(&process);
    let (sender, receiver) = std::sync::mpsc::channel();
    thread::spawn(move || sender.send(process.wait_with_output()));
    match receiver.recv_timeout(LIMIT) {
        Ok(output) => output.expect("its output can be read"),
        Err(_) => {
            // Ended in this very moment, or ended by this.
            let _ = kill_process_group(group, Signal::KILL);
            panic!("{command:?} took over {LIMIT:?}");
        }
    }
}

fn succeeded(output: &Output) {
    assert!(
        output.status.success(),
        "cargo failed:\n{}",
        String::from_utf8_lossy(&output.stderr)
    );
}

/// How many crates cargo says it compiled, other than the program itself.
fn compiled(messages: &str) -> usize {
    let names = messages
        .lines()
        .filter_map(|line| line.trim_start().strip_prefix("Compiling "));
    names
        .filter(|name| name.split(' ').next() != Some(NAME))
        .count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_program_itself_is_not_counted() {
        let messages = "   Compiling libc v0.2.1\n   Compiling hello v0.0.0 (/tmp/hello)\n    \
                        Finished `release` profile\n   Compiling hello-world v1.0.0\n";
        assert_eq!(compiled(messages), 2);
    }

    #[test]
    fn ours_is_where_the_manifest_says() {
        let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        assert!(workspace.join("runtime/Cargo.toml").exists());
        assert!(workspace.join("Cargo.lock").exists());
    }

    #[test]
    fn folders_do_not_stay() {
        let folder = OURS.write().unwrap();
        let path = folder.0.clone();
        assert!(path.join("src/main.rs").exists());
        drop(folder);
        assert!(!path.exists());
    }
}
