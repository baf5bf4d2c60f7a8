//! The mouse on the capture screen.

use ratatui::layout::Position;

use super::{Panel, Screen};
use crate::byte_columns::octet_at;
use crate::command::Command;
use crate::motion::Motion;
use crate::mouse::{Mouse, WHEEL};
use crate::terminal::Screen as _;

impl Screen {
    pub(super) fn handle_mouse(&mut self, mouse: Mouse) {
        match mouse {
            _ if self.help => self.help = false,
            Mouse::Scroll(at, motion) => self.scroll(at, motion),
            Mouse::Click(at) => self.click(at),
        }
    }

    fn scroll(&mut self, at: Position, motion: Motion) {
        if let Some(overlay) = &mut self.overlay {
            for _ in 0..WHEEL {
                overlay.list.go(motion, overlay.lines.len());
            }
            return;
        }
        let panels = [
            (Panel::Packets, self.packets.contains(at)),
            (Panel::Fields, self.fields.list.contains(at)),
            (Panel::Octets, self.octets.list.contains(at)),
        ];
        let Some((panel, _)) = panels.into_iter().find(|(_, is_there)| *is_there) else { return };
        let focus = std::mem::replace(&mut self.focus, panel);
        (0..WHEEL).for_each(|_| self.go(motion));
        self.focus = focus;
    }

    fn click(&mut self, at: Position) {
        if let Some(overlay) = &mut self.overlay {
            match overlay.list.hit(at, overlay.lines.len()) {
                Some((line, _)) if line == overlay.list.selected => drop(self.command(Command::Toggle)),
                Some((line, _)) => overlay.list.selected = line,
                None => {}
            }
        } else if let Some((line, _)) = self.packets.hit(at, self.listed()) {
            self.focus = Panel::Packets;
            self.follows_newest = false;
            if let Some(filtered) = &mut self.filtered {
                filtered.anchor = None;
            }
            self.packets.selected = line;
            self.show();
        } else if let Some(line) = self.fields.hit(at) {
            self.focus = Panel::Fields;
            if line == self.fields.list.selected {
                self.fields.turn(None);
            } else {
                self.fields.list.selected = line;
                self.fields.choose();
                self.follow_field();
            }
        } else if let Some((row, column)) = self.octets.list.hit(at, usize::MAX) {
            self.focus = Panel::Octets;
            let columns = self.octets.columns.max(1);
            if let Some(octet) = octet_at(column, columns) {
                self.move_cursor(row.saturating_mul(columns).saturating_add(octet));
            }
        }
    }
}
