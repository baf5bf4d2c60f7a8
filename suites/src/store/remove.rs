//! Deletes runs, and lists the facts by which old runs are selected.

use sqlx::{AssertSqlSafe, Row};

use super::read::damaged;
use super::{Store, StoreError};
use crate::model::RunStatus;

/// The facts about a run by which old runs are selected.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredRun {
    /// Id of the run.
    pub id: String,
    /// Name of the target.
    pub target: String,
    /// Start of the run, in milliseconds since 1970-01-01 UTC.
    pub started_unix_ms: u64,
    /// Id of the run whose cases this run repeats.
    pub rerun_of: Option<String>,
    /// Whether no process works on the run. Only such a run can be deleted.
    pub is_over: bool,
}

impl Store {
    /// Returns all runs, oldest first.
    ///
    /// # Errors
    /// The database fails, or a row in it is damaged.
    pub async fn stored_runs(&self) -> Result<Vec<StoredRun>, StoreError> {
        let text = format!(
            "SELECT id, target, started_unix_ms, rerun_of, {} AS status FROM runs ORDER BY sequence, id",
            self.status()
        );
        let run = |row: &sqlx::any::AnyRow| {
            let id: String = row.try_get("id")?;
            let status: String = row.try_get("status")?;
            let status: RunStatus = status.parse().map_err(|error| damaged(&id, error))?;
            Ok(StoredRun {
                target: row.try_get("target")?,
                started_unix_ms: u64::try_from(row.try_get::<i64, _>("started_unix_ms")?).unwrap_or(0),
                rerun_of: row.try_get("rerun_of")?,
                is_over: matches!(status, RunStatus::Done | RunStatus::Cancelled | RunStatus::Broken),
                id,
            })
        };
        sqlx::query(AssertSqlSafe(text)).fetch_all(&self.pool).await?.iter().map(run).collect()
    }

    /// Deletes a run with its plan and its results, if the run is over. Returns whether it was
    /// deleted.
    ///
    /// # Errors
    /// The database fails.
    pub async fn delete_run(&self, run: &str) -> Result<bool, StoreError> {
        // The other tables refer to the run with `ON DELETE CASCADE`.
        let text = format!("DELETE FROM runs WHERE id = $1 AND {} IN ('done', 'cancelled', 'broken')", self.status());
        let deleted = sqlx::query(AssertSqlSafe(text)).bind(run).execute(&self.pool).await?;
        Ok(deleted.rows_affected() > 0)
    }
}
