//! Fork-join: the Fibonacci numbers by plain recursion, with a fork at every step.
//!
//! The work of each step is next to nothing, so the run shows what a fork costs.
//!
//! Run it: `cargo run --release --example fib` (`-- --n 35` for another number)

use std::time::Instant;

use examples::arguments::Arguments;

const USAGE: &str = "\
fib [--n 30] [--workers one-for-each-core]

Computes the n-th Fibonacci number with two closures at every step, either of which an idle worker
may take.";

fn main() -> std::io::Result<()> {
    let arguments = Arguments::from_command_line(USAGE, &["n", "workers"]);
    let n = arguments.get("n", 30);
    let workers = arguments.workers();
    let runtime = runtime::Builder::new().worker_threads(workers).build()?;

    let start = Instant::now();
    let expected = plain(n);
    let alone = start.elapsed();
    println!("fib({n}) = {expected}, plain recursion: {alone:.2?}");

    let start = Instant::now();
    let found = runtime.block_on(async { forked(n) });
    let elapsed = start.elapsed();
    assert_eq!(found, expected);
    let forks = forks(n);
    println!(
        "with `runtime::join` on {workers} workers: {elapsed:.2?}, {forks} forks, {:.1} ns each",
        elapsed.as_nanos() as f64 / forks.max(1) as f64
    );
    Ok(())
}

/// Runs the left half here and offers the right one to the other workers meanwhile; whoever comes
/// to it first runs it. Real programs fork down to a size that is worth it: see `merge_sort`.
fn forked(n: u32) -> u64 {
    if n < 2 {
        return u64::from(n);
    }
    let (left, right) = runtime::join(|| forked(n - 1), || forked(n - 2));
    left + right
}

fn plain(n: u32) -> u64 {
    if n < 2 {
        u64::from(n)
    } else {
        plain(n - 1) + plain(n - 2)
    }
}

/// Every call from 2 up forks once: as many as fib(n + 1) - 1.
fn forks(n: u32) -> u64 {
    let (mut this, mut next) = (0, 1);
    for _ in 0..n {
        (this, next) = (next, this + next);
    }
    next - 1
}
