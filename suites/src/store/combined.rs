//! Remembers the combined results of a run and its reruns. To combine them, all results of these
//! runs are read, which takes long for a page that shows many targets.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::Latest;
use super::read::RunRecord;

/// Maximum number of runs with reruns that are remembered.
const MOST: usize = 64;

/// The combined results of runs with reruns. Cheap to clone. Clones share the results.
#[derive(Debug, Clone, Default)]
pub(super) struct CombinedRuns(Arc<Mutex<BTreeMap<String, Combined>>>);

/// The combined results of a run, and the records from which they were made. If a run is resumed,
/// deleted or run again, its records change.
#[derive(Debug)]
struct Combined {
    of: RunRecord,
    reruns: Vec<RunRecord>,
    latest: Latest,
}

impl CombinedRuns {
    /// Returns the combined results of a finished run and its finished reruns, if they are
    /// remembered.
    pub(super) fn get(&self, of: &RunRecord, reruns: &[RunRecord]) -> Option<Latest> {
        let combined = self.lock();
        let known = combined.get(&of.info.id)?;
        (known.of == *of && known.reruns == reruns).then(|| known.latest.clone())
    }

    /// Remembers the combined results of a finished run and its finished reruns.
    pub(super) fn insert(&self, of: RunRecord, reruns: Vec<RunRecord>, latest: Latest) {
        let mut combined = self.lock();
        if combined.len() >= MOST {
            combined.clear();
        }
        combined.insert(of.info.id.clone(), Combined { of, reruns, latest });
    }

    /// Locks the results. Ignores poisoning: no code under this lock panics during an update.
    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, Combined>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
