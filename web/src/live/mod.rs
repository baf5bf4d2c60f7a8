//! Runs as they go on: what each of them told, numbered, for many browsers at once.
//!
//! A run of this process tells its [`Journal`] by an [`EventSink`] of its own. A run of another process is followed in the results store,
//! by one task however many look ([`follow`]). A journal keeps the newest lines; each browser has a place in it and nothing of its own, so
//! that memory does not grow with those who are slow. Who fell behind, or comes late, is told from the store, where every finished case is
//! before it is told here.

mod follow;
mod journal;

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde::Serialize;
use weft_suites::clock;
use weft_suites::model::{Event, EventSink, RunStatus, Summary, Verdict};
use weft_suites::store::Store;

pub(crate) use journal::{Journal, Moment, Place};

/// Journals that are kept of runs that are over, for who lost the connection just then.
const KEPT: usize = 4;

/// What a run page is told. The data of one Server-Sent Event, as JSON.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "event", rename_all = "kebab-case")]
pub(crate) enum Update {
    /// Somebody has to do something.
    Waiting { what: String, seconds: u64 },
    /// A case begins.
    Started { key: String },
    /// Something happened in it.
    Step { key: String, text: String },
    /// A case has its verdict. `left`: how long the rest will take at the pace so far.
    Finished {
        key: String,
        verdict: Verdict,
        duration: String,
        #[serde(skip_serializing_if = "Option::is_none")]
        left: Option<String>,
    },
    /// The run is over.
    Done { status: RunStatus, exit_code: u8, reasons: Vec<String> },
}

impl Update {
    fn of(event: &Event) -> Option<Self> {
        Some(match event {
            Event::RunStarted { .. } => return None,
            Event::TargetWaiting { what, seconds } => Update::Waiting { what: what.clone(), seconds: *seconds },
            Event::CaseStarted { key, .. } => Update::Started { key: key.to_string() },
            Event::CaseStep { key, step } => Update::Step { key: key.to_string(), text: step.text.clone() },
            Event::CaseFinished { result } => {
                Update::finished(result.key.to_string(), result.verdict, result.duration_us)
            }
            Event::RunFinished { summary } => Update::done(summary),
        })
    }

    /// A verdict.
    pub(crate) fn finished(key: String, verdict: Verdict, duration_us: u64) -> Self {
        Update::Finished { key, verdict, duration: clock::duration(duration_us), left: None }
    }

    /// What the end of a run came to.
    pub(crate) fn done(summary: &Summary) -> Self {
        let (status, exit_code) = (summary.status, summary.exit_code.code());
        Update::Done { status, exit_code, reasons: summary.reasons.clone() }
    }
}

/// Where runs of this process tell what they do, and where pages read it. Cheap to clone; clones are the same.
#[derive(Debug, Clone, Default)]
pub struct Live {
    journals: Arc<Mutex<VecDeque<Arc<Journal>>>>,
}

impl Live {
    /// For one run: what listens to its events, from the first one on.
    #[must_use]
    pub fn sink(&self) -> Arc<dyn EventSink> {
        Arc::new(RunSink { live: self.clone(), journal: Mutex::default() })
    }

    /// What is known of a run that goes on; `None` of one that nobody tells of.
    pub(crate) fn moment(&self, run: &str) -> Option<Moment> {
        let journals = held(&self.journals);
        journals.iter().find(|journal| journal.is_of(run) && !journal.is_over()).map(|journal| journal.moment())
    }

    /// A place in the journal of a run, behind what it has told so far. A run that has none is followed in the store; for one that is over
    /// there is nothing to follow.
    pub(crate) fn join(&self, run: &str, store: &Store, is_over: bool) -> Option<Place> {
        let mut journals = held(&self.journals);
        if let Some(journal) = journals.iter().find(|journal| journal.is_of(run) && (is_over || !journal.is_over())) {
            return Some(Place::end(journal.clone()));
        }
        if is_over {
            return None;
        }
        // Of one that ended without a last word.
        journals.retain(|journal| !journal.is_of(run));
        let journal = Arc::new(Journal::new(run, 0));
        let place = Place::end(journal.clone());
        keep(&mut journals, journal.clone());
        tokio::spawn(follow::follow(self.clone(), store.clone(), journal));
        Some(place)
    }

    /// The journal of a run that begins here; one that somebody looks at already is gone on with.
    fn begin(&self, run: &str, planned: u64) -> Arc<Journal> {
        let mut journals = held(&self.journals);
        if let Some(journal) = journals.iter().find(|journal| journal.is_of(run) && !journal.is_over()) {
            journal.take_over(planned);
            return journal.clone();
        }
        // One that is resumed has a journal of its time before.
        journals.retain(|journal| !journal.is_of(run));
        let journal = Arc::new(Journal::new(run, planned));
        journal.take_over(planned);
        keep(&mut journals, journal.clone());
        journal
    }

    /// Drops a journal that nobody looks at; tells whether it did.
    fn forget(&self, journal: &Arc<Journal>) -> bool {
        let mut journals = held(&self.journals);
        let is_alone = !journal.is_looked_at();
        if is_alone {
            journals.retain(|other| !Arc::ptr_eq(other, journal));
        }
        is_alone
    }
}

/// One more; of those that are over the oldest go.
fn keep(journals: &mut VecDeque<Arc<Journal>>, journal: Arc<Journal>) {
    let over = journals.iter().filter(|journal| journal.is_over()).count();
    let mut surplus = over.saturating_sub(KEPT);
    journals.retain(|journal| {
        let goes = surplus > 0 && journal.is_over();
        surplus -= usize::from(goes);
        !goes
    });
    journals.push_back(journal);
}

/// The events of one run on their way into its journal.
struct RunSink {
    live: Live,
    journal: Mutex<Option<Arc<Journal>>>,
}

impl EventSink for RunSink {
    fn event(&self, event: &Event) {
        let mut journal = held(&self.journal);
        if let Event::RunStarted { run, planned, .. } = event {
            *journal = Some(self.live.begin(&run.id, planned.len() as u64));
        }
        if let (Some(journal), Some(update)) = (&*journal, Update::of(event)) {
            journal.tell(update);
        }
    }
}

impl Drop for RunSink {
    /// A run that ended without a last word: who looks at it is told what the store knows.
    fn drop(&mut self) {
        if let Some(journal) = &*held(&self.journal) {
            journal.end();
        }
    }
}

/// What a panic of another thread left is whole: nothing under these locks panics half-way.
fn held<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
