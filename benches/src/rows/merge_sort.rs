//! A parallel merge sort: fork-join with real work, on borrowed data.
//!
//! The two halves of a range are sorted by a join, then merged by one thread; small ranges are sorted by
//! the standard library. The last merges have nothing beside them, so two workers cannot be twice as fast
//! as one.

use std::time::Instant;

use super::{Metric, Program, Row, less, timed_row};
use crate::harness::Sample;
use crate::peers::{JoinPeer, PerJoinPeer, each_join};
use crate::random::Random;

/// Below this length a fork costs more than it gives.
const SMALL: usize = 4096;

/// Sorts 10,000,000 numbers, or 1,000,000 with `--quick`.
pub(super) struct MergeSort;

const TIME: &[Metric] = &[less("", "ms")];

pub(super) fn rows() -> Vec<Row> {
    vec![Row {
        metrics: TIME,
        beside: &["rayon"],
        workers: Some(2),
        ..timed_row(
            "merge_sort",
            "merge sort of 10,000,000 numbers by join",
            each_join::<MergeSort>,
        )
    }]
}

impl PerJoinPeer for MergeSort {
    type Item = Program;

    fn make<P: JoinPeer>() -> Program {
        |plan, _| {
            let length = if plan.quick { 1_000_000 } else { 10_000_000 };
            let peer = P::start();
            sort_random::<P>(&peer, length / 20);
            Sample::of(vec![sort_random::<P>(&peer, length)])
        }
    }
}

/// How many milliseconds it takes to sort so many numbers.
fn sort_random<P: JoinPeer>(peer: &P, length: usize) -> f64 {
    let mut random = Random::new(1);
    let mut numbers: Vec<u32> = (0..length).map(|_| random.next_u32()).collect();
    // Written to, so that the kernel has given the memory before the clock starts.
    let mut spare = vec![1; length];
    peer.install(move || {
        let start = Instant::now();
        sort::<P>(&mut numbers, &mut spare);
        let time = start.elapsed();
        assert!(numbers.is_sorted());
        time.as_secs_f64() * 1e3
    })
}

fn sort<P: JoinPeer>(numbers: &mut [u32], spare: &mut [u32]) {
    if numbers.len() <= SMALL {
        return numbers.sort_unstable();
    }
    let middle = numbers.len() / 2;
    let (left, right) = numbers.split_at_mut(middle);
    let (left_spare, right_spare) = spare.split_at_mut(middle);
    P::join(
        || sort::<P>(left, left_spare),
        || sort::<P>(right, right_spare),
    );
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn merging_keeps_the_order_and_every_number() {
        let mut output = [0; 7];
        merge(&[1, 4, 4, 9], &[0, 4, 10], &mut output);
        assert_eq!(output, [0, 1, 4, 4, 4, 9, 10]);
        merge(&[], &[2, 3], &mut output[..2]);
        assert_eq!(output[..2], [2, 3]);
    }
}
