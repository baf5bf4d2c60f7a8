//! Draws sequence diagrams (ladder diagrams). A diagram has a vertical line for each of two
//! endpoints, and an arrow for each message. Time increases from top to bottom. The output is
//! Unicode text for terminals, or SVG for HTML pages.
//!
//! ```text
//!              10.1.0.2:35696                     10.1.0.1:7174
//!        ms          │                                  │
//!     0.000      3   ├─ SYN ───────────────────────────▶│
//!    31.772      8   │◀───────────── MPA Reply  Rev 1 C ┤
//!    31.772          │ ▌error MPA-4.1-3: ...            │
//! ```
//!
//! The diagram does not depend on a capture. Callers can therefore draw any sequence of messages
//! between two endpoints. The colours of the SVG are CSS variables of the page: `--weft-wrong`,
//! `--weft-stimulus`, `--weft-good`, `--weft-faint`. The default values of these variables are
//! readable on light and dark backgrounds. Text and lines use the text colour of the page. Colours
//! are in presentation attributes, because the security policies of some pages forbid inline
//! styles.

use std::fmt::Write as _;

use super::pdml::escaped;
use crate::format::counted;
use crate::frame_number::FrameNumber;

/// A sequence diagram.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Ladder {
    /// Text description of the diagram for screen readers.
    pub title: String,
    /// Names of the left and the right endpoint.
    pub participants: [String; 2],
    /// The rows from top to bottom.
    pub rows: Vec<Row>,
    /// Number of omitted rows at the end.
    pub more: u64,
}

/// One row of the diagram: an arrow or a note.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Row {
    /// Time in nanoseconds since the start of the diagram.
    pub time: u64,
    /// Number of the frame in the capture, if the row belongs to a frame.
    pub frame: Option<FrameNumber>,
    /// Arrow or note.
    pub kind: RowKind,
    /// Text of the row.
    pub label: String,
    /// Emphasis of the row.
    pub tone: Tone,
}

/// The drawing of a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RowKind {
    /// An arrow from one endpoint to the other.
    Arrow {
        /// Index of the sender in [`Ladder::participants`], 0 or 1.
        from: u8,
        /// Whether the line is dashed. A dashed line is for a transport event without octets (SYN,
        /// FIN, RST).
        dashed: bool,
    },
    /// A note between the two vertical lines.
    Note,
}

/// The emphasis of a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Tone {
    /// No emphasis.
    #[default]
    Plain,
    /// Less important.
    Faint,
    /// Correct behaviour.
    Good,
    /// Notable, for example a warning or a test stimulus.
    Notable,
    /// An error.
    Wrong,
}

const MAX_LABEL_CHARS: usize = 76;

impl Ladder {
    /// The diagram as text lines for a terminal with `columns` columns. If `columns` is below 60,
    /// the lines still have 60 columns.
    #[must_use]
    pub fn text(&self, columns: usize) -> String {
        let inner = columns.max(60) - 22;
        let mut out = String::new();
        let [left, right] = &self.participants;
        let gap = (inner + 10).saturating_sub(left.chars().count() + right.chars().count());
        let _ = writeln!(out, "{:12}{left}{:gap$}{right}", "", "");
        let _ = writeln!(out, "{:>10} {:>6}  │{:inner$}│", "ms", "frame", "");
        for row in &self.rows {
            let frame = row.frame.map_or_else(String::new, |frame| frame.to_string());
            let _ = write!(out, "{:>10} {frame:>6}  ", milliseconds(row.time));
            match row.kind {
                RowKind::Arrow { from, dashed } => {
                    let label = cut(&row.label, inner - 6);
                    let line = if dashed { "╌" } else { "─" };
                    let rest = line.repeat(inner - 4 - label.chars().count());
                    let _ = if from == 0 {
                        writeln!(out, "├{line} {label} {rest}▶│")
                    } else {
                        writeln!(out, "│◀{rest} {label} {line}┤")
                    };
                }
                RowKind::Note => {
                    let label = cut(&row.label, inner - 4);
                    let mark = if row.tone == Tone::Wrong { '█' } else { '▌' };
                    let pad = inner - 3 - label.chars().count();
                    let _ = writeln!(out, "│ {mark} {label}{:pad$}│", "");
                }
            }
        }
        if self.more > 0 {
            let _ = writeln!(out, "{:19}│{:^inner$}│", "", self.omission());
        }
        out
    }

    /// The diagram as an `<svg>` element.
    #[must_use]
    pub fn svg(&self) -> String {
        let rows = u32::try_from(self.rows.len()).unwrap_or(u32::MAX / ROW - 4);
        let height = TOP + ROW * (rows + 1 + u32::from(self.more > 0));
        let mut svg = format!(
            "<svg class=\"ladder\" xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" role=\"img\" \
             aria-label=\"{}\" font-family=\"ui-monospace, monospace\" font-size=\"12\" fill=\"currentColor\">",
            escaped(&self.title)
        );
        for (x, name) in [(LEFT, &self.participants[0]), (RIGHT, &self.participants[1])] {
            text(&mut svg, (x, 20), "middle", "font-weight=\"bold\"", name);
            line(&mut svg, (x, 28), (x, height - ROW / 2), &stroke(Tone::Faint));
        }
        text(&mut svg, (LEFT - 60, 20), "end", &fill(Tone::Faint), "ms");
        for (index, row) in (1..).zip(&self.rows) {
            row.svg(TOP + ROW * index - ROW / 2, &mut svg);
        }
        if self.more > 0 {
            text(&mut svg, (LEFT + 8, height - 6), "start", &fill(Tone::Faint), &self.omission());
        }
        svg.push_str("</svg>");
        svg
    }

    /// The text below the last row, which shows the number of omitted rows.
    fn omission(&self) -> String {
        format!("and {}", counted(self.more, "more row"))
    }
}

const WIDTH: u32 = 820;
const LEFT: u32 = 150;
const RIGHT: u32 = 710;
const TOP: u32 = 40;
const ROW: u32 = 30;

impl Row {
    /// Appends the row as a `<g>` element at height `y`. Coordinates in the element are relative to
    /// `y`. Therefore rows with equal content have equal text, and equal text compresses well.
    fn svg(&self, y: u32, svg: &mut String) {
        let (fill, faint) = (fill(self.tone), fill(Tone::Faint));
        let _ = write!(svg, "<g transform=\"translate(0,{y})\">");
        if self.frame.is_some() || self.label.chars().count() > MAX_LABEL_CHARS {
            let frame = self.frame.map_or_else(String::new, |frame| format!(", frame {frame}"));
            let _ = write!(svg, "<title>{}{frame}</title>", escaped(&self.label));
        }
        text(svg, (LEFT - 60, 4), "end", &faint, &milliseconds(self.time));
        if let Some(frame) = self.frame {
            text(svg, (LEFT - 10, 4), "end", &faint, &frame.to_string());
        }
        let middle = u32::midpoint(LEFT, RIGHT);
        match self.kind {
            RowKind::Arrow { from, dashed } => {
                let (start, end) = if from == 0 { (LEFT, RIGHT) } else { (RIGHT, LEFT) };
                let dash = if dashed { " stroke-dasharray=\"5 3\"" } else { "" };
                let stroke = stroke(self.tone);
                line(svg, (start, 6), (end, 6), &format!("{stroke} stroke-width=\"1.5\"{dash}"));
                let back = if end > start { end - 8 } else { end + 8 };
                let _ = write!(svg, "<polygon points=\"{end},6 {back},2 {back},10\" {fill}/>");
                text(svg, (middle, 0), "middle", &fill, &self.label);
            }
            RowKind::Note => {
                let (x, width) = (LEFT + 12, RIGHT - LEFT - 24);
                let stroke = stroke(self.tone);
                let _ = write!(
                    svg,
                    "<rect x=\"{x}\" y=\"-10\" width=\"{width}\" height=\"22\" rx=\"4\" fill=\"none\" {stroke}/>"
                );
                text(svg, (middle, 5), "middle", &fill, &self.label);
            }
        }
        svg.push_str("</g>");
    }
}

fn colour(tone: Tone) -> &'static str {
    match tone {
        Tone::Plain => "currentColor",
        Tone::Faint => "var(--weft-faint,#888)",
        Tone::Good => "var(--weft-good,#2f9e57)",
        Tone::Notable => "var(--weft-stimulus,#c2670a)",
        Tone::Wrong => "var(--weft-wrong,#d43a3a)",
    }
}

fn fill(tone: Tone) -> String {
    format!("fill=\"{}\"", colour(tone))
}

fn stroke(tone: Tone) -> String {
    format!("stroke=\"{}\"", colour(tone))
}

fn line(svg: &mut String, (x1, y1): (u32, u32), (x2, y2): (u32, u32), attributes: &str) {
    let _ = write!(svg, "<line x1=\"{x1}\" y1=\"{y1}\" x2=\"{x2}\" y2=\"{y2}\" {attributes}/>");
}

fn text(svg: &mut String, (x, y): (u32, u32), anchor: &str, attributes: &str, label: &str) {
    let label = escaped(&cut(label, MAX_LABEL_CHARS));
    let _ = write!(svg, "<text x=\"{x}\" y=\"{y}\" text-anchor=\"{anchor}\" {attributes}>{label}</text>");
}

/// Limits a label to `most` characters. If the label is cut, its last character becomes an
/// ellipsis. Control characters become blanks.
fn cut(label: &str, most: usize) -> String {
    let clean = |c: char| if c.is_control() { ' ' } else { c };
    if label.chars().count() <= most {
        return label.chars().map(clean).collect();
    }
    let mut cut: String = label.chars().take(most.saturating_sub(1)).map(clean).collect();
    cut.push('…');
    cut
}

fn milliseconds(ns: u64) -> String {
    format!("{}.{:03}", ns / 1_000_000, ns / 1_000 % 1_000)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ladder() -> Ladder {
        let row =
            |time, kind, label: &str, tone| Row { time, frame: Some(3.into()), kind, label: label.to_owned(), tone };
        Ladder {
            title: "a & b".to_owned(),
            participants: ["10.0.0.1:4000".to_owned(), "10.0.0.2:4210".to_owned()],
            rows: vec![
                row(0, RowKind::Arrow { from: 0, dashed: true }, "SYN", Tone::Faint),
                row(1_234_567, RowKind::Arrow { from: 1, dashed: false }, "MPA Reply <R>", Tone::Plain),
                row(1_234_567, RowKind::Note, &"long ".repeat(40), Tone::Wrong),
            ],
            more: 2,
        }
    }

    #[test]
    fn every_line_has_the_requested_width() {
        let text = ladder().text(70);
        insta::assert_snapshot!(text);
        let widths: Vec<_> = text.lines().skip(1).map(|line| line.chars().count()).collect();
        assert_eq!(widths, [69; 5]);
        assert!(ladder().text(0).lines().skip(1).all(|line| line.chars().count() == 59));
    }

    #[test]
    fn the_svg_is_one_element_with_its_texts_escaped() {
        let svg = ladder().svg();
        assert!(svg.starts_with("<svg ") && svg.ends_with("</svg>"));
        assert!(svg.contains("MPA Reply &lt;R&gt;") && svg.contains("aria-label=\"a &amp; b\""));
        for element in ["g", "text", "title"] {
            let count = |text: &str| svg.matches(text).count();
            assert_eq!(count(&format!("<{element}")), count(&format!("</{element}>")));
        }
        assert_eq!(svg.matches("<polygon").count(), 2);
        assert!(!svg.contains("script") && !svg.contains("href"));
        assert!(svg.contains("and 2 more rows") && svg.contains('…'));
    }

    #[test]
    fn arrows_point_to_the_other_end() {
        let svg = ladder().svg();
        assert!(svg.contains(&format!("points=\"{RIGHT},")) && svg.contains(&format!("points=\"{LEFT},")));
        assert!(svg.contains("1.234"));
    }

    #[test]
    fn colours_are_attributes_and_no_styles() {
        let mut ladder = ladder();
        ladder.rows[0].label = "a style=\"color:red\" <b>\u{7}".to_owned();
        let svg = ladder.svg();
        assert!(!svg.contains(" style=\"") && svg.contains(">a style=&quot;color:red&quot; &lt;b&gt; <"), "{svg}");
        assert!(
            svg.contains("stroke=\"var(--weft-faint,#888)\"") && svg.contains("fill=\"var(--weft-wrong,#d43a3a)\"")
        );
    }
}
