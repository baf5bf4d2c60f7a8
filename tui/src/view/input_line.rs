//! The input line. For a display filter, the error and the completions are above the input line.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Style;
use ratatui::text::Line;
use ratatui::widgets::{Clear, Widget};
use weft_core::requirement::Severity;

use super::{bar, line, panel};
use crate::complete::advise;
use crate::input_line::{InputLine, Purpose};
use crate::theme::Theme;
use crate::wrap::wrap;

/// The maximum number of visible proposals.
const MAX_PROPOSALS: usize = 8;

/// Draws the input line in `footer`, and the advice at the bottom of `above`.
pub(super) fn draw(input_line: &InputLine, theme: Theme, above: Rect, footer: Rect, buf: &mut Buffer) {
    let keys = match input_line.purpose {
        Purpose::Filter => "Tab completes, Enter filters, Esc leaves ",
        Purpose::Search | Purpose::Frame => "Enter goes, Esc leaves ",
    };
    let shown = input_line.shown();
    // If the text is too long, show the end of the text.
    let room = usize::from(footer.width).saturating_sub(keys.chars().count() + 4);
    let skipped = shown.chars().count().saturating_sub(room);
    let shown: String = shown.chars().skip(skipped).collect();
    bar(&format!(" {shown}▏"), keys, Style::new(), footer, buf);
    if input_line.purpose != Purpose::Filter {
        return;
    }
    let advice = advise(&input_line.text);
    let (title, mut lines) = match &advice.fault {
        Some(fault) => ("Filter: not valid", wrap(fault, usize::from(above.width).saturating_sub(4))),
        None if input_line.text.trim().is_empty() => ("Filter", vec!["all packets".to_owned()]),
        None => ("Filter: valid", Vec::new()),
    };
    let faults = lines.len();
    lines.extend(advice.words.iter().take(MAX_PROPOSALS).map(|(word, label)| format!("{word:<34} {label}")));
    if advice.words.len() > MAX_PROPOSALS {
        lines.push(format!("and {} more", advice.words.len() - MAX_PROPOSALS));
    }
    let height = u16::try_from(lines.len() + 2).unwrap_or(u16::MAX).min(above.height);
    let area = Rect { y: above.bottom() - height, height, ..above };
    Clear.render(area, buf);
    let inside = panel(title, "", true, theme, area, buf);
    let loud = if advice.fault.is_some() { theme.severity(Severity::Warning) } else { Style::new() };
    for (row, words) in lines.iter().enumerate() {
        let style = if row < faults { loud } else { Style::new() };
        line(&Line::from(format!(" {words}")), row, style, inside, buf);
    }
}
