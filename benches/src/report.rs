//! The tables: each row when it is done, and the verdicts at the end.

use crate::harness::{RowResult, SystemResult};
use crate::rows::Metric;
use crate::statistics::quartiles;

/// With more of the machine than this gone to other programs, a row's figures are theirs too.
const DISTURBED: f64 = 0.05;

/// From here on the ratio is printed as 1.00.
const LEVEL: f64 = 0.995;

/// How ours stands beside the reference with as many workers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Verdict {
    /// Some sample of ours failed: no figure stands for it.
    Failed,
    /// Slower, by more than the rounds of either differ among themselves.
    Behind,
    /// Slower, but the middle halves of both systems' rounds overlap: more rounds may tell.
    Unclear,
    /// At least level.
    NotBehind,
}

/// Prints what one row gave on every system.
pub(crate) fn row(result: &RowResult) {
    let row = &result.row;
    println!("\n{}: {}", row.name, row.about);
    if result.others > DISTURBED {
        println!(
            "  others took {:.0} % of the machine meanwhile: not to be trusted",
            result.others * 100.0
        );
    }
    for (index, metric) in row.metrics.iter().enumerate() {
        let beside = format!("vs {}", row.reference);
        let title = format!("  {} {}", metric.name, metric.unit);
        println!(
            "{title:24}{:>12}{:>12}{:>11}{:>11}{beside:>12}",
            "median", "best", "cpu/op", "ctx/op"
        );
        for system in &result.systems {
            let Some(median) = system.median(index) else {
                println!("    {:20}{:>12}", system.name, "failed");
                continue;
            };
            println!(
                "    {:20}{:>12}{:>12}{:>11}{:>11}{:>12}",
                system.name,
                figure(Some(median)),
                figure(Some(best(metric, &system.values(index)))),
                figure(system.cpu()),
                system
                    .switches()
                    .map_or("-".to_owned(), |switches| format!("{switches:.4}")),
                factor(ratio(result, index, system)),
            );
        }
    }
}

/// Prints ours beside the reference for every row, and the verdict.
pub(crate) fn summary(results: &[RowResult]) {
    println!(
        "\nMedians. The ratio is the reference's median divided by ours (rates: ours divided by the"
    );
    println!(
        "reference's): 1 and more is not behind. Unclear: behind by less than the rounds differ. Where"
    );
    println!(
        "a system has two forms with one worker, with and without a thread of its own, its better one."
    );
    println!(
        "{:24}{:>8} |{:>11}{:>11}{:>8} |{:>11}{:>11}{:>8} | verdict",
        "row", "unit", "2 workers", "ours", "ratio", "1 worker", "ours", "ratio"
    );
    for result in results {
        for (index, metric) in result.row.metrics.iter().enumerate() {
            let mut line = format!("{:24}{:>8}", metric.full_name(result.row.name), metric.unit);
            let mut verdicts = Vec::new();
            for workers in [2, 1] {
                let ours = ours(result, index, workers);
                let beside = reference(result, index, workers);
                verdicts.extend(ours.and_then(|ours| verdict(result, index, ours)));
                let ratio = ours.and_then(|ours| ratio(result, index, ours));
                let [beside, ours] = [beside, ours]
                    .map(|system| figure(system.and_then(|system| system.median(index))));
                line += &format!(" |{beside:>11}{ours:>11}{:>8}", factor(ratio));
            }
            let verdict = match verdicts.into_iter().min() {
                Some(Verdict::Failed) => Verdict::Failed.text(),
                _ if !metric.judged => "not judged",
                verdict => verdict.map_or("-", Verdict::text),
            };
            let mark = if result.others > DISTURBED {
                " (disturbed)"
            } else {
                ""
            };
            println!("{line} | {verdict}{mark}");
        }
    }
}

/// How `ours` stands; nothing if the reference did not run.
fn verdict(result: &RowResult, metric: usize, ours: &SystemResult) -> Option<Verdict> {
    if ours.failures > 0 {
        return Some(Verdict::Failed);
    }
    let ratio = ratio(result, metric, ours)?;
    let beside = reference(result, metric, ours.workers)?;
    Some(if ratio >= LEVEL {
        Verdict::NotBehind
    } else if overlap(&ours.values(metric), &beside.values(metric)) {
        Verdict::Unclear
    } else {
        Verdict::Behind
    })
}

/// Whether the middle halves of the two have values in common.
fn overlap(ours: &[f64], beside: &[f64]) -> bool {
    let [ours, beside] = [ours, beside].map(quartiles);
    ours.0 <= beside.1 && beside.0 <= ours.1
}

/// How far the reference is behind `system`, with as many workers; nothing for the reference itself.
fn ratio(result: &RowResult, metric: usize, system: &SystemResult) -> Option<f64> {
    if system.name.starts_with(result.row.reference) {
        return None;
    }
    let beside = reference(result, metric, system.workers)?.median(metric)?;
    let own = system.median(metric)?;
    let ratio = if result.row.metrics[metric].more_is_better {
        own / beside
    } else {
        beside / own
    };
    ratio.is_finite().then_some(ratio)
}

/// The best form of the row's reference that has so many workers.
fn reference(result: &RowResult, metric: usize, workers: usize) -> Option<&SystemResult> {
    best_form(result, metric, result.row.reference, workers)
}

/// As [`reference()`], of ours; but one that failed is never hidden by another form.
fn ours(result: &RowResult, metric: usize, workers: usize) -> Option<&SystemResult> {
    let failed = result.systems.iter().find(|system| {
        system.name.starts_with("ours") && system.workers == workers && system.failures > 0
    });
    failed.or_else(|| best_form(result, metric, "ours", workers))
}

/// Of a family's forms with so many workers, the one with the best median.
fn best_form<'a>(
    result: &'a RowResult,
    metric: usize,
    family: &str,
    workers: usize,
) -> Option<&'a SystemResult> {
    let forms = result.systems.iter().filter(|system| {
        system.name.starts_with(family) && system.workers == workers && !system.samples.is_empty()
    });
    let by_median = |a: &&SystemResult, b: &&SystemResult| {
        let [a, b] = [a, b].map(|system| system.median(metric).unwrap_or(f64::NAN));
        a.total_cmp(&b)
    };
    if result.row.metrics[metric].more_is_better {
        forms.max_by(by_median)
    } else {
        forms.min_by(by_median)
    }
}

impl Verdict {
    fn text(self) -> &'static str {
        match self {
            Verdict::Failed => "FAILED",
            Verdict::Behind => "BEHIND",
            Verdict::Unclear => "unclear",
            Verdict::NotBehind => "not behind",
        }
    }
}

fn best(metric: &Metric, values: &[f64]) -> f64 {
    let better = if metric.more_is_better {
        f64::max
    } else {
        f64::min
    };
    values.iter().copied().reduce(better).unwrap_or(f64::NAN)
}

/// About four digits.
fn figure(value: Option<f64>) -> String {
    match value {
        None => "-".to_owned(),
        Some(value) if value < 10.0 => format!("{value:.2}"),
        Some(value) if value < 1000.0 => format!("{value:.1}"),
        Some(value) => format!("{value:.0}"),
    }
}

fn factor(ratio: Option<f64>) -> String {
    ratio.map_or("-".to_owned(), |ratio| format!("{ratio:.2}x"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::harness::Sample;
    use crate::rows;

    /// A row of one figure, with tokio and ours on two workers.
    fn result(tokio: &[f64], ours: &[f64], failures: usize) -> RowResult {
        let system = |name: &str, values: &[f64], failures| SystemResult {
            name: name.to_owned(),
            workers: 2,
            samples: values
                .iter()
                .map(|value| Sample::of(vec![*value]))
                .collect(),
            failures,
        };
        let row = rows::all().swap_remove(0);
        RowResult {
            row,
            others: 0.0,
            systems: vec![
                system("tokio-mt2", tokio, 0),
                system("ours-2", ours, failures),
            ],
        }
    }

    fn judged(tokio: &[f64], ours: &[f64], failures: usize) -> Option<Verdict> {
        let result = result(tokio, ours, failures);
        verdict(&result, 0, &result.systems[1])
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

    #[test]
    fn figures_keep_about_four_digits() {
        assert_eq!(figure(Some(7.126)), "7.13");
        assert_eq!(figure(Some(71.26)), "71.3");
        assert_eq!(figure(Some(71_260.4)), "71260");
        assert_eq!(figure(None), "-");
    }
}
