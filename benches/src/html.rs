//! The page: everything that a run found, in one file that needs no network and no script.
//!
//! First what was run and what came of it, then a drawing for each figure. The drawings are in
//! [`svg`].

use std::fmt::Write;

use crate::harness::RowResult;
use crate::report::{factor, figure};
use crate::setting::Setting;
use crate::standing::{DISTURBED, Standing, Verdict, standing};
use crate::svg::{self, escape};
use crate::targets::{Level, Outcome, outcomes};

const STYLE: &str = include_str!("page.css");

/// The latencies that the echo curves show.
const LATENCIES: [(&str, &str); 3] = [("p50", "median"), ("p99", "99 %"), ("p999", "99.9 %")];

/// The whole page.
pub(crate) fn text(results: &[RowResult], setting: &Setting) -> String {
    let outcomes = outcomes(results);
    let mut page = String::new();
    let _ = write!(
        page,
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <title>runtime beside its peers</title>\n<style>\n{STYLE}</style>\n</head>\n<body>\n<main>\n\
         <h1>runtime beside its peers</h1>\n"
    );
    head(&mut page, results, &outcomes, setting);
    targets(&mut page, &outcomes);
    beside(&mut page, results);
    echo(&mut page, results);
    rows(&mut page, results);
    page.push_str("</main>\n</body>\n</html>\n");
    page
}

fn head(page: &mut String, results: &[RowResult], outcomes: &[Outcome], setting: &Setting) {
    page.push_str(
        "<p>Every row is one program, generic over the system that runs it. In each round all systems take \
         their turn; what counts is the median over the rounds, and the ratio between systems in this one \
         run. Absolute figures belong to the machine.</p>\n<dl>\n",
    );
    for (name, fact) in &setting.facts {
        let _ = writeln!(page, "<dt>{}</dt><dd>{}</dd>", escape(name), escape(fact));
    }
    page.push_str("</dl>\n<ul class=\"scores\">\n");
    for level in [Level::Must, Level::Moonshot] {
        let of_level = || {
            outcomes
                .iter()
                .filter(|outcome| outcome.target.level == level)
        };
        let met = of_level().filter(|outcome| outcome.met()).count();
        score(
            page,
            met,
            of_level().count(),
            &format!("{} targets met", level.text()),
        );
    }
    let verdicts: Vec<Verdict> = results
        .iter()
        .flat_map(|result| (0..result.row.metrics.len()).filter_map(|index| verdict(result, index)))
        .collect();
    let level = verdicts
        .iter()
        .filter(|verdict| **verdict == Verdict::NotBehind)
        .count();
    score(
        page,
        level,
        verdicts.len(),
        "figures not behind the best peer",
    );
    page.push_str("</ul>\n<nav aria-label=\"Contents\">\n");
    for (place, name) in [("targets", "Targets"), ("beside", "Beside the best peer")] {
        let _ = write!(page, "<a href=\"#{place}\">{name}</a> ");
    }
    if svg::echo_rows(results) > 1 {
        page.push_str("<a href=\"#latency\">Echo latency</a> ");
    }
    page.push_str("<br>\n");
    for result in results {
        let name = escape(result.row.name);
        let _ = write!(page, "<a href=\"#row-{name}\">{name}</a> ");
    }
    page.push_str("\n</nav>\n");
}

fn score(page: &mut String, reached: usize, all: usize, what: &str) {
    let _ = writeln!(page, "<li><b>{reached} of {all}</b> {what}</li>");
}

fn targets(page: &mut String, outcomes: &[Outcome]) {
    page.push_str(
        "<h2 id=\"targets\">Targets</h2>\n<p>What was to be reached. A must closes the work, a moonshot is \
         where we are going.</p>\n",
    );
    for (level, title) in [(Level::Must, "Must"), (Level::Moonshot, "Moonshot")] {
        let _ = write!(
            page,
            "<h3>{title}</h3>\n<div class=\"wide\"><table>\n<thead><tr><th scope=\"col\">figure</th>\
             <th scope=\"col\">form</th><th scope=\"col\" class=\"number\">asked</th>\
             <th scope=\"col\" class=\"number\">reached</th><th scope=\"col\">verdict</th></tr></thead>\n<tbody>\n"
        );
        for outcome in outcomes
            .iter()
            .filter(|outcome| outcome.target.level == level)
        {
            let _ = writeln!(
                page,
                "<tr><th scope=\"row\">{}</th><td>{}</td><td class=\"number\">{}</td>\
                 <td class=\"number\">{}</td><td class=\"{}\">{}</td></tr>",
                link(outcome.target.figure),
                escape(outcome.target.ours),
                escape(&outcome.asked),
                escape(&outcome.reached),
                if outcome.met() { "good" } else { "bad" },
                escape(&outcome.verdict()),
            );
        }
        page.push_str("</tbody>\n</table></div>\n");
    }
}

fn beside(page: &mut String, results: &[RowResult]) {
    page.push_str(
        "<h2 id=\"beside\">Beside the best peer</h2>\n<p>Ours and the best of the peers with as many workers. \
         The ratio says how many times as good ours is: 1 and more is not behind. Unclear is behind by less \
         than the rounds differ. Where a system has two forms with one worker, with and without a thread of \
         its own, its better one counts.</p>\n<div class=\"wide\"><table>\n<thead>\n<tr><td></td><td></td>\
         <th scope=\"colgroup\" colspan=\"4\">2 workers</th><th scope=\"colgroup\" colspan=\"4\">1 worker</th>\
         <td></td></tr>\n<tr><th scope=\"col\">figure</th><th scope=\"col\">unit</th>",
    );
    for _ in 0..2 {
        page.push_str(
            "<th scope=\"col\">peer</th><th scope=\"col\" class=\"number\">its figure</th>\
             <th scope=\"col\" class=\"number\">ours</th><th scope=\"col\" class=\"number\">ratio</th>",
        );
    }
    page.push_str("<th scope=\"col\">verdict</th></tr>\n</thead>\n<tbody>\n");
    for result in results {
        for (index, metric) in result.row.metrics.iter().enumerate() {
            let standings = [2, 1].map(|workers| standing(result, index, workers));
            if standings.iter().all(Option::is_none) {
                continue;
            }
            let _ = write!(
                page,
                "<tr><th scope=\"row\">{}</th><td>{}</td>",
                link(&metric.full_name(result.row.name)),
                escape(metric.unit)
            );
            for standing in &standings {
                cells(page, standing.as_ref(), index);
            }
            let (class, words) = match verdict(result, index) {
                Some(verdict @ Verdict::NotBehind) => ("good", verdict.text()),
                Some(verdict @ Verdict::Unclear) => ("", verdict.text()),
                Some(verdict) => ("bad", verdict.text()),
                None if !metric.judged => ("soft", "not judged"),
                None => ("soft", "-"),
            };
            let mark = if result.others > DISTURBED {
                " (disturbed)"
            } else {
                ""
            };
            let _ = writeln!(page, "<td class=\"{class}\">{words}{mark}</td></tr>");
        }
    }
    page.push_str("</tbody>\n</table></div>\n");
}

fn cells(page: &mut String, standing: Option<&Standing>, index: usize) {
    let beside = standing.and_then(|standing| standing.beside);
    let ours = standing.map(|standing| standing.ours);
    let [peer, own] =
        [beside, ours].map(|system| figure(system.and_then(|system| system.median(index))));
    let _ = write!(
        page,
        "<td>{}</td><td class=\"number\">{peer}</td><td class=\"number\">{own}</td><td class=\"number\">{}</td>",
        escape(beside.map_or("-", |system| &system.name)),
        factor(standing.and_then(|standing| standing.ratio)),
    );
}

fn echo(page: &mut String, results: &[RowResult]) {
    if svg::echo_rows(results) < 2 {
        return;
    }
    page.push_str(
        "<h2 id=\"latency\">Echo: latency over throughput</h2>\n<p>A point for each number of connections, each \
         of which has one request on its way at a time; the numbers stand beside ours. Right and low is \
         good. Latencies are on a logarithmic scale.</p>\n",
    );
    for (workers, title) in [(2, "2 workers"), (1, "1 worker")] {
        let drawings: Vec<String> = LATENCIES
            .iter()
            .filter_map(|(latency, name)| {
                let drawing = svg::curves(results, workers, latency)?;
                Some(format!("<figure><figcaption><b>{latency}</b> ({name}), less is better</figcaption>{drawing}</figure>\n"))
            })
            .collect();
        if !drawings.is_empty() {
            let _ = write!(
                page,
                "<h3>{title}</h3>\n<div class=\"charts\">\n{}</div>\n",
                drawings.concat()
            );
        }
    }
}

fn rows(page: &mut String, results: &[RowResult]) {
    page.push_str(
        "<h2 id=\"rows\">Row by row</h2>\n<p>A bar is the median over the rounds, ours in blue. The line at its \
         end spans the middle half of the rounds, the small circle is the best round. Bars far longer than \
         most are cut, with a gap where. The pointer on a bar tells more.</p>\n\
         <div class=\"rows\">\n",
    );
    for result in results {
        let row = &result.row;
        let name = escape(row.name);
        let _ = write!(
            page,
            "<section{}>\n<h3 id=\"row-{name}\">{name}</h3>\n<p>{}",
            if row.metrics.len() > 1 {
                " class=\"several\""
            } else {
                ""
            },
            escape(row.about)
        );
        if result.others > DISTURBED {
            let _ = write!(
                page,
                ". <span class=\"bad\">Disturbed: others took {:.0} % of the machine meanwhile.</span>",
                result.others * 100.0
            );
        }
        page.push_str("</p>\n<div class=\"charts\">\n");
        for (index, metric) in row.metrics.iter().enumerate() {
            let _ = writeln!(
                page,
                "<figure><figcaption><b>{}</b> {}, {}</figcaption>{}</figure>",
                escape(metric.name),
                escape(metric.unit),
                svg::direction(metric),
                svg::bars(result, index)
            );
        }
        page.push_str("</div>\n</section>\n");
    }
    page.push_str("</div>\n");
}

/// The worse verdict of the two numbers of workers, where the row is judged.
fn verdict(result: &RowResult, index: usize) -> Option<Verdict> {
    let standings = [2, 1]
        .into_iter()
        .filter_map(|workers| standing(result, index, workers));
    let verdict = standings.filter_map(|standing| standing.verdict).min()?;
    (result.row.metrics[index].judged || verdict == Verdict::Failed).then_some(verdict)
}

/// A figure's name, leading to its row.
fn link(figure: &str) -> String {
    let name = escape(figure);
    let row = name.split('.').next().unwrap_or_default();
    format!("<a href=\"#row-{row}\">{name}</a>")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::harness::{Sample, SystemResult};
    use crate::rows;

    fn page(name: &str) -> String {
        let system = |name: &str, value: f64, metrics: usize| SystemResult {
            name: name.to_owned(),
            workers: 2,
            samples: vec![Sample::of(vec![value; metrics])],
            failures: 0,
        };
        let results: Vec<RowResult> = rows::all()
            .into_iter()
            .map(|row| RowResult {
                systems: vec![
                    system(name, 30.0, row.metrics.len()),
                    system("ours-2", 10.0, row.metrics.len()),
                ],
                row,
                others: 0.0,
            })
            .collect();
        let setting = Setting {
            facts: vec![("Processor", "A & B".to_owned())],
        };
        text(&results, &setting)
    }

    #[test]
    fn every_row_has_a_place_and_links_lead_to_places() {
        let page = page("tokio-mt2");
        for part in page.split("href=\"#").skip(1) {
            let place = part.split('"').next().unwrap();
            assert!(page.contains(&format!("id=\"{place}\"")), "{place}");
        }
        assert!(page.contains("id=\"row-spawn_await\""));
        assert!(page.contains("id=\"latency\""));
    }

    #[test]
    fn the_page_needs_nothing_from_elsewhere() {
        let page = page("tokio-mt2");
        for word in ["http", "<script", "url(", "@import", "src="] {
            assert!(!page.contains(word), "{word}");
        }
    }

    #[test]
    fn names_are_escaped() {
        let page = page("tokio<b>&\"");
        assert!(page.contains("tokio&lt;b&gt;&amp;&quot;"));
        assert!(!page.contains("tokio<b>"));
        assert!(page.contains("A &amp; B"));
    }
}
