//! The panel with the packets: one row for each frame.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Style;
use ratatui::text::{Line, Span};
use weft_dissector::browse::OwnedRow;

use super::{line, panel};
use crate::address::{IPV4_LEN, short};
use crate::capture::{Panel, Screen};
use crate::time::time_of_day;

/// From this width on, rows have the addresses and ports of both endpoints. Narrower rows have only
/// the port of the receiver.
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
    let origin = screen.index.row(0).map_or(0, |row| row.time);
    screen.packets.place(list);
    let window = screen.packets.window(len, usize::from(list.height));
    let cells: Vec<_> =
        window.map_while(|at| Some((at, Cells::of(screen, screen.listed_row(at)?, origin, inside)))).collect();
    let widths = Widths::of(screen, &cells, inside);
    line(&Line::from(widths.heading()), 0, theme.faint(), head, buf);
    for (at, (listed, cells)) in cells.iter().enumerate() {
        let row = &cells.row;
        let base = row.worst.map_or(Style::new(), |severity| theme.severity(severity));
        let style = if *listed == screen.packets.selected { base.patch(theme.selected(focused)) } else { base };
        let info = if row.units > 0 { Style::new() } else { theme.faint() };
        let text = Line::from(vec![Span::raw(widths.columns(cells)), Span::styled(words(row), info)]);
        line(&text, at, style, list, buf);
    }
}

fn below(area: Rect) -> Rect {
    Rect { y: area.y + area.height.min(1), height: area.height.saturating_sub(1), ..area }
}

/// Returns whether a row has the port of the receiver and also its address.
fn is_wide(area: Rect) -> bool {
    area.width >= WIDE
}

/// The texts of one row.
struct Cells {
    row: OwnedRow,
    time: String,
    ends: String,
}

impl Cells {
    fn of(screen: &Screen, row: OwnedRow, origin: u64, area: Rect) -> Self {
        let since = row.time.saturating_sub(origin);
        let time = match screen.is_absolute {
            true => time_of_day(row.time),
            false => format!("{}.{:06}", since / 1_000_000_000, since % 1_000_000_000 / 1_000),
        };
        let ends = row.ends.map_or_else(String::new, |(from, to)| {
            let to = if is_wide(area) { short(&to.to_string(), IPV4_LEN) } else { to.port().to_string() };
            format!("{} → {to}", short(&from.to_string(), IPV4_LEN))
        });
        Cells { row, time, ends }
    }
}

/// The widths of the columns, in characters. In a narrow panel, they depend on the texts, so that
/// the summary has more room.
struct Widths {
    number: usize,
    time: usize,
    ends: usize,
    is_wide: bool,
}

impl Widths {
    fn of(screen: &Screen, cells: &[(usize, Cells)], area: Rect) -> Self {
        if is_wide(area) {
            let time = if screen.is_absolute { 15 } else { 12 };
            return Widths { number: 7, time, ends: 2 * IPV4_LEN + 3, is_wide: true };
        }
        let number = u64::from(screen.index.last()).to_string().len().max(3);
        let time = cells.iter().map(|(_, cells)| cells.time.chars().count()).max().unwrap_or(0);
        let ends = cells.iter().map(|(_, cells)| cells.ends.chars().count()).max().unwrap_or(0);
        Widths { number, time: time.max(8), ends: ends.max(11), is_wide: false }
    }

    fn heading(&self) -> String {
        let Widths { number, time, ends, is_wide } = *self;
        let names = if is_wide { "From → to" } else { "From → port" };
        format!("{:>number$} {:>time$} {:>3}  {names:<ends$} Info", "No", "Time", "TCP")
    }

    fn columns(&self, cells: &Cells) -> String {
        let Widths { number, time, ends, .. } = *self;
        let stream = cells.row.stream().map_or_else(String::new, |stream| stream.to_string());
        format!("{:>number$} {:>time$} {stream:>3}  {:<ends$} ", cells.row.number, cells.time, cells.ends)
    }
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
