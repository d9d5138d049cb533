//! What is measured: the rows, and how a generic program becomes one.
//!
//! A row that is a number of operations is an [`AsyncRow`] (and a [`ClosureRow`] or [`JoinRow`] for
//! systems without futures): it says how many operations one repetition has and how long some
//! repetitions took. The other rows make their [`Sample`]s themselves.

mod bulk;
mod churn;
mod connect;
mod counted;
mod echo;
mod fairness;
mod flood;
mod fork;
mod fork_cutoff;
mod hello;
mod idle;
mod live;
mod memory;
mod merge_sort;
mod naps;
mod phases;
mod remote;
mod scale;
mod spawn;
mod stall;
mod start;
mod switch;
mod syscalls;
mod timers;
mod wake;

use std::marker::PhantomData;
use std::time::Duration;

pub(crate) use self::counted::{Counted, counted};
pub(crate) use self::echo::EchoServer;
pub(crate) use self::memory::MemoryReport;
use crate::harness::{Plan, Sample, timed};
use crate::peers::{
    AsyncPeer, ClosurePeer, Entry, JoinPeer, PerAsyncPeer, PerClosurePeer, PerJoinPeer, each_async,
    each_closure, each_join,
};

/// One line, or a few, of the table.
pub(crate) struct Row {
    /// The stable name.
    pub(crate) name: &'static str,
    /// What it measures, in a few words.
    pub(crate) about: &'static str,
    /// The figures of one sample.
    pub(crate) metrics: &'static [Metric],
    /// Whom ours is set beside: the families of systems, as their names begin.
    pub(crate) beside: &'static [&'static str],
    /// If only systems with so many workers take part.
    pub(crate) workers: Option<usize>,
    /// Most rounds it is worth running; the figure of some rows hardly varies.
    pub(crate) max_rounds: usize,
    /// Whether a sample takes many seconds: not part of `--quick` unless it is named, and the row itself
    /// sees to it that it ends.
    pub(crate) slow: bool,
    /// Its program for every system that can run it.
    pub(crate) programs: fn() -> Vec<Entry<Program>>,
}

/// Starts the system, measures once. The second argument is how often a timed row is repeated in
/// one sample: 0 before the first one, which finds it.
pub(crate) type Program = fn(&Plan, &mut u64) -> Sample;

/// A figure of a row.
pub(crate) struct Metric {
    /// Its name within the row; empty if it is the only one.
    pub(crate) name: &'static str,
    /// Its unit.
    pub(crate) unit: &'static str,
    /// Whether more is better.
    pub(crate) more_is_better: bool,
    /// Whether the row's verdict looks at it. Not at the median latency of a load that always waits for
    /// its answers: there the mean is the number of connections divided by the rate, for every
    /// system, and a median below it only says that some connections waited so much longer.
    pub(crate) judged: bool,
}

/// A number of operations on a system that runs futures.
pub(crate) trait AsyncRow {
    /// Operations in one repetition.
    const OPERATIONS: u64;
    /// How long `repetitions` took.
    fn run<P: AsyncPeer>(peer: &P, repetitions: u64) -> Duration;
}

/// A number of operations on a system that runs closures.
pub(crate) trait ClosureRow {
    /// Operations in one repetition.
    const OPERATIONS: u64;
    /// How long `repetitions` took.
    fn run<P: ClosurePeer>(peer: &P, repetitions: u64) -> Duration;
}

/// A number of operations on a system that forks and joins.
pub(crate) trait JoinRow {
    /// Operations in one repetition.
    const OPERATIONS: u64;
    /// How long `repetitions` took.
    fn run<P: JoinPeer>(peer: &P, repetitions: u64) -> Duration;
}

const PER_OPERATION: &[Metric] = &[less("", "ns/op")];

/// The runtimes that ours is an alternative to.
const PEERS: &[&str] = &["tokio", "asx", "smol"];

/// All rows, in the order of running.
pub(crate) fn all() -> Vec<Row> {
    [
        spawn::rows(),
        remote::rows(),
        switch::rows(),
        fork::rows(),
        live::rows(),
        merge_sort::rows(),
        fork_cutoff::rows(),
        bulk::rows(),
        phases::rows(),
        timers::rows(),
        naps::rows(),
        echo::rows(),
        connect::rows(),
        syscalls::rows(),
        idle::rows(),
        memory::rows(),
        fairness::rows(),
        flood::rows(),
        wake::rows(),
        churn::rows(),
        stall::rows(),
        start::rows(),
        scale::rows(),
        hello::rows(),
    ]
    .into_iter()
    .flatten()
    .collect()
}

const fn less(name: &'static str, unit: &'static str) -> Metric {
    Metric {
        name,
        unit,
        more_is_better: false,
        judged: true,
    }
}

const fn timed_row(
    name: &'static str,
    about: &'static str,
    programs: fn() -> Vec<Entry<Program>>,
) -> Row {
    Row {
        name,
        about,
        metrics: PER_OPERATION,
        beside: PEERS,
        workers: None,
        max_rounds: usize::MAX,
        slow: false,
        programs,
    }
}

fn async_programs<R: AsyncRow>() -> Vec<Entry<Program>> {
    each_async::<Timed<R>>()
}

fn mixed_programs<R: AsyncRow + ClosureRow>() -> Vec<Entry<Program>> {
    let mut programs = each_async::<Timed<R>>();
    programs.extend(each_closure::<Timed<R>>());
    programs
}

fn join_programs<R: JoinRow>() -> Vec<Entry<Program>> {
    each_join::<Timed<R>>()
}

/// Makes timed samples of a row.
struct Timed<R>(PhantomData<R>);

impl<R: AsyncRow> PerAsyncPeer for Timed<R> {
    type Item = Program;

    fn make<P: AsyncPeer>() -> Program {
        |plan, repetitions| {
            let peer = P::start();
            timed(plan, repetitions, R::OPERATIONS, |count| {
                R::run(&peer, count)
            })
        }
    }
}

impl<R: ClosureRow> PerClosurePeer for Timed<R> {
    type Item = Program;

    fn make<P: ClosurePeer>() -> Program {
        |plan, repetitions| {
            let peer = P::start();
            timed(plan, repetitions, R::OPERATIONS, |count| {
                R::run(&peer, count)
            })
        }
    }
}

impl<R: JoinRow> PerJoinPeer for Timed<R> {
    type Item = Program;

    fn make<P: JoinPeer>() -> Program {
        |plan, repetitions| {
            let peer = P::start();
            timed(plan, repetitions, R::OPERATIONS, |count| {
                R::run(&peer, count)
            })
        }
    }
}

impl Metric {
    /// `row`, or `row.figure`.
    pub(crate) fn full_name(&self, row: &str) -> String {
        if self.name.is_empty() {
            row.to_owned()
        } else {
            format!("{row}.{}", self.name)
        }
    }
}
