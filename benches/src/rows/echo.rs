//! TCP echo: server and load generator are processes of their own, the load generator is the same
//! for all.
//!
//! Each connection has one request on its way at a time. Systems with one worker have the server on
//! the first core and the load on the second; with two, both may use both. Processor time is the
//! server's only, as its kernel accounts for it.

use std::io;
use std::net::TcpListener;
use std::time::Duration;

use super::{Metric, Program, Row, less, timed_row};
use crate::child::{self, Child};
use crate::echo::load::Report;
use crate::harness::Sample;
use crate::peers::{AsyncPeer, PerAsyncPeer, each_async, in_task};
use crate::usage::cpu_of_process;

const BYTES: usize = 64;

/// One sample with `CONNECTIONS` connections.
pub(super) struct EchoSample<const CONNECTIONS: usize>;

/// The part within the server's process: serves for ever.
pub(crate) struct EchoServer;

const ECHO: &[Metric] = &[
    Metric {
        more_is_better: true,
        ..less("rate", "req/s")
    },
    Metric {
        judged: false,
        ..less("p50", "us")
    },
    less("p99", "us"),
    less("cpu", "us/req"),
];

pub(super) fn rows() -> Vec<Row> {
    vec![
        Row {
            metrics: ECHO,
            ..timed_row(
                "echo_50",
                "TCP echo of 64 bytes, 50 connections",
                each_async::<EchoSample<50>>,
            )
        },
        Row {
            metrics: ECHO,
            ..timed_row(
                "echo_500",
                "TCP echo of 64 bytes, 500 connections",
                each_async::<EchoSample<500>>,
            )
        },
    ]
}

impl<const CONNECTIONS: usize> PerAsyncPeer for EchoSample<CONNECTIONS> {
    type Item = Program;

    fn make<P: AsyncPeer>() -> Program {
        |plan, _| {
            let [server_cpu, load_cpu] = if P::WORKERS == 1 {
                ["0", "1"]
            } else {
                ["any", "any"]
            };
            let mut server = child::start(&["echo-server", &P::name(), server_cpu]);
            let port = server.line();
            let time = if plan.quick {
                Duration::from_millis(100)
            } else {
                Duration::from_millis(500)
            };
            let [connections, bytes, millis] =
                [CONNECTIONS, BYTES, time.as_millis() as usize].map(|number| number.to_string());
            let mut load =
                child::start(&["echo-load", &port, &connections, &bytes, &millis, load_cpu]);
            sample(&server, &mut load, time)
        }
    }
}

impl PerAsyncPeer for EchoServer {
    type Item = fn(TcpListener) -> io::Result<()>;

    fn make<P: AsyncPeer>() -> fn(TcpListener) -> io::Result<()> {
        |listener| {
            let peer = P::start();
            in_task(&peer, P::echo(peer.inside(), listener))
        }
    }
}

fn sample(server: &Child, load: &mut Child, time: Duration) -> Sample {
    // The load generator has connected and warmed up when it says so, and begins when told.
    assert_eq!(load.line(), "ready");
    let before = cpu_of_process(server.id());
    load.say("go");
    let report = Report::parse(&load.line());
    let cpu = cpu_of_process(server.id()) - before;
    Sample::of(vec![
        report.in_time as f64 / time.as_secs_f64(),
        report.p50.as_secs_f64() * 1e6,
        report.p99.as_secs_f64() * 1e6,
        cpu.as_secs_f64() * 1e6 / report.answered as f64,
    ])
}
