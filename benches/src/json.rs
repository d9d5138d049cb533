//! The figures as JSON: an array with one object for each figure of each system.

use std::fmt::Write;

use crate::harness::RowResult;
use crate::statistics::median;

/// The whole file. Every object has `row`, `unit`, `system`, `workers`, `median`, `min`, `cpu`
/// (nanoseconds per operation), `ctx` (context switches per operation; both null where the row does
/// not measure them), `rounds`, and `others` (the share of the machine that other programs took
/// while the row ran: figures with more than a few hundredths mean little). Rows with several figures are named `row.figure`.
pub(crate) fn text(results: &[RowResult]) -> String {
    let mut objects = Vec::new();
    for result in results {
        for (index, metric) in result.row.metrics.iter().enumerate() {
            for system in result
                .systems
                .iter()
                .filter(|system| !system.samples.is_empty())
            {
                let values = system.values(index);
                let minimum = values.iter().copied().fold(f64::INFINITY, f64::min);
                objects.push(format!(
                    "  {{\"row\": \"{}\", \"unit\": \"{}\", \"system\": \"{}\", \"workers\": {}, \
                     \"median\": {}, \"min\": {}, \"cpu\": {}, \"ctx\": {}, \"rounds\": {}, \"others\": {}}}",
                    metric.full_name(result.row.name),
                    metric.unit,
                    system.name,
                    system.workers,
                    number(Some(median(&values))),
                    number(Some(minimum)),
                    number(system.cpu()),
                    number(system.switches()),
                    values.len(),
                    number(Some(result.others)),
                ));
            }
        }
    }
    let mut text = String::from("[\n");
    let _ = writeln!(text, "{}\n]", objects.join(",\n"));
    text
}

/// Names in this file are all plain ASCII words, so that only numbers need care: JSON has no NaN.
fn number(value: Option<f64>) -> String {
    match value {
        Some(value) if value.is_finite() => format!("{value:.6}"),
        _ => "null".to_owned(),
    }
}
