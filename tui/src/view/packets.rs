//! The panel with the packets: one row for each frame.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Style;
use ratatui::text::{Line, Span};
use weft_dissector::browse::OwnedRow;

use super::{line, panel};
use crate::capture::{Panel, Screen};

/// From this width on, rows have addresses and ports. Narrower rows have only ports.
const WIDE: u16 = 110;

pub(super) fn draw(screen: &mut Screen, area: Rect, buf: &mut Buffer) {
    let focused = screen.focus == Panel::Packets;
    let theme = screen.theme;
    let len = screen.listed();
    let place = if len == 0 { 0 } else { screen.packets.selected + 1 };
    let title = match &screen.filtered {
        None => format!("Packets {place}/{len}"),
        Some(filtered) => {
            let reading = match filtered.is_reading {
                true if screen.live.is_none() => format!(", reading frame {}", filtered.read()),
                _ => String::new(),
            };
            format!("Packets {place}/{len} of {}{reading}, filter {}", screen.index.len(), filtered.text)
        }
    };
    let inside = panel(&title, "", focused, theme, area, buf);
    let (head, list) = (Rect { height: inside.height.min(1), ..inside }, below(inside));
    let wide = inside.width >= WIDE;
    line(&Line::from(heading(wide)), 0, theme.faint(), head, buf);
    let origin = screen.index.row(0).map_or(0, |row| row.time);
    screen.packets.place(list);
    let window = screen.packets.window(len, usize::from(list.height));
    for (at, listed) in window.clone().enumerate() {
        let Some(row) = screen.listed_row(listed) else { break };
        let base = row.worst.map_or(Style::new(), |severity| theme.severity(severity));
        let style = if listed == screen.packets.selected { base.patch(theme.selected(focused)) } else { base };
        let info = if row.units > 0 { Style::new() } else { theme.faint() };
        let text = Line::from(vec![Span::raw(columns(&row, origin, wide)), Span::styled(words(&row), info)]);
        line(&text, at, style, list, buf);
    }
}

fn below(area: Rect) -> Rect {
    Rect { y: area.y + area.height.min(1), height: area.height.saturating_sub(1), ..area }
}

fn heading(wide: bool) -> String {
    let ends = if wide { format!("{:<45}", "From → to") } else { format!("{:<13}", "Ports") };
    format!("{:>7} {:>12} {:>3}  {ends} Info", "No", "Time", "TCP")
}

fn columns(row: &OwnedRow, origin: u64, wide: bool) -> String {
    let since = row.time.saturating_sub(origin);
    let time = format!("{}.{:06}", since / 1_000_000_000, since % 1_000_000_000 / 1_000);
    let stream = row.stream().map_or_else(String::new, |stream| stream.to_string());
    let ends = match row.ends {
        Some((src, dst)) if wide => format!("{:<45}", format!("{src} → {dst}")),
        Some((src, dst)) => format!("{:<13}", format!("{} → {}", src.port(), dst.port())),
        None if wide => format!("{:<45}", ""),
        None => format!("{:<13}", ""),
    };
    format!("{:>7} {time:>12} {stream:>3}  {ends} ", row.number)
}

/// Returns the summary of the frame. If the frame has findings, a mark with the severity comes
/// first.
fn words(row: &OwnedRow) -> String {
    let mark = match (row.worst, row.findings) {
        (None, _) => String::new(),
        (Some(severity), 1) => format!("[{severity}] "),
        (Some(severity), count) => format!("[{severity} x{count}] "),
    };
    mark + &row.text()
}
