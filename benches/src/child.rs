//! Processes of our own: this program started again with a hidden command. They end with it.

use std::io::{BufRead, BufReader, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::process::{Command, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Resource, Rlimit, Signal};
use rustix::thread::CpuSet;

use crate::apart;
use crate::echo::{connect, hold, load};
use crate::instructions;
use crate::peers::{self, PerAsyncPeer};
use crate::rows::{EchoServer, MemoryReport};

/// The first word of a hidden command line.
pub(crate) const COMMAND: &str = "__child";

/// A process that was started; killed when dropped.
pub(crate) struct Child {
    process: std::process::Child,
    output: BufReader<std::process::ChildStdout>,
}

/// Starts this program with a hidden command.
pub(crate) fn start(words: &[&str]) -> Child {
    let program = std::env::current_exe().expect("this program has a path");
    let mut process = Command::new(program)
        .arg(COMMAND)
        .args(words)
        .env(peers::SMOL_ENVIRONMENT.0, peers::SMOL_ENVIRONMENT.1)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("this program can be started again");
    let output = BufReader::new(process.stdout.take().expect("its output is a pipe"));
    Child { process, output }
}

/// Does what a hidden command line asks for.
pub(crate) fn run(words: &[String]) {
    // Also when this process's parent aborts: nothing of a run outlives it.
    rustix::process::set_parent_process_death_signal(Some(Signal::KILL))
        .expect("Linux has this signal");
    raise_descriptor_limit();
    match words.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["echo-server", system, buffer, cpu] => {
            pin(None, cpu);
            serve(system, number(buffer) as usize);
        }
        ["echo-load", port, connections, bytes, millis, cpu] => {
            pin(None, cpu);
            let server = SocketAddr::from((Ipv4Addr::LOCALHOST, number(port) as u16));
            let time = Duration::from_millis(number(millis));
            load::run(
                server,
                number(connections) as usize,
                number(bytes) as usize,
                time,
            )
            .expect("the load runs");
        }
        ["connect-load", port, clients, bytes, millis, cpu] => {
            pin(None, cpu);
            let server = SocketAddr::from((Ipv4Addr::LOCALHOST, number(port) as u16));
            let time = Duration::from_millis(number(millis));
            connect::run(
                server,
                number(clients) as usize,
                number(bytes) as usize,
                time,
            )
            .expect("the load runs");
        }
        ["hold", port] => {
            let server = SocketAddr::from((Ipv4Addr::LOCALHOST, number(port) as u16));
            hold::run(server).expect("connections can be opened");
        }
        [apart::COMMAND, row, system, millis, quick, known] => {
            apart::report([row, system, millis, quick, known]);
        }
        ["memory", system, tasks] => {
            println!("{}", for_system::<MemoryReport>(system)(number(tasks)))
        }
        [instructions::COMMAND, row, system, repetitions] => {
            instructions::repeat(row, system, number(repetitions));
        }
        _ => panic!("not a hidden command: {words:?}"),
    }
}

impl Child {
    /// Its number.
    pub(crate) fn id(&self) -> u32 {
        self.process.id()
    }

    /// The next line it prints.
    ///
    /// # Panics
    /// If it ends instead.
    pub(crate) fn line(&mut self) -> String {
        let mut line = String::new();
        let length = self
            .output
            .read_line(&mut line)
            .expect("its output can be read");
        assert!(length > 0, "the process {} ended early", self.process.id());
        line.trim_end().to_owned()
    }

    /// Sends it a line.
    pub(crate) fn say(&mut self, line: &str) {
        let input = self.process.stdin.as_mut().expect("its input is a pipe");
        writeln!(input, "{line}").expect("it reads its input");
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn serve(system: &str, buffer: usize) {
    // Where only a process's parents may trace it, a tracer of the same user may trace this one too. Where
    // that needs no leave, the kernel knows no such call.
    let _ = rustix::process::set_ptracer(rustix::process::PTracer::Any);
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port is free");
    // std asks for a queue of 128, and who does not fit in it waits a second to try again.
    rustix::net::listen(&listener, 4096).expect("a listener can listen again");
    println!("{}", listener.local_addr().expect("it is bound").port());
    let server = peers::each_echo::<EchoServer>()
        .into_iter()
        .find(|entry| entry.name == system)
        .expect("the parent knows the names");
    (server.item)(listener, buffer).expect("the server runs until it is killed");
}

fn for_system<T: PerAsyncPeer>(name: &str) -> T::Item {
    let mut entries = peers::each_async::<T>().into_iter();
    entries
        .find(|entry| entry.name == name)
        .expect("the parent knows the names")
        .item
}

/// Puts a process, or this one, on one core; `any` leaves it on all, and so does a machine without that
/// core.
pub(crate) fn pin(process: Option<Pid>, cpu: &str) {
    if let Ok(cpu) = cpu.parse() {
        let mut set = CpuSet::new();
        set.set(cpu);
        let _ = rustix::thread::sched_setaffinity(process, &set);
    }
}

fn raise_descriptor_limit() {
    let limit = rustix::process::getrlimit(Resource::Nofile);
    let raised = Rlimit {
        current: limit.maximum,
        maximum: limit.maximum,
    };
    // Up to the hard limit is always allowed; if not, the rows with many connections will say so.
    let _ = rustix::process::setrlimit(Resource::Nofile, raised);
}

fn number(word: &str) -> u64 {
    word.parse().expect("the parent sends numbers")
}
