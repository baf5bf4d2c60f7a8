//! What all cases of a run share.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::Relaxed};
use std::sync::{Arc, OnceLock};

use super::basics::Basics;
use super::standstill::Standstill;
use crate::evidence;
use crate::model::{EventSink, RunInfo};
use crate::script::Suites;
use crate::targets::{Live, Target};

/// The state of a run that its cases share.
pub(super) struct Site {
    pub(super) run: RunInfo,
    pub(super) target: Arc<Target>,
    pub(super) live: Live,
    /// The capture on an interface during the run, if there is one.
    pub(super) wire: Option<evidence::Wire>,
    pub(super) suites: Suites,
    pub(super) out: PathBuf,
    pub(super) sink: Arc<dyn EventSink>,
    /// Whether the target is reachable, from the first case that tried. The inner value is the
    /// reason if it is not, and `None` if it is.
    pub(super) absent: OnceLock<Option<String>>,
    pub(super) silence: Silence,
    /// Watches the tester. `None` for a builtin target, because it stops together with the tester.
    pub(super) standstill: Option<Standstill>,
    /// Why the target could not be restarted.
    pub(super) gone: OnceLock<String>,
    pub(super) basics: Basics,
}

/// Whether the target has ever sent anything, or only accepts connections.
#[derive(Debug, Default)]
pub(super) struct Silence {
    has_responded: AtomicBool,
    cases: AtomicU32,
}

impl Silence {
    /// Number of cases without an answer after which weft skips the others, because each would wait
    /// for a time-out.
    const PATIENCE: u32 = 3;

    pub(super) fn note(&self, has_responded: bool) {
        if has_responded {
            self.has_responded.store(true, Relaxed);
        } else {
            self.cases.fetch_add(1, Relaxed);
        }
    }

    /// Returns the number of cases without an answer. `None` if a case had an answer, or if there
    /// are too few cases.
    pub(super) fn is_all(&self) -> Option<u32> {
        let cases = self.cases.load(Relaxed);
        (cases >= Self::PATIENCE && !self.has_responded.load(Relaxed)).then_some(cases)
    }
}
