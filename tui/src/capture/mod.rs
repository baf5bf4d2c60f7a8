//! The capture screen: packets, field tree and bytes, linked.
//!
//! ```text
//! +- header: file, counts, progress ----------------+
//! | packets: one row per frame                      |
//! +- fields -----------------+- bytes --------------+
//! | tree of the frame's units| those of the field   |
//! |                          | are marked           |
//! +- hints, or why reading stopped ------------------+
//! ```
//!
//! The tree shows the selected packet, and the bytes of the selected field are marked. Moving in
//! the bytes selects the field. In memory are the index ([`PackedIndex`]) and the details of a
//! window of frames ([`details`]).
//!
//! A live capture is the same screen with a [`recording`] that grows. The newest packet stays
//! selected until the user moves away from it.

pub(crate) mod details;
mod feed;
pub(crate) mod fields;
pub(crate) mod filtered;
mod hunt;
pub(crate) mod indexer;
pub(crate) mod lines;
mod places;
mod pointed;
pub(crate) mod recording;
pub(crate) mod sheet;
mod study;

use std::collections::HashMap;
use std::path::Path;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::mpsc::TryRecvError;

use ratatui::crossterm::event::KeyEvent;
use weft_dissector::browse::detail::Detail;
use weft_dissector::browse::{OwnedRow, PackedIndex};

use crate::command::Command;
use crate::entry::{self, Entry, Given};
use crate::error::Error;
use crate::list::List;
use crate::motion::Motion;
use crate::mouse::Mouse;
use crate::terminal;
use crate::theme::Theme;
use details::{Details, Request};
use feed::FAILED;
use fields::Fields;
use filtered::Filtered;
use hunt::Hunt;
use indexer::{Indexing, News};
use recording::{Live, Recording};
use sheet::Sheet;

/// The maximum number of results of the indexer, and of a filter, that are taken between two keys.
const NEWS_A_POLL: usize = 8192;
/// Polls without news after which a live capture is quiet. The newest packet's details are then
/// shown.
const QUIET: u32 = 10;

/// The panel with the focus.
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

/// The position in the bytes.
#[derive(Debug, Default)]
pub(crate) struct Octets {
    pub(crate) cursor: usize,
    /// The rows, for scrolling.
    pub(crate) list: List,
    /// Bytes in a row when last drawn.
    pub(crate) columns: usize,
}

/// All state of the screen.
pub(crate) struct Screen {
    recording: Recording,
    pub(crate) name: String,
    pub(crate) theme: Theme,
    pub(crate) index: PackedIndex,
    /// Present at the end of the capture: why it was not read completely, if so.
    pub(crate) end: Option<Option<String>>,
    /// At the end: reports on connections that were joined or dropped, and frames that were not
    /// read.
    pub(crate) remarks: Vec<String>,
    /// The state of a live capture.
    pub(crate) live: Option<Live>,
    /// The newest packet stays selected.
    pub(crate) tails: bool,
    /// The last listed frame, if the user paused the list.
    pub(crate) paused: Option<u64>,
    /// The list of packets, or of those that pass the filter.
    pub(crate) packets: List,
    pub(crate) filtered: Option<Filtered>,
    /// A list over the panels.
    pub(crate) sheet: Option<Sheet>,
    pub(crate) fields: Fields,
    pub(crate) octets: Octets,
    pub(crate) focus: Panel,
    pub(crate) help: bool,
    /// The input line in the footer.
    pub(crate) entry: Option<Entry>,
    /// The last search text.
    searched: String,
    pub(crate) hunt: Option<Hunt>,
    /// The message of the last command.
    pub(crate) notice: Option<String>,
    /// The error of the details thread.
    pub(crate) trouble: Option<String>,
    indexing: Indexing,
    details: Details,
    known: HashMap<u64, Detail>,
    /// The number of polls without news.
    quiet: u32,
    /// The last request, and the numbers of units and findings in the row at that time.
    requested: Option<(Request, u32, u32)>,
}

impl Screen {
    /// Opens the capture and starts to read it.
    pub(crate) fn open(path: &Path) -> Result<Self, Error> {
        let is_file = path.metadata().map(|meta| meta.is_file() || meta.is_dir());
        if path == Path::new("-") || is_file.is_ok_and(|is_file| !is_file) {
            return Err(Error::NotAFile(path.to_owned()));
        }
        let recording = Recording::file(path);
        recording.check().map_err(|source| Error::Capture { path: path.to_owned(), source })?;
        let name = path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned();
        Ok(Self::of(recording, name))
    }

    /// Starts to read a live capture.
    pub(crate) fn live(recording: Recording) -> Self {
        let name = recording.live_state().unwrap_or_default().what;
        Self::of(recording, name)
    }

    fn of(recording: Recording, name: String) -> Self {
        let live = recording.live_state();
        Screen {
            name,
            theme: Theme::of_environment(),
            index: PackedIndex::default(),
            end: None,
            remarks: Vec::new(),
            tails: live.is_some(),
            live,
            paused: None,
            packets: List::default(),
            filtered: None,
            sheet: None,
            fields: Fields::new(),
            octets: Octets::default(),
            focus: Panel::Packets,
            help: false,
            entry: None,
            searched: String::new(),
            hunt: None,
            notice: None,
            trouble: None,
            indexing: indexer::start(&recording),
            details: Details::start(&recording),
            known: HashMap::new(),
            quiet: 0,
            requested: None,
            recording,
        }
    }

    /// How much of the files was read, in percent (if their length is known) and in bytes.
    pub(crate) fn progress(&self) -> (Option<u64>, u64) {
        let position = self.indexing.position.load(Relaxed);
        let percent = self.recording.len().filter(|len| *len > 0).map(|len| (100 * position / len).min(100));
        (percent, position)
    }

    /// The bytes and fields of the selected frame, once they are read.
    pub(crate) fn detail(&self) -> Option<&Detail> {
        self.known.get(&self.row()?.number)
    }

    /// Are the details of the row complete?
    fn is_known(&self, row: &OwnedRow) -> bool {
        self.known.get(&row.number).is_some_and(|detail| {
            detail.units.len() as u64 + detail.left_out >= u64::from(row.units)
                && detail.findings.len() as u64 >= u64::from(row.findings)
        })
    }

    /// Shows the selected frame, and requests its details if they are not complete.
    fn show(&mut self) {
        let Some(row) = self.row() else { return self.fields.clear() };
        let frame = row.number;
        // Only neighbours that are listed: reading further would delay the list.
        let neighbours = frame.saturating_add(details::NEIGHBOURS).min(self.index.last());
        let request = Request { frame, until: row.known_at.max(neighbours) };
        let requested = Some((request, row.units, row.findings));
        // While many new packets arrive, none of them is dissected again.
        if (!self.tails || self.quiet >= QUIET) && !self.is_known(&row) && self.requested != requested {
            self.requested = requested;
            self.details.request(request);
        }
        self.fields.show(&row, self.known.get(&frame));
        self.follow_field();
    }

    /// Scrolls to the bytes of the selected field.
    fn follow_field(&mut self) {
        let first = self.fields.selected().and_then(|line| line.place.here.first()).map(|range| range.start);
        self.octets.cursor = first.unwrap_or(0);
        self.scroll_to_cursor();
    }

    fn scroll_to_cursor(&mut self) {
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
                let tailed = self.tails;
                self.tails = motion == Motion::Last && self.end.is_none() && self.live.is_some();
                if self.packets.selected != before || tailed != self.tails {
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
        self.scroll_to_cursor();
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

    /// Takes results of the indexer; `true` if there were any.
    fn take_news(&mut self) -> bool {
        let news = self.indexing.news.take(NEWS_A_POLL);
        if news.is_empty() {
            self.quiet = self.quiet.saturating_add(1);
            if self.tails && self.quiet == QUIET {
                self.show();
            }
            let has_failed = self.end.is_none() && self.indexing.news.has_failed();
            if has_failed {
                self.end = Some(Some(FAILED.to_owned()));
                self.tails = false;
            }
            return has_failed;
        }
        self.quiet = 0;
        let before = self.row().map(|row| (row.number, row.units, row.findings));
        for item in news {
            match item {
                News::Entry(entry) => self.index.add(entry),
                News::End { note, remarks } => {
                    (self.end, self.remarks) = (Some(note), remarks);
                    // The capture has ended: show the details of the last packet.
                    self.tails = false;
                    self.show();
                }
            }
        }
        if let Some(sheet) = &mut self.sheet {
            sheet.grow(self.index.findings(), self.index.counts().2);
        }
        if self.tails {
            self.packets.selected = self.listed().saturating_sub(1);
        }
        // The selected frame may have a new unit.
        if self.row().map(|row| (row.number, row.units, row.findings)) != before {
            self.show();
        }
        true
    }

    /// Takes answers of the details thread; `true` if there were any.
    fn take_details(&mut self) -> bool {
        let mut changed = false;
        loop {
            match self.details.answers.try_recv() {
                Ok(answer) => {
                    self.trouble = answer.error;
                    self.known = answer.frames.into_iter().map(|detail| (detail.number, detail)).collect();
                    if self.trouble.is_none() {
                        self.show();
                    }
                    changed = true;
                }
                Err(TryRecvError::Disconnected) if self.trouble.is_none() => {
                    self.trouble = Some(FAILED.to_owned());
                    return true;
                }
                Err(_) => return changed,
            }
        }
    }

    fn take_live(&mut self) -> bool {
        let live = self.recording.live_state();
        let is_new = live != self.live;
        self.live = live;
        is_new
    }

    /// Pauses or resumes the list of a live capture.
    fn pause(&mut self) {
        if self.live.is_none() {
            self.notice = Some("p pauses the list of a live capture; this is a file".to_owned());
        } else if self.paused.take().is_some() {
            self.tails = self.end.is_none();
            self.packets.selected = self.listed().saturating_sub(1);
        } else {
            self.paused = Some(self.index.last());
            self.tails = false;
        }
        self.show();
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        self.recording.leave();
    }
}

impl terminal::Screen for Screen {
    fn poll(&mut self) -> bool {
        let mut changed = self.take_news() | self.take_live() | self.poll_filter(NEWS_A_POLL) | self.poll_hunt();
        while self.sheet.as_mut().is_some_and(Sheet::poll) {
            changed = true;
        }
        changed | self.take_details()
    }

    fn key(&mut self, key: KeyEvent) -> bool {
        match entry::give(&mut self.entry, key) {
            Given::NoLine => return false,
            Given::Taken => {}
            Given::Complete(entry) => self.follow_entry(entry),
        }
        true
    }

    fn mouse(&mut self, mouse: Mouse) {
        self.pointed(mouse);
    }

    fn command(&mut self, command: Command) -> bool {
        self.notice = None;
        self.hunt = None;
        if self.help {
            self.help = false;
            return true;
        }
        if self.sheet.is_some() && self.sheet_command(command) {
            return true;
        }
        match command {
            Command::Quit => return false,
            Command::Back => self.back(),
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
            Command::Pause => self.pause(),
            Command::Theme => self.theme = self.theme.next(),
            // Commands of runs.
            Command::Again | Command::AgainFailed | Command::UntilFailure | Command::Stop => {}
            Command::NextMarked => self.jump(PackedIndex::next_marked),
            Command::PreviousMarked => self.jump(PackedIndex::previous_marked),
        }
        true
    }
}

#[cfg(test)]
mod huge_tests;
#[cfg(test)]
mod tests;
