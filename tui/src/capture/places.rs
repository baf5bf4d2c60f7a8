//! Selecting a packet: the list with or without a filter, jumps, input lines, lists over the
//! panels.

use weft_dissector::browse::{OwnedRow, PackedIndex};

use super::feed::FAILED;
use super::filtered::Filtered;
use super::hunt::{Hunt, Hunted};
use super::lines::Kind;
use super::sheet::Sheet;
use super::{Panel, Screen};
use crate::command::Command;
use crate::entry::{Entry, Purpose, next_place};

impl Screen {
    /// The number of listed packets.
    pub(crate) fn listed(&self) -> usize {
        let last = self.paused.unwrap_or(u64::MAX).min(self.index.last());
        match &self.filtered {
            // The filter may have read more than the indexer.
            Some(filtered) => filtered.frames().len_until(last),
            None if self.paused.is_some() => self.index.find(last).map_or(0, |place| place + 1),
            None => self.index.len(),
        }
    }

    /// The row at an index of the list.
    pub(crate) fn listed_row(&self, at: usize) -> Option<OwnedRow> {
        let place = match &self.filtered {
            Some(filtered) => filtered.frames().get(at).and_then(|number| self.index.find(number))?,
            None => at,
        };
        self.index.row(place)
    }

    /// The row of the selected frame.
    pub(crate) fn row(&self) -> Option<OwnedRow> {
        self.listed_row(self.packets.selected)
    }

    /// The place in the list of the row at `place` of the index.
    fn place_in_list(&self, place: usize) -> Option<usize> {
        match &self.filtered {
            Some(filtered) => self.index.row(place).and_then(|row| filtered.frames().find(row.number)),
            None => Some(place),
        }
    }

    /// Selects the row at `place` of the index. Removes a filter that hides it, with a notice.
    pub(super) fn select_packet(&mut self, place: usize) {
        let at = self.place_in_list(place).unwrap_or_else(|| {
            self.filtered = None;
            self.notice = Some("the filter hides that frame and is removed".to_owned());
            place
        });
        if let Some(filtered) = &mut self.filtered {
            filtered.anchor = None;
        }
        if self.paused.is_some_and(|last| self.index.row(place).is_some_and(|row| row.number > last)) {
            self.paused = None;
        }
        self.tails = false;
        self.packets.selected = at;
        self.show();
    }

    /// Selects the frame with this number; `false` if there is none.
    fn select_frame(&mut self, number: u64) -> bool {
        let place = self.index.find(number);
        if let Some(place) = place {
            self.focus = Panel::Packets;
            self.select_packet(place);
        }
        place.is_some()
    }

    /// Selects a listed row with a finding.
    pub(super) fn jump(&mut self, step: fn(&PackedIndex, usize) -> Option<usize>) {
        let mut at = self.row().and_then(|row| self.index.find(row.number)).unwrap_or(0);
        // At most one round.
        for _ in 0..self.index.marked() {
            let Some(next) = step(&self.index, at) else { return };
            if self.place_in_list(next).is_some() {
                return self.select_packet(next);
            }
            at = next;
        }
    }

    /// Opens an input line. For a filter, it starts with the current filter.
    pub(super) fn begin_entry(&mut self, purpose: Purpose) {
        let mut entry = Entry::new(purpose);
        if let (Purpose::Filter, Some(filtered)) = (purpose, &self.filtered) {
            entry.text.clone_from(&filtered.text);
        }
        self.entry = Some(entry);
    }

    /// Executes an input line: searches a text, selects a frame, or filters.
    pub(super) fn follow_entry(&mut self, entry: Entry) {
        match entry.purpose {
            Purpose::Search => {
                if !entry.text.is_empty() {
                    self.searched = entry.text.to_lowercase();
                }
                self.search();
            }
            Purpose::Frame => {
                if !entry.text.trim().parse().is_ok_and(|number| self.select_frame(number)) {
                    self.notice =
                        Some(format!("there is no frame {:?}; the last is {}", entry.text, self.index.last()));
                }
            }
            Purpose::Filter => self.filter(entry),
        }
    }

    fn search(&mut self) {
        if let Some(sheet) = &mut self.sheet {
            let has = |at: usize| sheet.lines[at].text.to_lowercase().contains(&self.searched);
            match next_place(sheet.list.selected, sheet.lines.len(), has) {
                Some(at) => sheet.list.selected = at,
                None => self.notice = Some(format!("no line has {:?}", self.searched)),
            }
            return;
        }
        self.hunt = Some(Hunt::new(self.packets.selected, self.listed()));
        self.poll_hunt();
    }

    /// Continues a search; `true` if there is one.
    pub(super) fn poll_hunt(&mut self) -> bool {
        let Some(mut hunt) = self.hunt.take() else { return false };
        let has = |at: usize| {
            self.listed_row(at).is_some_and(|row| search_text(&row).to_lowercase().contains(&self.searched))
        };
        match hunt.on(has) {
            Hunted::NotYet => self.hunt = Some(hunt),
            Hunted::At(at) => {
                self.focus = Panel::Packets;
                self.tails = false;
                self.packets.selected = at;
                self.show();
            }
            Hunted::Nowhere => {
                let text = format!("no packet has {:?} in its row; fields and bytes are not searched", self.searched);
                self.notice = Some(text);
            }
        }
        true
    }

    /// Filters the list; an empty filter lists all packets. A wrong filter stays in the input line.
    fn filter(&mut self, entry: Entry) {
        let number = self.row().map(|row| row.number);
        let text = entry.text.trim();
        if text.is_empty() {
            return self.unfilter();
        }
        match Filtered::start(&self.recording, text, number) {
            Ok(filtered) => {
                self.filtered = Some(filtered);
                self.sheet = None;
                self.focus = Panel::Packets;
                self.packets.selected = 0;
                self.show();
            }
            Err(why) => {
                self.notice = Some(why);
                self.entry = Some(entry);
            }
        }
    }

    /// Removes the filter; the selected packet stays selected.
    fn unfilter(&mut self) {
        let number = self.row().map(|row| row.number);
        self.filtered = None;
        self.packets.selected = number.and_then(|number| self.index.find(number)).unwrap_or(0);
        self.show();
    }

    /// Removes the filter, if there is one.
    pub(super) fn back(&mut self) {
        if self.filtered.is_some() {
            self.unfilter();
        } else {
            self.notice = Some("there is no list or filter to leave; q quits".to_owned());
        }
    }

    /// Takes results of the filter; `true` if there were any.
    pub(super) fn poll_filter(&mut self, most: usize) -> bool {
        let before = self.row().map(|row| row.number);
        let Some(filtered) = &mut self.filtered else { return false };
        let changed = filtered.poll(most);
        if changed && filtered.has_failed {
            self.notice = Some(FAILED.to_owned());
        }
        if self.tails {
            self.packets.selected = self.listed().saturating_sub(1);
        } else if let Some(anchor) = filtered.anchor {
            self.packets.selected = filtered.frames().near(anchor);
        } else if let Some(at) = before.and_then(|number| filtered.frames().find(number)) {
            // A late result moves the others.
            self.packets.selected = at;
        }
        if self.row().map(|row| row.number) != before {
            self.show();
        }
        changed
    }

    /// Opens a list.
    pub(super) fn open_sheet(&mut self, kind: Kind) {
        let frame = self.row().map_or(0, |row| row.number);
        // The connection of the selected line in a list, otherwise that of the packet.
        let line = self.sheet.as_ref().and_then(|sheet| sheet.lines.get(sheet.list.selected));
        let stream = line.and_then(|line| line.stream).or_else(|| self.row().and_then(|row| row.stream()));
        self.sheet = match (kind, stream) {
            (Kind::Findings, _) => Some(Sheet::findings(self.index.findings(), self.index.counts().2, frame)),
            (Kind::Ladder | Kind::Messages | Kind::Payload, None) => {
                self.notice = Some("this frame belongs to no TCP connection; select another frame".to_owned());
                return;
            }
            _ => Some(Sheet::study(&self.recording, kind, stream.unwrap_or_default(), frame)),
        };
    }

    /// Executes a command for a list; `false` if it is not for the list.
    pub(super) fn sheet_command(&mut self, command: Command) -> bool {
        let Some(sheet) = &mut self.sheet else { return false };
        match command {
            Command::Quit | Command::Back => self.sheet = None,
            Command::Open(kind) if kind == sheet.kind => self.sheet = None,
            Command::Move(motion) => sheet.list.go(motion, sheet.lines.len()),
            Command::Toggle => {
                if let Some(frame) = sheet.lines.get(sheet.list.selected).and_then(|line| line.frame) {
                    self.sheet = None;
                    if !self.select_frame(frame) {
                        self.notice = Some(format!("frame {frame} is not in the index"));
                    }
                }
            }
            Command::Left | Command::Right | Command::NextPanel | Command::PreviousPanel => {}
            Command::NextMarked | Command::PreviousMarked => {}
            Command::Again | Command::AgainFailed | Command::UntilFailure | Command::Stop => {}
            Command::Help | Command::Theme | Command::Pause | Command::Type(_) | Command::Open(_) => return false,
        }
        true
    }
}

/// The text of a row that a search compares.
fn search_text(row: &OwnedRow) -> String {
    let ends = row.ends.map_or_else(String::new, |(src, dst)| format!("{src} → {dst} "));
    let worst = row.worst.map_or_else(String::new, |severity| format!("[{severity}] "));
    ends + &worst + &row.words()
}
