//! A transcript as a ladder diagram: SVG with two lifelines, an arrow a step, time running down.
//!
//! ```text
//!     ms     tester                              target
//!    0.02       |----------- 1 TCP connection ----->|
//!    0.02       |----------- 1 MPA Request -------->|
//!    0.06       |<---------- 1 close ---------------|
//!    0.06       |  [MPA-7.1.1-2: FIN after 0.0 ms]  |
//! ```
//!
//! Colours are the CSS variables `--weft-stimulus`, `--weft-wrong`, `--weft-good`, `--weft-faint` of the page that holds it,
//! with defaults that can be read on light and dark; text and lines take the page's text colour.

use std::fmt::Write as _;

use crate::model::{Direction, MarkKind, Step, StepKind};

const WIDTH: u32 = 760;
const TESTER_X: u32 = 110;
const TARGET_X: u32 = 650;
const TOP: u32 = 40;
const ROW: u32 = 30;
/// Most steps that are drawn; a transcript holds the others.
const MAX_STEPS: usize = 400;
/// Most characters of a label, so that it stays between the lifelines.
const MAX_LABEL: usize = 76;

const STIMULUS: &str = "var(--weft-stimulus,#c2670a)";
const WRONG: &str = "var(--weft-wrong,#d43a3a)";
const GOOD: &str = "var(--weft-good,#2f9e57)";
const FAINT: &str = "var(--weft-faint,#888)";

/// The diagram of `steps`, one `<svg>` element.
#[must_use]
pub fn ladder(steps: &[Step]) -> String {
    let shown = &steps[..steps.len().min(MAX_STEPS)];
    let height = TOP + ROW * u32::try_from(shown.len() + 1).unwrap_or(u32::MAX / ROW - TOP);
    let mut svg = format!(
        "<svg class=\"ladder\" xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" role=\"img\" \
         aria-label=\"What tester and target did, in order\" font-family=\"ui-monospace, monospace\" font-size=\"12\" \
         fill=\"currentColor\">"
    );
    for (x, name) in [(TESTER_X, "tester"), (TARGET_X, "target")] {
        text(&mut svg, x, 20, "middle", "font-weight:bold", name);
        let bottom = height - ROW / 2;
        line(&mut svg, (x, 28), (x, bottom), &format!("stroke:{FAINT}"));
    }
    text(&mut svg, TESTER_X - 40, 20, "end", &format!("fill:{FAINT}"), "ms");
    for (index, step) in (1..).zip(shown) {
        let y = TOP + ROW * index - ROW / 2;
        let _ = write!(svg, "<g><title>{}</title>", escaped(&step.text));
        text(&mut svg, TESTER_X - 40, y + 4, "end", &format!("fill:{FAINT}"), &milliseconds(step.at_ns));
        match step.direction {
            Direction::Sent => arrow(&mut svg, step, y, TESTER_X, TARGET_X),
            Direction::Received => arrow(&mut svg, step, y, TARGET_X, TESTER_X),
            Direction::Observed => note(&mut svg, step, y),
        }
        svg.push_str("</g>");
    }
    if shown.len() < steps.len() {
        let more = format!("and {} more", steps.len() - shown.len());
        text(&mut svg, TESTER_X + 8, height - 4, "start", &format!("fill:{FAINT}"), &more);
    }
    svg.push_str("</svg>");
    svg
}

fn arrow(svg: &mut String, step: &Step, y: u32, from: u32, to: u32) {
    let has = |kind| step.octets.iter().flat_map(|octets| &octets.marks).any(|mark| mark.kind == kind);
    let colour = if has(MarkKind::Wrong) {
        WRONG
    } else if has(MarkKind::Stimulus) {
        STIMULUS
    } else {
        "currentColor"
    };
    let dash = if step.kind == StepKind::Octets { "" } else { ";stroke-dasharray:5 3" };
    line(svg, (from, y + 6), (to, y + 6), &format!("stroke:{colour};stroke-width:1.5{dash}"));
    let back = if to > from { to - 8 } else { to + 8 };
    let _ = write!(
        svg,
        "<polygon points=\"{to},{y6} {back},{y2} {back},{y10}\" style=\"fill:{colour}\"/>",
        y6 = y + 6,
        y2 = y + 2,
        y10 = y + 10
    );
    let len = step.octets.as_ref().map_or_else(String::new, |octets| format!(" · {}", octets.len));
    let label = format!("{} {}{len}", step.connection, step.text);
    text(svg, u32::midpoint(TESTER_X, TARGET_X), y, "middle", &format!("fill:{colour}"), &label);
}

fn note(svg: &mut String, step: &Step, y: u32) {
    let colour = match step.kind {
        StepKind::Met => GOOD,
        StepKind::Unmet => WRONG,
        StepKind::Refused | StepKind::Silence => STIMULUS,
        StepKind::Connected | StepKind::Octets | StepKind::Fin | StepKind::Reset | StepKind::Note => FAINT,
    };
    let (x, width) = (TESTER_X + 12, TARGET_X - TESTER_X - 24);
    let _ = write!(
        svg,
        "<rect x=\"{x}\" y=\"{}\" width=\"{width}\" height=\"22\" rx=\"4\" style=\"fill:none;stroke:{colour}\"/>",
        y - 10
    );
    text(svg, u32::midpoint(TESTER_X, TARGET_X), y + 5, "middle", &format!("fill:{colour}"), &step.text);
}

fn line(svg: &mut String, from: (u32, u32), to: (u32, u32), style: &str) {
    let ((x1, y1), (x2, y2)) = (from, to);
    let _ = write!(svg, "<line x1=\"{x1}\" y1=\"{y1}\" x2=\"{x2}\" y2=\"{y2}\" style=\"{style}\"/>");
}

fn text(svg: &mut String, x: u32, y: u32, anchor: &str, style: &str, label: &str) {
    let mut short: String = label.chars().take(MAX_LABEL).collect();
    if short.len() < label.len() {
        short.push('…');
    }
    let short = escaped(&short);
    let _ = write!(svg, "<text x=\"{x}\" y=\"{y}\" text-anchor=\"{anchor}\" style=\"{style}\">{short}</text>");
}

fn milliseconds(ns: u64) -> String {
    format!("{}.{:03}", ns / 1_000_000, ns / 1000 % 1000)
}

fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            // XML has no place for control characters.
            c if c.is_control() => escaped.push(' '),
            c => escaped.push(c),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Octets;

    fn step(direction: Direction, kind: StepKind, text: &str) -> Step {
        let octets = (kind == StepKind::Octets).then(|| Octets::new(&[1, 2, 3]));
        Step { at_ns: 1_234_567, connection: 1, direction, kind, text: text.into(), octets }
    }

    #[test]
    fn arrows_point_the_right_way_and_text_is_escaped() {
        let svg = ladder(&[
            step(Direction::Sent, StepKind::Octets, "a <Request> & \"more\"\u{7}"),
            step(Direction::Received, StepKind::Fin, "close"),
            step(Direction::Observed, StepKind::Met, "met"),
        ]);
        assert!(svg.contains("a &lt;Request&gt; &amp; &quot;more&quot; "));
        assert!(svg.contains(&format!("points=\"{TARGET_X},")) && svg.contains(&format!("points=\"{TESTER_X},")));
        assert!(svg.contains("1.234") && svg.contains("· 3") && svg.contains(GOOD));
        assert!(svg.starts_with("<svg") && svg.ends_with("</svg>"));
    }

    #[test]
    fn a_long_transcript_is_cut_and_says_so() {
        let steps = vec![step(Direction::Sent, StepKind::Octets, &"x".repeat(500)); MAX_STEPS + 3];
        let svg = ladder(&steps);
        assert_eq!(svg.matches("<polygon").count(), MAX_STEPS);
        assert!(svg.contains("and 3 more") && svg.contains('…'));
        assert!(ladder(&[]).ends_with("</svg>"));
    }
}
