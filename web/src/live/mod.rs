//! Runs in progress, for many browsers at once.
//!
//! A run of this process writes its [`Journal`] through an [`EventSink`]. For a run of another
//! process, one task reads the results store ([`follow`]) for all browsers. A journal keeps the
//! newest lines. The server keeps only a position in the journal for each browser, so slow browsers
//! take no memory. A browser that is late or too slow gets the cases from the store. The store has
//! each finished case before the journal has it.

mod follow;
mod journal;

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use serde::Serialize;
use weft_suites::clock;
use weft_suites::model::{Event, EventSink, RunStatus, Summary, Verdict};
use weft_suites::store::{PlannedCase, Store};

use crate::lock::locked;
pub(crate) use journal::{Journal, JournalPosition, LiveState};

/// Number of journals of finished runs to keep. A browser needs such a journal if it lost the
/// connection at the end of the run.
const KEPT: usize = 4;

/// An update for the page of a run: the data of one Server-Sent Event, as JSON.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "event", rename_all = "kebab-case")]
pub(crate) enum Update {
    /// The run waits at most `seconds` until the user has followed the instruction `what`.
    Waiting { what: String, seconds: u64 },
    /// A case starts.
    Started { key: String },
    /// A step of a case.
    Step { key: String, text: String },
    /// A case has its verdict. `left` is the estimated remaining time of the run.
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
            // The reasons of the run have the headline of a target that is down.
            Event::RunStarted { .. } | Event::TargetDown { .. } => return None,
            Event::TargetWaiting { what, seconds } => Update::Waiting { what: what.clone(), seconds: *seconds },
            Event::CaseStarted { key, .. } => Update::Started { key: key.to_string() },
            Event::CaseStep { key, step } => Update::Step { key: key.to_string(), text: step.text.clone() },
            Event::CaseFinished { result } => {
                Update::finished(result.key.to_string(), result.verdict, result.duration_us)
            }
            Event::RunFinished { summary } => Update::done(summary),
        })
    }

    /// Makes the update of a finished case of the store. Returns `None` if the case has no result
    /// yet.
    pub(crate) fn of_case(case: &PlannedCase) -> Option<Self> {
        Some(Update::finished(case.key.to_string(), case.verdict?, case.duration_us?))
    }

    fn finished(key: String, verdict: Verdict, duration_us: u64) -> Self {
        Update::Finished { key, verdict, duration: clock::duration(duration_us), left: None }
    }

    pub(crate) fn done(summary: &Summary) -> Self {
        let (status, exit_code) = (summary.status, summary.exit_code.code());
        Update::Done { status, exit_code, reasons: summary.reasons.clone() }
    }
}

/// The journals of runs. Runs of this process write their journals, and pages read the journals.
/// Cheap to clone. Clones share the journals.
#[derive(Debug, Clone, Default)]
pub struct Live {
    journals: Arc<Mutex<VecDeque<Arc<Journal>>>>,
}

impl Live {
    /// Makes a sink for the events of one run. The sink must get all events of the run, from the
    /// first event on.
    #[must_use]
    pub fn sink(&self) -> Arc<dyn EventSink> {
        Arc::new(RunSink { live: self.clone(), journal: Mutex::default() })
    }

    /// Returns the state of a run in progress. Returns `None` if the run is over or has no journal.
    pub(crate) fn live_state(&self, run: &str) -> Option<LiveState> {
        let journals = locked(&self.journals);
        journals.iter().find(|journal| journal.is_of(run) && !journal.is_over()).map(|journal| journal.live_state())
    }

    /// Returns the position after the last line of a run's journal. If a run in progress has no
    /// journal, starts a task that follows the run in the store. Returns `None` if the run is over
    /// and has no journal.
    pub(crate) fn join(&self, run: &str, store: &Store, is_over: bool) -> Option<JournalPosition> {
        let mut journals = locked(&self.journals);
        if let Some(journal) = journals.iter().find(|journal| journal.is_of(run) && (is_over || !journal.is_over())) {
            return Some(JournalPosition::end(journal.clone()));
        }
        if is_over {
            return None;
        }
        // Remove a journal that ended although the run is not over.
        let journal = replace(&mut journals, run, 0);
        let position = JournalPosition::end(journal.clone());
        tokio::spawn(follow::follow(self.clone(), store.clone(), journal));
        Some(position)
    }

    /// Returns the journal of a run that starts in this process. Uses the existing journal of the
    /// run if that journal has not ended.
    fn begin(&self, run: &str, planned: u64) -> Arc<Journal> {
        let mut journals = locked(&self.journals);
        if let Some(journal) = journals.iter().find(|journal| journal.is_of(run) && !journal.is_over()) {
            journal.take_over(planned);
            return journal.clone();
        }
        // A resumed run can have an old journal.
        let journal = replace(&mut journals, run, planned);
        journal.take_over(planned);
        journal
    }

    /// Drops the journal if it has no readers. Returns whether it dropped the journal.
    fn forget(&self, journal: &Arc<Journal>) -> bool {
        let mut journals = locked(&self.journals);
        let is_alone = !journal.has_readers();
        if is_alone {
            journals.retain(|other| !Arc::ptr_eq(other, journal));
        }
        is_alone
    }
}

/// Replaces the journal of a run by a new one. Drops the oldest journals of finished runs if there
/// are more than [`KEPT`].
fn replace(journals: &mut VecDeque<Arc<Journal>>, run: &str, planned: u64) -> Arc<Journal> {
    journals.retain(|journal| !journal.is_of(run));
    let over = journals.iter().filter(|journal| journal.is_over()).count();
    let mut surplus = over.saturating_sub(KEPT);
    journals.retain(|journal| {
        let goes = surplus > 0 && journal.is_over();
        surplus -= usize::from(goes);
        !goes
    });
    let journal = Arc::new(Journal::new(run, planned));
    journals.push_back(journal.clone());
    journal
}

/// Writes the events of one run into its journal.
struct RunSink {
    live: Live,
    journal: Mutex<Option<Arc<Journal>>>,
}

impl EventSink for RunSink {
    fn event(&self, event: &Event) {
        let mut journal = locked(&self.journal);
        if let Event::RunStarted { run, planned, .. } = event {
            *journal = Some(self.live.begin(&run.id, planned.len() as u64));
        }
        if let (Some(journal), Some(update)) = (&*journal, Update::of(event)) {
            journal.add(update);
        }
    }
}

impl Drop for RunSink {
    /// Ends the journal, also if the run ended without a final event. Browsers then get the results
    /// of the store.
    fn drop(&mut self) {
        if let Some(journal) = &*locked(&self.journal) {
            journal.end();
        }
    }
}
