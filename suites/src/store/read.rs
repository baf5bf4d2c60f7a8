//! The queries for pages and reports.

use std::collections::BTreeSet;
use std::ops::Range;

use sqlx::any::AnyRow;
use sqlx::{AssertSqlSafe, Row};

use super::{Store, StoreError};
use crate::model::{
    CaseInfo, CaseKey, CaseResult, Evidence, RequirementVerdict, RunInfo, RunReport, RunStatus, Summary, Verdict,
};

/// A run in a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunRecord {
    /// The run.
    pub info: RunInfo,
    /// Status of the run.
    pub status: RunStatus,
    /// Number of cases with a verdict.
    pub finished: u64,
    /// Number of planned cases.
    pub planned: u64,
    /// The summary, if the run has ended.
    pub summary: Option<Summary>,
}

impl RunRecord {
    /// Returns whether the plan is a selection, or a planned case has no verdict. Such a run
    /// represents its target only if the target has no complete run.
    #[must_use]
    pub fn is_partial(&self) -> bool {
        self.info.is_selection || self.status != RunStatus::Done
    }
}

/// A run with its plan.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunDetail {
    /// The run.
    pub record: RunRecord,
    /// The selected cases, sorted by id.
    pub cases: Vec<CaseInfo>,
    /// The planned variants in their order.
    pub planned: Vec<PlannedCase>,
}

/// One planned variant of a case.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlannedCase {
    /// The variant.
    pub key: CaseKey,
    /// Verdict of the variant. `None` until it has finished.
    pub verdict: Option<Verdict>,
    /// Wall time in microseconds. `None` until the variant has finished.
    pub duration_us: Option<u64>,
}

/// The part of a step that shows whether a case had a connection.
#[derive(serde::Deserialize)]
struct StepConnection {
    /// 0 if the step belongs to no connection.
    connection: u32,
}

/// A result without its findings and without the content of its steps.
#[derive(serde::Deserialize)]
struct Outcome {
    key: CaseKey,
    version: u32,
    title: String,
    verdict: Verdict,
    requirements: Vec<RequirementVerdict>,
    expected: Option<String>,
    actual: Option<String>,
    explanation: String,
    steps: Vec<StepConnection>,
    seed: u64,
    duration_us: u64,
}

impl Outcome {
    /// Returns the result without its steps.
    fn result(self) -> CaseResult {
        let Outcome {
            key,
            version,
            title,
            verdict,
            requirements,
            expected,
            actual,
            explanation,
            steps: _,
            seed,
            duration_us,
        } = self;
        CaseResult {
            key,
            version,
            title,
            verdict,
            requirements,
            expected,
            actual,
            explanation,
            decided_at: None,
            decided_packet: None,
            decided_sequence: None,
            steps: Vec::new(),
            findings: Vec::new(),
            program_ends: Vec::new(),
            evidence: Evidence::default(),
            seed,
            duration_us,
        }
    }
}

/// One result of a case in the history of a target.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PastResult {
    /// Id of the run.
    pub run: String,
    /// Start of the run, in milliseconds since 1970-01-01 UTC.
    pub started_unix_ms: u64,
    /// The variant of the case.
    pub key: CaseKey,
    /// Verdict of the variant.
    pub verdict: Verdict,
    /// Wall time in microseconds.
    pub duration_us: u64,
}

impl Store {
    /// Returns a query for records of runs with these SQL conditions.
    ///
    /// The database may compute the counts of all runs that the conditions select, before it sorts
    /// them and applies a limit. So conditions with a limit select ids in a query of their own.
    pub(super) fn records(&self, conditions: &'static str) -> AssertSqlSafe<String> {
        // The query consists of constant text only.
        AssertSqlSafe(format!(
            "SELECT id, {} AS status, info, summary, is_selection, \
             (SELECT COUNT(*) FROM results WHERE run_id = runs.id AND verdict IS NOT NULL) AS finished, \
             (SELECT COUNT(*) FROM results WHERE run_id = runs.id) AS planned FROM runs {conditions}",
            self.status()
        ))
    }

    /// Returns the newest `limit` runs, newest first.
    ///
    /// # Errors
    /// The database fails, or a document in it is damaged.
    pub async fn runs(&self, limit: u32) -> Result<Vec<RunRecord>, StoreError> {
        let newest = self.records(
            "WHERE id IN (SELECT id FROM runs ORDER BY sequence DESC, id DESC LIMIT $1) \
             ORDER BY sequence DESC, id DESC",
        );
        let rows = sqlx::query(newest).bind(i64::from(limit)).fetch_all(&self.pool).await?;
        rows.iter().map(record).collect()
    }

    /// Returns one run with its plan, or `None` if there is no such run.
    ///
    /// # Errors
    /// The database fails, or a document in it is damaged.
    pub async fn run(&self, id: &str) -> Result<Option<RunDetail>, StoreError> {
        let Some(record) = self.record(id).await? else { return Ok(None) };
        Ok(Some(RunDetail { record, cases: self.cases(id).await?, planned: self.planned(id).await? }))
    }

    /// Returns the plan of a run in its order. Empty if there is no such run.
    ///
    /// # Errors
    /// The database fails, or a key or verdict in it is damaged.
    pub async fn planned(&self, id: &str) -> Result<Vec<PlannedCase>, StoreError> {
        let planned =
            sqlx::query("SELECT case_key, verdict, duration_us FROM results WHERE run_id = $1 ORDER BY position")
                .bind(id)
                .fetch_all(&self.pool)
                .await?;
        planned.iter().map(|row| planned_case(id, row)).collect()
    }

    /// Like [`planned`](Self::planned), for a range of positions in the plan. The first position is
    /// 0.
    ///
    /// # Errors
    /// The same as those of [`planned`](Self::planned).
    pub async fn planned_at(&self, id: &str, places: Range<u32>) -> Result<Vec<PlannedCase>, StoreError> {
        let query = "SELECT case_key, verdict, duration_us FROM results \
                     WHERE run_id = $1 AND position >= $2 AND position < $3 ORDER BY position";
        let (from, to) = (i64::from(places.start), i64::from(places.end));
        let planned = sqlx::query(query).bind(id).bind(from).bind(to).fetch_all(&self.pool).await?;
        planned.iter().map(|row| planned_case(id, row)).collect()
    }

    /// Returns one result of a run. `None` if the run has no such case, or if the case has not
    /// finished.
    ///
    /// # Errors
    /// The database fails, or a document in it is damaged.
    pub async fn result(&self, run: &str, key: &CaseKey) -> Result<Option<CaseResult>, StoreError> {
        let row = sqlx::query("SELECT result FROM results WHERE run_id = $1 AND case_key = $2 AND result IS NOT NULL")
            .bind(run)
            .bind(key.to_string())
            .fetch_optional(&self.pool)
            .await?;
        row.map(|row| parsed(run, &row.try_get::<String, _>("result")?)).transpose()
    }

    /// Returns a run as a report. If the run has not finished or was killed, the summary is about
    /// the results so far.
    ///
    /// # Errors
    /// The database fails, or a document in it is damaged.
    pub async fn report(&self, id: &str) -> Result<Option<RunReport>, StoreError> {
        let Some(record) = self.record(id).await? else { return Ok(None) };
        let rows = sqlx::query("SELECT result FROM results WHERE run_id = $1 AND result IS NOT NULL ORDER BY position")
            .bind(id)
            .fetch_all(&self.pool)
            .await?;
        let results: Vec<CaseResult> =
            rows.iter().map(|row| parsed(id, &row.try_get::<String, _>("result")?)).collect::<Result<_, _>>()?;
        let summary = match record.summary {
            Some(summary) => summary,
            None => {
                let duration_us = match self.spent_us(id).await? {
                    // A run of version 0.1 stored no time, so the times of its cases are added. If
                    // cases ran in parallel, the sum is too large.
                    0 => results.iter().map(|result| result.duration_us).fold(0, u64::saturating_add),
                    spent_us => spent_us,
                };
                Summary::of(record.status, record.planned, &results, duration_us)
                    .with_lost_capabilities(&record.info.target.lost_capabilities)
            }
        };
        Ok(Some(RunReport { run: record.info, cases: self.cases(id).await?, results, summary }))
    }

    /// Like [`report`](Self::report), without transcripts and findings. Transcripts and findings
    /// are the largest part of a run, and a comparison does not need them.
    ///
    /// # Errors
    /// The database fails, or a document in it is damaged.
    pub async fn outcomes(&self, id: &str) -> Result<Option<RunReport>, StoreError> {
        Ok(self.outcomes_and_unreached(id).await?.map(|(report, _)| report))
    }

    /// Like [`outcomes`](Self::outcomes), with the variants that did not reach the target. Results
    /// without transcripts do not show this.
    pub(super) async fn outcomes_and_unreached(
        &self,
        id: &str,
    ) -> Result<Option<(RunReport, BTreeSet<CaseKey>)>, StoreError> {
        let Some(record) = self.record(id).await? else { return Ok(None) };
        let rows = sqlx::query("SELECT result FROM results WHERE run_id = $1 AND result IS NOT NULL ORDER BY position")
            .bind(id)
            .fetch_all(&self.pool)
            .await?;
        let mut results = Vec::with_capacity(rows.len());
        let mut unreached = BTreeSet::new();
        for row in &rows {
            let outcome: Outcome = parsed(id, &row.try_get::<String, _>("result")?)?;
            let is_connected = outcome.steps.iter().any(|step| step.connection > 0);
            let result = outcome.result();
            if !is_connected && result.is_unreached() {
                unreached.insert(result.key.clone());
            }
            results.push(result);
        }
        let summary = record.summary.unwrap_or_else(|| {
            Summary::of(record.status, record.planned, &results, 0)
                .with_lost_capabilities(&record.info.target.lost_capabilities)
        });
        Ok(Some((RunReport { run: record.info, cases: Vec::new(), results, summary }, unreached)))
    }

    /// Returns the results of a run that did not pass, without transcripts and findings, in the
    /// order of the plan. Empty if there is no such run.
    ///
    /// # Errors
    /// The database fails, or a document in it is damaged.
    pub async fn not_passed(&self, id: &str) -> Result<Vec<CaseResult>, StoreError> {
        let query = "SELECT result FROM results \
                     WHERE run_id = $1 AND result IS NOT NULL AND verdict <> $2 ORDER BY position";
        let rows = sqlx::query(query).bind(id).bind(Verdict::Pass.as_str()).fetch_all(&self.pool).await?;
        let outcome = |row: &AnyRow| parsed::<Outcome>(id, &row.try_get::<String, _>("result")?).map(Outcome::result);
        rows.iter().map(outcome).collect()
    }

    /// Returns the results of a case on a target, newest first. `case` is the id of a case, for all
    /// its variants, or the key of one variant.
    ///
    /// # Errors
    /// The database fails, or a document in it is damaged.
    pub async fn history(&self, target: &str, case: &str, limit: u32) -> Result<Vec<PastResult>, StoreError> {
        let rows = sqlx::query(
            "SELECT results.run_id, runs.started_unix_ms, results.case_key, results.verdict, results.duration_us \
             FROM results JOIN runs ON runs.id = results.run_id \
             WHERE runs.target = $1 AND results.verdict IS NOT NULL \
             AND (results.case_key = $2 OR SUBSTR(results.case_key, 1, $3) = $4) \
             ORDER BY runs.sequence DESC, runs.id DESC, results.position LIMIT $5",
        )
        .bind(target)
        .bind(case)
        .bind(i32::try_from(case.chars().count() + 1).unwrap_or(i32::MAX))
        .bind(format!("{case}["))
        .bind(i64::from(limit))
        .fetch_all(&self.pool)
        .await?;
        rows.iter().map(past_result).collect()
    }

    /// Returns the id of the newest unfinished run against a target: killed, cancelled, or still
    /// running.
    ///
    /// # Errors
    /// The database fails.
    pub async fn unfinished(&self, target: &str) -> Result<Option<String>, StoreError> {
        let row = sqlx::query(
            "SELECT id FROM runs WHERE target = $1 AND status <> $2 ORDER BY sequence DESC, id DESC LIMIT 1",
        )
        .bind(target)
        .bind(RunStatus::Done.as_str())
        .fetch_optional(&self.pool)
        .await?;
        Ok(row.map(|row| row.try_get("id")).transpose()?)
    }

    /// Returns one run without its plan, or `None` if there is no such run.
    ///
    /// # Errors
    /// The database fails, or a document in it is damaged.
    pub async fn record(&self, id: &str) -> Result<Option<RunRecord>, StoreError> {
        let row = sqlx::query(self.records("WHERE id = $1")).bind(id).fetch_optional(&self.pool).await?;
        row.as_ref().map(record).transpose()
    }

    async fn cases(&self, run: &str) -> Result<Vec<CaseInfo>, StoreError> {
        let rows = sqlx::query("SELECT info FROM cases WHERE run_id = $1 ORDER BY id").bind(run).fetch_all(&self.pool);
        rows.await?.iter().map(|row| parsed(run, &row.try_get::<String, _>("info")?)).collect()
    }
}

pub(super) fn record(row: &AnyRow) -> Result<RunRecord, StoreError> {
    let id: String = row.try_get("id")?;
    let status: String = row.try_get("status")?;
    let summary: Option<String> = row.try_get("summary")?;
    let count = |name| row.try_get::<i64, _>(name).map(|count| u64::try_from(count).unwrap_or(0));
    let mut info: RunInfo = parsed(&id, &row.try_get::<String, _>("info")?)?;
    // The `info` of older versions lacks this value, but the column has it.
    info.is_selection = row.try_get::<i64, _>("is_selection")? != 0;
    Ok(RunRecord {
        info,
        status: status.parse().map_err(|error| damaged(&id, error))?,
        finished: count("finished")?,
        planned: count("planned")?,
        summary: summary.map(|summary| parsed(&id, &summary)).transpose()?,
    })
}

pub(super) fn past_result(row: &AnyRow) -> Result<PastResult, StoreError> {
    let run: String = row.try_get("run_id")?;
    let (key, verdict): (String, String) = (row.try_get("case_key")?, row.try_get("verdict")?);
    let duration: Option<i64> = row.try_get("duration_us")?;
    let started: i64 = row.try_get("started_unix_ms")?;
    Ok(PastResult {
        started_unix_ms: u64::try_from(started).unwrap_or(0),
        key: key.parse().map_err(|error| damaged(&run, error))?,
        verdict: verdict.parse().map_err(|error| damaged(&run, error))?,
        duration_us: duration.and_then(|duration| u64::try_from(duration).ok()).unwrap_or(0),
        run,
    })
}

fn planned_case(run: &str, row: &AnyRow) -> Result<PlannedCase, StoreError> {
    let key: String = row.try_get("case_key")?;
    let verdict: Option<String> = row.try_get("verdict")?;
    let duration: Option<i64> = row.try_get("duration_us")?;
    Ok(PlannedCase {
        key: key.parse().map_err(|error| damaged(run, error))?,
        verdict: verdict.map(|verdict| verdict.parse()).transpose().map_err(|error| damaged(run, error))?,
        duration_us: duration.and_then(|duration| u64::try_from(duration).ok()),
    })
}

pub(super) fn parsed<T: serde::de::DeserializeOwned>(run: &str, document: &str) -> Result<T, StoreError> {
    serde_json::from_str(document).map_err(|error| damaged(run, error))
}

pub(super) fn damaged(run: &str, error: impl std::fmt::Display) -> StoreError {
    StoreError::Damaged { run: run.to_owned(), error: error.to_string() }
}
