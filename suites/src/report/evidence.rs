//! Describes where the evidence of a run comes from.

use std::collections::BTreeMap;

use super::cases;
use crate::model::{Evidence, EvidenceSource};

/// Counts cases by the source of their packets.
#[derive(Debug, Default)]
pub(super) struct Sources(BTreeMap<(EvidenceSource, Option<String>), u64>);

impl Sources {
    /// Counts these cases.
    pub(super) fn of<'a>(evidence: impl IntoIterator<Item = &'a Evidence>) -> Self {
        let mut sources = Sources::default();
        evidence.into_iter().for_each(|evidence| sources.add(evidence));
        sources
    }

    /// Counts a case. A case that did not run has no evidence, and is not counted.
    pub(super) fn add(&mut self, evidence: &Evidence) {
        if !evidence.files.is_empty() {
            *self.0.entry((evidence.source, evidence.without_wire.clone())).or_default() += 1;
        }
    }

    /// Returns one line for each source. The line follows the word "evidence".
    pub(super) fn lines(self) -> impl Iterator<Item = String> {
        self.0.into_iter().map(|((source, why), count)| {
            let why = why.map_or_else(String::new, |why| format!(" ({why})"));
            format!("of {}: {}{why}", cases(count), source.description())
        })
    }
}
