//! Selects packets: in the list with or without a filter, by jumps to findings, by input lines, and
//! by links of the lists that cover the panels.
//!
//! A place is the position of a row in the index of all frames. With a filter, a row has another
//! position in the list of packets.

use weft_dissector::FrameNumber;
use weft_dissector::browse::{OwnedRow, PackedIndex};

use super::filtered::PacketFilter;
use super::lines::Kind;
use super::list_overlay::ListOverlay;
use super::queue::FAILED;
use super::search::{Search, SearchStep};
use super::{Panel, Screen};
use crate::command::Command;
use crate::input_line::{InputLine, Purpose, next_place};

impl Screen {
    /// Returns the number of packets in the list.
    pub(crate) fn listed(&self) -> usize {
        let last = self.paused.unwrap_or(FrameNumber::MAX).min(self.index.last());
        match &self.filtered {
            // The filter can have read more frames than the indexer. Count only frames that the
            // index has.
            Some(filtered) => filtered.frames().len_until(last),
            None if self.paused.is_some() => self.index.find(last).map_or(0, |place| place + 1),
            None => self.index.len(),
        }
    }

    /// Returns the row at an index of the list. Its sequence number is relative, unless the screen
    /// shows absolute numbers.
    pub(crate) fn listed_row(&self, at: usize) -> Option<OwnedRow> {
        let place = match &self.filtered {
            Some(filtered) => filtered.frames().get(at).and_then(|number| self.index.find(number))?,
            None => at,
        };
        let row = self.index.row(place)?;
        Some(if self.is_absolute { row } else { self.sequences.relative(row) })
    }

    /// Returns the row of the selected frame.
    pub(crate) fn row(&self) -> Option<OwnedRow> {
        self.listed_row(self.packets.selected)
    }

    /// Returns the index, in the list, of the row at `place`. Returns `None` if the filter hides
    /// the row.
    fn place_in_list(&self, place: usize) -> Option<usize> {
        match &self.filtered {
            Some(filtered) => self.index.row(place).and_then(|row| filtered.frames().find(row.number)),
            None => Some(place),
        }
    }

    /// Selects the row at `place`. If the filter hides this row, removes the filter and shows a
    /// notice.
    pub(super) fn select_packet(&mut self, place: usize) {
        let at = self.place_in_list(place).unwrap_or_else(|| {
            self.filtered = None;
            self.notice = Some("the filter hid that frame, so the filter is removed".to_owned());
            place
        });
        if let Some(filtered) = &mut self.filtered {
            filtered.anchor = None;
        }
        if self.paused.is_some_and(|last| self.index.row(place).is_some_and(|row| row.number > last)) {
            self.paused = None;
        }
        self.follows_newest = false;
        self.packets.selected = at;
        self.show();
    }

    /// Selects the frame with this number. Returns `false` if the index has no such frame.
    fn select_frame(&mut self, number: FrameNumber) -> bool {
        let place = self.index.find(number);
        if let Some(place) = place {
            self.focus = Panel::Packets;
            self.select_packet(place);
        }
        place.is_some()
    }

    /// Selects the next or previous listed row with a finding. `step` decides the direction: from a
    /// place, it returns the place of the next or previous row with a finding, with wrap-around.
    pub(super) fn jump(&mut self, step: fn(&PackedIndex, usize) -> Option<usize>) {
        let mut at = self.row().and_then(|row| self.index.find(row.number)).unwrap_or(0);
        // Try each row with a finding at most once.
        for _ in 0..self.index.marked() {
            let Some(next) = step(&self.index, at) else { return };
            if self.place_in_list(next).is_some() {
                return self.select_packet(next);
            }
            at = next;
        }
    }

    /// Opens an input line. The input line for a filter starts with the current filter.
    pub(super) fn begin_input(&mut self, purpose: Purpose) {
        let mut input_line = InputLine::new(purpose);
        if let (Purpose::Filter, Some(filtered)) = (purpose, &self.filtered) {
            input_line.text.clone_from(&filtered.text);
        }
        self.input_line = Some(input_line);
    }

    /// Executes a complete input line: searches for a text, selects a frame, or starts a filter.
    pub(super) fn apply_input(&mut self, input_line: InputLine) {
        match input_line.purpose {
            Purpose::Search => {
                if !input_line.text.is_empty() {
                    self.searched = input_line.text.to_lowercase();
                }
                self.search();
            }
            Purpose::Frame => {
                if !input_line.text.trim().parse().is_ok_and(|number| self.select_frame(number)) {
                    let last = self.index.last();
                    self.notice = Some(format!("there is no frame {:?}; the last frame is {last}", input_line.text));
                }
            }
            Purpose::Filter => self.filter(input_line),
        }
    }

    fn search(&mut self) {
        if let Some(overlay) = &mut self.overlay {
            let has = |at: usize| overlay.lines[at].text.to_lowercase().contains(&self.searched);
            match next_place(overlay.list.selected, overlay.lines.len(), has) {
                Some(at) => overlay.list.selected = at,
                None => self.notice = Some(format!("no line contains {:?}", self.searched)),
            }
            return;
        }
        self.search = Some(Search::new(self.packets.selected, self.listed()));
        self.poll_search();
    }

    /// Continues the search in progress. Returns `false` if there was no search.
    pub(super) fn poll_search(&mut self) -> bool {
        let Some(mut search) = self.search.take() else { return false };
        let has = |at: usize| {
            self.listed_row(at).is_some_and(|row| search_text(&row).to_lowercase().contains(&self.searched))
        };
        match search.search_part(has) {
            SearchStep::Unfinished => self.search = Some(search),
            SearchStep::Found(at) => {
                self.focus = Panel::Packets;
                self.follows_newest = false;
                self.packets.selected = at;
                self.show();
            }
            SearchStep::NotFound => {
                let text = format!("no packet has {:?} in its row; fields and bytes are not searched", self.searched);
                self.notice = Some(text);
            }
        }
        true
    }

    /// Filters the list. An empty filter lists all packets. An invalid filter stays in the input
    /// line.
    fn filter(&mut self, input_line: InputLine) {
        let number = self.row().map(|row| row.number);
        let text = input_line.text.trim();
        if text.is_empty() {
            return self.unfilter();
        }
        match PacketFilter::start(&self.recording, text, number) {
            Ok(filtered) => {
                self.filtered = Some(filtered);
                self.overlay = None;
                self.focus = Panel::Packets;
                self.packets.selected = 0;
                self.show();
            }
            Err(why) => {
                self.notice = Some(why);
                self.input_line = Some(input_line);
            }
        }
    }

    /// Removes the filter. The selected packet stays selected.
    fn unfilter(&mut self) {
        let number = self.row().map(|row| row.number);
        self.filtered = None;
        self.packets.selected = number.and_then(|number| self.index.find(number)).unwrap_or(0);
        self.show();
    }

    /// Removes the filter, or shows a notice if there is no filter.
    pub(super) fn back(&mut self) {
        if self.filtered.is_some() {
            self.unfilter();
        } else {
            self.notice = Some("there is no list or filter to leave; q quits".to_owned());
        }
    }

    /// Takes results of the filter. Returns whether the state of the filter changed.
    pub(super) fn poll_filter(&mut self, most: usize) -> bool {
        let before = self.row().map(|row| row.number);
        let Some(filtered) = &mut self.filtered else { return false };
        let changed = filtered.poll(most);
        if changed && filtered.has_failed {
            self.notice = Some(FAILED.to_owned());
        }
        if self.follows_newest {
            self.packets.selected = self.listed().saturating_sub(1);
        } else if let Some(anchor) = filtered.anchor {
            self.packets.selected = filtered.frames().near(anchor);
        } else if let Some(at) = before.and_then(|number| filtered.frames().find(number)) {
            // A result that arrives late can change the index of the selected packet.
            self.packets.selected = at;
        }
        if self.row().map(|row| row.number) != before {
            self.show();
        }
        changed
    }

    /// Opens a list.
    pub(super) fn open_overlay(&mut self, kind: Kind) {
        let frame = self.row().map_or(FrameNumber::NONE, |row| row.number);
        // If a list is open, use the connection of its selected line. Otherwise, or if the line has
        // no connection, use the connection of the selected packet.
        let line = self.overlay.as_ref().and_then(|overlay| overlay.lines.get(overlay.list.selected));
        let stream = line.and_then(|line| line.stream).or_else(|| self.row().and_then(|row| row.stream()));
        self.overlay = match (kind, stream) {
            (Kind::Findings, _) => Some(ListOverlay::findings(self.index.findings(), self.index.counts().2, frame)),
            (Kind::Ladder | Kind::Messages | Kind::Payload, None) => {
                self.notice = Some("this frame belongs to no TCP connection; select another frame".to_owned());
                return;
            }
            _ => Some(ListOverlay::from_pass(&self.recording, kind, stream.unwrap_or_default(), frame)),
        };
    }

    /// Executes a command for the open list. Returns `false` if the command is not for a list.
    pub(super) fn overlay_command(&mut self, command: Command) -> bool {
        let Some(overlay) = &mut self.overlay else { return false };
        match command {
            Command::Quit | Command::Back => self.overlay = None,
            Command::Open(kind) if kind == overlay.kind => self.overlay = None,
            Command::Move(motion) => overlay.list.go(motion, overlay.lines.len()),
            Command::Toggle if overlay.turn(None) => {}
            Command::Toggle => {
                if let Some(frame) = overlay.lines.get(overlay.list.selected).and_then(|line| line.frame) {
                    self.overlay = None;
                    if !self.select_frame(frame) {
                        self.notice = Some(format!("frame {frame} is not in the index"));
                    }
                }
            }
            Command::Left => drop(overlay.turn(Some(false))),
            Command::Right => drop(overlay.turn(Some(true))),
            Command::NextPanel | Command::PreviousPanel => {}
            Command::NextMarked | Command::PreviousMarked => {}
            Command::Again | Command::AgainFailed | Command::UntilFailure | Command::Stop => {}
            Command::Help | Command::Theme | Command::Pause | Command::Absolute => return false,
            Command::Type(_) | Command::Open(_) => return false,
        }
        true
    }
}

/// Returns the text of a row for the search.
fn search_text(row: &OwnedRow) -> String {
    let ends = row.ends.map_or_else(String::new, |(src, dst)| format!("{src} → {dst} "));
    let worst = row.worst.map_or_else(String::new, |severity| format!("[{severity}] "));
    ends + &worst + &row.text()
}
