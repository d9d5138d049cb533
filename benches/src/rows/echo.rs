//! TCP echo: server and load generator are processes of their own, the load generator is the same
//! for all.
//!
//! Each connection has one request on its way at a time. Systems with one worker have the server on
//! the first core and the load on the second; with two, both may use both. Processor time is the
//! server's only, as its kernel accounts for it.
//!
//! From one connection to 2000 the rows give the latency curves: throughput against the tail.

use std::io;
use std::net::TcpListener;
use std::time::Duration;

use super::{Metric, Program, Row, less, timed_row};
use crate::child::{self, Child};
use crate::echo::load::Report;
use crate::harness::Sample;
use crate::peers::{EchoPeer, PerEchoPeer, each_echo};
use crate::usage::cpu_of_process;

/// Bytes that an echo server reads at most at once, on every system.
pub(super) const ECHO_BUFFER: usize = 4096;

/// The same where messages are large: twice a message, so that one read takes a whole one and sees, being
/// short of what it asked for, that nothing is left.
const LARGE_BUFFER: usize = 32 * 1024;

/// The same where memory is measured.
pub(super) const SMALL_BUFFER: usize = 64;

/// One sample with `CONNECTIONS` connections and messages of `BYTES` bytes.
struct EchoSample<const CONNECTIONS: usize, const BYTES: usize>;

/// The part within the server's process: serves for ever, with a buffer of one of the sizes above.
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
    // A few dozen requests of a sample make it: it is there to be seen.
    Metric {
        judged: false,
        ..less("p999", "us")
    },
    less("cpu", "us/req"),
];

pub(super) fn rows() -> Vec<Row> {
    let row = |name, about, programs| Row {
        metrics: ECHO,
        ..timed_row(name, about, programs)
    };
    vec![
        row(
            "echo_1",
            "TCP echo of 64 bytes, 1 connection",
            each_echo::<EchoSample<1, 64>>,
        ),
        row(
            "echo_50",
            "TCP echo of 64 bytes, 50 connections",
            each_echo::<EchoSample<50, 64>>,
        ),
        row(
            "echo_500",
            "TCP echo of 64 bytes, 500 connections",
            each_echo::<EchoSample<500, 64>>,
        ),
        row(
            "echo_2000",
            "TCP echo of 64 bytes, 2000 connections",
            each_echo::<EchoSample<2000, 64>>,
        ),
        row(
            "echo_50_16k",
            "TCP echo of 16 KiB, 50 connections",
            each_echo::<EchoSample<50, 16_384>>,
        ),
    ]
}

/// Where server and load generator run: a core each, or both on any.
pub(super) fn cores(workers: usize) -> [&'static str; 2] {
    if workers == 1 {
        ["0", "1"]
    } else {
        ["any", "any"]
    }
}

/// Starts a server with buffers of one of the sizes above, and gives its port too.
pub(super) fn start_server(system: &str, buffer: usize, cpu: &str) -> (Child, String) {
    let mut server = child::start(&["echo-server", system, &buffer.to_string(), cpu]);
    let port = server.line();
    (server, port)
}

/// Starts the load generator, which will say that it is ready, and begin when told.
pub(super) fn start_load(
    port: &str,
    connections: usize,
    bytes: usize,
    time: Duration,
    cpu: &str,
) -> Child {
    let [connections, bytes, millis] =
        [connections, bytes, time.as_millis() as usize].map(|number| number.to_string());
    child::start(&["echo-load", port, &connections, &bytes, &millis, cpu])
}

impl<const CONNECTIONS: usize, const BYTES: usize> PerEchoPeer for EchoSample<CONNECTIONS, BYTES> {
    type Item = Program;

    fn make<P: EchoPeer>() -> Program {
        |plan, _| {
            let [server_cpu, load_cpu] = cores(P::WORKERS);
            let buffer = if BYTES < ECHO_BUFFER {
                ECHO_BUFFER
            } else {
                LARGE_BUFFER
            };
            let (server, port) = start_server(&P::name(), buffer, server_cpu);
            let time = if plan.quick {
                Duration::from_millis(100)
            } else {
                Duration::from_millis(500)
            };
            let mut load = start_load(&port, CONNECTIONS, BYTES, time, load_cpu);
            sample(&server, &mut load, time)
        }
    }
}

impl PerEchoPeer for EchoServer {
    type Item = fn(TcpListener, usize) -> io::Result<()>;

    fn make<P: EchoPeer>() -> fn(TcpListener, usize) -> io::Result<()> {
        |listener, buffer| {
            let peer = P::start();
            match buffer {
                SMALL_BUFFER => peer.serve::<SMALL_BUFFER>(listener),
                ECHO_BUFFER => peer.serve::<ECHO_BUFFER>(listener),
                LARGE_BUFFER => peer.serve::<LARGE_BUFFER>(listener),
                other => panic!("no server reads {other} bytes at once"),
            }
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
        report.p999.as_secs_f64() * 1e6,
        cpu.as_secs_f64() * 1e6 / report.answered as f64,
    ])
}
