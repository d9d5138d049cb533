//! The tables: each row when it is done, and the verdicts at the end.

use crate::harness::{RowResult, SystemResult};
use crate::rows::Metric;
use crate::standing::{self, DISTURBED, Standing, standing};
use crate::targets::{Level, outcomes};

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
        let title = format!("  {} {}", metric.name, metric.unit);
        println!(
            "{title:24}{:>12}{:>12}{:>11}{:>11}{:>12}",
            "median", "best", "cpu/op", "ctx/op", "ours is"
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
                factor(ours_beside(result, index, system)),
            );
        }
    }
}

/// Prints ours beside the best of the others for every row, and then the targets.
pub(crate) fn summary(results: &[RowResult]) {
    println!(
        "\nMedians. The ratio is the best peer's median divided by ours (rates: ours divided by the"
    );
    println!(
        "peer's): 1 and more is not behind. Unclear: behind by less than the rounds differ. Where a"
    );
    println!(
        "system has two forms with one worker, with and without a thread of its own, its better one."
    );
    println!(
        "{:24}{:>8} |{:>11}{:>11}{:>11}{:>8} |{:>11}{:>11}{:>11}{:>8} | verdict",
        "row", "unit", "2 workers", "", "ours", "ratio", "1 worker", "", "ours", "ratio"
    );
    for result in results {
        for (index, metric) in result.row.metrics.iter().enumerate() {
            let standings = [2, 1].map(|workers| standing(result, index, workers));
            if standings.iter().all(Option::is_none) {
                continue;
            }
            let mut line = format!("{:24}{:>8}", metric.full_name(result.row.name), metric.unit);
            for standing in &standings {
                line += &columns(standing.as_ref(), index);
            }
            let verdicts = standings
                .iter()
                .flatten()
                .filter_map(|standing| standing.verdict);
            let verdict = match verdicts.min() {
                Some(standing::Verdict::Failed) => standing::Verdict::Failed.text(),
                _ if !metric.judged => "not judged",
                verdict => verdict.map_or("-", standing::Verdict::text),
            };
            let mark = if result.others > DISTURBED {
                " (disturbed)"
            } else {
                ""
            };
            println!("{line} | {verdict}{mark}");
        }
    }
    targets(results);
}

/// Prints each target with what came of it.
fn targets(results: &[RowResult]) {
    let outcomes = outcomes(results);
    println!(
        "\n{:24}{:10}{:10}{:>34}{:>10}  verdict",
        "target", "form", "level", "asked", "reached"
    );
    for outcome in &outcomes {
        println!(
            "{:24}{:10}{:10}{:>34}{:>10}  {}",
            outcome.target.figure,
            outcome.form,
            outcome.target.level.text(),
            outcome.asked,
            outcome.reached,
            outcome.verdict(),
        );
    }
    for level in [Level::Must, Level::Moonshot] {
        let of_level = || {
            outcomes
                .iter()
                .filter(|outcome| outcome.target.level == level)
        };
        let met = of_level().filter(|outcome| outcome.met()).count();
        println!("{}: {met} of {} met", level.text(), of_level().count());
    }
}

/// The columns of one number of workers: the best peer, its figure, ours, the ratio.
fn columns(standing: Option<&Standing>, metric: usize) -> String {
    let beside = standing.and_then(|standing| standing.beside);
    let ours = standing.map(|standing| standing.ours);
    let [beside_figure, own_figure] =
        [beside, ours].map(|system| figure(system.and_then(|system| system.median(metric))));
    format!(
        " |{:>11}{beside_figure:>11}{own_figure:>11}{:>8}",
        beside.map_or("-", |system| system.name.as_str()),
        factor(standing.and_then(|standing| standing.ratio)),
    )
}

/// How many times as good ours is as `system`, with as many workers.
fn ours_beside(result: &RowResult, metric: usize, system: &SystemResult) -> Option<f64> {
    if system.name.starts_with("ours") {
        return None;
    }
    let standing = standing(result, metric, system.workers)?;
    standing::times(result, metric, standing.ours, system)
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
pub(crate) fn figure(value: Option<f64>) -> String {
    match value {
        None => "-".to_owned(),
        Some(value) if value < 10.0 => format!("{value:.2}"),
        Some(value) if value < 1000.0 => format!("{value:.1}"),
        Some(value) => format!("{value:.0}"),
    }
}

/// `1.25x`.
pub(crate) fn factor(ratio: Option<f64>) -> String {
    ratio.map_or("-".to_owned(), |ratio| format!("{ratio:.2}x"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_keep_about_four_digits() {
        assert_eq!(figure(Some(7.126)), "7.13");
        assert_eq!(figure(Some(71.26)), "71.3");
        assert_eq!(figure(Some(71_260.4)), "71260");
        assert_eq!(figure(None), "-");
    }
}
