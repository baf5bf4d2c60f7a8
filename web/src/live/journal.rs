//! What one run told, in numbered lines, of which the newest are kept; and the places of those who read it.

use std::collections::{HashSet, VecDeque};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use tokio::sync::watch;
use weft_suites::clock;

use super::{Update, held};

/// Lines that are kept.
const LINES: usize = 16 << 10;
/// Octets that are kept.
const OCTETS: usize = 4 << 20;
/// Lines that are read at once.
const BATCH: usize = 64;

/// One line.
#[derive(Debug, Clone)]
pub(crate) struct Line {
    /// The [`Update`], as JSON.
    pub(crate) data: Arc<str>,
    /// Of a case: its key, and whether it is finished.
    pub(crate) case: Option<(Arc<str>, bool)>,
}

/// The journal of one run.
#[derive(Debug)]
pub(crate) struct Journal {
    run: String,
    /// No other journal has it, that of the same run after a restart included.
    epoch: u64,
    told: Mutex<Told>,
    /// The number of the next line. Who reads subscribes; `u64::MAX` is no number but the end.
    next: watch::Sender<u64>,
}

#[derive(Debug)]
struct Told {
    /// Number of the first line that is kept.
    first: u64,
    lines: VecDeque<Line>,
    octets: usize,
    /// Keys of finished cases.
    finished: HashSet<Arc<str>>,
    planned: u64,
    is_over: bool,
    /// It is told by the run itself and not by the store.
    is_own: bool,
    waits: Option<(String, Instant)>,
    /// Since when the pace is measured, and how many were finished then.
    pace: (Instant, usize),
}

/// What a page says of a run that goes on.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Moment {
    /// What somebody has to do, and for how many seconds that is waited for.
    pub(crate) waits: Option<(String, u64)>,
    /// How long the rest will take at the pace so far.
    pub(crate) left: Option<String>,
}

impl Journal {
    pub(super) fn new(run: &str, planned: u64) -> Self {
        static EPOCHS: AtomicU64 = AtomicU64::new(0);
        let begun = clock::unix_ns() & !0xFFFF;
        let told = Told {
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
        Journal { run: run.to_owned(), epoch, told: Mutex::new(told), next: watch::Sender::new(0) }
    }

    pub(super) fn is_of(&self, run: &str) -> bool {
        self.run == run
    }

    pub(super) fn run(&self) -> &str {
        &self.run
    }

    pub(super) fn is_over(&self) -> bool {
        held(&self.told).is_over
    }

    pub(super) fn is_own(&self) -> bool {
        held(&self.told).is_own
    }

    pub(super) fn is_looked_at(&self) -> bool {
        self.next.receiver_count() > 0
    }

    /// From now on the run itself tells.
    pub(super) fn take_over(&self, planned: u64) {
        let mut told = held(&self.told);
        (told.is_own, told.planned) = (true, planned);
    }

    /// What is told up to here took no time that says something about the rest.
    pub(super) fn measure(&self, planned: u64) {
        let mut told = held(&self.told);
        told.planned = planned;
        told.pace = (Instant::now(), told.finished.len());
    }

    /// One more line, if it says something new.
    pub(super) fn tell(&self, mut update: Update) {
        let mut told = held(&self.told);
        let (key, is_finished) = match &update {
            Update::Finished { key, .. } => (Some(Arc::from(key.as_str())), true),
            Update::Started { key } | Update::Step { key, .. } => (Some(Arc::from(key.as_str())), false),
            Update::Waiting { .. } | Update::Done { .. } => (None, false),
        };
        let is_old = key.as_ref().is_some_and(|key: &Arc<str>| told.finished.contains(key));
        if told.is_over || is_old {
            return;
        }
        match &mut update {
            Update::Waiting { what, seconds } => {
                told.waits = Some((what.clone(), Instant::now() + Duration::from_secs(*seconds)));
            }
            Update::Started { .. } => told.waits = None,
            Update::Finished { left, .. } => {
                told.finished.extend(key.clone());
                *left = told.left();
            }
            Update::Done { .. } => told.is_over = true,
            Update::Step { .. } => {}
        }
        // Nothing in it has no JSON.
        let Ok(data) = serde_json::to_string(&update) else { return };
        told.octets += data.len();
        told.lines.push_back(Line { data: data.into(), case: key.map(|key| (key, is_finished)) });
        while told.lines.len() > LINES || told.octets > OCTETS {
            let Some(line) = told.lines.pop_front() else { break };
            told.octets -= line.data.len();
            told.first += 1;
        }
        self.next.send_replace(told.next());
    }

    /// Nothing more will be told.
    pub(super) fn end(&self) {
        let mut told = held(&self.told);
        told.is_over = true;
        self.next.send_replace(told.next());
    }

    pub(super) fn moment(&self) -> Moment {
        let told = held(&self.told);
        let left = |until: &Instant| until.saturating_duration_since(Instant::now()).as_secs();
        Moment { waits: told.waits.as_ref().map(|(what, until)| (what.clone(), left(until))), left: told.left() }
    }
}

impl Told {
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

/// Where somebody is in a journal.
#[derive(Debug)]
pub(crate) struct Place {
    journal: Arc<Journal>,
    news: watch::Receiver<u64>,
    /// Number of the line that is read next.
    at: u64,
}

impl Place {
    /// Behind the last line.
    pub(super) fn end(journal: Arc<Journal>) -> Self {
        let news = journal.next.subscribe();
        let at = held(&journal.told).next();
        Place { journal, news, at }
    }

    /// Goes on behind the line that somebody was told last; `false` where that is not known any more.
    pub(crate) fn resume(&mut self, last: &str) -> bool {
        let parsed = last.split_once('-').and_then(|(epoch, number)| {
            Some((u64::from_str_radix(epoch, 16).ok()?, number.parse::<u64>().ok()?.checked_add(1)?))
        });
        let told = held(&self.journal.told);
        match parsed {
            Some((epoch, next)) if epoch == self.journal.epoch && (told.first..=told.next()).contains(&next) => {
                self.at = next;
                true
            }
            _ => false,
        }
    }

    /// The id of the line before the place.
    pub(crate) fn id(&self, line: u64) -> String {
        format!("{:x}-{line}", self.journal.epoch)
    }

    /// What is waited for now.
    pub(crate) fn waits(&self) -> Option<Update> {
        let (what, seconds) = self.journal.moment().waits?;
        Some(Update::Waiting { what, seconds })
    }

    /// The next lines with their numbers, when there are some. `None` at the end, and where they are not kept any more.
    pub(crate) async fn read(&mut self) -> Option<Vec<(u64, Line)>> {
        loop {
            // Seen before the lines are looked at: what comes in between is news.
            self.news.borrow_and_update();
            {
                let told = held(&self.journal.told);
                let from = usize::try_from(self.at.checked_sub(told.first)?).ok()?;
                let lines: Vec<_> = (self.at..).zip(told.lines.iter().skip(from).take(BATCH).cloned()).collect();
                if !lines.is_empty() {
                    self.at += lines.len() as u64;
                    return Some(lines);
                }
                if told.is_over {
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
    async fn who_comes_back_goes_on_and_who_was_away_too_long_does_not() {
        let journal = Arc::new(Journal::new("r", 2));
        let mut place = Place::end(journal.clone());
        (0..3).for_each(|number| journal.tell(step(number)));
        let lines = place.read().await.unwrap();
        assert_eq!(lines.iter().map(|(number, _)| *number).collect::<Vec<_>>(), [0, 1, 2]);
        let (first, last) = (place.id(0), place.id(2));
        let mut again = Place::end(journal.clone());
        assert!(again.resume(&first));
        assert_eq!(again.read().await.unwrap().len(), 2);
        assert!(again.resume(&last), "nothing was missed");
        for foreign in ["", "x", "0-0", "-1", &format!("{first}9"), &place.id(3), &place.id(u64::MAX)] {
            assert!(!again.resume(foreign), "{foreign}");
        }
        (0..=LINES).for_each(|number| journal.tell(step(number)));
        assert!(!again.resume(&first), "not kept any more");
        assert!(place.read().await.is_none(), "it fell behind");
        assert_eq!(held(&journal.told).lines.len(), LINES);
    }

    #[test]
    fn the_octets_that_are_kept_are_bounded() {
        let journal = Journal::new("r", 2);
        for _ in 0..100 {
            journal.tell(Update::Step { key: "a".into(), text: "x".repeat(OCTETS / 16) });
        }
        let told = held(&journal.told);
        assert!(told.octets <= OCTETS && told.lines.len() < 17 && told.first > 80);
        assert_eq!(told.octets, told.lines.iter().map(|line| line.data.len()).sum::<usize>());
    }

    #[tokio::test]
    async fn a_case_is_finished_once_and_nothing_follows_it() {
        let journal = Arc::new(Journal::new("r", 2));
        let mut place = Place::end(journal.clone());
        for _ in 0..2 {
            journal.tell(Update::Started { key: "a".into() });
            journal.tell(Update::finished("a".into(), Verdict::Pass, 1));
        }
        journal.end();
        journal.tell(step(1));
        let lines = place.read().await.unwrap();
        assert_eq!(lines.len(), 2);
        assert!(lines[1].1.data.contains("\"left\":\""), "{}", lines[1].1.data);
        assert!(place.read().await.is_none(), "the end");
    }

    #[test]
    fn what_is_waited_for_is_over_with_the_next_case() {
        let journal = Journal::new("r", 2);
        journal.tell(Update::Waiting { what: "start it".into(), seconds: 300 });
        let (what, seconds) = journal.moment().waits.unwrap();
        assert!(what == "start it" && (299..=300).contains(&seconds), "{seconds}");
        journal.tell(Update::Started { key: "a".into() });
        assert_eq!(journal.moment(), Moment::default());
    }
}
