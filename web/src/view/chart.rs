//! A chart of runs: one bar each, its parts the verdicts. Its colours are classes, for no style stands in a page.

use std::fmt::Write as _;

use weft_suites::store::RunRecord;

use super::target::shown;
use super::{time, url};

/// Units of the drawing.
const HEIGHT: u64 = 120;
const BAR: usize = 16;
const STEP: usize = 20;

/// The chart.
pub(super) struct Chart(String);

impl Chart {
    /// Of runs, the newest first; it shows them from left to right.
    pub(super) fn of(runs: &[RunRecord]) -> Self {
        let over: Vec<_> = runs.iter().rev().filter_map(|run| Some((run, run.summary.as_ref()?))).collect();
        let total = |at: usize| shown(&over[at].1.counts).iter().map(|(_, number)| number).sum::<u64>();
        let most = (0..over.len()).map(total).max().unwrap_or(0);
        if over.len() < 2 || most == 0 {
            return Chart(String::new());
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
                // What is there is seen, however little it is.
                let height = if number == 0 { 0 } else { (number * (HEIGHT - 8) / most).max(2) };
                y = y.saturating_sub(height);
                if height > 0 {
                    let _ = write!(
                        svg,
                        "<rect class=\"{verdict}\" x=\"{x}\" y=\"{y}\" width=\"{BAR}\" height=\"{height}\"/>"
                    );
                }
            }
            svg.push_str("</a>");
        }
        svg.push_str("</svg>");
        Chart(svg)
    }

    /// The drawing; nothing, where there is no trend.
    pub(super) fn svg(self) -> String {
        self.0
    }
}
