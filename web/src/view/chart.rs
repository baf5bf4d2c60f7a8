//! A chart with one bar for each run. The parts of a bar are the numbers of cases by verdict.
//! Colours are CSS classes, because pages have no inline styles.

use std::fmt::Write as _;

use weft_suites::model::{Counts, Verdict};
use weft_suites::store::RunRecord;

use super::{time, url};

/// Height of the chart. All lengths in this file are in user units of the SVG.
const HEIGHT: u64 = 120;
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
    let width = over.len() * STEP;
    let mut svg = format!(
        "<svg class=\"chart\" viewBox=\"0 0 {width} {HEIGHT}\" width=\"{width}\" height=\"{HEIGHT}\" role=\"group\" \
         aria-label=\"Verdicts of {} runs, newest on the right; the table has the numbers\">",
        over.len()
    );
    for (at, (run, summary)) in over.iter().enumerate() {
        let (x, mut y) = (at * STEP, HEIGHT);
        let _ = write!(
            svg,
            "<a href=\"{}\" tabindex=\"-1\"><title>{}</title>",
            url::run(&run.info.id),
            time::utc(run.info.started_unix_ms)
        );
        for (verdict, number) in shown(&summary.counts) {
            // At least 2 units, to make a small part visible.
            let height = if number == 0 { 0 } else { (number * (HEIGHT - 8) / most).max(2) };
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

/// The verdicts that a chart shows.
fn shown(of: &Counts) -> [(Verdict, u64); 4] {
    [Verdict::Pass, Verdict::Fail, Verdict::Inconclusive, Verdict::Error].map(|verdict| (verdict, of.of(verdict)))
}
