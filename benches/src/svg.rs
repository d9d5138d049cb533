//! The drawings of the page: bars for each figure of a row, and curves of latency over throughput.
//!
//! They are SVG elements to stand within the page, whose style sheet has their colours, so that they follow
//! its light or dark scheme. Each has its whole content in words as its label.

use std::fmt::Write;

use crate::harness::{RowResult, SystemResult};
use crate::report::figure;
use crate::rows::Metric;
use crate::statistics::{median, quartiles};

/// Where the bars of a chart begin and end; the names are left of them, the figures right.
const BARS: (f64, f64) = (112.0, 440.0);
const BARS_WIDTH: f64 = 520.0;
const LINE: f64 = 20.0;

/// Bars that are so many times as long as the middle one are cut, or the others could not be told apart.
const CUT: f64 = 6.0;

/// The plot of a curve chart: left, top, right, bottom.
const PLOT: [f64; 4] = [64.0, 12.0, 500.0, 270.0];
const PLOT_WIDTH: f64 = 520.0;

/// How many styles of lines the style sheet has.
const STYLES: usize = 8;

/// A system's way through a curve chart.
struct Curve<'a> {
    system: &'a str,
    /// Connections, throughput, latency.
    points: Vec<(u32, f64, f64)>,
}

/// `text` with nothing in it that HTML would take for its own.
pub(crate) fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            other => escaped.push(other),
        }
    }
    escaped
}

/// `less is better`, or the other way.
pub(crate) fn direction(metric: &Metric) -> &'static str {
    if metric.more_is_better {
        "more is better"
    } else {
        "less is better"
    }
}

/// The bars of one figure of a row: a bar for each system, those with as many workers together, the best
/// of them first.
pub(crate) fn bars(result: &RowResult, index: usize) -> String {
    let metric = &result.row.metrics[index];
    let systems = result.systems.iter();
    let reaches: Vec<f64> = systems.map(|system| reach(system, metric, index)).collect();
    let end = scale_end(&medians(result, index), &reaches);
    let mut body = String::new();
    let mut spoken = Vec::new();
    let mut y = 0.0;
    for group in groups(result, index) {
        let workers = match group[0].workers {
            1 => "1 worker".to_owned(),
            workers => format!("{workers} workers"),
        };
        let _ = write!(
            body,
            "<text class=\"group\" x=\"0\" y=\"{:.1}\">{workers}</text>",
            y + 14.0
        );
        y += LINE;
        for system in group {
            bar(&mut body, system, metric, index, y, end);
            spoken.push(format!("{} {}", system.name, figure(system.median(index))));
            y += LINE;
        }
        y += 6.0;
    }
    let label = format!(
        "{}, {}, {}: {}",
        metric.full_name(result.row.name),
        metric.unit,
        direction(metric),
        spoken.join(", ")
    );
    svg(BARS_WIDTH, y, &label, &body)
}

/// Latency over throughput for the rows `echo_1`, `echo_50` and so on: a curve for each system with so
/// many workers, a point for each number of connections. Nothing if there are no two such rows.
pub(crate) fn curves(results: &[RowResult], workers: usize, latency: &str) -> Option<String> {
    let curves = echo_curves(results, workers, latency);
    let points = || curves.iter().flat_map(|curve| &curve.points);
    let fastest = points().map(|point| point.1).fold(0.0, f64::max);
    let slowest = points().map(|point| point.2).fold(0.0, f64::max);
    let quickest = points().map(|point| point.2).fold(f64::INFINITY, f64::min);
    if curves.is_empty() {
        return None;
    }
    let step = nice_step(fastest / 5.0);
    let right = (fastest / step).ceil() * step;
    let (low, high) = (quickest.log10() - 0.08, slowest.log10() + 0.08);
    let x = |rate: f64| PLOT[0] + (PLOT[2] - PLOT[0]) * rate / right;
    let y = |time: f64| PLOT[3] - (PLOT[3] - PLOT[1]) * (time.log10() - low) / (high - low);
    let mut body = String::new();
    for tick in log_ticks(low, high) {
        let y = y(tick);
        let _ = write!(
            body,
            "<path class=\"grid\" d=\"M{:.1} {y:.1}H{:.1}\"/><text class=\"tick\" x=\"{:.1}\" y=\"{:.1}\" \
             text-anchor=\"end\">{}</text>",
            PLOT[0],
            PLOT[2],
            PLOT[0] - 6.0,
            y + 4.0,
            time(tick)
        );
    }
    let mut tick = 0.0;
    while tick <= right * 1.001 {
        let _ = write!(
            body,
            "<path class=\"grid\" d=\"M{0:.1} {1:.1}V{2:.1}\"/><text class=\"tick\" x=\"{0:.1}\" y=\"{3:.1}\" \
             text-anchor=\"middle\">{4}</text>",
            x(tick),
            PLOT[1],
            PLOT[3],
            PLOT[3] + 16.0,
            thousands(tick)
        );
        tick += step;
    }
    let _ = write!(
        body,
        "<text class=\"tick\" x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">requests per second</text>",
        PLOT[2],
        PLOT[3] + 32.0
    );
    let mut spoken = Vec::new();
    // Ours last, above the others.
    let ours = |curve: &&Curve| curve.system.starts_with("ours");
    let (own, others): (Vec<&Curve>, Vec<&Curve>) = curves.iter().partition(ours);
    for (style, curve) in others.iter().chain(&own).enumerate() {
        let class = style_class(curve, style);
        let at: Vec<(f64, f64)> = curve
            .points
            .iter()
            .map(|point| (x(point.1), y(point.2)))
            .collect();
        let path: Vec<String> = at.iter().map(|(x, y)| format!("{x:.1} {y:.1}")).collect();
        let _ = write!(body, "<path class=\"{class}\" d=\"M{}\"/>", path.join("L"));
        for (point, (x, y)) in curve.points.iter().zip(&at) {
            let words = format!(
                "{}, {} connections: {} requests per second, {latency} {}",
                curve.system,
                point.0,
                figure(Some(point.1)),
                time(point.2)
            );
            let _ = write!(
                body,
                "<circle class=\"{class}\" cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"3.5\"><title>{}</title></circle>",
                escape(&words)
            );
            if curve.system.starts_with("ours") && curve.system == own[0].system {
                let _ = write!(
                    body,
                    "<text class=\"point\" x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{}</text>",
                    x - 6.0,
                    y - 6.0,
                    point.0
                );
            }
            spoken.push(words);
        }
        legend(&mut body, curve, &class, style);
    }
    let lines = curves.len().div_ceil(4) as f64;
    let label = format!("{latency} latency over throughput. {}", spoken.join("; "));
    Some(svg(
        PLOT_WIDTH,
        PLOT[3] + 44.0 + lines * 20.0,
        &label,
        &body,
    ))
}

/// How many numbers of connections were measured.
pub(crate) fn echo_rows(results: &[RowResult]) -> usize {
    results
        .iter()
        .filter(|result| connections(result.row.name).is_some())
        .count()
}

/// An SVG element of its own size at most, which narrow pages shrink.
fn svg(width: f64, height: f64, label: &str, body: &str) -> String {
    format!(
        "<svg role=\"img\" viewBox=\"0 0 {width:.0} {height:.0}\" aria-label=\"{}\">{body}</svg>",
        escape(label)
    )
}

fn bar(body: &mut String, system: &SystemResult, metric: &Metric, index: usize, y: f64, end: f64) {
    let name = escape(&system.name);
    let middle = y + LINE / 2.0;
    let ours = if system.name.starts_with("ours") {
        " ours"
    } else {
        ""
    };
    let values = system.values(index);
    if values.is_empty() {
        let _ = write!(
            body,
            "<text class=\"name{ours}\" x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{name}</text>\
             <text class=\"bad\" x=\"{:.1}\" y=\"{:.1}\">failed</text>",
            BARS.0 - 8.0,
            middle + 4.0,
            BARS.0,
            middle + 4.0
        );
        return;
    }
    let at = |value: f64| BARS.0 + (BARS.1 - BARS.0) * (value / end).clamp(0.0, 1.0);
    let value = median(&values);
    let (low, high) = quartiles(&values);
    let better = if metric.more_is_better {
        f64::max
    } else {
        f64::min
    };
    let best = values.iter().copied().reduce(better).unwrap_or(value);
    let _ = write!(
        body,
        "<g><title>{}</title><text class=\"name{ours}\" x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{name}</text>\
         <rect class=\"bar{ours}\" x=\"{:.1}\" y=\"{:.1}\" width=\"{:.1}\" height=\"14\" rx=\"2\"/>",
        escape(&details(system, metric, value, (low, high), best)),
        BARS.0 - 8.0,
        middle + 4.0,
        BARS.0,
        y + 3.0,
        (at(value) - BARS.0).max(1.0),
    );
    if value > end {
        // A gap across the bar, slanted.
        let _ = write!(
            body,
            "<path class=\"cut\" d=\"M{:.1} {:.1}l6 -18m5 0l-6 18\"/>",
            BARS.1 - 30.0,
            y + 19.0
        );
    } else if values.len() > 1 {
        let _ = write!(
            body,
            "<path class=\"range\" d=\"M{:.1} {middle:.1}H{:.1}M{:.1} {:.1}v6\"/>\
             <circle class=\"best\" cx=\"{:.1}\" cy=\"{middle:.1}\" r=\"2.5\"/>",
            at(low),
            at(high),
            at(high),
            middle - 3.0,
            at(best),
        );
    }
    let _ = write!(
        body,
        "<text class=\"figure{ours}\" x=\"{:.1}\" y=\"{:.1}\">{}</text></g>",
        at(reach(system, metric, index)) + 8.0,
        middle + 4.0,
        figure(Some(value))
    );
}

/// What the pointer is told about a bar.
fn details(
    system: &SystemResult,
    metric: &Metric,
    value: f64,
    (low, high): (f64, f64),
    best: f64,
) -> String {
    let mut text = format!(
        "{}: median {} {}, middle half {} to {}, best {}",
        system.name,
        figure(Some(value)),
        metric.unit,
        figure(Some(low)),
        figure(Some(high)),
        figure(Some(best)),
    );
    if let (Some(cpu), Some(switches)) = (system.cpu(), system.switches()) {
        let _ = write!(
            text,
            "; per operation {} ns of processor time and {switches:.4} context switches",
            figure(Some(cpu))
        );
    }
    text
}

/// The systems by their workers, in the order of the row; within a group the best first.
fn groups(result: &RowResult, index: usize) -> Vec<Vec<&SystemResult>> {
    let mut groups: Vec<Vec<&SystemResult>> = Vec::new();
    for system in &result.systems {
        match groups
            .iter_mut()
            .find(|group| group[0].workers == system.workers)
        {
            Some(group) => group.push(system),
            None => groups.push(vec![system]),
        }
    }
    let more = result.row.metrics[index].more_is_better;
    let key = |system: &&SystemResult| match system.median(index) {
        Some(value) if more => -value,
        Some(value) => value,
        None => f64::INFINITY,
    };
    for group in &mut groups {
        group.sort_by(|a, b| key(a).total_cmp(&key(b)));
    }
    groups
}

fn medians(result: &RowResult, index: usize) -> Vec<f64> {
    let systems = result.systems.iter();
    systems.filter_map(|system| system.median(index)).collect()
}

/// How far right the marks of a bar go: its median, the middle half of its rounds, its best round.
fn reach(system: &SystemResult, metric: &Metric, index: usize) -> f64 {
    let values = system.values(index);
    if values.is_empty() {
        return 0.0;
    }
    let high = quartiles(&values).1.max(median(&values));
    if metric.more_is_better {
        values.into_iter().fold(high, f64::max)
    } else {
        high
    }
}

/// The figure that the longest bar stands for.
fn scale_end(medians: &[f64], reaches: &[f64]) -> f64 {
    let longest = reaches.iter().copied().fold(0.0, f64::max);
    if longest <= 0.0 {
        return 1.0;
    }
    match median(medians) * CUT {
        limit if limit > 0.0 && limit < longest => limit,
        _ => longest,
    }
}

fn echo_curves<'a>(results: &'a [RowResult], workers: usize, latency: &str) -> Vec<Curve<'a>> {
    let mut rows: Vec<(u32, &RowResult)> = results
        .iter()
        .filter_map(|result| Some((connections(result.row.name)?, result)))
        .collect();
    rows.sort_by_key(|(connections, _)| *connections);
    let mut curves: Vec<Curve> = Vec::new();
    for (connections, result) in rows {
        let metric = |name: &str| {
            result
                .row
                .metrics
                .iter()
                .position(|metric| metric.name == name)
        };
        let (Some(rate), Some(latency)) = (metric("rate"), metric(latency)) else {
            continue;
        };
        for system in result
            .systems
            .iter()
            .filter(|system| system.workers == workers)
        {
            let (Some(rate), Some(latency)) = (system.median(rate), system.median(latency)) else {
                continue;
            };
            // A logarithmic axis has no place for nothing.
            if latency <= 0.0 || rate <= 0.0 {
                continue;
            }
            let point = (connections, rate, latency);
            match curves.iter_mut().find(|curve| curve.system == system.name) {
                Some(curve) => curve.points.push(point),
                None => curves.push(Curve {
                    system: &system.name,
                    points: vec![point],
                }),
            }
        }
    }
    curves.retain(|curve| curve.points.len() > 1);
    curves
}

/// The number in `echo_50`; other echo rows have none.
fn connections(row: &str) -> Option<u32> {
    row.strip_prefix("echo_")?.parse().ok()
}

fn style_class(curve: &Curve, style: usize) -> String {
    match curve.system {
        "ours-ct" => "line ours second".to_owned(),
        name if name.starts_with("ours") => "line ours".to_owned(),
        _ => format!("line style{}", style % STYLES),
    }
}

fn legend(body: &mut String, curve: &Curve, class: &str, place: usize) {
    let x = (place % 4) as f64 * 128.0 + 4.0;
    let y = PLOT[3] + 54.0 + (place / 4) as f64 * 20.0;
    let _ = write!(
        body,
        "<path class=\"{class}\" d=\"M{x:.1} {y:.1}h28\"/><text class=\"tick\" x=\"{:.1}\" y=\"{:.1}\">{}</text>",
        x + 34.0,
        y + 4.0,
        escape(curve.system)
    );
}

/// The step of 1, 2 or 5 times a power of ten that is not below `least`.
fn nice_step(least: f64) -> f64 {
    let power = 10_f64.powf(least.log10().floor());
    [1.0, 2.0, 5.0, 10.0]
        .map(|factor| factor * power)
        .into_iter()
        .find(|step| *step >= least * 0.999)
        .unwrap_or(power * 10.0)
}

/// The powers of ten between two logarithms, and if these are few, 2 and 5 times them too.
fn log_ticks(low: f64, high: f64) -> Vec<f64> {
    let factors: &[f64] = if high - low > 2.5 {
        &[1.0]
    } else {
        &[1.0, 2.0, 5.0]
    };
    let powers = low.floor() as i32..=high.ceil() as i32;
    powers
        .flat_map(|power| {
            factors
                .iter()
                .map(move |factor| factor * 10_f64.powi(power))
        })
        .filter(|tick| (low..=high).contains(&tick.log10()))
        .collect()
}

/// Microseconds in the unit that keeps them short.
fn time(microseconds: f64) -> String {
    let (value, unit) = if microseconds >= 1000.0 {
        (microseconds / 1000.0, "ms")
    } else {
        (microseconds, "us")
    };
    let text = format!("{value:.2}");
    let text = text.trim_end_matches('0').trim_end_matches('.');
    format!("{text} {unit}")
}

fn thousands(rate: f64) -> String {
    if rate >= 1000.0 {
        format!("{}k", rate / 1000.0)
    } else {
        format!("{rate}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_in_a_name_is_taken_for_markup() {
        assert_eq!(
            escape(r#"<a b="c">&'"#),
            "&lt;a b=&quot;c&quot;&gt;&amp;&#39;"
        );
    }

    #[test]
    fn one_huge_bar_does_not_hide_the_others() {
        assert_eq!(scale_end(&[10.0, 12.0, 14.0], &[10.0, 12.0, 15.0]), 15.0);
        assert_eq!(scale_end(&[10.0, 12.0, 9000.0], &[9000.0]), 72.0);
        assert_eq!(scale_end(&[0.0, 0.0], &[0.0, 0.0]), 1.0);
        assert_eq!(scale_end(&[], &[]), 1.0);
    }

    #[test]
    fn only_rows_named_by_connections_have_a_point() {
        assert_eq!(connections("echo_500"), Some(500));
        assert_eq!(connections("echo_50_16k"), None);
        assert_eq!(connections("yield"), None);
    }

    #[test]
    fn steps_and_ticks_are_round() {
        assert_eq!(nice_step(31_000.0), 50_000.0);
        assert_eq!(nice_step(20_000.0), 20_000.0);
        assert_eq!(log_ticks(1.9, 3.1), [100.0, 200.0, 500.0, 1000.0]);
        assert_eq!(log_ticks(0.9, 4.1), [10.0, 100.0, 1000.0, 10_000.0]);
    }

    #[test]
    fn times_are_short() {
        assert_eq!(time(54_000.0), "54 ms");
        assert_eq!(time(8.5), "8.5 us");
        assert_eq!(time(1_250.0), "1.25 ms");
        assert_eq!(time(500.0), "500 us");
    }
}
