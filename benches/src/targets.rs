//! What we have set out to reach: for each figure the *must*, and the *moonshot* beyond it.
//!
//! A target is a factor between figures of one run, or a plain figure where the row has an ideal. It is
//! met or not by the medians, whatever the rounds say: a target that is met by luck is missed by the
//! next run.

use crate::harness::{RowResult, SystemResult};
use crate::standing;

/// One target.
pub(crate) struct Target {
    /// The figure: `row`, or `row.metric`.
    pub(crate) figure: &'static str,
    /// The form of ours that it is about; of several, between bars, the best one.
    pub(crate) ours: &'static str,
    /// What is asked of it.
    pub(crate) ask: Ask,
    /// Whether it closes the work or goes beyond.
    pub(crate) level: Level,
}

/// What is asked of a figure of ours.
#[derive(Clone, Copy)]
pub(crate) enum Ask {
    /// To be so many times as good as the best of these systems (all whose names begin so).
    Times(f64, &'static [&'static str]),
    /// To be at most this.
    AtMost(f64),
    /// To be at most so many times our own other figure, of the same form.
    TimesOwn(f64, &'static str),
}

/// How much a target matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Level {
    /// To be met.
    Must,
    /// To be aimed at.
    Moonshot,
}

/// A target held against the results.
pub(crate) struct Outcome {
    /// The target.
    pub(crate) target: Target,
    /// The form of ours that was held against it.
    pub(crate) form: String,
    /// In words: what was asked.
    pub(crate) asked: String,
    /// In words: what was reached.
    pub(crate) reached: String,
    /// How far we are: 1 and more is met.
    pub(crate) margin: f64,
}

const ALL2: &[&str] = &[
    "tokio-mt2",
    "asx-2",
    "smol-2",
    "rayon-2",
    "pool-a-2",
    "pool-b-2",
    "pool-c-2",
    "pool-d-2",
];
const ASX1: &[&str] = &["asx-1"];
const ASX2: &[&str] = &["asx-2"];
const ASYNC1: &[&str] = &["tokio-mt1", "tokio-ct", "asx-1"];
const ASYNC2: &[&str] = &["tokio-mt2", "asx-2", "smol-2"];
const BEST1: &[&str] = &["tokio-mt1", "tokio-ct", "asx-1", "epoll-1"];
const CT: &[&str] = &["tokio-ct"];
const EPOLL1: &[&str] = &["epoll-1"];
const EPOLL2: &[&str] = &["epoll-2"];
const MT1: &[&str] = &["tokio-mt1"];
const MT2: &[&str] = &["tokio-mt2"];
const MT2_EPOLL2: &[&str] = &["tokio-mt2", "epoll-2"];
const POOL_D2: &[&str] = &["pool-d-2"];
const RAYON2: &[&str] = &["rayon-2"];
const TOKIO_FULL: &[&str] = &["tokio-full"];
const TOKIO_RT: &[&str] = &["tokio-rt"];

/// Our better form with one worker.
const ONE: &str = "ours-1|ours-ct";

/// All targets, in the order of the rows.
pub(crate) fn all() -> Vec<Target> {
    use Ask::{AtMost, Times, TimesOwn};
    vec![
        must("spawn_await", "ours-2", Times(4.0, MT2)),
        must("spawn_await", "ours-1", Times(3.0, CT)),
        moonshot("spawn_await", "ours-2", Times(8.0, MT2)),
        must("spawn_await_root", "ours-2", TimesOwn(1.5, "spawn_await")),
        moonshot("spawn_await_root", "ours-2", TimesOwn(1.0, "spawn_await")),
        must("spawn_many", "ours-2", Times(3.0, MT2)),
        must("spawn_many", "ours-2", Times(1.3, ASYNC2)),
        moonshot("spawn_many", "ours-2", Times(5.0, MT2)),
        must("spawn_detached", "ours-2", Times(2.0, MT2)),
        must("spawn_detached", "ours-2", Times(1.0, ASYNC2)),
        must("spawn_detached", "ours-1", Times(1.0, ASYNC1)),
        moonshot("spawn_detached", "ours-2", Times(1.0, POOL_D2)),
        must("spawn_remote_1", "ours-2", Times(2.0, MT2)),
        must("spawn_remote_1", "ours-2", Times(1.2, ASYNC2)),
        moonshot("spawn_remote_1", "ours-2", Times(1.0, POOL_D2)),
        must("spawn_remote_4", "ours-2", Times(2.0, MT2)),
        must("spawn_remote_4", "ours-2", Times(1.2, ASYNC2)),
        moonshot("spawn_remote_4", "ours-2", Times(1.0, POOL_D2)),
        must("yield", "ours-2", Times(1.2, MT2)),
        moonshot("yield", "ours-2", Times(2.0, MT2)),
        must("oneshot", "ours-2", Times(3.0, MT2)),
        must("oneshot", "ours-2", Times(1.5, ASYNC2)),
        moonshot("oneshot", "ours-2", Times(5.0, MT2)),
        must("pingpong", "ours-2", Times(1.8, MT2)),
        moonshot("pingpong", "ours-2", Times(1.3, MT1)),
        must("chained", "ours-2", Times(3.5, MT2)),
        must("chained", "ours-2", Times(1.5, ASYNC2)),
        moonshot("chained", "ours-2", Times(1.0, RAYON2)),
        must("fib", "ours-2", Times(6.0, MT2)),
        moonshot("fib", "ours-2", Times(10.0, MT2)),
        must("join_fib", "ours-2", Times(1.0, RAYON2)),
        moonshot("join_fib", "ours-2", Times(1.6, RAYON2)),
        must("fib_live", "ours-2", AtMost(300.0)),
        must("tree_live_detached", "ours-2", AtMost(300.0)),
        moonshot("tree_live_detached", "ours-2", AtMost(100.0)),
        must("tree_live_512", "ours-2", AtMost(3_000.0)),
        moonshot("tree_live_512", "ours-2", AtMost(2_000.0)),
        must("merge_sort", "ours-2", Times(1.0, RAYON2)),
        moonshot("merge_sort", "ours-2", Times(1.0, RAYON2)),
        must("fork_cutoff", "ours-2", Times(3.0, MT2)),
        moonshot("fork_cutoff", "ours-2", Times(1.0, POOL_D2)),
        must("nothing_1m", "ours-2", Times(1.8, MT2)),
        must("nothing_1m", "ours-2", Times(1.2, ASYNC2)),
        moonshot("nothing_1m", "ours-2", Times(1.0, POOL_D2)),
        must("micro_300k", "ours-2", Times(1.7, MT2)),
        must("micro_300k", "ours-2", Times(1.05, ALL2)),
        moonshot("micro_300k", "ours-2", AtMost(550.0)),
        must("coarse_10k", "ours-2", share(1.03, ALL2)),
        moonshot("coarse_10k", "ours-2", AtMost(10_200.0)),
        must("phases.generate", "ours-2", Times(1.0, ALL2)),
        must("phases.sort", "ours-2", Times(1.0, ALL2)),
        must("phases.save", "ours-2", Times(1.0, ALL2)),
        moonshot("phases.generate", "ours-2", Times(1.0, ALL2)),
        moonshot("phases.sort", "ours-2", Times(1.0, ALL2)),
        moonshot("phases.save", "ours-2", Times(1.0, ALL2)),
        must("timer_create", "ours-2", Times(1.3, MT2)),
        must("timer_create", "ours-1", Times(5.0, CT)),
        moonshot("timer_create", "ours-2", Times(2.0, MT2)),
        must("timer_timeout", "ours-1", Times(1.0, ASX1)),
        must("timer_timeout", "ours-2", Times(1.0, ASX2)),
        moonshot("timer_timeout", "ours-1", AtMost(3.0)),
        must("timer_sleeps.cpu", "ours-1", share(0.6, CT)),
        must("timer_sleeps.mean_late", "ours-1", AtMost(2_000.0)),
        must("timer_sleeps.worst_late", "ours-1", AtMost(12_000.0)),
        moonshot("timer_sleeps.cpu", "ours-1", AtMost(500.0)),
        moonshot("timer_sleeps.mean_late", "ours-1", AtMost(600.0)),
        moonshot("timer_sleeps.worst_late", "ours-1", AtMost(5_000.0)),
        must("sleep_200us", "ours-2", AtMost(150.0)),
        must("sleep_200us", "ours-1", AtMost(150.0)),
        moonshot("sleep_200us", "ours-2", AtMost(60.0)),
        must("echo_50.cpu", ONE, share(1.05, EPOLL1)),
        moonshot("echo_50.cpu", ONE, share(1.0, EPOLL1)),
        must("echo_500.cpu", ONE, share(1.05, EPOLL1)),
        moonshot("echo_500.cpu", ONE, share(1.0, EPOLL1)),
        must("echo_500.p99", ONE, share(1.2, EPOLL1)),
        moonshot("echo_500.p99", ONE, share(1.0, EPOLL1)),
        must("echo_500.rate", "ours-2", Times(1.0, MT2)),
        must("echo_500.p99", "ours-2", Times(1.0, EPOLL2)),
        // Better in both, and than both.
        moonshot("echo_500.rate", "ours-2", Times(1.01, MT2_EPOLL2)),
        moonshot("echo_500.p99", "ours-2", Times(1.01, MT2_EPOLL2)),
        must("echo_50_16k.cpu", ONE, share(1.05, EPOLL1)),
        moonshot("echo_50_16k.cpu", ONE, share(1.0, EPOLL1)),
        must("connect.rate", ONE, Times(1.0, BEST1)),
        moonshot("connect.rate", ONE, Times(1.1, BEST1)),
        must("echo_syscalls", ONE, AtMost(2.03)),
        moonshot("echo_syscalls", ONE, AtMost(2.02)),
        must("idle_connections", "ours-2", AtMost(0.0)),
        must("idle_connections", ONE, AtMost(0.0)),
        must("memory_connection", "ours-2", AtMost(800.0)),
        moonshot("memory_connection", "ours-2", AtMost(560.0)),
        must("memory", "ours-2", AtMost(128.0)),
        moonshot("memory", "ours-2", AtMost(104.0)),
        must("fairness", "ours-2", AtMost(1.6)),
        moonshot("fairness", "ours-2", AtMost(1.2)),
        must("flood_detached", "ours-2", share(0.85, MT2)),
        must("flood_detached", "ours-2", Times(1.0, ASX2)),
        moonshot("flood_detached", "ours-2", share(0.6, MT2)),
        must("flood_handles", "ours-2", share(0.9, MT2)),
        moonshot("flood_handles", "ours-2", Times(1.0, ASX2)),
        must("flood_outside", "ours-2", share(0.9, MT2)),
        moonshot("flood_outside", "ours-2", Times(1.0, ASX2)),
        must("flood_children", "ours-2", share(0.9, MT2)),
        moonshot("flood_children", "ours-2", Times(1.0, ASX2)),
        must("flood_70.p99", "ours-2", share(2.0, MT2)),
        must("flood_70.max", "ours-2", share(2.0, MT2)),
        moonshot("flood_70.p99", "ours-2", Times(1.0, MT2)),
        moonshot("flood_70.max", "ours-2", Times(1.0, MT2)),
        must("wake_busy.p50", "ours-2", share(1.2, MT2)),
        must("wake_busy.p99", "ours-2", share(0.2, MT2)),
        moonshot("wake_busy.p50", "ours-2", share(0.8, MT2)),
        moonshot("wake_busy.p99", "ours-2", share(0.05, MT2)),
        must("wake_idle.p50", "ours-2", share(0.6, MT2)),
        must("wake_idle.cpu", "ours-2", share(0.8, MT2)),
        moonshot("wake_idle.p50", "ours-2", share(0.35, MT2)),
        moonshot("wake_idle.cpu", "ours-2", share(0.7, MT2)),
        must("idle_churn", "ours-4", AtMost(0.5)),
        moonshot("idle_churn", "ours-4", AtMost(0.1)),
        must("stall_tasks", "ours-2", AtMost(25.0)),
        moonshot("stall_tasks", "ours-2", AtMost(10.0)),
        must("stall_timer", "ours-2", AtMost(25.0)),
        moonshot("stall_timer", "ours-2", AtMost(10.0)),
        must("stall_echo", "ours-2", AtMost(25.0)),
        moonshot("stall_echo", "ours-2", AtMost(10.0)),
        must("start_stop", "ours-2", Times(1.0, MT2)),
        moonshot("start_stop", "ours-2", AtMost(90.0)),
        must("scale_idle_64.cpu", "ours-64", AtMost(2.0)),
        must("scale_idle_64.unparks", "ours-64", AtMost(2.0)),
        must("build_hello.seconds", "ours", share(0.6, TOKIO_FULL)),
        must("build_hello.crates", "ours", AtMost(16.0)),
        moonshot("build_hello.seconds", "ours", Times(1.0, TOKIO_RT)),
        moonshot("build_hello.crates", "ours", Times(1.0, TOKIO_RT)),
    ]
}

/// The targets whose figures were measured, each with what came of it.
pub(crate) fn outcomes(results: &[RowResult]) -> Vec<Outcome> {
    all()
        .into_iter()
        .filter_map(|target| outcome(results, target))
        .collect()
}

impl Outcome {
    /// Whether the target was reached.
    pub(crate) fn met(&self) -> bool {
        self.margin >= 1.0
    }

    /// `met by 12 %`, `MISSED by 12 %`.
    pub(crate) fn verdict(&self) -> String {
        let word = if self.met() { "met" } else { "MISSED" };
        // Far beyond, the number of times says more than per cent.
        if self.margin >= 3.0 {
            return format!("{word} {:.1} times over", self.margin);
        }
        let off = if self.met() {
            self.margin - 1.0
        } else {
            1.0 / self.margin - 1.0
        };
        format!("{word} by {:.0} %", off * 100.0)
    }
}

impl Level {
    /// As the tables print it.
    pub(crate) fn text(self) -> &'static str {
        match self {
            Level::Must => "must",
            Level::Moonshot => "moonshot",
        }
    }
}

fn outcome(results: &[RowResult], target: Target) -> Option<Outcome> {
    let (result, metric) = find(results, target.figure)?;
    let ours = form(result, metric, target.ours)?;
    let own = ours.median(metric)?;
    let unit = result.row.metrics[metric].unit;
    let (asked, reached, margin) = match target.ask {
        Ask::Times(factor, names) => {
            let others = result
                .systems
                .iter()
                .filter(|system| names.iter().any(|name| system.name.starts_with(name)));
            let beside = standing::best(result, metric, others)?;
            let times = standing::times(result, metric, ours, beside)?;
            (
                format!("{factor:.2}x {}", beside.name),
                format!("{times:.2}x"),
                times / factor,
            )
        }
        Ask::AtMost(limit) => (
            format!("at most {limit} {unit}"),
            format!("{own:.2}"),
            ratio(limit, own),
        ),
        Ask::TimesOwn(factor, figure) => {
            let (other, metric) = find(results, figure)?;
            let other = form(other, metric, target.ours)?.median(metric)?;
            (
                format!("at most {factor:.2}x our {figure}"),
                format!("{:.2}x", own / other),
                ratio(factor * other, own),
            )
        }
    };
    Some(Outcome {
        target,
        form: ours.name.clone(),
        asked,
        reached,
        margin,
    })
}

/// Nothing asked and nothing taken is met.
fn ratio(limit: f64, own: f64) -> f64 {
    if own <= limit && own == 0.0 {
        1.0
    } else {
        limit / own
    }
}

fn find<'a>(results: &'a [RowResult], figure: &str) -> Option<(&'a RowResult, usize)> {
    results.iter().find_map(|result| {
        let named = |index: &usize| result.row.metrics[*index].full_name(result.row.name) == figure;
        Some((result, (0..result.row.metrics.len()).find(named)?))
    })
}

/// The best of the forms of ours that are named; one that failed is not hidden by another.
fn form<'a>(result: &'a RowResult, metric: usize, names: &str) -> Option<&'a SystemResult> {
    let forms = || {
        let named = |system: &&SystemResult| names.split('|').any(|name| system.name == name);
        result.systems.iter().filter(named)
    };
    let failed = forms().find(|system| system.failures > 0);
    failed.or_else(|| standing::best(result, metric, forms()))
}

/// At most `share` of what the best of the systems takes.
const fn share(share: f64, systems: &'static [&'static str]) -> Ask {
    Ask::Times(1.0 / share, systems)
}

const fn must(figure: &'static str, ours: &'static str, ask: Ask) -> Target {
    Target {
        figure,
        ours,
        ask,
        level: Level::Must,
    }
}

const fn moonshot(figure: &'static str, ours: &'static str, ask: Ask) -> Target {
    Target {
        figure,
        ours,
        ask,
        level: Level::Moonshot,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::harness::Sample;
    use crate::peers;
    use crate::rows;

    fn result(systems: &[(&str, f64)]) -> RowResult {
        let system = |&(name, value): &(&str, f64)| SystemResult {
            name: name.to_owned(),
            workers: 2,
            samples: vec![Sample::of(vec![value])],
            failures: 0,
        };
        RowResult {
            row: rows::all().swap_remove(0),
            others: 0.0,
            systems: systems.iter().map(system).collect(),
        }
    }

    fn margin(ask: Ask, systems: &[(&str, f64)]) -> Option<f64> {
        let target = must("spawn_await", "ours-2", ask);
        Some(outcome(&[result(systems)], target)?.margin)
    }

    #[test]
    fn every_target_names_a_figure_and_systems_that_exist() {
        let rows = rows::all();
        let figures: Vec<String> = rows
            .iter()
            .flat_map(|row| row.metrics.iter().map(|metric| metric.full_name(row.name)))
            .collect();
        let peers = peers::names();
        for target in all() {
            assert!(
                figures.iter().any(|figure| figure == target.figure),
                "{}",
                target.figure
            );
            match target.ask {
                Ask::Times(_, names) => {
                    for name in names {
                        assert!(peers.iter().any(|peer| peer.starts_with(name)), "{name}");
                    }
                }
                Ask::TimesOwn(_, figure) => {
                    assert!(figures.iter().any(|known| known == figure), "{figure}");
                }
                Ask::AtMost(_) => {}
            }
        }
    }

    #[test]
    fn the_best_of_those_named_is_what_counts() {
        let systems = [
            ("tokio-mt2", 30.0),
            ("asx-2", 24.0),
            ("rayon-2", 1.0),
            ("ours-2", 10.0),
        ];
        assert_eq!(margin(Ask::Times(3.0, MT2), &systems), Some(1.0));
        assert_eq!(margin(Ask::Times(1.2, ASYNC2), &systems), Some(2.0));
        assert_eq!(margin(Ask::Times(1.0, CT), &systems), None);
    }

    #[test]
    fn of_several_forms_of_ours_the_best_is_held_against_it() {
        let systems = [("epoll-1", 6.0), ("ours-1", 5.0), ("ours-ct", 4.0)];
        let target = must("spawn_await", ONE, Ask::Times(1.0, EPOLL1));
        let outcome = outcome(&[result(&systems)], target).unwrap();
        assert_eq!((outcome.form.as_str(), outcome.margin), ("ours-ct", 1.5));
    }

    #[test]
    fn plain_figures_and_our_own() {
        let systems = [("ours-2", 10.0)];
        assert_eq!(margin(Ask::AtMost(5.0), &systems), Some(0.5));
        assert_eq!(margin(Ask::AtMost(0.0), &[("ours-2", 0.0)]), Some(1.0));
        assert_eq!(
            margin(Ask::TimesOwn(1.5, "spawn_await"), &systems),
            Some(1.5)
        );
    }

    #[test]
    fn verdicts_say_by_how_much() {
        let verdict = |margin| {
            Outcome {
                target: must("spawn_await", "ours-2", Ask::AtMost(1.0)),
                form: String::new(),
                asked: String::new(),
                reached: String::new(),
                margin,
            }
            .verdict()
        };
        assert_eq!(verdict(1.25), "met by 25 %");
        assert_eq!(verdict(0.8), "MISSED by 25 %");
        assert_eq!(verdict(5.0), "met 5.0 times over");
    }
}
