//! The first program: a runtime, a task, its output.
//!
//! Run it: `cargo run --release --example hello`

use std::time::Duration;

use runtime::time;

/// The attribute starts a runtime and runs this function on it.
#[runtime::main]
async fn main() {
    // A spawned task runs at once, beside this one; awaiting its handle gives its output.
    let greeting = runtime::spawn(async {
        time::sleep(Duration::from_millis(50)).await;
        "hello from a task"
    });
    println!("hello from main");
    println!("{}", greeting.await.expect("the task does not panic"));

    // A panic stays in its task, and comes out of the handle as an error.
    let failing = runtime::spawn(async { panic!("this panic is part of the example") });
    let error: runtime::task::JoinError = failing.await.unwrap_err();
    println!("a task that panicked is an error, not the end: {error}");

    // Code that blocks its thread goes to threads of its own.
    let sum = runtime::spawn_blocking(|| {
        std::thread::sleep(Duration::from_millis(50));
        (1..=100).sum::<u32>()
    });
    println!("the blocking call found {}", sum.await.expect("no panic"));
}
