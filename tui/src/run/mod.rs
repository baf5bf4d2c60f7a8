//! The run screen: the tree of cases with their verdicts, and the details of the selected case.
//!
//! ```text
//! +- header: target, progress, counters --------------+
//! | cases            | case: requirement, expected,   |
//! | with verdicts    | actual, transcript, evidence   |
//! +- hints, or what the run waits for ----------------+
//! ```
//!
//! All data about a run comes from the run's stream of events. A finished run is converted into the
//! same events. The selection follows the running case until the user selects another case. The
//! screen does not start or stop runs. It passes requests to a function ([`rerun`]).

pub(crate) mod progress;
pub(crate) mod rerun;
mod source;
pub(crate) mod tree;

use std::sync::mpsc::{Receiver, TryRecvError};
use std::time::{Duration, Instant};

use ratatui::crossterm::event::KeyEvent;
use weft_suites::model::{CaseKey, Event, Verdict};

use crate::command::Command;
use crate::error::Error;
use crate::input_line::{self, InputLine, KeyEffect, Purpose, next_place};
use crate::list::List;
use crate::motion::Motion;
use crate::mouse::{Mouse, WHEEL};
use crate::terminal;
use crate::theme::Theme;
use progress::{PlannedCase, Progress, State};
use rerun::RerunRounds;
pub use rerun::{RerunStarter, RunnerRequest};
use source::RunMessage;
pub use source::{LiveSink, RunSource, live};
use tree::{Kind, Tree};

/// The maximum number of events between two drawings.
const MAX_EVENTS_PER_POLL: usize = 4096;

/// The panel with the focus.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Panel {
    Cases,
    Case,
}

/// All state of the screen.
pub(crate) struct Screen {
    pub(crate) progress: Progress,
    pub(crate) tree: Tree,
    /// The scroll position in the details of the selected case.
    pub(crate) case: List,
    pub(crate) focus: Panel,
    pub(crate) help: bool,
    pub(crate) theme: Theme,
    /// Whether the stream of events ended before the run was over.
    pub(crate) is_broken: bool,
    /// The input line in the footer.
    pub(crate) input_line: Option<InputLine>,
    /// The last search text.
    searched: String,
    /// The message of the last command.
    pub(crate) notice: Option<String>,
    /// The state of the current rerun.
    pub(crate) rounds: Option<RerunRounds>,
    is_closed: bool,
    pub(crate) starter: Option<RerunStarter>,
    /// The time since the screen was opened.
    pub(crate) now: Duration,
    opened: Option<Instant>,
    events: Option<Receiver<RunMessage>>,
    follows: bool,
}

impl Screen {
    /// Opens a run.
    pub(crate) fn open(source: RunSource) -> Result<Self, Error> {
        let (progress, events, starter) = match source {
            RunSource::Live(live) => (Progress::default(), Some(live.events), live.starter),
            RunSource::Stored(path) => (Progress::finished(source::read(&path)?), None, None),
            RunSource::Finished(report) => (Progress::finished(*report), None, None),
        };
        let mut tree = Tree::default();
        tree.build(&progress.planned);
        let mut screen = Screen {
            progress,
            tree,
            case: List::default(),
            focus: Panel::Cases,
            help: false,
            theme: Theme::of_environment(),
            is_broken: false,
            input_line: None,
            searched: String::new(),
            notice: None,
            follows: events.is_some(),
            rounds: None,
            is_closed: false,
            starter,
            now: Duration::ZERO,
            opened: Some(Instant::now()),
            events,
        };
        // Start at the first failure.
        screen.tree.select(screen.find(0, false).unwrap_or(0));
        Ok(screen)
    }

    /// Returns the selected case, or `None` if a branch is selected.
    pub(crate) fn planned(&self) -> Option<&PlannedCase> {
        match self.tree.selected()?.kind {
            Kind::Case(place) => self.progress.planned.get(place),
            Kind::Branch { .. } => None,
        }
    }

    /// Returns the index of the next case that failed or could not be judged. The search begins at
    /// `from`, goes forwards or backwards, and wraps around.
    fn find(&self, from: usize, backwards: bool) -> Option<usize> {
        let len = self.progress.planned.len();
        let mut ring = (0..len).map(|step| if backwards { (from + len - step) % len } else { (from + step) % len });
        ring.find(|place| is_bad(&self.progress.planned[*place]))
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

    /// Selects the next case whose name contains `text`. An empty text repeats the last search.
    fn search(&mut self, text: &str) {
        if !text.is_empty() {
            self.searched = text.to_lowercase();
        }
        let planned = &self.progress.planned;
        let from = match self.tree.selected().map(|node| &node.kind) {
            Some(Kind::Case(place)) => *place,
            // The search begins after index `from`. To begin with the first case of the branch, use
            // the index before that case.
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
            // The number of lines depends on the width, so the view limits the position.
            Panel::Case => self.case.go(motion, usize::MAX),
        }
    }

    fn take(&mut self, event: Event) {
        let before = self.progress.planned.len();
        let begins = matches!(event, Event::RunStarted { .. });
        let summary = if let Event::RunFinished { summary } = &event { Some(summary.clone()) } else { None };
        if begins && let Some(rounds) = &mut self.rounds {
            rounds.round += 1;
            self.progress.adds = true;
        }
        self.progress.event(event, self.now);
        let is_over = summary.is_some();
        if let Some(summary) = summary
            && let Some(rounds) = self.rounds.take_if(|rounds| rounds.is_over(&summary))
            && rounds.until_failure
        {
            self.notice = Some(format!("the rerun ended after round {}", rounds.round));
        }
        if begins || is_over || self.progress.planned.len() != before {
            let selected = self.tree.selected().map(|node| node.path.clone());
            self.tree.build(&self.progress.planned);
            if let Some(path) = selected {
                self.tree.select_path(&path);
            }
        }
        if let Some(current) = self.progress.current.filter(|_| self.follows) {
            self.tree.select(current);
        }
    }
}

impl Screen {
    /// Requests a rerun of cases, once or until a result is not as expected.
    fn again(&mut self, keys: Vec<CaseKey>, until_failure: bool) {
        let is_busy = self.rounds.is_some() || self.progress.summary.is_none();
        let Some(starter) = &self.starter else {
            let target = self.progress.run.as_ref().map(|run| &run.target);
            self.notice = match (target, keys.first()) {
                (Some(target), Some(key)) => Some(format!("to rerun this case: {}", rerun::command(target, key))),
                _ => None,
            };
            return;
        };
        if is_busy && self.events.is_some() {
            self.notice = Some("cases are still running; s stops them".to_owned());
        } else if keys.is_empty() || self.events.is_none() {
            self.notice = Some("there is nothing to rerun".to_owned());
        } else {
            self.rounds = Some(RerunRounds::new(until_failure));
            (starter.start)(if until_failure { RunnerRequest::UntilFailure(keys) } else { RunnerRequest::Rerun(keys) });
        }
    }

    /// Returns the selected case, or the cases of the selected branch.
    fn selected_keys(&self) -> Vec<CaseKey> {
        let range = match self.tree.selected().map(|node| &node.kind) {
            Some(Kind::Case(place)) => *place..place + 1,
            Some(Kind::Branch { first, end }) => *first..*end,
            None => 0..0,
        };
        self.progress.planned[range].iter().map(|planned| planned.key.clone()).collect()
    }

    fn failed_keys(&self) -> Vec<CaseKey> {
        let failed = self.progress.planned.iter().filter(|planned| is_bad(planned));
        failed.map(|planned| planned.key.clone()).collect()
    }

    fn stop(&mut self) {
        match &self.starter {
            Some(starter) if self.rounds.is_some() || self.progress.summary.is_none() => {
                (starter.start)(RunnerRequest::Stop);
                self.notice = Some("stopping; the results of finished cases remain".to_owned());
            }
            _ => self.notice = Some("no case is running".to_owned()),
        }
    }
}

/// Returns whether the case failed or could not be judged.
fn is_bad(planned: &PlannedCase) -> bool {
    match &planned.state {
        State::Done(result) => matches!(result.verdict, Verdict::Fail | Verdict::Inconclusive | Verdict::Error),
        State::Waiting | State::Running(_) => false,
    }
}

impl terminal::Screen for Screen {
    fn poll(&mut self) -> bool {
        let before = self.now.as_secs();
        if let Some(opened) = self.opened {
            self.now = opened.elapsed();
        }
        let runs = self.events.is_some() && self.progress.summary.is_none();
        let mut changed = runs && self.now.as_secs() != before;
        for _ in 0..MAX_EVENTS_PER_POLL {
            let Some(events) = &self.events else { break };
            match events.try_recv() {
                Ok(RunMessage::Event(event)) => self.take(*event),
                Ok(RunMessage::Close) => self.is_closed = true,
                Ok(RunMessage::RerunFailed(what)) => {
                    self.rounds = None;
                    self.notice = Some(what);
                }
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

    fn is_closed(&self) -> bool {
        self.is_closed
    }

    fn key(&mut self, key: KeyEvent) -> bool {
        match input_line::handle_key(&mut self.input_line, key) {
            KeyEffect::NoLine => return false,
            KeyEffect::Taken => {}
            KeyEffect::Complete(input_line) => self.search(&input_line.text),
        }
        true
    }

    fn mouse(&mut self, mouse: Mouse) {
        match mouse {
            _ if self.help => self.help = false,
            Mouse::Scroll(at, motion) => {
                let panel = if self.case.contains(at) { Panel::Case } else { Panel::Cases };
                let focus = std::mem::replace(&mut self.focus, panel);
                (0..WHEEL).for_each(|_| self.go(motion));
                self.focus = focus;
            }
            Mouse::Click(at) => {
                let cases = self.tree.shown().len();
                if let Some((line, _)) = self.tree.list.hit(at, cases) {
                    (self.focus, self.follows) = (Panel::Cases, false);
                    if line == self.tree.list.selected {
                        self.tree.turn(None);
                    } else {
                        self.tree.list.selected = line;
                        self.case = List::default();
                    }
                } else if self.case.contains(at) {
                    self.focus = Panel::Case;
                }
            }
        }
    }

    fn command(&mut self, command: Command) -> bool {
        self.notice = None;
        if self.help {
            self.help = false;
            return true;
        }
        match command {
            Command::Quit => return false,
            Command::Back => self.notice = Some("there is nothing to leave; q quits".to_owned()),
            Command::Help => self.help = true,
            Command::NextPanel | Command::PreviousPanel => {
                self.focus = if self.focus == Panel::Cases { Panel::Case } else { Panel::Cases };
            }
            Command::Move(motion) => self.go(motion),
            Command::Left if self.focus == Panel::Cases => self.tree.close_branch(),
            Command::Right if self.focus == Panel::Cases => self.tree.turn(Some(true)),
            Command::Toggle if self.focus == Panel::Cases => self.tree.turn(None),
            Command::Left | Command::Right | Command::Toggle => {}
            Command::Type(Purpose::Search) => self.input_line = Some(InputLine::new(Purpose::Search)),
            // Commands of captures.
            Command::Type(Purpose::Frame | Purpose::Filter) | Command::Open(_) => {}
            Command::Pause | Command::Absolute => {}
            Command::Theme => self.theme = self.theme.next(),
            Command::Again => self.again(self.selected_keys(), false),
            Command::AgainFailed => self.again(self.failed_keys(), false),
            Command::UntilFailure => self.again(self.selected_keys(), true),
            Command::Stop => self.stop(),
            Command::NextMarked => self.jump(false),
            Command::PreviousMarked => self.jump(true),
        }
        true
    }
}

#[cfg(test)]
pub(crate) mod tests;
