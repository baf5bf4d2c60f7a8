//! What all cases of a run share.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::Relaxed};
use std::sync::{Arc, OnceLock};

use super::basics::Basics;
use super::reach::Reachability;
use super::standstill::Standstill;
use crate::evidence;
use crate::model::{EventSink, RunInfo};
use crate::script::Suites;
use crate::targets::{OpenTarget, Target};

/// The state of a run that its cases share.
pub(super) struct RunContext {
    pub(super) run: RunInfo,
    pub(super) target: Arc<Target>,
    pub(super) live: OpenTarget,
    /// The capture on an interface during the run, if there is one.
    pub(super) wire: Option<evidence::Wire>,
    pub(super) suites: Suites,
    pub(super) out: PathBuf,
    pub(super) sink: Arc<dyn EventSink>,
    /// The steps of cases are not sent to `sink`. This is for cases that are not planned.
    pub(super) is_silent: AtomicBool,
    /// Whether the cases reach the target.
    pub(super) reach: Reachability,
    pub(super) unanswered: UnansweredCases,
    /// Watches the tester. `None` for a builtin target, because a builtin target stops together
    /// with the tester.
    pub(super) standstill: Option<Standstill>,
    /// Why the target could not be restarted.
    pub(super) restart_failure: OnceLock<String>,
    pub(super) basics: Basics,
}

/// Whether the target has ever sent anything, or only accepts connections.
#[derive(Debug, Default)]
pub(super) struct UnansweredCases {
    has_responded: AtomicBool,
    cases: AtomicU32,
}

impl UnansweredCases {
    /// After this number of cases without an answer, weft skips the remaining cases, because each
    /// of them would wait for a time-out.
    const LIMIT: u32 = 3;

    pub(super) fn note(&self, has_responded: bool) {
        if has_responded {
            self.has_responded.store(true, Relaxed);
        } else {
            self.cases.fetch_add(1, Relaxed);
        }
    }

    /// Returns the number of cases without an answer. `None` if a case had an answer, or if there
    /// are too few cases.
    pub(super) fn count_if_all(&self) -> Option<u32> {
        let cases = self.cases.load(Relaxed);
        (cases >= Self::LIMIT && !self.has_responded.load(Relaxed)).then_some(cases)
    }
}
