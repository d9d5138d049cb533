//! The rows whose instructions are counted: a fixed number of repetitions on a system with one worker.

use std::marker::PhantomData;

use super::{AsyncRow, spawn, switch, timers};
use crate::peers::{AsyncPeer, Entry, PerAsyncPeer, each_async};

/// A row that can be run for a fixed number of repetitions.
pub(crate) struct Counted {
    /// The row's name.
    pub(crate) name: &'static str,
    /// Operations in one repetition.
    pub(crate) operations: u64,
    /// Repetitions in the shorter run, about 20,000 operations; the longer run has twice as many.
    pub(crate) repetitions: u64,
    /// Its program for every system.
    pub(crate) programs: fn() -> Vec<Entry<CountedProgram>>,
}

/// Starts a system and runs the row for so many repetitions.
pub(crate) type CountedProgram = fn(u64);

/// Runs a row for a number of repetitions.
struct Repeated<R>(PhantomData<R>);

/// All counted rows, in the order of the table.
pub(crate) fn counted() -> Vec<Counted> {
    vec![
        row::<spawn::AwaitInTask>("spawn_await"),
        row::<spawn::Detached>("spawn_detached"),
        row::<switch::Yield>("yield"),
        row::<switch::Oneshot>("oneshot"),
        row::<switch::PingPong>("pingpong"),
        row::<timers::Create>("timer_create"),
    ]
}

fn row<R: AsyncRow>(name: &'static str) -> Counted {
    Counted {
        name,
        operations: R::OPERATIONS,
        repetitions: (20_000 / R::OPERATIONS).max(1),
        programs: each_async::<Repeated<R>>,
    }
}

impl<R: AsyncRow> PerAsyncPeer for Repeated<R> {
    type Item = CountedProgram;

    fn make<P: AsyncPeer>() -> CountedProgram {
        |repetitions| {
            let peer = P::start();
            R::run(&peer, repetitions);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rows;

    #[test]
    fn counted_rows_are_rows_of_the_table() {
        let rows = rows::all();
        for counted in counted() {
            assert!(
                rows.iter().any(|row| row.name == counted.name),
                "{}",
                counted.name
            );
        }
    }
}
