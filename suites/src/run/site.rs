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
    /// What is captured while the run lasts.
    pub(super) wire: Option<evidence::Wire>,
    pub(super) suites: Suites,
    pub(super) out: PathBuf,
    pub(super) sink: Arc<dyn EventSink>,
    /// Why the target is not there, as the first case found; `None` in it when it is.
    pub(super) absent: OnceLock<Option<String>>,
    pub(super) silence: Silence,
    /// For an implementation under test: a builtin target stops together with the tester.
    pub(super) standstill: Option<Standstill>,
    /// Why the target could not be brought back.
    pub(super) gone: OnceLock<String>,
    pub(super) basics: Basics,
}

/// Whether the target has ever done anything but take connections.
#[derive(Debug, Default)]
pub(super) struct Silence {
    has_responded: AtomicBool,
    cases: AtomicU32,
}

impl Silence {
    /// Cases without any answer before weft skips the others, since each costs a time-out.
    const PATIENCE: u32 = 3;

    pub(super) fn note(&self, has_responded: bool) {
        if has_responded {
            self.has_responded.store(true, Relaxed);
        } else {
            self.cases.fetch_add(1, Relaxed);
        }
    }

    /// The number of cases without an answer, if no case had one and the number is high enough.
    pub(super) fn is_all(&self) -> Option<u32> {
        let cases = self.cases.load(Relaxed);
        (cases >= Self::PATIENCE && !self.has_responded.load(Relaxed)).then_some(cases)
    }
}
