//! Describes where the evidence of a run comes from, and reads its files.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Component, Path};

use super::cases;
use crate::evidence::CASES;
use crate::model::{CaseResult, Evidence, EvidenceKind, EvidenceSource};

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

/// Returns the path of a file of evidence, if it is in the folder of the cases. A result of another
/// host could name any file or address.
pub(super) fn evidence_path(result: &CaseResult, kind: EvidenceKind) -> Option<&str> {
    let path = result.evidence.path(kind)?;
    let is_plain = Path::new(path).components().all(|part| matches!(part, Component::Normal(_)));
    (is_plain && Path::new(path).starts_with(CASES)).then_some(path)
}

/// Returns the content of the file `path` in `out`, if it is a regular file of at most `most`
/// bytes. Links below `out` are not followed, because they could lead to any file.
pub(super) fn read_evidence(out: &Path, path: &str, most: u64) -> Option<Vec<u8>> {
    let mut file = out.to_owned();
    for part in Path::new(path) {
        file.push(part);
        if fs::symlink_metadata(&file).ok()?.is_symlink() {
            return None;
        }
    }
    let fits = fs::metadata(&file).is_ok_and(|file| file.is_file() && file.len() <= most);
    if fits { fs::read(&file).ok() } else { None }
}
