//! The capture screen: packets, field tree and octets, linked.
//!
//! ```text
//! +- header: file, counts, progress ----------------+
//! | packets: one row a frame                        |
//! +- fields -----------------+- octets -------------+
//! | tree of the frame's units| those of the field   |
//! |                          | are marked           |
//! +- hints, or why reading stopped ------------------+
//! ```
//!
//! The selected packet decides the tree, the selected field the marks; moving among the octets selects the field. Memory:
//! the index ([`index`]), and the details of a window of frames ([`details`]).

pub(crate) mod details;
pub(crate) mod fields;
pub(crate) mod filtered;
pub(crate) mod head;
pub(crate) mod index;
mod indexer;
mod places;
pub(crate) mod sheet;
mod study;

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, TryRecvError};

use ratatui::Frame;
use ratatui::crossterm::event::KeyEvent;
use weft_dissector::source::Capture;

use crate::command::{Command, Motion};
use crate::entry::{self, Entry, Given};
use crate::list::List;
use crate::theme::Theme;
use crate::{Error, terminal, view};
use details::{Detail, Details, Request};
use fields::Fields;
use filtered::Filtered;
pub use index::MAX_FRAMES;
use index::{Index, Row};
use indexer::{Batch, End};
use sheet::Sheet;

/// Batches taken in before the screen is drawn again.
const BATCHES_A_POLL: usize = 16;

/// Which panel has the keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Panel {
    Packets,
    Fields,
    Octets,
}

impl Panel {
    fn next(self) -> Self {
        match self {
            Panel::Packets => Panel::Fields,
            Panel::Fields => Panel::Octets,
            Panel::Octets => Panel::Packets,
        }
    }
}

/// Where the user is among the octets.
#[derive(Debug, Default)]
pub(crate) struct Octets {
    pub(crate) cursor: usize,
    /// Rows, for scrolling.
    pub(crate) list: List,
    /// Octets in a row, as drawn last.
    pub(crate) columns: usize,
}

/// All state of the screen.
pub(crate) struct Screen {
    path: PathBuf,
    pub(crate) name: String,
    pub(crate) theme: Theme,
    pub(crate) index: Index,
    pub(crate) end: Option<End>,
    pub(crate) position: u64,
    /// The selected place of the list of packets: of those that pass the filter, when there is one.
    pub(crate) packets: List,
    pub(crate) filtered: Option<Filtered>,
    /// A list over the panels.
    pub(crate) sheet: Option<Sheet>,
    pub(crate) fields: Fields,
    pub(crate) octets: Octets,
    pub(crate) focus: Panel,
    pub(crate) help: bool,
    /// What the user types at the foot.
    pub(crate) entry: Option<Entry>,
    /// What was searched last.
    searched: String,
    /// What came of the last command, where the user has to be told.
    pub(crate) notice: Option<String>,
    /// What the details thread could not do.
    pub(crate) trouble: Option<String>,
    batches: Receiver<Batch>,
    details: Details,
    known: HashMap<u64, Detail>,
    asked: Option<Request>,
}

impl Screen {
    /// Opens the capture and starts to read it.
    pub(crate) fn open(path: &Path) -> Result<Self, Error> {
        let failed = |source| Error::Capture { path: path.to_owned(), source };
        let is_file = path.metadata().map(|meta| meta.is_file() || meta.is_dir());
        if path == Path::new("-") || is_file.is_ok_and(|is_file| !is_file) {
            return Err(Error::NotAFile(path.to_owned()));
        }
        let capture = Capture::open(path).map_err(failed)?;
        Ok(Screen {
            path: path.to_owned(),
            name: path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned(),
            theme: Theme::of_environment(),
            index: Index::default(),
            end: None,
            position: 0,
            packets: List::default(),
            filtered: None,
            sheet: None,
            fields: Fields::new(),
            octets: Octets::default(),
            focus: Panel::Packets,
            help: false,
            entry: None,
            searched: String::new(),
            notice: None,
            trouble: None,
            batches: indexer::start(capture),
            details: Details::start(path),
            known: HashMap::new(),
            asked: None,
        })
    }

    /// Octets and fields of the selected frame, once they are there.
    pub(crate) fn detail(&self) -> Option<&Detail> {
        self.known.get(&self.row()?.number)
    }

    /// Does the detail tell all that the row does?
    fn is_known(&self, row: &Row) -> bool {
        self.known.get(&row.number).is_some_and(|detail| {
            detail.units.len() as u64 >= u64::from(row.units) && detail.findings.len() as u64 >= u64::from(row.findings)
        })
    }

    /// Shows the selected frame, and asks for what is not known of it.
    fn show(&mut self) {
        let Some(row) = self.row().cloned() else { return self.fields.clear() };
        let frame = row.number;
        let request = Request { frame, until: row.known_at.max(frame.saturating_add(details::NEIGHBOURS)) };
        if !self.is_known(&row) && self.asked != Some(request) {
            self.asked = Some(request);
            self.details.ask(request);
        }
        self.fields.show(&row, self.known.get(&frame));
        self.follow_field();
    }

    /// Brings the octets of the selected field into sight.
    fn follow_field(&mut self) {
        let first = self.fields.selected().and_then(|line| line.place.here.first()).map(|range| range.start);
        self.octets.cursor = first.unwrap_or(0);
        self.bring_cursor_into_sight();
    }

    fn bring_cursor_into_sight(&mut self) {
        self.octets.list.selected = self.octets.cursor / self.octets.columns.max(1);
    }

    fn go(&mut self, motion: Motion) {
        match self.focus {
            Panel::Packets => {
                let before = self.packets.selected;
                if let Some(filtered) = &mut self.filtered {
                    filtered.anchor = None;
                }
                self.packets.go(motion, self.listed());
                if self.packets.selected != before {
                    self.show();
                }
            }
            Panel::Fields => {
                let len = self.fields.shown().len();
                self.fields.list.go(motion, len);
                self.fields.choose();
                self.follow_field();
            }
            Panel::Octets => {
                let (columns, len) = (self.octets.columns.max(1), self.octets_len());
                let column = self.octets.cursor % columns;
                self.octets.list.selected = self.octets.cursor / columns;
                self.octets.list.go(motion, len.div_ceil(columns));
                let cursor = match motion {
                    Motion::First => 0,
                    Motion::Last => len,
                    _ => self.octets.list.selected * columns + column,
                };
                self.move_cursor(cursor);
            }
        }
    }

    fn octets_len(&self) -> usize {
        self.detail().map_or(0, |detail| detail.octets.len())
    }

    fn move_cursor(&mut self, to: usize) {
        self.octets.cursor = to.min(self.octets_len().saturating_sub(1));
        self.bring_cursor_into_sight();
        self.fields.select_octet(self.octets.cursor);
    }

    fn sideways(&mut self, right: bool) {
        match (self.focus, right) {
            (Panel::Packets, _) => {}
            (Panel::Fields, true) => self.fields.turn(Some(true)),
            (Panel::Fields, false) => {
                self.fields.out();
                self.fields.choose();
                self.follow_field();
            }
            (Panel::Octets, true) => self.move_cursor(self.octets.cursor.saturating_add(1)),
            (Panel::Octets, false) => self.move_cursor(self.octets.cursor.saturating_sub(1)),
        }
    }

    fn take_batch(&mut self, batch: Batch) {
        let was_empty = self.index.rows().is_empty();
        let before = self.row().map(|row| (row.units, row.findings));
        for entry in batch.entries {
            self.index.add(entry);
        }
        self.position = batch.position;
        if batch.end.is_some() {
            self.end = batch.end;
        }
        if let Some(sheet) = &mut self.sheet {
            sheet.grow(self.index.told());
        }
        // The selected frame may just have got a unit.
        if was_empty || self.row().map(|row| (row.units, row.findings)) != before {
            self.show();
        }
    }
}

impl terminal::Screen for Screen {
    fn poll(&mut self) -> bool {
        let mut changed = false;
        for _ in 0..BATCHES_A_POLL {
            match self.batches.try_recv() {
                Ok(batch) => self.take_batch(batch),
                Err(TryRecvError::Empty | TryRecvError::Disconnected) => break,
            }
            changed = true;
        }
        changed |= self.poll_filter(BATCHES_A_POLL);
        while self.sheet.as_mut().is_some_and(Sheet::poll) {
            changed = true;
        }
        while let Ok(answer) = self.details.answers.try_recv() {
            self.trouble = answer.error;
            self.known = answer.frames.into_iter().map(|detail| (detail.number, detail)).collect();
            if self.trouble.is_none() {
                self.show();
            }
            changed = true;
        }
        changed
    }

    fn key(&mut self, key: KeyEvent) -> bool {
        match entry::give(&mut self.entry, key) {
            Given::NoLine => return false,
            Given::Taken => {}
            Given::Whole(entry) => self.follow_entry(entry),
        }
        true
    }

    fn command(&mut self, command: Command) -> bool {
        self.notice = None;
        if self.help {
            self.help = false;
            return true;
        }
        if self.sheet.is_some() && self.sheet_command(command) {
            return true;
        }
        match command {
            Command::Quit => return false,
            Command::Help => self.help = true,
            Command::NextPanel => self.focus = self.focus.next(),
            Command::PreviousPanel => self.focus = self.focus.next().next(),
            Command::Move(motion) => self.go(motion),
            Command::Left => self.sideways(false),
            Command::Right => self.sideways(true),
            Command::Toggle if self.focus == Panel::Fields => self.fields.turn(None),
            Command::Toggle => {}
            Command::Type(purpose) => self.begin_entry(purpose),
            Command::Open(kind) => self.open_sheet(kind),
            Command::NextMarked => self.jump(Index::next_marked),
            Command::PreviousMarked => self.jump(Index::previous_marked),
        }
        true
    }

    fn draw(&mut self, frame: &mut Frame<'_>) {
        view::capture::draw(self, frame.area(), frame.buffer_mut());
    }
}

#[cfg(test)]
mod tests;
