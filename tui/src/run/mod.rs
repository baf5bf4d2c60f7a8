//! The run screen: the tree of cases with their verdicts, and the selected case in full.
//!
//! ```text
//! +- header: target, how far, counters ---------------+
//! | cases            | case: requirement, expected,   |
//! | with verdicts    | actual, transcript, evidence   |
//! +- hints, or what the run waits for ----------------+
//! ```
//!
//! The screen reads the event stream of a run and nothing else; a finished run is turned into the same events. It follows
//! the running case until the user goes elsewhere. Starting, stopping and rerunning are not here.

pub(crate) mod progress;
mod source;
pub(crate) mod tree;

use std::sync::mpsc::{Receiver, TryRecvError};

use ratatui::Frame;
use ratatui::crossterm::event::KeyEvent;
use weft_suites::model::{Event, Verdict};

use crate::command::{Command, Motion};
use crate::entry::{self, Entry, Given, Purpose, next_place};
use crate::list::List;
use crate::theme::Theme;
use crate::{Error, terminal, view};
use progress::{Planned, Progress, State};
pub use source::{LiveSink, RunSource, live};
use tree::{Kind, Tree};

/// Events taken in before the screen is drawn again.
const EVENTS_A_POLL: usize = 4096;

/// Which panel has the keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Panel {
    Cases,
    Case,
}

/// All state of the screen.
pub(crate) struct Screen {
    pub(crate) progress: Progress,
    pub(crate) tree: Tree,
    /// Scrolls the selected case; the selected line of it is not shown as such.
    pub(crate) case: List,
    pub(crate) focus: Panel,
    pub(crate) help: bool,
    pub(crate) theme: Theme,
    /// The run was given up: it will send nothing more, and it did not end.
    pub(crate) is_broken: bool,
    /// What the user types at the foot.
    pub(crate) entry: Option<Entry>,
    /// What was searched last.
    searched: String,
    /// What came of the last command, where the user has to be told.
    pub(crate) notice: Option<String>,
    events: Option<Receiver<Event>>,
    follows: bool,
}

impl Screen {
    /// Opens a run.
    pub(crate) fn open(source: RunSource) -> Result<Self, Error> {
        let (progress, events) = match source {
            RunSource::Live(live) => (Progress::default(), Some(live.events)),
            RunSource::Stored(path) => (Progress::finished(source::read(&path)?), None),
            RunSource::Finished(report) => (Progress::finished(*report), None),
        };
        let mut tree = Tree::default();
        tree.plant(&progress.planned);
        let mut screen = Screen {
            progress,
            tree,
            case: List::default(),
            focus: Panel::Cases,
            help: false,
            theme: Theme::of_environment(),
            is_broken: false,
            entry: None,
            searched: String::new(),
            notice: None,
            follows: events.is_some(),
            events,
        };
        // What failed is what people look for.
        screen.tree.select(screen.find(0, false).unwrap_or(0));
        Ok(screen)
    }

    /// The selected case; a branch has none.
    pub(crate) fn planned(&self) -> Option<&Planned> {
        match self.tree.selected()?.kind {
            Kind::Case(place) => self.progress.planned.get(place),
            Kind::Branch { .. } => None,
        }
    }

    /// The next case that failed or could not be judged, from `from` on or backwards, around the end.
    fn find(&self, from: usize, backwards: bool) -> Option<usize> {
        let len = self.progress.planned.len();
        let is_bad = |place: &usize| match &self.progress.planned[*place].state {
            State::Done(result) => {
                matches!(result.verdict, Verdict::Fail | Verdict::Inconclusive | Verdict::Error)
            }
            State::Waiting | State::Running(_) => false,
        };
        let mut ring = (0..len).map(|step| if backwards { (from + len - step) % len } else { (from + step) % len });
        ring.find(is_bad)
    }

    fn jump(&mut self, backwards: bool) {
        let len = self.progress.planned.len();
        let from = match self.tree.selected().map(|node| &node.kind) {
            Some(Kind::Case(place)) if backwards => place + len - 1,
            Some(Kind::Case(place)) => place + 1,
            Some(Kind::Branch { first, .. }) if backwards => first + len - 1,
            Some(Kind::Branch { first, .. }) => *first,
            None => return,
        };
        if let Some(place) = self.find(from % len.max(1), backwards) {
            self.select(place);
        }
    }

    /// Goes to the next case that has the text in its name.
    fn search(&mut self, text: &str) {
        if !text.is_empty() {
            self.searched = text.to_lowercase();
        }
        let planned = &self.progress.planned;
        let from = match self.tree.selected().map(|node| &node.kind) {
            Some(Kind::Case(place)) => *place,
            // The first case of the branch is behind its head.
            Some(Kind::Branch { first, .. }) => (first + planned.len()).saturating_sub(1) % planned.len().max(1),
            None => 0,
        };
        let has = |place: usize| planned[place].key.to_string().to_lowercase().contains(&self.searched);
        match next_place(from, planned.len(), has) {
            Some(place) => self.select(place),
            None => self.notice = Some(format!("no case has {:?} in its name", self.searched)),
        }
    }

    fn select(&mut self, place: usize) {
        self.follows = false;
        self.tree.select(place);
        self.case = List::default();
    }

    fn go(&mut self, motion: Motion) {
        match self.focus {
            Panel::Cases => {
                self.follows = false;
                let len = self.tree.shown().len();
                self.tree.list.go(motion, len);
                self.case = List::default();
            }
            // Lines of a case depend on the width: the view keeps the bounds.
            Panel::Case => self.case.go(motion, usize::MAX),
        }
    }

    fn take(&mut self, event: Event) {
        let before = self.progress.planned.len();
        let begins = matches!(event, Event::RunStarted { .. });
        self.progress.event(event);
        if begins || self.progress.planned.len() != before {
            self.tree.plant(&self.progress.planned);
        }
        if let Some(current) = self.progress.current.filter(|_| self.follows) {
            self.tree.select(current);
        }
    }
}

impl terminal::Screen for Screen {
    fn poll(&mut self) -> bool {
        let mut changed = false;
        for _ in 0..EVENTS_A_POLL {
            let Some(events) = &self.events else { break };
            match events.try_recv() {
                Ok(event) => self.take(event),
                Err(TryRecvError::Empty) => break,
                Err(TryRecvError::Disconnected) => {
                    self.events = None;
                    self.is_broken = self.progress.summary.is_none();
                }
            }
            changed = true;
        }
        changed
    }

    fn key(&mut self, key: KeyEvent) -> bool {
        match entry::give(&mut self.entry, key) {
            Given::NoLine => return false,
            Given::Taken => {}
            Given::Whole(entry) => self.search(&entry.text),
        }
        true
    }

    fn command(&mut self, command: Command) -> bool {
        self.notice = None;
        if self.help {
            self.help = false;
            return true;
        }
        match command {
            Command::Quit => return false,
            Command::Help => self.help = true,
            Command::NextPanel | Command::PreviousPanel => {
                self.focus = if self.focus == Panel::Cases { Panel::Case } else { Panel::Cases };
            }
            Command::Move(motion) => self.go(motion),
            Command::Left if self.focus == Panel::Cases => self.tree.out(),
            Command::Right if self.focus == Panel::Cases => self.tree.turn(Some(true)),
            Command::Toggle if self.focus == Panel::Cases => self.tree.turn(None),
            Command::Left | Command::Right | Command::Toggle => {}
            Command::Type(Purpose::Search) => self.entry = Some(Entry::new(Purpose::Search)),
            // Cases have names, not numbers; filters and lists are for packets.
            Command::Type(Purpose::Frame | Purpose::Filter) | Command::Open(_) => {}
            Command::NextMarked => self.jump(false),
            Command::PreviousMarked => self.jump(true),
        }
        true
    }

    fn draw(&mut self, frame: &mut Frame<'_>) {
        view::run::draw(self, frame.area(), frame.buffer_mut());
    }
}

#[cfg(test)]
pub(crate) mod tests;
