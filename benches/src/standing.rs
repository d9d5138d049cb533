//! How ours stands beside the others in a row: which forms are compared, by what factor, and whether the
//! rounds allow to say so.

use crate::harness::{RowResult, SystemResult};
use crate::statistics::quartiles;

/// With more of the machine than this gone to other programs, a row's figures are theirs too.
pub(crate) const DISTURBED: f64 = 0.05;

/// From here on the ratio is printed as 1.00.
const LEVEL: f64 = 0.995;

/// How ours stands beside the reference with as many workers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Verdict {
    /// Some sample of ours failed: no figure stands for it.
    Failed,
    /// Slower, by more than the rounds of either differ among themselves.
    Behind,
    /// Slower, but the middle halves of both systems' rounds overlap: more rounds may tell.
    Unclear,
    /// At least level.
    NotBehind,
}

/// Ours beside the best of the others, with the same number of workers.
pub(crate) struct Standing<'a> {
    /// Our better form.
    pub(crate) ours: &'a SystemResult,
    /// The best of the systems that the row sets it beside.
    pub(crate) beside: Option<&'a SystemResult>,
    /// How many times as good ours is.
    pub(crate) ratio: Option<f64>,
    /// What follows from it; nothing if no other ran.
    pub(crate) verdict: Option<Verdict>,
}

/// How ours stands in one metric of a row; nothing if ours did not run with so many workers.
pub(crate) fn standing(result: &RowResult, metric: usize, workers: usize) -> Option<Standing<'_>> {
    let of_ours = |system: &&SystemResult| system.name.starts_with("ours");
    let forms = || {
        result
            .systems
            .iter()
            .filter(move |system| system.workers == workers)
    };
    // One that failed is never hidden by another form.
    let failed = forms().filter(of_ours).find(|system| system.failures > 0);
    let ours = failed.or_else(|| best(result, metric, forms().filter(of_ours)))?;
    let beside = best(
        result,
        metric,
        forms().filter(|system| is_beside(result, system)),
    );
    let ratio = beside.and_then(|beside| times(result, metric, ours, beside));
    let verdict = if ours.failures > 0 {
        Some(Verdict::Failed)
    } else {
        beside.zip(ratio).map(|(beside, ratio)| {
            if ratio >= LEVEL {
                Verdict::NotBehind
            } else if overlap(&ours.values(metric), &beside.values(metric)) {
                Verdict::Unclear
            } else {
                Verdict::Behind
            }
        })
    };
    Some(Standing {
        ours,
        beside,
        ratio,
        verdict,
    })
}

/// Of some systems, the one with the best median.
pub(crate) fn best<'a>(
    result: &RowResult,
    metric: usize,
    systems: impl Iterator<Item = &'a SystemResult>,
) -> Option<&'a SystemResult> {
    let measured = systems.filter(|system| !system.samples.is_empty());
    let by_median = |a: &&SystemResult, b: &&SystemResult| {
        let [a, b] = [a, b].map(|system| system.median(metric).unwrap_or(f64::NAN));
        a.total_cmp(&b)
    };
    if result.row.metrics[metric].more_is_better {
        measured.max_by(by_median)
    } else {
        measured.min_by(by_median)
    }
}

/// How many times as good `system` is as `beside`, by their medians.
pub(crate) fn times(
    result: &RowResult,
    metric: usize,
    system: &SystemResult,
    beside: &SystemResult,
) -> Option<f64> {
    let [own, other] = [system.median(metric)?, beside.median(metric)?];
    let ratio = if result.row.metrics[metric].more_is_better {
        own / other
    } else {
        other / own
    };
    // Both nothing, as the processor time of idle systems: level.
    if own == other {
        Some(1.0)
    } else {
        Some(ratio).filter(|ratio| ratio.is_finite())
    }
}

/// Whether the row sets ours beside this system.
pub(crate) fn is_beside(result: &RowResult, system: &SystemResult) -> bool {
    result
        .row
        .beside
        .iter()
        .any(|family| system.name.starts_with(family))
}

/// Whether the middle halves of the two have values in common.
fn overlap(ours: &[f64], beside: &[f64]) -> bool {
    let [ours, beside] = [ours, beside].map(quartiles);
    ours.0 <= beside.1 && beside.0 <= ours.1
}

impl Verdict {
    /// As the tables print it.
    pub(crate) fn text(self) -> &'static str {
        match self {
            Verdict::Failed => "FAILED",
            Verdict::Behind => "BEHIND",
            Verdict::Unclear => "unclear",
            Verdict::NotBehind => "not behind",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::harness::Sample;
    use crate::rows;

    fn system(name: &str, values: &[f64], failures: usize) -> SystemResult {
        SystemResult {
            name: name.to_owned(),
            workers: 2,
            samples: values
                .iter()
                .map(|value| Sample::of(vec![*value]))
                .collect(),
            failures,
        }
    }

    /// A row of one figure, with tokio and ours on two workers.
    fn judged(tokio: &[f64], ours: &[f64], failures: usize) -> Option<Verdict> {
        let result = RowResult {
            row: rows::all().swap_remove(0),
            others: 0.0,
            systems: vec![
                system("tokio-mt2", tokio, 0),
                system("ours-2", ours, failures),
            ],
        };
        standing(&result, 0, 2)?.verdict
    }

    #[test]
    fn behind_is_what_the_rounds_do_not_explain() {
        assert_eq!(
            judged(&[10.0, 11.0, 12.0], &[8.0, 9.0, 11.0], 0),
            Some(Verdict::NotBehind)
        );
        assert_eq!(
            judged(&[10.0, 11.0, 12.0], &[11.0, 11.5, 12.0], 0),
            Some(Verdict::Unclear)
        );
        assert_eq!(judged(&[315.1], &[315.2], 0), Some(Verdict::NotBehind));
        assert_eq!(
            judged(&[10.0, 11.0, 12.0], &[13.0, 14.0, 15.0], 0),
            Some(Verdict::Behind)
        );
    }

    #[test]
    fn a_failed_sample_is_never_hidden_by_the_good_ones() {
        assert_eq!(judged(&[10.0], &[1.0], 1), Some(Verdict::Failed));
        assert_eq!(judged(&[10.0], &[], 1), Some(Verdict::Failed));
    }

    #[test]
    fn the_best_of_the_others_counts() {
        let result = RowResult {
            row: rows::all().swap_remove(0),
            others: 0.0,
            systems: vec![
                system("tokio-mt2", &[30.0], 0),
                system("asx-2", &[20.0], 0),
                system("rayon-2", &[5.0], 0),
                system("ours-2", &[10.0], 0),
            ],
        };
        let standing = standing(&result, 0, 2).unwrap();
        assert_eq!(standing.beside.unwrap().name, "asx-2");
        assert_eq!(standing.ratio, Some(2.0));
    }

    #[test]
    fn the_worse_of_two_verdicts_counts() {
        assert_eq!(
            [Verdict::NotBehind, Verdict::Behind].into_iter().min(),
            Some(Verdict::Behind)
        );
        assert_eq!(
            [Verdict::Behind, Verdict::Failed].into_iter().min(),
            Some(Verdict::Failed)
        );
    }
}
