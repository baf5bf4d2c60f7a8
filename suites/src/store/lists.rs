//! Queries of lists: pages of runs, targets, counts by status.

use sqlx::{AssertSqlSafe, Row};

use super::latest::BEST_FIRST;
use super::read::{PastResult, RunRecord, damaged, past_result, record};
use super::{Store, StoreError};
use crate::model::{CaseKey, RunStatus};

/// A page of a list of runs, newest first.
#[derive(Debug, Clone, Copy, Default)]
pub struct RunsPage<'a> {
    /// Only runs of this target.
    pub target: Option<&'a str>,
    /// Only runs with this label: its name and its value.
    pub label: Option<(&'a str, &'a str)>,
    /// Only runs older than the run with this id. The page is empty if there is no such run.
    pub before: Option<&'a str>,
    /// Maximum number of runs.
    pub limit: u32,
}

/// A target with runs in the store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TargetRecord {
    /// The target's name.
    pub name: String,
    /// Number of runs against the target.
    pub runs: u64,
    /// Id of the run that represents the target ([`Store::latest`]).
    pub last: String,
}

impl Store {
    /// Returns the runs of a page, newest first.
    ///
    /// # Errors
    /// The database fails, or a document in it is damaged.
    pub async fn runs_of(&self, page: RunsPage<'_>) -> Result<Vec<RunRecord>, StoreError> {
        let limit = page.limit as usize;
        let mut found = Vec::new();
        let mut before = page.before.unwrap_or_default().to_owned();
        loop {
            let records = self.candidates(page, &before).await?;
            let last = records.last().filter(|_| records.len() == limit).map(|last| last.info.id.clone());
            found.extend(records.into_iter().filter(|record| has_label(record, page.label)));
            match last {
                Some(last) if found.len() < limit => before = last,
                _ => break,
            }
        }
        found.truncate(limit);
        Ok(found)
    }

    /// Returns the next runs of a page. If the page is about a label, some of them may lack it: the
    /// query finds the text of the label anywhere in the description of a run.
    async fn candidates(&self, page: RunsPage<'_>, before: &str) -> Result<Vec<RunRecord>, StoreError> {
        let query = self.records(
            "WHERE id IN (SELECT id FROM runs WHERE ($1 = '' OR target = $2) AND ($3 = '' OR \
             (sequence, id) < (SELECT sequence, id FROM runs AS other WHERE other.id = $4)) \
             AND ($5 = '' OR REPLACE(info, $6, '') <> info) \
             ORDER BY sequence DESC, id DESC LIMIT $7) ORDER BY sequence DESC, id DESC",
        );
        let target = page.target.unwrap_or_default();
        let quoted = |text: &str| serde_json::Value::from(text).to_string();
        let label = page.label.map_or_else(String::new, |(name, value)| format!("{}:{}", quoted(name), quoted(value)));
        let query = sqlx::query(query).bind(target).bind(target).bind(before).bind(before);
        let query = query.bind(&label).bind(&label).bind(i64::from(page.limit));
        query.fetch_all(&self.pool).await?.iter().map(record).collect()
    }

    /// Returns the ids of all finished runs, in the order in which the runs started, each with the
    /// status with which the run finished: done or cancelled. A cancelled run can be resumed, and
    /// then finishes again.
    ///
    /// # Errors
    /// The database fails, or a row in it is damaged.
    pub async fn finished_runs(&self) -> Result<Vec<(String, RunStatus)>, StoreError> {
        let rows = sqlx::query(
            "SELECT id, status FROM runs WHERE status IN ('done', 'cancelled') AND summary IS NOT NULL \
             ORDER BY sequence, id",
        );
        let run = |row: &sqlx::any::AnyRow| {
            let (id, status): (String, String) = (row.try_get("id")?, row.try_get("status")?);
            let status: RunStatus = status.parse().map_err(|error| damaged(&id, error))?;
            Ok((id, status))
        };
        rows.fetch_all(&self.pool).await?.iter().map(run).collect()
    }

    /// Returns the targets with runs, sorted by name.
    ///
    /// # Errors
    /// The database fails.
    pub async fn targets(&self) -> Result<Vec<TargetRecord>, StoreError> {
        let text = format!(
            "SELECT target, COUNT(*) AS runs, \
             (SELECT id FROM runs AS one WHERE one.target = runs.target ORDER BY {BEST_FIRST} LIMIT 1) AS last \
             FROM runs GROUP BY target ORDER BY target"
        );
        let rows = sqlx::query(AssertSqlSafe(text)).fetch_all(&self.pool).await?;
        let target = |row: &sqlx::any::AnyRow| {
            let runs = u64::try_from(row.try_get::<i64, _>("runs")?).unwrap_or(0);
            Ok(TargetRecord { name: row.try_get("target")?, runs, last: row.try_get("last")? })
        };
        rows.iter().map(target).collect()
    }

    /// Returns the results of one variant of a case on a target, newest first. Unlike
    /// [`history`](Self::history), this query reads only these results.
    ///
    /// # Errors
    /// The database fails, or a row in it is damaged.
    pub async fn past(&self, target: &str, key: &CaseKey, limit: u32) -> Result<Vec<PastResult>, StoreError> {
        let rows = sqlx::query(
            "SELECT results.run_id, runs.started_unix_ms, results.case_key, results.verdict, results.duration_us \
             FROM results JOIN runs ON runs.id = results.run_id \
             WHERE results.case_key = $1 AND runs.target = $2 AND results.verdict IS NOT NULL \
             ORDER BY runs.sequence DESC, runs.id DESC LIMIT $3",
        );
        let rows = rows.bind(key.to_string()).bind(target).bind(i64::from(limit)).fetch_all(&self.pool).await?;
        rows.iter().map(past_result).collect()
    }

    /// Returns the number of runs with each status. A status without runs is omitted.
    ///
    /// # Errors
    /// The database fails, or a row in it is damaged.
    pub async fn counts(&self) -> Result<Vec<(RunStatus, u64)>, StoreError> {
        let text = format!("SELECT {} AS status, COUNT(*) AS runs FROM runs GROUP BY 1 ORDER BY 1", self.status());
        let rows = sqlx::query(AssertSqlSafe(text));
        let count = |row: &sqlx::any::AnyRow| {
            let status: String = row.try_get("status")?;
            let runs = u64::try_from(row.try_get::<i64, _>("runs")?).unwrap_or(0);
            Ok((status.parse().map_err(|error| damaged("(any)", error))?, runs))
        };
        rows.fetch_all(&self.pool).await?.iter().map(count).collect()
    }
}

/// Returns whether a run has the label. Without a label, returns `true`.
fn has_label(record: &RunRecord, label: Option<(&str, &str)>) -> bool {
    label.is_none_or(|(name, value)| record.info.labels.get(name).is_some_and(|own| own == value))
}
