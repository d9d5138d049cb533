//! Starting a runtime and stopping it: what a test, a command-line tool or a library that runs one
//! future pays.

use std::time::Instant;

use super::{Metric, Program, Row, less, timed_row};
use crate::harness::timed;
use crate::peers::{AsyncPeer, PerAsyncPeer, each_async};

/// Starts the system with its threads, and stops it when it has done nothing.
pub(super) struct StartStop;

const TIME: &[Metric] = &[less("", "us")];

pub(super) fn rows() -> Vec<Row> {
    vec![Row {
        metrics: TIME,
        // One of the threads of async-executor is the caller's own: it starts one less.
        beside: &["tokio"],
        ..timed_row(
            "start_stop",
            "start a runtime and stop it",
            each_async::<StartStop>,
        )
    }]
}

impl PerAsyncPeer for StartStop {
    type Item = Program;

    fn make<P: AsyncPeer>() -> Program {
        |plan, repetitions| {
            let mut sample = timed(plan, repetitions, 1, |count| {
                let start = Instant::now();
                for _ in 0..count {
                    drop(P::start());
                }
                start.elapsed()
            });
            sample.values[0] /= 1e3;
            sample
        }
    }
}
