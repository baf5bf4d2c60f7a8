//! A chart with one bar for each run. The parts of a bar are the numbers of cases by verdict. The
//! vertical axis has the number of cases, and the horizontal axis the dates of the first and the last
//! run. Colours are CSS classes, because pages have no inline styles.

use std::fmt::Write as _;

use weft_suites::model::{Counts, Verdict};
use weft_suites::store::RunRecord;

use super::{time, url};

/// Height of the bars. All lengths in this file are in user units of the SVG.
const HEIGHT: u64 = 120;
/// Distance of the bars from the upper edge, with the name of the vertical axis.
const TOP: u64 = 24;
/// Distance of the bars from the left edge, with the numbers of the vertical axis.
const LEFT: usize = 56;
/// Height of the labels below the bars.
const LABELS: u64 = 44;
/// Minimum width of the bars, so that the labels below have space.
const MIN_WIDTH: usize = 240;
/// Width of a bar.
const BAR: usize = 16;
/// Distance between the left edges of two bars.
const STEP: usize = 20;

/// Makes the chart as SVG. The newest run is first in `runs`, and on the right in the chart.
/// Returns an empty text if fewer than two runs are finished, or if there is no verdict to show.
pub(super) fn chart(runs: &[RunRecord]) -> String {
    let over: Vec<_> = runs.iter().rev().filter_map(|run| Some((run, run.summary.as_ref()?))).collect();
    let total = |at: usize| shown(&over[at].1.counts).iter().map(|(_, number)| number).sum::<u64>();
    let most = (0..over.len()).map(total).max().unwrap_or(0);
    if over.len() < 2 || most == 0 {
        return String::new();
    }
    let right = LEFT + (over.len() * STEP).max(MIN_WIDTH);
    let (bottom, height) = (TOP + HEIGHT, TOP + HEIGHT + LABELS);
    let mut svg = format!(
        "<svg class=\"chart\" viewBox=\"0 0 {right} {height}\" width=\"{right}\" height=\"{height}\" role=\"group\" \
         aria-label=\"Verdicts of {} runs, newest on the right; the table has the numbers\">\
         <text class=\"axis\" x=\"4\" y=\"14\">Cases by verdict</text>",
        over.len()
    );
    for cases in [0, most / 2, most] {
        let y = bottom - scaled(cases, most);
        let _ = write!(
            svg,
            "<line class=\"grid\" x1=\"{LEFT}\" x2=\"{right}\" y1=\"{y}\" y2=\"{y}\"/>\
             <text class=\"axis\" x=\"{}\" y=\"{}\" text-anchor=\"end\">{cases}</text>",
            LEFT - 8,
            y + 4
        );
    }
    let date = |at: Option<&(&RunRecord, _)>| at.map_or_else(String::new, |(run, _)| day(run.info.started_unix_ms));
    let _ = write!(
        svg,
        "<text class=\"axis\" x=\"{LEFT}\" y=\"{0}\">{1}</text>\
         <text class=\"axis\" x=\"{right}\" y=\"{0}\" text-anchor=\"end\">{2}</text>\
         <text class=\"axis\" x=\"{right}\" y=\"{3}\" text-anchor=\"end\">run</text>",
        bottom + 18,
        date(over.first()),
        date(over.last()),
        bottom + 38
    );
    for (at, (run, summary)) in over.iter().enumerate() {
        let (x, mut y) = (LEFT + at * STEP, bottom);
        let _ = write!(
            svg,
            "<a href=\"{}\" tabindex=\"-1\"><title>{}</title>",
            url::run(&run.info.id),
            time::utc(run.info.started_unix_ms)
        );
        for (verdict, number) in shown(&summary.counts) {
            // At least 2 units, to make a small part visible.
            let height = if number == 0 { 0 } else { scaled(number, most).max(2) };
            y = y.saturating_sub(height);
            if height > 0 {
                let _ =
                    write!(svg, "<rect class=\"{verdict}\" x=\"{x}\" y=\"{y}\" width=\"{BAR}\" height=\"{height}\"/>");
            }
        }
        svg.push_str("</a>");
    }
    svg.push_str("</svg>");
    svg
}

/// The height of a number of cases, if the highest bar has `most` cases.
fn scaled(number: u64, most: u64) -> u64 {
    number.saturating_mul(HEIGHT) / most.max(1)
}

/// The day of a time, as `2026-01-31`.
fn day(unix_ms: u64) -> String {
    time::utc(unix_ms).chars().take(10).collect()
}

/// The verdicts that a chart shows.
fn shown(of: &Counts) -> [(Verdict, u64); 4] {
    [Verdict::Pass, Verdict::Fail, Verdict::Inconclusive, Verdict::Error].map(|verdict| (verdict, of.of(verdict)))
}
