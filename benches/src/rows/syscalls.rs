//! System calls for each request: what is left once the kernel's share of a request is what it is.
//!
//! Counted by `strace`, attached to the running server once it is warm. A traced server is many times
//! slower. With one worker `strace` shares its core, not that of the load, which therefore keeps up: nearly
//! all 50 connections have something for the server whenever it asks, and what is counted is the calls of a
//! server under full load. Where `strace` is absent or must not trace, there is no such row.

use std::io::{BufRead, BufReader, Read};
use std::process::{ChildStderr, Command, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal};

use super::echo::{self, ECHO_BUFFER};
use super::{Metric, Program, Row, less, timed_row};
use crate::child;
use crate::echo::load::Report;
use crate::harness::Sample;
use crate::peers::{EchoPeer, Entry, PerEchoPeer, each_echo};

const CONNECTIONS: usize = 50;
const BYTES: usize = 64;

/// One sample.
struct SyscallsSample;

/// `strace`, attached to a process; killed when dropped, which sets that process free.
struct Trace {
    strace: std::process::Child,
    /// What it says, and in the end its table.
    output: BufReader<ChildStderr>,
}

const CALLS: &[Metric] = &[less("", "calls/req")];

pub(super) fn rows() -> Vec<Row> {
    vec![Row {
        metrics: CALLS,
        max_rounds: 3,
        ..timed_row(
            "echo_syscalls",
            "system calls for each echo of 64 bytes, 50 connections",
            programs,
        )
    }]
}

/// None if nothing can be counted here.
fn programs() -> Vec<Entry<Program>> {
    let (server, _) = echo::start_server("epoll-1", ECHO_BUFFER, "any");
    match Trace::attach(server.id(), "any") {
        Ok(_) => each_echo::<SyscallsSample>(),
        Err(problem) => {
            eprintln!("row echo_syscalls is left out: {problem}");
            Vec::new()
        }
    }
}

impl PerEchoPeer for SyscallsSample {
    type Item = Program;

    fn make<P: EchoPeer>() -> Program {
        |plan, _| {
            let [server_cpu, load_cpu] = echo::cores(P::WORKERS);
            let (server, port) = echo::start_server(&P::name(), ECHO_BUFFER, server_cpu);
            let time = Duration::from_millis(if plan.quick { 200 } else { 500 });
            let mut load = echo::start_load(&port, CONNECTIONS, BYTES, time, load_cpu);
            assert_eq!(load.line(), "ready");
            let trace = Trace::attach(server.id(), server_cpu).expect("strace attached before");
            load.say("go");
            let report = Report::parse(&load.line());
            let calls = trace.calls();
            Sample::of(vec![calls as f64 / report.answered as f64])
        }
    }
}

impl Trace {
    /// Begins to count the calls of all threads of a process, from a core or `any`.
    ///
    /// # Errors
    /// If there is no `strace`, or what it says if it does not attach.
    fn attach(pid: u32, cpu: &str) -> Result<Trace, String> {
        let mut strace = Command::new("strace")
            .args(["-c", "-f", "-p", &pid.to_string()])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(|error| format!("strace cannot be started: {error}"))?;
        child::pin(Some(Pid::from_child(&strace)), cpu);
        let output = BufReader::new(strace.stderr.take().expect("its errors are a pipe"));
        let mut trace = Trace { strace, output };
        let mut said = String::new();
        while trace.output.read_line(&mut said).unwrap_or(0) > 0 {
            if said.trim_end().lines().any(tells_of_attaching) {
                return Ok(trace);
            }
        }
        Err(said.trim_end().replace('\n', "; "))
    }

    /// Ends the counting, and says how many calls there were.
    fn calls(mut self) -> u64 {
        // An interrupted strace lets the process go and prints its table.
        rustix::process::kill_process(Pid::from_child(&self.strace), Signal::INT)
            .expect("strace still runs");
        let mut said = String::new();
        self.output
            .read_to_string(&mut said)
            .expect("strace prints text");
        total(&said).unwrap_or_else(|| panic!("no table of calls: {said}"))
    }
}

impl Drop for Trace {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.strace.kill();
        let _ = self.strace.wait();
    }
}

/// `strace: Process 12 attached`, or `... attached with 3 threads`.
fn tells_of_attaching(line: &str) -> bool {
    line.contains(" Process ") && line.contains(" attached")
}

/// Sums up a table of `strace -c`: share, seconds, microseconds a call, calls, errors if any, name.
fn total(table: &str) -> Option<u64> {
    let calls: Vec<u64> = table
        .lines()
        .filter_map(|line| {
            let fields: Vec<&str> = line.split_whitespace().collect();
            let [share, _, _, calls, .., name] = fields[..] else {
                return None;
            };
            // The line of totals lacks a column in some versions.
            let counts = share.parse::<f64>().is_ok() && name != "total";
            counts.then(|| calls.parse().ok())?
        })
        .collect();
    (!calls.is_empty()).then(|| calls.iter().sum())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_is_summed_up() {
        let table = "\
strace: Process 4242 detached
% time     seconds  usecs/call     calls    errors syscall
------ ----------- ----------- --------- --------- ----------------
 52.12    0.104240          20      5000        12 recvfrom
 47.38    0.094760          18      5000           sendto
  0.50    0.001000          10       100           epoll_wait
------ ----------- ----------- --------- --------- ----------------
100.00    0.200000          19     10100        12 total
";
        assert_eq!(total(table), Some(10_100));
        let older = table.replace(
            "          19     10100        12 total",
            "     10100   12 total",
        );
        assert_eq!(total(&older), Some(10_100));
        assert_eq!(total("strace: Process 4242 detached\n"), None);
    }

    #[test]
    fn attaching_is_told_from_failing() {
        assert!(tells_of_attaching("strace: Process 12 attached"));
        assert!(tells_of_attaching(
            "strace: Process 12 attached with 3 threads"
        ));
        assert!(!tells_of_attaching(
            "strace: attach: ptrace(PTRACE_SEIZE, 12): Operation not permitted"
        ));
    }
}
