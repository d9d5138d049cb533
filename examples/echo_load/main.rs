//! A client that puts load on the echo server and checks what comes back.
//!
//! Run the server first: `cargo run --release --example echo_server`
//!
//! Then one of
//! - `cargo run --release --example echo_load`: 50 connections ask and wait, for 5 seconds;
//! - `.. -- --idle 10000`: that many connections are held open at once;
//! - `.. -- --bytes 100000000`: so many bytes there and back over one connection.
//!
//! It shows: many connections made side by side, tasks that report through their handles, a time
//! limit round an operation, a stream split in two.

use std::fmt::Display;
use std::process::ExitCode;
use std::time::Duration;

use examples::arguments::Arguments;
use examples::descriptors;

mod connections;
mod idle;
mod requests;
mod round_trip;

const USAGE: &str = "\
echo_load [--addr 127.0.0.1:7000] [--connections 50] [--size 64] [--seconds 5]
          [--workers one-for-each-core] [--idle N | --bytes N]

Sends requests of --size bytes on --connections connections for --seconds, each after the answer to
the one before, and compares every answer.

--idle N   opens N connections, echoes once on each, holds them for --seconds, echoes once more
--bytes N  sends N bytes over one connection and compares what comes back byte for byte";

const NAMES: [&str; 7] = [
    "addr",
    "connections",
    "size",
    "seconds",
    "workers",
    "idle",
    "bytes",
];

/// Descriptors beside the connections: standard streams, the poller and the like.
const SPARE_DESCRIPTORS: usize = 100;

/// Why a run ended early, in a sentence.
struct Failure(String);

impl Failure {
    fn new(what: impl Display) -> Self {
        Failure(what.to_string())
    }
}

fn main() -> ExitCode {
    let arguments = Arguments::from_command_line(USAGE, &NAMES);
    match run(&arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(Failure(sentence)) => {
            eprintln!("{sentence}");
            ExitCode::FAILURE
        }
    }
}

fn run(arguments: &Arguments) -> Result<(), Failure> {
    let address = arguments.get("addr", "127.0.0.1:7000".to_owned());
    let seconds: u32 = arguments.get("seconds", 5);
    let duration = Duration::from_secs(seconds.into());
    let idle: Option<usize> = arguments.find("idle");
    let bytes: Option<u64> = arguments.find("bytes");
    let connections: usize = arguments.get("connections", 50);
    let size: usize = arguments.get("size", 64);
    if connections == 0 || size == 0 || seconds == 0 || idle == Some(0) || bytes == Some(0) {
        return Err(Failure::new("there is nothing to do for zero of something"));
    }
    if idle.is_some() && bytes.is_some() {
        return Err(Failure::new("--idle and --bytes are two different runs"));
    }

    descriptors::raise_limit((idle.unwrap_or(connections) + SPARE_DESCRIPTORS) as u64);
    let runtime = runtime::Builder::new()
        .worker_threads(arguments.workers())
        .build()
        .map_err(|error| Failure(format!("cannot start the runtime: {error}")))?;
    runtime.block_on(async {
        match (idle, bytes) {
            (Some(count), _) => idle::run(&address, count, duration).await,
            (_, Some(bytes)) => round_trip::run(&address, bytes).await,
            _ => requests::run(&address, connections, size, duration).await,
        }
    })
}
