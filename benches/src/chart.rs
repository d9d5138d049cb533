//! The main chart: on the chief rows, how many times as good ours is as tokio and async-executor, all with
//! two workers. One SVG file that stands alone, for README.
//!
//! A page that shows it as a picture may be light or dark for reasons that the picture cannot know, so
//! it brings its own ground, and both follow what the reader's system prefers.

use std::fmt::Write;

use crate::harness::RowResult;
use crate::setting::Setting;
use crate::standing::{DISTURBED, times};
use crate::svg::escape;

/// The chief figures, and what a reader who knows no row calls them.
const CHIEF: &[(&str, &str)] = &[
    ("spawn_await", "spawn a task, await it"),
    ("spawn_many", "spawn 10,000, await all"),
    ("spawn_detached", "spawn 100,000 detached"),
    ("spawn_remote_4", "spawn from 4 other threads"),
    ("yield", "yield among 200 tasks"),
    ("oneshot", "oneshot round trip"),
    ("pingpong", "message between two tasks"),
    ("fib", "fork and join tasks, fib(25)"),
    ("timer_create", "create and drop a timer"),
    ("timer_sleeps.cpu", "100,000 sleeps: processor time"),
    ("echo_500.rate", "echo, 500 clients: rate"),
    ("echo_500.p99", "echo, 500 clients: p99"),
    ("echo_500.cpu", "echo, 500 clients: processor time"),
    ("memory", "memory of a waiting task"),
];

/// What the bars say; longer is better, and a row whose figure is better when less is turned round.
const TITLE: &str = "How many times as good runtime is as its peers, 2 workers each";

const OURS: &str = "ours-2";

/// System, its name in the legend, its class in the style.
const PEERS: [(&str, &str, &str); 2] = [
    ("tokio-mt2", "tokio", "tokio"),
    ("asx-2", "async-executor", "asx"),
];

/// Where bars begin and end; longer ones are cut.
const BARS: (f64, f64) = (250.0, 690.0);
const WIDTH: f64 = 760.0;
/// The ratio that the whole width stands for, at most.
const WIDEST: f64 = 12.0;
const TOP: f64 = 84.0;
const GROUP: f64 = 38.0;
const BAR: f64 = 14.0;

const STYLE: &str = "\
.ground{fill:#fff;stroke:#d1d9e0}text{font:13px system-ui,-apple-system,'Segoe UI',Helvetica,Arial,sans-serif;fill:#1f2328}\
.title{font-size:16px;font-weight:600}.soft{fill:#59636e;font-size:12px}.value{stroke:#fff;stroke-width:3px;paint-order:stroke}.tokio{fill:#0a69da}.asx{fill:#8250df}\
.grid{stroke:#d1d9e0}.level{stroke:#1f2328;stroke-width:1.5}.cut{fill:none;stroke:#fff;stroke-width:3}\
@media (prefers-color-scheme:dark){.ground{fill:#0d1117;stroke:#30363d}text{fill:#e6edf3}.soft{fill:#9aa5b1}\
.tokio{fill:#4c9dff}.asx{fill:#a982f5}.grid{stroke:#30363d}.level{stroke:#e6edf3}.cut,.value{stroke:#0d1117}}";

/// A chief figure with the ratios that were measured.
struct Line {
    title: &'static str,
    ratios: [Option<f64>; 2],
    disturbed: bool,
}

/// The whole file; nothing if no chief row was run on ours and a peer.
pub(crate) fn text(results: &[RowResult], setting: &Setting) -> Option<String> {
    let lines: Vec<Line> = CHIEF
        .iter()
        .filter_map(|chief| line(results, chief))
        .collect();
    if lines.is_empty() {
        return None;
    }
    let longest = lines
        .iter()
        .flat_map(|line| line.ratios.into_iter().flatten())
        .fold(2.0, f64::max);
    let end = longest.min(WIDEST);
    let at = |ratio: f64| BARS.0 + (BARS.1 - BARS.0) * (ratio / end).min(1.0);
    let bottom = TOP + GROUP * lines.len() as f64;
    let height = bottom + 14.0;
    let mut body = String::new();
    let mut spoken = Vec::new();
    let step = if end > 6.0 { 2 } else { 1 };
    for ratio in (0..=end as usize).step_by(step).filter(|ratio| *ratio != 1) {
        grid(
            &mut body,
            "grid",
            at(ratio as f64),
            bottom,
            &format!("{ratio}x"),
        );
    }
    // Written last, so that the line of level runs over the bars and under the figures.
    let mut figures = String::new();
    for (number, line) in lines.iter().enumerate() {
        let y = TOP + GROUP * number as f64;
        let _ = writeln!(
            body,
            "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{}</text>",
            BARS.0 - 12.0,
            y + GROUP / 2.0 + 4.5,
            escape(line.title)
        );
        for (place, (ratio, (_, peer, class))) in line.ratios.iter().zip(PEERS).enumerate() {
            let Some(ratio) = *ratio else { continue };
            let y = y + 4.0 + (BAR + 1.0) * place as f64;
            bar(&mut body, class, at(ratio), y, ratio > end);
            let _ = writeln!(
                figures,
                "<text class=\"soft value\" x=\"{:.1}\" y=\"{:.1}\">{ratio:.1}x</text>",
                at(ratio) + 6.0,
                y + 11.5
            );
            spoken.push(format!("{}: {ratio:.1} times {peer}", line.title));
        }
    }
    grid(&mut body, "level", at(1.0), bottom, "level");
    Some(format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" role=\"img\" viewBox=\"0 0 {WIDTH} {height}\" \
         width=\"{WIDTH}\" height=\"{height}\" aria-labelledby=\"title about\">\n\
         <title id=\"title\">{TITLE}</title>\n<desc id=\"about\">{}</desc>\n<style>{STYLE}</style>\n\
         <rect class=\"ground\" x=\".5\" y=\".5\" width=\"{}\" height=\"{}\" rx=\"8\"/>\n{}{body}{figures}</svg>\n",
        escape(&spoken.join("; ")),
        WIDTH - 1.0,
        height - 1.0,
        heading(setting, lines.iter().any(|line| line.disturbed)),
    ))
}

fn line(results: &[RowResult], (name, title): &(&str, &'static str)) -> Option<Line> {
    let (result, metric) = results.iter().find_map(|result| {
        let mut metrics = result.row.metrics.iter();
        let index = metrics.position(|metric| metric.full_name(result.row.name) == *name)?;
        Some((result, index))
    })?;
    let system = |name: &str| result.systems.iter().find(|system| system.name == name);
    let ours = system(OURS)?;
    let ratios = PEERS.map(|(peer, ..)| times(result, metric, ours, system(peer)?));
    let measured = ratios.iter().any(Option::is_some);
    measured.then_some(Line {
        title,
        ratios,
        disturbed: result.others > DISTURBED,
    })
}

fn heading(setting: &Setting, disturbed: bool) -> String {
    let mark = if disturbed {
        "; disturbed by other programs"
    } else {
        ""
    };
    let mut heading = format!(
        "<text class=\"title\" x=\"20\" y=\"30\">{TITLE}</text>\n\
         <text class=\"soft\" x=\"20\" y=\"50\">{}{mark}</text>\n",
        escape(&setting.line())
    );
    let mut x = WIDTH - 236.0;
    for (_, name, class) in PEERS {
        let _ = writeln!(
            heading,
            "<rect class=\"{class}\" x=\"{x:.1}\" y=\"39\" width=\"12\" height=\"12\" rx=\"2\"/>\
             <text x=\"{:.1}\" y=\"50\">{name}</text>",
            x + 18.0
        );
        x += 84.0;
    }
    heading
}

/// A line down through all bars, named above them.
fn grid(body: &mut String, class: &str, x: f64, bottom: f64, name: &str) {
    let _ = writeln!(
        body,
        "<path class=\"{class}\" d=\"M{x:.1} {:.1}V{bottom:.1}\"/>\
         <text class=\"soft\" x=\"{x:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{name}</text>",
        TOP - 4.0,
        TOP - 9.0
    );
}

fn bar(body: &mut String, class: &str, end: f64, y: f64, cut: bool) {
    let _ = write!(
        body,
        "<rect class=\"{class}\" x=\"{:.1}\" y=\"{y:.1}\" width=\"{:.1}\" height=\"{BAR}\" rx=\"2\"/>",
        BARS.0,
        (end - BARS.0).max(1.0)
    );
    if cut {
        let _ = write!(
            body,
            "<path class=\"cut\" d=\"M{:.1} {:.1}l6 -18m5 0l-6 18\"/>",
            BARS.1 - 34.0,
            y + BAR + 2.0
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::harness::{Sample, SystemResult};
    use crate::rows;

    fn results(ours: f64) -> Vec<RowResult> {
        let system = |name: &str, value: f64| SystemResult {
            name: name.to_owned(),
            workers: 2,
            samples: vec![Sample::of(vec![value])],
            failures: 0,
        };
        let row = rows::all()
            .into_iter()
            .find(|row| row.name == "spawn_await");
        vec![RowResult {
            row: row.unwrap(),
            systems: vec![system("tokio-mt2", 30.0), system(OURS, ours)],
            others: 0.0,
        }]
    }

    fn setting() -> Setting {
        Setting {
            facts: vec![("Processor", "A & B".to_owned())],
        }
    }

    #[test]
    fn ratios_are_how_many_times_as_good_ours_is() {
        let chart = text(&results(10.0), &setting()).unwrap();
        assert!(chart.contains(">3.0x<"));
        assert!(chart.contains("A &amp; B"));
        assert!(!chart.contains("class=\"cut\""));
    }

    #[test]
    fn a_bar_beyond_the_width_is_cut() {
        let chart = text(&results(1.0), &setting()).unwrap();
        assert!(chart.contains(">30.0x<") && chart.contains("class=\"cut\""));
    }

    #[test]
    fn without_a_chief_row_there_is_no_chart() {
        assert!(text(&[], &setting()).is_none());
    }

    #[test]
    fn every_chief_figure_exists() {
        let rows = rows::all();
        let known = |name: &str| {
            rows.iter().any(|row| {
                let mut metrics = row.metrics.iter();
                metrics.any(|metric| metric.full_name(row.name) == name)
            })
        };
        for (name, _) in CHIEF {
            assert!(known(name), "{name}");
        }
    }
}
