//! The results that represent a target: those of its newest complete run, with later reruns of some
//! cases.
//!
//! A complete run has a verdict for all cases of the suites. A run of selected cases, or a stopped
//! run, is partial. It represents a target only while the target has no complete run. It is marked
//! as partial wherever it is shown. A stopped run represents a target only while no run of the
//! target is done.
//!
//! A partial run after the newest complete run can show that the target has become worse: see
//! [`Latest::deciding`].
//!
//! A rerun names the run whose cases it repeats, and replaces the results of these cases. It
//! replaces nothing if the description of the target has changed, so that the results of two
//! targets are never mixed.

use std::collections::{BTreeMap, BTreeSet};

use sqlx::{AssertSqlSafe, Row};

use super::read::{PlannedCase, RunRecord, record};
use super::{Store, StoreError, TargetRecord};
use crate::model::{CaseKey, ExitCode, RunReport, Score};

/// SQL order of a target's runs. The first run represents the target.
pub(super) const BEST_FIRST: &str = "CASE WHEN status = 'done' AND is_selection = 0 THEN 0 \
     WHEN status = 'done' AND rerun_of IS NULL THEN 1 WHEN summary IS NOT NULL AND rerun_of IS NULL THEN 2 \
     WHEN summary IS NOT NULL THEN 3 ELSE 4 END, \
     sequence DESC, id DESC";

/// Maximum number of runs after the run that represents a target that are looked at.
const MAX_LATER: i64 = 6;

/// The cases that were rerun, each with the id of the last rerun that has a result of the case.
type RerunIds = BTreeMap<CaseKey, String>;

/// The results that represent a target.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Latest {
    /// The run. Its summary is about these results.
    pub record: RunRecord,
    /// Numbers of met and violated requirements in these results.
    pub score: Score,
    rerun_ids: RerunIds,
    /// A later run of fewer cases that is not as expected, unless an even later run of at least as
    /// many cases is as expected.
    pub later_failure: Option<RunRecord>,
}

impl Latest {
    /// Returns the run that decides whether the target is as expected: the run that represents the
    /// target, unless only a later partial run is not as expected.
    #[must_use]
    pub fn deciding(&self) -> &RunRecord {
        let is_expected = self.record.summary.as_ref().is_none_or(|own| own.exit_code == ExitCode::AsExpected);
        self.later_failure.as_ref().filter(|_| is_expected).unwrap_or(&self.record)
    }

    /// Several runs may have a result of a case. Returns the id of the run whose result counts.
    #[must_use]
    pub fn run_of(&self, key: &CaseKey) -> &str {
        self.rerun_ids.get(key).unwrap_or(&self.record.info.id)
    }

    /// Returns the ids of the runs whose results count. An id may occur several times.
    pub(super) fn runs(&self) -> impl Iterator<Item = &str> {
        std::iter::once(&self.record.info.id).chain(self.rerun_ids.values()).map(String::as_str)
    }
}

impl Store {
    /// Returns the results that represent a target. `None` if there is no run against the target.
    ///
    /// # Errors
    /// The database fails, or a document in it is damaged.
    pub async fn latest(&self, target: &str) -> Result<Option<Latest>, StoreError> {
        match self.best(target).await? {
            Some(record) => self.latest_from(record).await.map(Some),
            None => Ok(None),
        }
    }

    /// Like [`latest`](Self::latest), for a target of the list [`targets`](Self::targets). Does not
    /// search the runs of the target again. `None` if the run was deleted meanwhile.
    ///
    /// # Errors
    /// The same as those of [`latest`](Self::latest).
    pub async fn latest_of(&self, target: &TargetRecord) -> Result<Option<Latest>, StoreError> {
        match self.record(&target.last).await? {
            Some(record) => self.latest_from(record).await.map(Some),
            None => Ok(None),
        }
    }

    /// Returns the results of the run that represents a target, with the results of its reruns.
    async fn latest_from(&self, record: RunRecord) -> Result<Latest, StoreError> {
        let later_failure = self.later_failure(&record).await?;
        let latest = self.with_its_reruns(record).await?;
        Ok(Latest { later_failure, ..latest })
    }

    async fn with_its_reruns(&self, mut record: RunRecord) -> Result<Latest, StoreError> {
        let reruns = self.reruns(&record).await?;
        if let Some(known) = self.combined.get(&record, &reruns) {
            return Ok(known);
        }
        if let Some((report, rerun_ids)) = self.with_reruns(&record, &reruns).await? {
            let of = record.clone();
            let score = Score::of(&report.results);
            record.summary = Some(report.summary);
            let latest = Latest { record, score, rerun_ids, later_failure: None };
            self.combined.insert(of, reruns, latest.clone());
            return Ok(latest);
        }
        let score = self.scores(&[&record.info.id]).await?.remove(&record.info.id).unwrap_or_default();
        Ok(Latest { record, score, rerun_ids: RerunIds::new(), later_failure: None })
    }

    /// Returns [`Latest::later_failure`] of the run that represents a target.
    async fn later_failure(&self, of: &RunRecord) -> Result<Option<RunRecord>, StoreError> {
        let query = self.records(
            "WHERE target = $1 AND rerun_of IS NULL AND summary IS NOT NULL \
             AND sequence > (SELECT sequence FROM runs WHERE id = $2) ORDER BY sequence DESC, id DESC LIMIT $3",
        );
        let rows = sqlx::query(query).bind(&of.info.target.name).bind(&of.info.id).bind(MAX_LATER);
        let mut most_expected = 0;
        for row in rows.fetch_all(&self.pool).await? {
            let later = self.with_its_reruns(record(&row)?).await?.record;
            let Some(summary) = &later.summary else { continue };
            match summary.exit_code {
                ExitCode::AsExpected => most_expected = most_expected.max(later.planned),
                ExitCode::NothingRun => {}
                _ if later.planned > most_expected => return Ok(Some(later)),
                _ => {}
            }
        }
        Ok(None)
    }

    /// Returns a report, without transcripts, of the run that represents a target. The results of
    /// reruns replace the run's own results.
    ///
    /// # Errors
    /// The database fails, or a document in it is damaged.
    pub async fn latest_outcomes(&self, target: &str) -> Result<Option<RunReport>, StoreError> {
        let Some(record) = self.best(target).await? else { return Ok(None) };
        let reruns = self.reruns(&record).await?;
        match self.with_reruns(&record, &reruns).await? {
            Some((report, _)) => Ok(Some(report)),
            None => self.outcomes(&record.info.id).await,
        }
    }

    /// Returns the plan of the run that represents a target. Each planned case has the verdict of
    /// the result that counts.
    ///
    /// # Errors
    /// The database fails, or a key or verdict in it is damaged.
    pub async fn latest_cases(&self, latest: &Latest) -> Result<Vec<PlannedCase>, StoreError> {
        let mut cases = self.planned(&latest.record.info.id).await?;
        let runs: BTreeSet<&String> = latest.rerun_ids.values().collect();
        let mut rerun_cases = BTreeMap::new();
        for run in runs {
            let counts = |case: &PlannedCase| latest.rerun_ids.get(&case.key) == Some(run);
            let cases = self.planned(run).await?.into_iter().filter(counts);
            rerun_cases.extend(cases.map(|case| (case.key.clone(), case)));
        }
        for case in &mut cases {
            if let Some(later) = rerun_cases.remove(&case.key) {
                *case = later;
            }
        }
        Ok(cases)
    }

    /// Returns the first of a target's runs in the order [`BEST_FIRST`].
    async fn best(&self, target: &str) -> Result<Option<RunRecord>, StoreError> {
        let text = format!("SELECT id FROM runs WHERE target = $1 ORDER BY {BEST_FIRST} LIMIT 1");
        let row = sqlx::query(AssertSqlSafe(text)).bind(target).fetch_optional(&self.pool).await?;
        match row {
            Some(row) => self.record(&row.try_get::<String, _>("id")?).await,
            None => Ok(None),
        }
    }

    /// Returns the finished reruns of the finished run `of` that have the same description of the
    /// target, in the order in which they started. Empty if the run is not finished.
    async fn reruns(&self, of: &RunRecord) -> Result<Vec<RunRecord>, StoreError> {
        if of.summary.is_none() {
            return Ok(Vec::new());
        }
        let query = self.records("WHERE rerun_of = $1 AND summary IS NOT NULL ORDER BY sequence, id");
        let rows = sqlx::query(query).bind(&of.info.id).fetch_all(&self.pool).await?;
        let mut reruns = rows.iter().map(record).collect::<Result<Vec<_>, _>>()?;
        reruns.retain(|rerun| rerun.info.target.has_same_description(&of.info.target));
        Ok(reruns)
    }

    /// Returns the run `of`. If a case was rerun, the result of the rerun replaces the result in
    /// the run. `None` if there are no reruns.
    async fn with_reruns(
        &self,
        of: &RunRecord,
        reruns: &[RunRecord],
    ) -> Result<Option<(RunReport, RerunIds)>, StoreError> {
        if reruns.is_empty() {
            return Ok(None);
        }
        let Some((mut report, mut unreached)) = self.outcomes_and_unreached(&of.info.id).await? else {
            return Ok(None);
        };
        let places: BTreeMap<CaseKey, usize> =
            (0..).zip(&report.results).map(|(at, one)| (one.key.clone(), at)).collect();
        let mut rerun_ids = RerunIds::new();
        for rerun in reruns {
            let Some((later, later_unreached)) = self.outcomes_and_unreached(&rerun.info.id).await? else { continue };
            for result in later.results {
                let Some(place) = places.get(&result.key).and_then(|at| report.results.get_mut(*at)) else { continue };
                rerun_ids.insert(result.key.clone(), rerun.info.id.clone());
                if later_unreached.contains(&result.key) {
                    unreached.insert(result.key.clone());
                } else {
                    unreached.remove(&result.key);
                }
                *place = result;
            }
            let is_new = |key: &CaseKey| rerun_ids.get(key) == Some(&rerun.info.id);
            let is_down = !unreached.is_empty();
            report.summary = report.summary.with_rerun(&later.summary, &report.results, is_down, is_new);
        }
        Ok(Some((report, rerun_ids)))
    }
}
