//! The layout of the capture screen.

use ratatui::Frame;
use ratatui::buffer::Buffer;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::widgets::{Clear, Widget};
use weft_core::requirement::Severity;

use super::{Draw, bar, fields, help, input_line, list_overlay, octets, packets};
use crate::capture::Screen;
use crate::capture::indexer::MAX_FRAMES;

impl Draw for Screen {
    fn draw(&mut self, frame: &mut Frame<'_>) {
        draw(self, frame.area(), frame.buffer_mut());
    }
}

fn draw(screen: &mut Screen, area: Rect, buf: &mut Buffer) {
    let rows = [Constraint::Length(1), Constraint::Fill(2), Constraint::Fill(3), Constraint::Length(1)];
    let [header, above, below, footer] = Layout::vertical(rows).areas(area);
    let octets_width = if area.width >= 45 + octets::WIDE { octets::WIDE } else { octets::NARROW };
    let columns = [Constraint::Fill(1), Constraint::Length(octets_width)];
    let [left, right] = Layout::horizontal(columns).areas(below);
    header_line(screen, header, buf);
    packets::draw(screen, above, buf);
    fields::draw(screen, left, buf);
    octets::draw(screen, right, buf);
    let middle = above.union(below);
    if let Some(shown) = &mut screen.overlay {
        Clear.render(middle, buf);
        list_overlay::draw(shown, screen.theme, middle, buf);
    }
    match &screen.input_line {
        Some(typed) => input_line::draw(typed, screen.theme, middle, footer, buf),
        None => footer_line(screen, footer, buf),
    }
    if screen.help {
        let about = format!(
            "weft lists up to {MAX_FRAMES} frames of a capture, at about 25 bytes of memory each. To show bytes and \
             fields, weft dissects the capture again, up to the selected frame."
        );
        help::draw(false, &about, screen.theme, area, buf);
    }
}

fn header_line(screen: &Screen, area: Rect, buf: &mut Buffer) {
    let (units, streams, findings) = screen.index.counts();
    let left = format!(" weft  {}", screen.name);
    let frames = screen.index.len();
    let reading = match (&screen.live, &screen.end) {
        (Some(_), None) if screen.paused.is_some() => "PAUSED  ".to_owned(),
        (Some(_), None) => "live  ".to_owned(),
        (Some(_), Some(_)) => "ended  ".to_owned(),
        (None, Some(_)) => String::new(),
        (None, None) => match screen.progress() {
            (Some(percent), _) => format!("reading, {percent} %  "),
            (None, octets) => format!("reading, {} MiB  ", octets >> 20),
        },
    };
    let (lost, files) = screen.live.as_ref().map_or_else(Default::default, |live| {
        let lost = format!("  dropped {} + {}", live.dropped_by_kernel, live.dropped_by_interface);
        (lost, format!("  files {}", live.files))
    });
    let all =
        format!("{reading}frames {frames}  connections {streams}  units {units}  findings {findings}{lost}{files} ");
    // If the line is too narrow, omit counts that lists also show. Never omit dropped frames.
    let right = if left.chars().count() + all.chars().count() > usize::from(area.width) {
        format!("{reading}frames {frames}  findings {findings}{lost} ")
    } else {
        all
    };
    bar(&left, &right, screen.theme.heading(), area, buf);
}

/// Draws the last line of the screen. It shows the first of these texts that is present:
///
/// 1. a message
/// 2. sentences about frames that were not read
/// 3. the keys, first those of the views that answer most questions
fn footer_line(screen: &Screen, area: Rect, buf: &mut Buffer) {
    let searching = screen.search.map(|search| format!("searching, {} %", search.percent()));
    let lost = screen.live.as_ref().and_then(|live| live.ended.as_deref());
    let end = screen.end.as_ref().and_then(|end| end.as_deref()).or(lost);
    let bare = screen.live.is_none() && screen.end == Some(None) && screen.index.is_empty();
    let end = end.or(bare.then_some("the capture has a header but no frames"));
    let trouble = searching.as_deref().or(screen.notice.as_deref()).or(screen.trouble.as_deref()).or(end);
    let remarks = screen.remarks.join("; ");
    let (words, style) = match trouble {
        Some(note) => (note, screen.theme.severity(Severity::Warning)),
        None if !remarks.is_empty() => (remarks.as_str(), screen.theme.severity(Severity::Note)),
        None => ("F findings  C connections  L ladder  M messages  f filter  ? help  q quit", screen.theme.faint()),
    };
    bar(&format!(" {words}"), "", style, area, buf);
}
