//! Counts the requirements that tests and cases have covered when they ran.
//!
//! `make coverage` runs all tests with `WEFT_COVERAGE` set ([`weft_core::coverage`]). It also runs
//! the kill matrix ([`crate::prove`]): the cases against targets with deliberate faults. The tests
//! and the matrix write proofs. The file `suites/coverage/proofs.csv` has all proofs, and is built
//! into this crate. A requirement counts if its violation is visible in one of the [`ways`] and if
//! the requirement can be judged ([`weft_core::requirement::Class`]). A requirement that cannot be
//! judged needs a reason in the catalogue of classes.

mod count;
mod need;

pub use count::{Count, count, rows, upper_rows, ways};
pub use need::{CountedCases, Need};

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::{fs, io};

use weft_core::RequirementId;
use weft_core::coverage::CoverageKind;

use crate::model::Role;

/// The built-in proofs.
const PROOFS: &str = include_str!("../../coverage/proofs.csv");
/// First line of a file of proofs.
const HEADER: &str = "by,id,test";

/// The reason why proofs cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum CoverageError {
    /// A file or folder cannot be read.
    #[error("{path}: {error}")]
    Io {
        /// The path.
        path: String,
        /// The reason.
        error: io::Error,
    },
    /// A line is not a proof.
    #[error(
        "{place}: {line:?} is not a proof; a proof is `by,id,test`: `by` is `case`, `rule` or `test`, and `id` is the id of a requirement"
    )]
    Line {
        /// File and line.
        place: String,
        /// The line.
        line: String,
    },
}

/// The proof that weft checks one requirement. It comes from a test, or from a case and a deviation
/// (a deliberate fault of the target) that makes the case fail.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Proven {
    /// `case`, `rule` or `test`.
    pub by: String,
    /// The proven requirement.
    pub id: RequirementId,
    /// Name of the test. For a case, this is its id, the target's role if the target is an
    /// initiator, and the deviation.
    pub test: String,
}

impl Proven {
    /// Returns the proof of `id` by a case. The case passes against a correct target of this role,
    /// and fails against a target with the deviation.
    #[must_use]
    pub fn by_case(id: RequirementId, case: &str, role: Role, deviation: &str) -> Self {
        let role = if role == Role::Initiator { " (initiator)" } else { "" };
        Proven { by: CoverageKind::Case.to_string(), id, test: format!("{case}{role} against {deviation}") }
    }
}

/// All proofs, sorted and without duplicates.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Proofs(BTreeSet<Proven>);

impl Proofs {
    /// Returns the built-in proofs.
    ///
    /// # Errors
    /// The file is damaged.
    pub fn built_in() -> Result<Self, CoverageError> {
        let mut proofs = Proofs::default();
        proofs.add("suites/coverage/proofs.csv", PROOFS)?;
        Ok(proofs)
    }

    /// Adds the proofs that tests or a kill matrix have written to `folder`.
    ///
    /// # Errors
    /// The folder cannot be read, or a line of a CSV file in the folder is not a proof.
    pub fn add_folder(&mut self, folder: &Path) -> Result<(), CoverageError> {
        let failed = |path: &Path, error| CoverageError::Io { path: path.display().to_string(), error };
        for entry in fs::read_dir(folder).map_err(|error| failed(folder, error))? {
            let path = entry.map_err(|error| failed(folder, error))?.path();
            if path.extension().is_some_and(|extension| extension == "csv") {
                let text = fs::read_to_string(&path).map_err(|error| failed(&path, error))?;
                self.add(&path.display().to_string(), &text)?;
            }
        }
        Ok(())
    }

    fn add(&mut self, file: &str, text: &str) -> Result<(), CoverageError> {
        for (number, line) in text.lines().enumerate().filter(|(_, line)| !line.is_empty() && *line != HEADER) {
            let proven = parse(line).ok_or_else(|| CoverageError::Line {
                place: format!("{file}:{}", number + 1),
                line: line.to_owned(),
            })?;
            self.0.insert(proven);
        }
        Ok(())
    }

    /// Returns the text of a file of proofs.
    #[must_use]
    pub fn to_csv(&self) -> String {
        let lines = self.0.iter().map(|proven| format!("{},{},{}\n", proven.by, proven.id, proven.test));
        std::iter::once(format!("{HEADER}\n")).chain(lines).collect()
    }

    /// Returns the ids that cases prove, each with what the least demanding of these cases needs.
    fn needs(&self, cases: &CountedCases) -> BTreeMap<RequirementId, Need> {
        let mut needs = BTreeMap::new();
        for proven in self.0.iter().filter(|proven| proven.by == "case") {
            // An id of a case has no blanks.
            let need = cases.need(proven.test.split(' ').next().unwrap_or_default());
            needs.entry(proven.id).and_modify(|least: &mut Need| *least = need.min(*least)).or_insert(need);
        }
        needs
    }

    /// Returns the ids that are proven by `by`.
    #[must_use]
    pub fn ids(&self, by: CoverageKind) -> BTreeSet<RequirementId> {
        let by = by.to_string();
        self.0.iter().filter(|proven| proven.by == by).map(|proven| proven.id).collect()
    }
}

impl FromIterator<Proven> for Proofs {
    fn from_iter<I: IntoIterator<Item = Proven>>(proven: I) -> Self {
        Proofs(proven.into_iter().collect())
    }
}

fn parse(line: &str) -> Option<Proven> {
    let mut parts = line.splitn(3, ',');
    let (by, id, test) = (parts.next()?, parts.next()?, parts.next()?);
    let id = id.parse().ok()?;
    matches!(by, "case" | "rule" | "test").then(|| Proven { by: by.to_owned(), id, test: test.to_owned() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use weft_core::requirement;

    #[test]
    fn a_line_that_is_no_proof_is_refused_with_its_place() {
        for line in ["rule,MPA-4.1-3", "rule,MPA-0-0,test", "guess,MPA-4.1-3,test"] {
            let error = Proofs::default().add("file", &format!("rule,MPA-4.1-3,t\n{line}\n")).unwrap_err();
            assert!(error.to_string().starts_with("file:2:"), "{error}");
        }
    }

    #[test]
    fn proofs_come_back_as_they_were_written() {
        let case = Proven::by_case(requirement!("MPA-7.1.1-2"), "mpa/7.1.1-key/x", Role::Initiator, "mpa.wrong-key");
        let text = Proofs::from_iter([case]).to_csv();
        assert_eq!(text, "by,id,test\ncase,MPA-7.1.1-2,mpa/7.1.1-key/x (initiator) against mpa.wrong-key\n");
        let mut again = Proofs::default();
        again.add("file", &text).unwrap();
        assert_eq!(again.to_csv(), text);
        assert_eq!(Proofs::default().to_csv(), "by,id,test\n");
    }
}
