//! The echo server and its load client as a user runs them: two processes.

#![cfg(unix)]

use std::env;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::path::PathBuf;
use std::process::{Child, ChildStdout, Command, Output, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};

const LONG: Duration = Duration::from_secs(120);

/// A running echo server on a port of its own; killed at the end if it still runs.
struct Server {
    process: Child,
    output: BufReader<ChildStdout>,
    address: String,
}

impl Server {
    fn start(workers: &str) -> Self {
        let mut process = Command::new(example("echo_server"))
            .args(["--addr", "127.0.0.1:0", "--workers", workers])
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut output = BufReader::new(process.stdout.take().unwrap());
        let address = loop {
            let mut line = String::new();
            assert_ne!(output.read_line(&mut line).unwrap(), 0, "no address");
            if let Some(rest) = line.strip_prefix("listening on ") {
                break rest.split(',').next().unwrap().to_owned();
            }
        };
        Server {
            process,
            output,
            address,
        }
    }

    /// Ctrl-C, then everything that the server still prints.
    fn stop(mut self) -> String {
        self.signal(Signal::INT);
        let mut rest = String::new();
        self.output.read_to_string(&mut rest).unwrap();
        assert!(self.process.wait().unwrap().success());
        rest
    }

    fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.process), signal).unwrap();
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It has ended already, unless the test failed.
        self.process.kill().ok();
        self.process.wait().ok();
    }
}

fn load(address: &str, arguments: &[&str]) -> Output {
    Command::new(example("echo_load"))
        .args(["--addr", address])
        .args(arguments)
        .output()
        .unwrap()
}

#[track_caller]
fn assert_success(output: &Output) -> String {
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{text}\n{errors}");
    text
}

/// Cargo builds the examples together with this test, into the folder beside the test's own.
fn example(name: &str) -> PathBuf {
    let test = env::current_exe().unwrap();
    let path = test.parent().unwrap().with_file_name("examples").join(name);
    assert!(
        path.exists(),
        "{} is missing: run `cargo test -p examples` or `cargo build --examples`",
        path.display()
    );
    path
}

/// Ends the process with a report if the test does not end.
fn within_limit(test: impl FnOnce()) {
    let (ended, watched) = mpsc::channel::<()>();
    let name = thread::current().name().unwrap_or_default().to_owned();
    thread::spawn(move || {
        if watched.recv_timeout(LONG) == Err(mpsc::RecvTimeoutError::Timeout) {
            eprintln!("{name} did not end within {LONG:?}");
            std::process::abort();
        }
    });
    test();
    drop(ended);
}

#[test]
fn requests_are_answered_and_counted() {
    within_limit(|| {
        let server = Server::start("2");
        let output = load(&server.address, &["--seconds", "1", "--connections", "10"]);
        let text = assert_success(&output);
        assert!(text.contains("all answers equal"), "{text}");
        assert!(text.contains("latency: p50 "), "{text}");

        let report = server.stop();
        assert!(report.contains("ended; in all: 10 connections"), "{report}");
    });
}

#[test]
fn a_long_stream_comes_back_equal() {
    within_limit(|| {
        let server = Server::start("1");
        let output = load(&server.address, &["--bytes", "5000001"]);
        let text = assert_success(&output);
        assert!(text.contains("5000001 bytes came back equal"), "{text}");
        server.stop();
    });
}

#[test]
fn many_quiet_connections_are_held() {
    within_limit(|| {
        let server = Server::start("2");
        let output = load(&server.address, &["--idle", "500", "--seconds", "1"]);
        let text = assert_success(&output);
        assert!(text.contains("all 500 connections still work"), "{text}");
        server.stop();
    });
}

#[test]
fn a_plain_client_gets_its_bytes_back_before_the_end() {
    within_limit(|| {
        let server = Server::start("1");
        let mut client = TcpStream::connect(&server.address).unwrap();
        client.write_all(b"one line\n").unwrap();
        client.shutdown(Shutdown::Write).unwrap();
        let mut answer = String::new();
        client.read_to_string(&mut answer).unwrap();
        assert_eq!(answer, "one line\n");
        server.stop();
    });
}

#[test]
fn the_server_ends_with_open_connections() {
    within_limit(|| {
        let server = Server::start("2");
        let mut client = TcpStream::connect(&server.address).unwrap();
        client.write_all(b"?").unwrap();
        client.read_exact(&mut [0]).unwrap();

        let report = server.stop();
        assert!(report.contains("ended; in all: 1 connections, 1 requests"));
        // Closed, whether by an end or by a reset.
        assert_eq!(client.read(&mut [0]).unwrap_or(0), 0);
    });
}

#[test]
fn a_client_without_a_server_says_what_to_do() {
    within_limit(|| {
        // A port that was just free, and that nobody listens on.
        let address = {
            let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
            listener.local_addr().unwrap().to_string()
        };
        let output = load(&address, &["--seconds", "1"]);
        assert!(!output.status.success());
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(errors.contains(&format!("no server at {address}: start one with")));
    });
}

#[test]
fn a_server_whose_address_is_taken_says_so() {
    within_limit(|| {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let output = Command::new(example("echo_server"))
            .args(["--addr", &address])
            .output()
            .unwrap();
        assert!(!output.status.success());
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(
            errors.contains(&format!("cannot serve on {address}: ")),
            "{errors}"
        );
    });
}
