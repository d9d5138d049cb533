//! Connections on which nothing happens: they should cost memory only, and little of it.
//!
//! The server is a process of its own, seen from outside: what it took of the processor while nobody sent
//! anything, and by how much its resident memory grew.

use std::sync::Once;
use std::thread;
use std::time::Duration;

use rustix::process::Resource;

use super::echo::{self, ECHO_BUFFER, SMALL_BUFFER};
use super::{Metric, Program, Row, less, timed_row};
use crate::child;
use crate::harness::{Plan, Sample};
use crate::peers::{AsyncPeer, PerAsyncPeer, each_async};
use crate::usage::{cpu_of_process, resident_bytes_of};

/// Connections held open.
const CONNECTIONS: usize = 10_000;

/// The same in a quick run.
const QUICK_CONNECTIONS: usize = 2_000;

/// Connections opened before memory is read for the first time: by then all code has run.
const FIRST_CONNECTIONS: usize = 500;

/// Descriptors that a process needs for other things.
const OTHER_DESCRIPTORS: usize = 100;

/// Processor time of a server whose connections are idle.
///
/// Nothing at all is asked for, and the scheduler's own account, in nanoseconds, can tell: a thread that
/// was not woken has not run. The account in steps of 10 ms would have room for a thousand wake-ups.
struct IdleSample;

/// Memory of a server for each idle connection.
struct MemorySample;

const CPU: &[Metric] = &[less("", "ms")];
const BYTES: &[Metric] = &[less("", "bytes")];

pub(super) fn rows() -> Vec<Row> {
    vec![
        Row {
            metrics: CPU,
            max_rounds: 1,
            ..timed_row(
                "idle_connections",
                "CPU of a server in 10 s with 10,000 idle connections",
                each_async::<IdleSample>,
            )
        },
        Row {
            metrics: BYTES,
            max_rounds: 3,
            ..timed_row(
                "memory_connection",
                "resident bytes for each of 10,000 idle connections with 64-byte buffers",
                each_async::<MemorySample>,
            )
        },
    ]
}

impl PerAsyncPeer for IdleSample {
    type Item = Program;

    fn make<P: AsyncPeer>() -> Program {
        |plan, _| {
            let connections = allowed(plan);
            let (server, port) = echo::start_server(&P::name(), ECHO_BUFFER, "any");
            let mut client = child::start(&["hold", &port]);
            client.say(&connections.to_string());
            assert_eq!(client.line(), "open");
            // What the last answers set off is over by then.
            thread::sleep(Duration::from_millis(200));
            let before = cpu_of_process(server.id());
            thread::sleep(Duration::from_secs(if plan.quick { 1 } else { 10 }));
            let cpu = cpu_of_process(server.id()) - before;
            Sample::of(vec![cpu.as_secs_f64() * 1e3])
        }
    }
}

impl PerAsyncPeer for MemorySample {
    type Item = Program;

    fn make<P: AsyncPeer>() -> Program {
        |plan, _| {
            let connections = allowed(plan);
            let (server, port) = echo::start_server(&P::name(), SMALL_BUFFER, "any");
            let mut client = child::start(&["hold", &port]);
            client.say(&FIRST_CONNECTIONS.to_string());
            assert_eq!(client.line(), "open");
            let before = resident_bytes_of(server.id());
            client.say(&connections.to_string());
            assert_eq!(client.line(), "open");
            let grown = resident_bytes_of(server.id()).saturating_sub(before);
            Sample::of(vec![grown as f64 / connections as f64])
        }
    }
}

/// How many connections to hold; says so, once, if a process may not have as many as it takes.
fn allowed(plan: &Plan) -> usize {
    static SAID: Once = Once::new();
    let wanted = match plan.quick {
        true => QUICK_CONNECTIONS,
        false => CONNECTIONS,
    };
    // The children raise their limit to this.
    let most = rustix::process::getrlimit(Resource::Nofile)
        .maximum
        .map_or(usize::MAX, |most| most as usize)
        .saturating_sub(FIRST_CONNECTIONS + OTHER_DESCRIPTORS);
    if most < wanted {
        SAID.call_once(|| {
            eprintln!(
                "idle connections: {most} instead of {wanted}, as the hard limit of descriptors has it"
            );
        });
    }
    wanted.min(most).max(1)
}
