//! Spawns 10,000 tasks and awaits them all: what a task costs, and how to wait for many.
//!
//! Run it: `cargo run --release --example join_many`

use std::time::Instant;

use runtime::task::JoinHandle;

const TASKS: u64 = 10_000;

#[runtime::main]
async fn main() {
    // The handles in order: the outputs come in order too.
    let start = Instant::now();
    let tasks: Vec<JoinHandle<u64>> = (0..TASKS).map(|n| runtime::spawn(square(n))).collect();
    let mut sum = 0;
    for task in tasks {
        sum += task.await.expect("a square does not panic");
    }
    report("spawned and awaited", start);
    assert_eq!(sum, (0..TASKS).map(|n| n * n).sum());

    // A handle is a future, so whatever joins futures joins tasks.
    let start = Instant::now();
    let tasks = (0..TASKS).map(|n| runtime::spawn(square(n)));
    let squares = futures::future::try_join_all(tasks)
        .await
        .expect("a square does not panic");
    report("the same through `try_join_all`", start);
    assert_eq!(squares.len() as u64, TASKS);
}

async fn square(n: u64) -> u64 {
    runtime::task::yield_now().await;
    n * n
}

fn report(what: &str, start: Instant) {
    let elapsed = start.elapsed();
    let each = elapsed.as_nanos() as u64 / TASKS;
    println!("{TASKS} tasks, {what}: {elapsed:.2?}, {each} ns each");
}
