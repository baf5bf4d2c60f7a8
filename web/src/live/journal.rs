//! The journal of a run: its newest updates as numbered lines, and the positions of its readers.

use std::collections::{HashSet, VecDeque};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use tokio::sync::watch;
use weft_suites::clock;

use super::Update;
use crate::lock::locked;

/// The maximum number of lines in a journal.
const LINES: usize = 16 << 10;
/// The maximum total length of all lines in bytes.
const OCTETS: usize = 4 << 20;
/// The maximum number of lines that a reader gets at once.
const BATCH: usize = 64;

/// One line of a journal.
#[derive(Debug, Clone)]
pub(crate) struct Line {
    /// The [`Update`] as JSON.
    pub(crate) data: Arc<str>,
    /// The key of the case that the line is about, and whether the line has the verdict of the
    /// case. `None` for a line about the complete run.
    pub(crate) case: Option<(Arc<str>, bool)>,
}

/// The journal of one run.
#[derive(Debug)]
pub(crate) struct Journal {
    run: String,
    /// A number that is different for each journal. If the server restarts, the new journal of the
    /// same run also has a new number.
    epoch: u64,
    state: Mutex<State>,
    /// The number of the next line. Readers subscribe to this number.
    next: watch::Sender<u64>,
}

#[derive(Debug)]
struct State {
    /// The number of the oldest line in `lines`.
    first: u64,
    lines: VecDeque<Line>,
    octets: usize,
    /// Keys of finished cases.
    finished: HashSet<Arc<str>>,
    planned: u64,
    is_over: bool,
    /// Whether a run of this process writes the journal. Otherwise a task reads the store and
    /// writes the journal.
    is_own: bool,
    waits: Option<(String, Instant)>,
    /// The start of the measurement of the pace (finished cases per time), and the number of cases
    /// that were finished at that time.
    pace: (Instant, usize),
}

/// The state of a run in progress, for the page of the run.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct LiveState {
    /// The instruction for the user, and the seconds that the run still waits for the user.
    pub(crate) waits: Option<(String, u64)>,
    /// The estimated remaining time, from the pace so far.
    pub(crate) left: Option<String>,
}

impl Journal {
    pub(super) fn new(run: &str, planned: u64) -> Self {
        static EPOCHS: AtomicU64 = AtomicU64::new(0);
        let begun = clock::unix_ns() & !0xFFFF;
        let state = State {
            first: 0,
            lines: VecDeque::new(),
            octets: 0,
            finished: HashSet::new(),
            planned,
            is_over: false,
            is_own: false,
            waits: None,
            pace: (Instant::now(), 0),
        };
        let epoch = begun.wrapping_add(EPOCHS.fetch_add(1, Ordering::Relaxed));
        Journal { run: run.to_owned(), epoch, state: Mutex::new(state), next: watch::Sender::new(0) }
    }

    pub(super) fn is_of(&self, run: &str) -> bool {
        self.run == run
    }

    pub(super) fn run(&self) -> &str {
        &self.run
    }

    pub(super) fn is_over(&self) -> bool {
        locked(&self.state).is_over
    }

    pub(super) fn is_own(&self) -> bool {
        locked(&self.state).is_own
    }

    pub(super) fn has_readers(&self) -> bool {
        self.next.receiver_count() > 0
    }

    /// Marks the journal as written by a run of this process. The run has `planned` cases.
    pub(super) fn take_over(&self, planned: u64) {
        let mut state = locked(&self.state);
        (state.is_own, state.planned) = (true, planned);
    }

    /// Starts to measure the pace. Cases that are already finished do not count.
    pub(super) fn measure(&self, planned: u64) {
        let mut state = locked(&self.state);
        state.planned = planned;
        state.pace = (Instant::now(), state.finished.len());
    }

    /// Adds a line, unless the run or the case is already finished.
    pub(super) fn add(&self, mut update: Update) {
        let mut state = locked(&self.state);
        let (key, is_finished) = match &update {
            Update::Finished { key, .. } => (Some(Arc::from(key.as_str())), true),
            Update::Started { key } | Update::Step { key, .. } => (Some(Arc::from(key.as_str())), false),
            Update::Waiting { .. } | Update::Done { .. } => (None, false),
        };
        let is_old = key.as_ref().is_some_and(|key: &Arc<str>| state.finished.contains(key));
        if state.is_over || is_old {
            return;
        }
        match &mut update {
            Update::Waiting { what, seconds } => {
                state.waits = Some((what.clone(), Instant::now() + Duration::from_secs(*seconds)));
            }
            Update::Started { .. } => state.waits = None,
            Update::Finished { left, .. } => {
                state.finished.extend(key.clone());
                *left = state.left();
            }
            Update::Done { .. } => state.is_over = true,
            Update::Step { .. } => {}
        }
        // An update always has a JSON form.
        let Ok(data) = serde_json::to_string(&update) else { return };
        state.octets += data.len();
        state.lines.push_back(Line { data: data.into(), case: key.map(|key| (key, is_finished)) });
        while state.lines.len() > LINES || state.octets > OCTETS {
            let Some(line) = state.lines.pop_front() else { break };
            state.octets -= line.data.len();
            state.first += 1;
        }
        self.next.send_replace(state.next());
    }

    /// Ends the journal. Afterwards, the journal accepts no further lines.
    pub(super) fn end(&self) {
        let mut state = locked(&self.state);
        state.is_over = true;
        self.next.send_replace(state.next());
    }

    pub(super) fn live_state(&self) -> LiveState {
        let state = locked(&self.state);
        let left = |until: &Instant| until.saturating_duration_since(Instant::now()).as_secs();
        LiveState { waits: state.waits.as_ref().map(|(what, until)| (what.clone(), left(until))), left: state.left() }
    }
}

impl State {
    fn next(&self) -> u64 {
        self.first + self.lines.len() as u64
    }

    fn left(&self) -> Option<String> {
        let (since, before) = self.pace;
        let done = u32::try_from(self.finished.len().checked_sub(before)?).ok().filter(|done| *done > 0)?;
        let rest = self.planned.checked_sub(self.finished.len() as u64)?;
        let left = (since.elapsed() / done).checked_mul(u32::try_from(rest).ok()?)?;
        Some(clock::duration(left.as_micros().try_into().ok()?))
    }
}

/// The position of a reader in a journal.
#[derive(Debug)]
pub(crate) struct JournalPosition {
    journal: Arc<Journal>,
    news: watch::Receiver<u64>,
    /// The number of the next line to read.
    at: u64,
}

impl JournalPosition {
    /// Returns the position after the last line.
    pub(super) fn end(journal: Arc<Journal>) -> Self {
        let news = journal.next.subscribe();
        let at = locked(&journal.state).next();
        JournalPosition { journal, news, at }
    }

    /// Moves to the position after the line with the id `last`. Returns `false` if `last` is not an
    /// id of this journal, or if the journal no longer has the line after `last`.
    pub(crate) fn resume(&mut self, last: &str) -> bool {
        let parsed = last.split_once('-').and_then(|(epoch, number)| {
            Some((u64::from_str_radix(epoch, 16).ok()?, number.parse::<u64>().ok()?.checked_add(1)?))
        });
        let state = locked(&self.journal.state);
        match parsed {
            Some((epoch, next)) if epoch == self.journal.epoch && (state.first..=state.next()).contains(&next) => {
                self.at = next;
                true
            }
            _ => false,
        }
    }

    /// Returns the id of the line with this number, for `Last-Event-ID`.
    pub(crate) fn id(&self, line: u64) -> String {
        format!("{:x}-{line}", self.journal.epoch)
    }

    /// Returns an [`Update::Waiting`] if the run waits for the user now.
    pub(crate) fn waits(&self) -> Option<Update> {
        let (what, seconds) = self.journal.live_state().waits?;
        Some(Update::Waiting { what, seconds })
    }

    /// Waits for the next lines, and returns them with their numbers. Returns `None` if the journal
    /// has ended, or if it has dropped the next line.
    pub(crate) async fn read(&mut self) -> Option<Vec<(u64, Line)>> {
        loop {
            // Mark the newest number as known before the lines are read. If a line is added in
            // between, the wait below ends at once.
            self.news.borrow_and_update();
            {
                let state = locked(&self.journal.state);
                let from = usize::try_from(self.at.checked_sub(state.first)?).ok()?;
                let lines: Vec<_> = (self.at..).zip(state.lines.iter().skip(from).take(BATCH).cloned()).collect();
                if !lines.is_empty() {
                    self.at += lines.len() as u64;
                    return Some(lines);
                }
                if state.is_over {
                    return None;
                }
            }
            self.news.changed().await.ok()?;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use weft_suites::model::Verdict;

    fn step(number: usize) -> Update {
        Update::Step { key: "a".into(), text: number.to_string() }
    }

    #[tokio::test]
    async fn a_reader_resumes_unless_it_was_away_too_long() {
        let journal = Arc::new(Journal::new("r", 2));
        let mut position = JournalPosition::end(journal.clone());
        (0..3).for_each(|number| journal.add(step(number)));
        let lines = position.read().await.unwrap();
        assert_eq!(lines.iter().map(|(number, _)| *number).collect::<Vec<_>>(), [0, 1, 2]);
        let (first, last) = (position.id(0), position.id(2));
        let mut again = JournalPosition::end(journal.clone());
        assert!(again.resume(&first));
        assert_eq!(again.read().await.unwrap().len(), 2);
        assert!(again.resume(&last), "nothing was missed");
        for foreign in ["", "x", "0-0", "-1", &format!("{first}9"), &position.id(3), &position.id(u64::MAX)] {
            assert!(!again.resume(foreign), "{foreign}");
        }
        (0..=LINES).for_each(|number| journal.add(step(number)));
        assert!(!again.resume(&first), "the line was dropped");
        assert!(position.read().await.is_none(), "its next line was dropped");
        assert_eq!(locked(&journal.state).lines.len(), LINES);
    }

    #[test]
    fn memory_is_bounded() {
        let journal = Journal::new("r", 2);
        for _ in 0..100 {
            journal.add(Update::Step { key: "a".into(), text: "x".repeat(OCTETS / 16) });
        }
        let state = locked(&journal.state);
        assert!(state.octets <= OCTETS && state.lines.len() < 17 && state.first > 80);
        assert_eq!(state.octets, state.lines.iter().map(|line| line.data.len()).sum::<usize>());
    }

    #[tokio::test]
    async fn a_case_is_finished_once_and_nothing_follows_it() {
        let journal = Arc::new(Journal::new("r", 2));
        let mut position = JournalPosition::end(journal.clone());
        for _ in 0..2 {
            journal.add(Update::Started { key: "a".into() });
            journal.add(Update::finished("a".into(), Verdict::Pass, 1));
        }
        journal.end();
        journal.add(step(1));
        let lines = position.read().await.unwrap();
        assert_eq!(lines.len(), 2);
        assert!(lines[1].1.data.contains("\"left\":\""), "{}", lines[1].1.data);
        assert!(position.read().await.is_none(), "the end");
    }

    #[test]
    fn waiting_ends_with_the_next_case() {
        let journal = Journal::new("r", 2);
        journal.add(Update::Waiting { what: "start it".into(), seconds: 300 });
        let (what, seconds) = journal.live_state().waits.unwrap();
        assert!(what == "start it" && (299..=300).contains(&seconds), "{seconds}");
        journal.add(Update::Started { key: "a".into() });
        assert_eq!(journal.live_state(), LiveState::default());
    }
}
