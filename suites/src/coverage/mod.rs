//! Which requirements are covered by what, counted from tests that ran.
//!
//! `make coverage` runs all tests with `WEFT_COVERAGE` set ([`weft_core::coverage`]); what they proved is kept in
//! `suites/coverage/proofs.csv` and built in. Which rows count is told by where a breach of them shows ([`ways`]); of these only
//! those that can be judged count ([`weft_core::requirement::Class`]), and the others need a reason, which stands in the catalogue of
//! classes.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::{fs, io};

use weft_core::RequirementId;
use weft_core::coverage::By;
use weft_core::requirement::{self, Catalogue, Class, Observe, Requirement};

/// The proofs that came with this weft.
const PROOFS: &str = include_str!("../../coverage/proofs.csv");
/// First line of a file of proofs.
const HEADER: &str = "by,id,test";

/// Why proofs cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum CoverageError {
    /// A file or folder.
    #[error("{path}: {error}")]
    Io {
        /// Which.
        path: String,
        /// Why.
        error: io::Error,
    },
    /// A line that is no proof.
    #[error("{place}: {line:?} is not `by,id,test` with by = rule or test and an id of the catalogues")]
    Line {
        /// File and line.
        place: String,
        /// The line.
        line: String,
    },
}

/// One id proven by one test.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Proven {
    /// `rule` or `test`.
    pub by: String,
    /// What is proven.
    pub id: RequirementId,
    /// The test.
    pub test: String,
}

/// All proofs, sorted, each once.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Proofs(BTreeSet<Proven>);

impl Proofs {
    /// The proofs that came with this weft.
    ///
    /// # Errors
    /// The file is damaged.
    pub fn built_in() -> Result<Self, CoverageError> {
        let mut proofs = Proofs::default();
        let lines = PROOFS.strip_prefix(HEADER).unwrap_or(PROOFS);
        proofs.add("suites/coverage/proofs.csv", lines)?;
        Ok(proofs)
    }

    /// What tests left in `folder`.
    ///
    /// # Errors
    /// The folder cannot be read, or holds something else.
    pub fn from_folder(folder: &Path) -> Result<Self, CoverageError> {
        let failed = |path: &Path, error| CoverageError::Io { path: path.display().to_string(), error };
        let mut proofs = Proofs::default();
        for entry in fs::read_dir(folder).map_err(|error| failed(folder, error))? {
            let path = entry.map_err(|error| failed(folder, error))?.path();
            if path.extension().is_some_and(|extension| extension == "csv") {
                let text = fs::read_to_string(&path).map_err(|error| failed(&path, error))?;
                proofs.add(&path.display().to_string(), &text)?;
            }
        }
        Ok(proofs)
    }

    fn add(&mut self, file: &str, text: &str) -> Result<(), CoverageError> {
        for (number, line) in text.lines().enumerate().filter(|(_, line)| !line.is_empty()) {
            let proven = parse(line).ok_or_else(|| CoverageError::Line {
                place: format!("{file}:{}", number + 1),
                line: line.to_owned(),
            })?;
            self.0.insert(proven);
        }
        Ok(())
    }

    /// The text of a file of proofs.
    #[must_use]
    pub fn to_csv(&self) -> String {
        let lines = self.0.iter().map(|proven| format!("{},{},{}\n", proven.by, proven.id, proven.test));
        std::iter::once(format!("{HEADER}\n")).chain(lines).collect()
    }

    /// The tests that prove `id` by `by`.
    pub fn of(&self, id: RequirementId, by: By) -> impl Iterator<Item = &Proven> {
        let by = by.to_string();
        self.0.iter().filter(move |proven| proven.id == id && proven.by == by)
    }
}

fn parse(line: &str) -> Option<Proven> {
    let mut parts = line.splitn(3, ',');
    let (by, id, test) = (parts.next()?, parts.next()?, parts.next()?);
    let id = id.parse().ok()?;
    matches!(by, "rule" | "test").then(|| Proven { by: by.to_owned(), id, test: test.to_owned() })
}

/// The count of one catalogue.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Count {
    /// Which.
    pub catalogue: Catalogue,
    /// Rows whose breach shows in the way that is counted.
    pub rows: usize,
    /// Those that can be judged.
    pub judgeable: usize,
    /// Those that permit or define.
    pub permission: usize,
    /// Those that need knowledge from outside.
    pub outside: usize,
    /// Those without a class.
    pub unclassified: usize,
    /// Judgeable or unclassified rows that a test proves.
    pub covered: usize,
    /// Judgeable or unclassified rows that none does.
    pub open: Vec<RequirementId>,
}

impl Count {
    /// Covered rows in a hundred of those that could be; unclassified rows count as judgeable.
    #[must_use]
    pub fn percent(&self) -> f64 {
        let all = self.judgeable + self.unclassified;
        if all == 0 { 0.0 } else { 100.0 * self.covered as f64 / all as f64 }
    }
}

/// Where the breach of a row shows that `by` could cover. A rule watches. Tests have the endpoint in hand: SDP and the port mapper
/// answer what a peer and a user do; of the layers below, the verbs are what a user meets.
#[must_use]
pub const fn ways(by: By, catalogue: Catalogue) -> &'static [Observe] {
    match (by, catalogue) {
        (By::Rule, _) => &[Observe::Wire],
        (By::Test, Catalogue::Sdp | Catalogue::SdpPm) => &[Observe::Wire, Observe::Reaction, Observe::Upper],
        (By::Test, _) => &[Observe::Api, Observe::Wire],
    }
}

/// The rows that `by` could cover.
pub fn rows(by: By) -> impl Iterator<Item = (RequirementId, &'static Requirement)> {
    requirement::all().filter(move |(_, row)| ways(by, row.catalogue).contains(&row.observe))
}

/// Counts, per catalogue, the [`rows`] that `proofs` cover by `by`.
#[must_use]
pub fn count(proofs: &Proofs, by: By) -> Vec<Count> {
    let mut counts: BTreeMap<Catalogue, Count> = BTreeMap::new();
    for (id, row) in rows(by) {
        let count = counts.entry(row.catalogue).or_insert_with(|| Count {
            catalogue: row.catalogue,
            rows: 0,
            judgeable: 0,
            permission: 0,
            outside: 0,
            unclassified: 0,
            covered: 0,
            open: Vec::new(),
        });
        count.rows += 1;
        match row.classified.map(|classified| classified.class) {
            Some(Class::Permission) => count.permission += 1,
            Some(Class::Outside) => count.outside += 1,
            class => {
                if class.is_some() {
                    count.judgeable += 1;
                } else {
                    count.unclassified += 1;
                }
                if proofs.of(id, by).next().is_some() {
                    count.covered += 1;
                } else {
                    count.open.push(id);
                }
            }
        }
    }
    counts.into_values().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_that_is_no_proof_is_refused_with_its_place() {
        for line in ["rule,MPA-4.1-3", "rule,MPA-0-0,test", "guess,MPA-4.1-3,test"] {
            let error = Proofs::default().add("file", &format!("rule,MPA-4.1-3,t\n{line}\n")).unwrap_err();
            assert!(error.to_string().starts_with("file:2:"), "{error}");
        }
    }

    #[test]
    fn a_proof_covers_its_row_alone_and_by_its_kind_alone() {
        let mut proofs = Proofs::default();
        proofs.add("file", "rule,MPA-4.1-3,some::test\n").unwrap();
        let mpa = |by| count(&proofs, by).into_iter().find(|c| c.catalogue == Catalogue::Mpa).unwrap();
        let (rule, test) = (mpa(By::Rule), mpa(By::Test));
        assert_eq!((rule.covered, test.covered), (1, 0));
        assert_eq!(test.open.len(), rule.open.len() + 1);
        assert_eq!((rule.rows, test.rows), (rule.rows, rule.rows), "MPA has no row that shows at the verbs");
        assert_eq!(Proofs::default().to_csv(), "by,id,test\n");
        assert_eq!(proofs.to_csv(), "by,id,test\nrule,MPA-4.1-3,some::test\n");
    }

    #[test]
    fn tests_of_sdp_count_what_a_peer_and_a_user_see() {
        let of = |by, catalogue| rows(by).filter(|(_, row)| row.catalogue == catalogue).count();
        // As the catalogues have them: 244, 316 and 93 rows of SDP, 73, 67 and 5 of the port mapper.
        assert_eq!((of(By::Rule, Catalogue::Sdp), of(By::Test, Catalogue::Sdp)), (244, 653));
        assert_eq!((of(By::Rule, Catalogue::SdpPm), of(By::Test, Catalogue::SdpPm)), (73, 145));
    }
}
