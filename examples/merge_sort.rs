//! Fork-join on borrowed data: a merge sort whose halves are sorted by different workers.
//!
//! Run it: `cargo run --release --example merge_sort` (`-- --length 10000000` for more)

use std::time::Instant;

use examples::arguments::Arguments;

const USAGE: &str = "\
merge_sort [--length 2000000] [--workers one-for-each-core]

Sorts random numbers in parallel and compares the outcome with the standard library's sort.";

/// Below this length a fork costs more than it gives.
const SMALL: usize = 4096;

fn main() -> std::io::Result<()> {
    let arguments = Arguments::from_command_line(USAGE, &["length", "workers"]);
    let length = arguments.get("length", 2_000_000);
    let workers = arguments.workers();
    let runtime = runtime::Builder::new().worker_threads(workers).build()?;
    let mut numbers = random_numbers(length);
    let mut expected = numbers.clone();

    let start = Instant::now();
    expected.sort_unstable();
    println!("{length} numbers, `sort_unstable`: {:.2?}", start.elapsed());

    let start = Instant::now();
    let mut spare = vec![0; length];
    runtime.block_on(async { sort(&mut numbers, &mut spare) });
    println!(
        "merge sort with `runtime::join` on {workers} workers: {:.2?}",
        start.elapsed()
    );
    assert!(numbers == expected, "the outcome is not sorted");
    Ok(())
}

/// Sorts `numbers`. Both closures borrow from this stack frame; `join` returns when both are done.
fn sort(numbers: &mut [u32], spare: &mut [u32]) {
    if numbers.len() <= SMALL {
        numbers.sort_unstable();
        return;
    }
    let middle = numbers.len() / 2;
    let (left, right) = numbers.split_at_mut(middle);
    let (left_spare, right_spare) = spare.split_at_mut(middle);
    runtime::join(|| sort(left, left_spare), || sort(right, right_spare));
    merge(left, right, spare);
    numbers.copy_from_slice(spare);
}

fn merge(left: &[u32], right: &[u32], output: &mut [u32]) {
    let (mut l, mut r) = (0, 0);
    for place in output {
        let from_right = l == left.len() || (r < right.len() && right[r] < left[l]);
        if from_right {
            *place = right[r];
            r += 1;
        } else {
            *place = left[l];
            l += 1;
        }
    }
}

/// The same numbers in every run (Marsaglia's xorshift).
fn random_numbers(length: usize) -> Vec<u32> {
    let mut state = 0x9e37_79b9_u32;
    std::iter::repeat_with(|| {
        state ^= state << 13;
        state ^= state >> 17;
        state ^= state << 5;
        state
    })
    .take(length)
    .collect()
}
