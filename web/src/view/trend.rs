//! The trends of a target: the pass rate and the duration of its runs. The horizontal axis is the
//! start of the runs, or the values of a label or of a fact about the target, such as its firmware.

use std::collections::BTreeSet;

use weft_suites::clock;
use weft_suites::model::{RunInfo, Summary};
use weft_suites::report::{ChartPoint, LineChart};
use weft_suites::store::RunRecord;

use super::targets::percent;
use super::{time, url};

/// The axis that the page chooses if the runs have such a label or fact.
const FIRMWARE: &str = "firmware";
/// Duration from which the unit is the minute, in microseconds.
const LONG: u64 = 600_000_000;

/// The charts of a target.
pub(super) struct Trends {
    /// The charts as SVG, each with its name.
    pub(super) charts: Vec<(&'static str, String)>,
    /// The possible horizontal axes. Empty if the start of the runs is the only axis.
    pub(super) axes: Vec<Axis>,
}

/// A horizontal axis.
pub(super) struct Axis {
    pub(super) name: String,
    pub(super) href: String,
    pub(super) is_current: bool,
}

/// A finished run of a trend.
#[derive(Clone, Copy)]
struct Run<'a> {
    info: &'a RunInfo,
    summary: &'a Summary,
}

/// Makes the charts. The newest run is first in `runs`, and on the right in the charts. `wanted` is
/// the name of the axis. An empty name means the start of the runs.
pub(super) fn trends(runs: &[RunRecord], target: &str, wanted: Option<&str>) -> Result<Trends, askama::Error> {
    let runs = comparable(runs);
    let names: BTreeSet<&str> = runs.iter().flat_map(|run| names(run.info)).collect();
    let wanted = wanted.unwrap_or(FIRMWARE);
    let axis = names.get(wanted).copied();
    let rate = |run: &Run<'_>| run.summary.counts.pass_rate().map(|rate| (rate, percent(rate)));
    let is_long = runs.iter().any(|run| run.summary.duration_us >= LONG);
    let (unit, us) = if is_long { ("min", 60_000_000.0) } else { ("s", 1_000_000.0) };
    let duration =
        |run: &Run<'_>| Some((run.summary.duration_us as f64 / us, clock::duration(run.summary.duration_us)));
    let axis_name = axis.unwrap_or("start of the run");
    let rates = LineChart {
        name: "Pass rate",
        unit: "%",
        axis: axis_name,
        most: Some(100.0),
        points: points(&runs, axis, &rate),
    };
    let durations =
        LineChart { name: "Duration", unit, axis: axis_name, most: None, points: points(&runs, axis, &duration) };
    let charts = [("Pass rate", rates.svg()?), ("Duration", durations.svg()?)];
    let charts: Vec<_> = charts.into_iter().filter(|(_, svg)| !svg.is_empty()).collect();
    let axes = if charts.is_empty() || names.is_empty() { Vec::new() } else { axes(&names, target, axis) };
    Ok(Trends { charts, axes })
}

/// Returns the finished runs that can be compared, oldest first: no reruns, and only complete runs
/// if there are complete runs.
fn comparable(runs: &[RunRecord]) -> Vec<Run<'_>> {
    let has_complete = runs.iter().any(|run| !run.is_partial());
    let finished = runs.iter().rev().filter(|run| run.info.rerun_of.is_none() && !(has_complete && run.is_partial()));
    finished.filter_map(|run| Some(Run { info: &run.info, summary: run.summary.as_ref()? })).collect()
}

/// Returns the names of the labels of a run and of the facts about its target.
fn names(info: &RunInfo) -> impl Iterator<Item = &str> {
    let facts = info.target.identity.keys().chain(info.target.device.keys());
    info.labels.keys().chain(facts).map(String::as_str)
}

/// Returns the value of a label, or else of a fact about the target.
fn value<'a>(info: &'a RunInfo, name: &str) -> Option<&'a str> {
    let of_target = || info.target.identity.get(name).or_else(|| info.target.device.get(name));
    info.labels.get(name).or_else(of_target).map(String::as_str)
}

/// Returns the points of the runs for which `measure` returns a value, with the value as text.
fn points(
    runs: &[Run<'_>],
    axis: Option<&str>,
    measure: &dyn Fn(&Run<'_>) -> Option<(f64, String)>,
) -> Vec<ChartPoint> {
    let point = |run: &Run<'_>| {
        let (value, text) = measure(run)?;
        let started = time::utc(run.info.started_unix_ms);
        let label = label(run.info, axis, &started);
        let title = format!("{started}, {label}: {text}");
        Some(ChartPoint { value, label, title, href: url::run(&run.info.id) })
    };
    runs.iter().filter_map(point).collect()
}

/// Returns the position of a run on the horizontal axis.
fn label(info: &RunInfo, axis: Option<&str>, started: &str) -> String {
    match axis {
        Some(name) => value(info, name).unwrap_or("none").to_owned(),
        None => started.split(' ').next().unwrap_or_default().to_owned(),
    }
}

fn axes(names: &BTreeSet<&str>, target: &str, current: Option<&str>) -> Vec<Axis> {
    let axis = |name: Option<&str>| Axis {
        name: name.unwrap_or("start of the run").to_owned(),
        href: url::trend(target, name.unwrap_or_default()),
        is_current: name == current,
    };
    std::iter::once(None).chain(names.iter().copied().map(Some)).map(axis).collect()
}
