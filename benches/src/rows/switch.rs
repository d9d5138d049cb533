//! Switching between tasks: by yielding, and by messages.
//!
//! The channels are those of the `futures` crate on every system, so that only the runtime differs.

use std::time::{Duration, Instant};

use futures::StreamExt;
use futures::channel::{mpsc, oneshot};

use super::{AsyncRow, Row, async_programs, timed_row};
use crate::peers::{AsyncPeer, Spawner, in_task};

const YIELDERS: u64 = 200;
const YIELDS: u64 = 100;
const MESSAGES: u64 = 1000;

/// 200 tasks that do nothing but yield, 100 times each; per yield.
pub(super) struct Yield;

/// A task for each request, which waits for it on one oneshot channel and answers on another.
pub(super) struct Oneshot;

/// Two tasks send each other one message to and fro, over unbounded mpsc channels; per message.
pub(super) struct PingPong;

pub(super) fn rows() -> Vec<Row> {
    vec![
        timed_row(
            "yield",
            "200 tasks that only yield; per yield",
            async_programs::<Yield>,
        ),
        timed_row(
            "oneshot",
            "request and answer by oneshot channels, a task for each",
            async_programs::<Oneshot>,
        ),
        timed_row(
            "pingpong",
            "2 tasks over mpsc channels; per message",
            async_programs::<PingPong>,
        ),
    ]
}

impl AsyncRow for Yield {
    const OPERATIONS: u64 = YIELDERS * YIELDS;

    fn run<P: AsyncPeer>(peer: &P, repetitions: u64) -> Duration {
        let spawner = peer.inside();
        in_task(peer, async move {
            let start = Instant::now();
            let mut tasks = Vec::with_capacity(YIELDERS as usize);
            for _ in 0..YIELDERS {
                tasks.push(spawner.spawn(async move {
                    for _ in 0..repetitions * YIELDS {
                        P::yield_now().await;
                    }
                }));
            }
            for task in tasks {
                task.await;
            }
            start.elapsed()
        })
    }
}

impl AsyncRow for Oneshot {
    const OPERATIONS: u64 = 100;

    fn run<P: AsyncPeer>(peer: &P, repetitions: u64) -> Duration {
        let spawner = peer.inside();
        in_task(peer, async move {
            let start = Instant::now();
            for number in 0..repetitions * Self::OPERATIONS {
                let (ask, asked) = oneshot::channel::<u64>();
                let (answer, answered) = oneshot::channel::<u64>();
                spawner.detach(async move {
                    let question = asked.await.expect("the asker waits");
                    answer.send(question + 1).expect("the asker waits");
                });
                ask.send(number).expect("the task waits");
                assert_eq!(answered.await, Ok(number + 1));
            }
            start.elapsed()
        })
    }
}

impl AsyncRow for PingPong {
    const OPERATIONS: u64 = 2 * MESSAGES;

    fn run<P: AsyncPeer>(peer: &P, repetitions: u64) -> Duration {
        let spawner = peer.inside();
        in_task(peer, async move {
            let (there, mut arriving) = mpsc::unbounded::<u64>();
            let (back, mut returning) = mpsc::unbounded::<u64>();
            let partner = spawner.spawn(async move {
                while let Some(message) = arriving.next().await {
                    back.unbounded_send(message).expect("the first task waits");
                }
            });
            let start = Instant::now();
            for number in 0..repetitions * MESSAGES {
                there.unbounded_send(number).expect("the partner waits");
                assert_eq!(returning.next().await, Some(number));
            }
            let time = start.elapsed();
            drop(there);
            partner.await;
            time
        })
    }
}
