//! Connections that live for one request: accept, make a task, register, answer, tear all of it down.
//!
//! Server and load on a core each, as in the echo rows. Time a sample well below a second: the client's end
//! of each connection keeps a port for a minute, and there are less than 30,000 for one server.

use std::time::Duration;

use super::echo::{self, ECHO_BUFFER};
use super::{Metric, Program, Row, less, timed_row};
use crate::child;
use crate::echo::connect::Report;
use crate::harness::Sample;
use crate::peers::{EchoPeer, PerEchoPeer, each_echo};
use crate::usage::cpu_of_process;

const CLIENTS: usize = 16;
const BYTES: usize = 64;

/// One sample.
struct ConnectSample;

const CONNECT: &[Metric] = &[
    Metric {
        more_is_better: true,
        ..less("rate", "conn/s")
    },
    less("cpu", "us/conn"),
];

pub(super) fn rows() -> Vec<Row> {
    vec![Row {
        metrics: CONNECT,
        ..timed_row(
            "connect",
            "16 clients connect, send 64 bytes, receive, close",
            each_echo::<ConnectSample>,
        )
    }]
}

impl PerEchoPeer for ConnectSample {
    type Item = Program;

    fn make<P: EchoPeer>() -> Program {
        |plan, _| {
            let [server_cpu, load_cpu] = echo::cores(P::WORKERS);
            let (server, port) = echo::start_server(&P::name(), ECHO_BUFFER, server_cpu);
            let time = Duration::from_millis(if plan.quick { 100 } else { 300 });
            let [clients, bytes, millis] =
                [CLIENTS, BYTES, time.as_millis() as usize].map(|number| number.to_string());
            let mut load =
                child::start(&["connect-load", &port, &clients, &bytes, &millis, load_cpu]);
            assert_eq!(load.line(), "ready");
            let before = cpu_of_process(server.id());
            load.say("go");
            let report = Report::parse(&load.line());
            let cpu = cpu_of_process(server.id()) - before;
            Sample::of(vec![
                report.in_time as f64 / time.as_secs_f64(),
                cpu.as_secs_f64() * 1e6 / report.closed as f64,
            ])
        }
    }
}
