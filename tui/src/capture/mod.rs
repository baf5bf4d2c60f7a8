//! The capture screen: the list of packets, and the field tree and bytes of the selected packet.
//!
//! ```text
//! +- header: file, counts, progress ----------------+
//! | packets: one row per frame                      |
//! +- fields -----------------+- bytes --------------+
//! | tree of the messages     | bytes of the field   |
//! | in the frame             | are marked           |
//! +- hints, or why reading stopped ------------------+
//! ```
//!
//! The tree shows the selected packet, and the screen marks the bytes of the selected field. If the
//! user moves the cursor in the bytes, the screen selects the field under the cursor. A message in
//! the tree is a unit of `weft-dissector`, for example an FPDU. The screen keeps in memory the
//! index of all frames ([`PackedIndex`]), and the details of the frames around the selected frame
//! ([`details`]).
//!
//! For a live capture, the [`recording`] grows. The newest packet stays selected until the user
//! selects another packet.

pub(crate) mod details;
pub(crate) mod fields;
pub(crate) mod filtered;
pub(crate) mod indexer;
mod io_lines;
pub(crate) mod lines;
pub(crate) mod list_overlay;
mod list_pass;
mod pointer;
mod problems;
mod queue;
pub(crate) mod recording;
mod search;
mod selection;
mod sequences;

use std::collections::HashMap;
use std::path::Path;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::mpsc::TryRecvError;

use ratatui::crossterm::event::KeyEvent;
use weft_dissector::FrameNumber;
use weft_dissector::browse::detail::Detail;
use weft_dissector::browse::packed::Entry;
use weft_dissector::browse::{OwnedRow, PackedIndex};

use crate::command::Command;
use crate::error::Error;
use crate::input_line::{self, InputLine, KeyEffect};
use crate::list::List;
use crate::motion::Motion;
use crate::mouse::Mouse;
use crate::terminal;
use crate::theme::Theme;
use details::{Details, Request};
use fields::Fields;
use filtered::PacketFilter;
use indexer::{IndexMessage, Indexer};
use list_overlay::ListOverlay;
use queue::FAILED;
use recording::{Live, Recording};
use search::Search;
use sequences::Sequences;

/// The maximum number of results of the indexer, and of a filter, that the screen takes in one
/// poll.
const MAX_RESULTS_PER_POLL: usize = 8192;
/// Number of polls without a new result after which a live capture counts as quiet. The screen then
/// shows the details of the newest packet.
const QUIET_POLLS: u32 = 10;

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

/// The panel with the bytes.
#[derive(Debug, Default)]
pub(crate) struct Octets {
    /// The offset of the byte under the cursor.
    pub(crate) cursor: usize,
    /// The list of rows, for scrolling.
    pub(crate) list: List,
    /// The number of bytes in a row when the panel was last drawn.
    pub(crate) columns: usize,
}

/// All state of the screen.
pub(crate) struct Screen {
    recording: Recording,
    pub(crate) name: String,
    pub(crate) theme: Theme,
    pub(crate) index: PackedIndex,
    sequences: Sequences,
    /// Whether sequence numbers and times are absolute.
    pub(crate) is_absolute: bool,
    /// `None` while the capture is being read. Afterwards, the reason why the capture was not read
    /// completely, or `Some(None)` if it was read completely.
    pub(crate) end: Option<Option<String>>,
    /// Sentences about connections that were merged or dropped, and about frames that were not
    /// read. Empty until the capture was read.
    pub(crate) remarks: Vec<String>,
    /// The state of a live capture.
    pub(crate) live: Option<Live>,
    /// Whether the newest packet stays selected.
    pub(crate) follows_newest: bool,
    /// Number of the last listed frame, if the user paused the list.
    pub(crate) paused: Option<FrameNumber>,
    /// The list of all packets, or of the packets that match the filter.
    pub(crate) packets: List,
    pub(crate) filtered: Option<PacketFilter>,
    /// A list over the panels.
    pub(crate) overlay: Option<ListOverlay>,
    pub(crate) fields: Fields,
    pub(crate) octets: Octets,
    pub(crate) focus: Panel,
    pub(crate) help: bool,
    /// The input line in the footer.
    pub(crate) input_line: Option<InputLine>,
    /// The last search text.
    searched: String,
    pub(crate) search: Option<Search>,
    /// The message of the last command.
    pub(crate) notice: Option<String>,
    /// The error of the details thread.
    pub(crate) trouble: Option<String>,
    indexer: Indexer,
    details: Details,
    known: HashMap<FrameNumber, Detail>,
    /// The number of polls without a new result.
    quiet: u32,
    /// The last request for details, and the numbers of units and findings that the row of the
    /// frame had at that time.
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
            sequences: Sequences::default(),
            is_absolute: false,
            end: None,
            remarks: Vec::new(),
            follows_newest: live.is_some(),
            live,
            paused: None,
            packets: List::default(),
            filtered: None,
            overlay: None,
            fields: Fields::new(),
            octets: Octets::default(),
            focus: Panel::Packets,
            help: false,
            input_line: None,
            searched: String::new(),
            search: None,
            notice: None,
            trouble: None,
            indexer: indexer::start(&recording),
            details: Details::start(&recording),
            known: HashMap::new(),
            quiet: 0,
            requested: None,
            recording,
        }
    }

    /// Returns how much of the files was read: in percent, if their length is known, and in bytes.
    pub(crate) fn progress(&self) -> (Option<u64>, u64) {
        let position = self.indexer.position.load(Relaxed);
        let percent = self.recording.len().filter(|len| *len > 0).map(|len| (100 * position / len).min(100));
        (percent, position)
    }

    /// Returns the bytes and fields of the selected frame, or `None` if they are not read yet.
    pub(crate) fn detail(&self) -> Option<&Detail> {
        self.known.get(&self.row()?.number)
    }

    /// Returns whether the details of the row's frame are complete.
    fn is_known(&self, row: &OwnedRow) -> bool {
        self.known.get(&row.number).is_some_and(|detail| {
            detail.units.len() as u64 + detail.omitted >= u64::from(row.units)
                && detail.findings.len() as u64 >= u64::from(row.findings)
        })
    }

    /// Shows the selected frame, and requests its details if they are not complete.
    fn show(&mut self) {
        let Some(row) = self.row() else { return self.fields.clear() };
        let frame = row.number;
        // Request only neighbours that the index has. Reading further would take longer.
        let neighbours = frame.later(details::NEIGHBOURS).min(self.index.last());
        let request = Request { frame, until: row.known_at.max(neighbours) };
        let requested = Some((request, row.units, row.findings));
        // While many new packets arrive, do not dissect the capture again for each newest packet.
        if (!self.follows_newest || self.quiet >= QUIET_POLLS) && !self.is_known(&row) && self.requested != requested {
            self.requested = requested;
            self.details.request(request);
        }
        self.fields.show(&row, self.known.get(&frame));
        self.follow_field();
    }

    /// Moves the cursor to the first byte of the selected field.
    fn follow_field(&mut self) {
        let first = self.fields.selected().and_then(|line| line.place.in_frame.first()).map(|range| range.start);
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
                let followed = self.follows_newest;
                self.follows_newest = motion == Motion::Last && self.end.is_none() && self.live.is_some();
                if self.packets.selected != before || followed != self.follows_newest {
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
                self.fields.close_branch();
                self.fields.choose();
                self.follow_field();
            }
            (Panel::Octets, true) => self.move_cursor(self.octets.cursor.saturating_add(1)),
            (Panel::Octets, false) => self.move_cursor(self.octets.cursor.saturating_sub(1)),
        }
    }

    /// Takes results of the indexer. Returns whether the screen changed.
    fn take_index_messages(&mut self) -> bool {
        let messages = self.indexer.messages.take(MAX_RESULTS_PER_POLL);
        if messages.is_empty() {
            self.quiet = self.quiet.saturating_add(1);
            if self.follows_newest && self.quiet == QUIET_POLLS {
                self.show();
            }
            let has_failed = self.end.is_none() && self.indexer.messages.has_failed();
            if has_failed {
                self.end = Some(Some(FAILED.to_owned()));
                self.follows_newest = false;
            }
            return has_failed;
        }
        self.quiet = 0;
        let before = self.row().map(|row| (row.number, row.units, row.findings));
        for item in messages {
            match item {
                IndexMessage::Entry(entry) => {
                    if let Entry::Row(row) = &entry {
                        self.sequences.note(row);
                    }
                    self.index.add(entry);
                }
                IndexMessage::End { note, remarks } => {
                    (self.end, self.remarks) = (Some(note), remarks);
                    // The capture has ended: show the details of the last packet.
                    self.follows_newest = false;
                    self.show();
                }
            }
        }
        if let Some(overlay) = &mut self.overlay {
            overlay.grow(self.index.findings(), self.index.counts().2);
        }
        if self.follows_newest {
            self.packets.selected = self.listed().saturating_sub(1);
        }
        // The selected frame can have a new unit.
        if self.row().map(|row| (row.number, row.units, row.findings)) != before {
            self.show();
        }
        true
    }

    /// Takes answers of the details thread. Returns whether the screen changed.
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
            self.notice = Some("p pauses the list of a live capture; this capture is a file".to_owned());
        } else if self.paused.take().is_some() {
            self.follows_newest = self.end.is_none();
            self.packets.selected = self.listed().saturating_sub(1);
        } else {
            self.paused = Some(self.index.last());
            self.follows_newest = false;
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
        let mut changed = self.take_index_messages() | self.take_live();
        changed |= self.poll_filter(MAX_RESULTS_PER_POLL) | self.poll_search();
        while self.overlay.as_mut().is_some_and(ListOverlay::poll) {
            changed = true;
        }
        changed | self.take_details()
    }

    fn key(&mut self, key: KeyEvent) -> bool {
        match input_line::handle_key(&mut self.input_line, key) {
            KeyEffect::NoLine => return false,
            KeyEffect::Taken => {}
            KeyEffect::Complete(input_line) => self.apply_input(input_line),
        }
        true
    }

    fn mouse(&mut self, mouse: Mouse) {
        self.handle_mouse(mouse);
    }

    fn command(&mut self, command: Command) -> bool {
        self.notice = None;
        self.search = None;
        if self.help {
            self.help = false;
            return true;
        }
        if self.overlay.is_some() && self.overlay_command(command) {
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
            Command::Type(purpose) => self.begin_input(purpose),
            Command::Open(kind) => self.open_overlay(kind),
            Command::Pause => self.pause(),
            Command::Absolute => {
                self.is_absolute = !self.is_absolute;
                self.show();
            }
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
mod display_tests;
#[cfg(test)]
mod huge_tests;
#[cfg(test)]
mod tests;
