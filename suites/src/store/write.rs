//! The records that a run writes to the store.

use sqlx::AssertSqlSafe;

use super::{Store, StoreError};
use crate::model::{CaseInfo, CaseKey, CaseResult, RunInfo, RunStatus, Summary};

impl Store {
    /// Writes a run with its complete plan.
    ///
    /// # Errors
    /// The database fails, or another run has this id.
    pub async fn begin(&self, run: &RunInfo, cases: &[CaseInfo], planned: &[CaseKey]) -> Result<(), StoreError> {
        let mut transaction = self.pool.begin().await?;
        // If this call is a repetition, the run may already be stored: an earlier commit may have
        // succeeded although its answer was lost.
        let info = document(&run.id, run)?;
        let known = sqlx::query("SELECT 1 FROM runs WHERE id = $1 AND info = $2").bind(&run.id).bind(&info);
        if known.fetch_optional(&mut *transaction).await?.is_some() {
            return Ok(());
        }
        let insert = format!(
            "INSERT INTO runs (id, started_unix_ms, target, status, info, is_selection, rerun_of, alive_unix_s, sequence) \
             VALUES ($1, $2, $3, $4, $5, $6, $7, {}, (SELECT COALESCE(MAX(sequence), 0) + 1 FROM runs))",
            self.now()
        );
        sqlx::query(AssertSqlSafe(insert))
            .bind(&run.id)
            .bind(i64::try_from(run.started_unix_ms).unwrap_or(i64::MAX))
            .bind(&run.target.name)
            .bind(RunStatus::Planned.as_str())
            .bind(info)
            .bind(i64::from(run.is_selection))
            .bind(run.rerun_of.as_deref())
            .execute(&mut *transaction)
            .await?;
        for case in cases {
            sqlx::query("INSERT INTO cases (run_id, id, info) VALUES ($1, $2, $3)")
                .bind(&run.id)
                .bind(&case.id)
                .bind(document(&run.id, case)?)
                .execute(&mut *transaction)
                .await?;
        }
        for (position, key) in (0i64..).zip(planned) {
            sqlx::query("INSERT INTO results (run_id, position, case_key) VALUES ($1, $2, $3)")
                .bind(&run.id)
                .bind(position)
                .bind(key.to_string())
                .execute(&mut *transaction)
                .await?;
        }
        transaction.commit().await?;
        Ok(())
    }

    /// Changes the status of a run. If the run had ended and is now resumed, also deletes its
    /// summary.
    ///
    /// # Errors
    /// The database fails.
    pub async fn set_status(&self, run: &str, status: RunStatus) -> Result<(), StoreError> {
        let update =
            format!("UPDATE runs SET status = $1, summary = NULL, alive_unix_s = {} WHERE id = $2", self.now());
        sqlx::query(AssertSqlSafe(update)).bind(status.as_str()).bind(run).execute(&self.pool).await?;
        Ok(())
    }

    /// Writes a finished case with its verdicts on requirements. If the process is killed
    /// meanwhile, nothing is written.
    ///
    /// # Errors
    /// The database fails.
    pub async fn finish_case(&self, run: &str, result: &CaseResult) -> Result<(), StoreError> {
        self.finish_cases(run, std::slice::from_ref(result), 0).await
    }

    /// Writes finished cases, all of them or none, and the time in microseconds that the run took
    /// so far. The call may be repeated.
    pub(crate) async fn finish_cases(
        &self,
        run: &str,
        results: &[CaseResult],
        spent_us: u64,
    ) -> Result<(), StoreError> {
        let mut transaction = self.pool.begin().await?;
        for result in results {
            sqlx::query(
                "UPDATE results SET verdict = $1, duration_us = $2, result = $3 WHERE run_id = $4 AND case_key = $5",
            )
            .bind(result.verdict.as_str())
            .bind(i64::try_from(result.duration_us).unwrap_or(i64::MAX))
            .bind(document(run, result)?)
            .bind(run)
            .bind(result.key.to_string())
            .execute(&mut *transaction)
            .await?;
            Self::judge(&mut transaction, run, result).await?;
        }
        self.alive(&mut transaction, run, spent_us).await?;
        transaction.commit().await?;
        Ok(())
    }

    /// Writes the end of a run.
    ///
    /// # Errors
    /// The database fails.
    pub async fn finish(&self, run: &str, summary: &Summary) -> Result<(), StoreError> {
        sqlx::query("UPDATE runs SET status = $1, summary = $2, spent_us = $3 WHERE id = $4")
            .bind(summary.status.as_str())
            .bind(document(run, summary)?)
            .bind(i64::try_from(summary.duration_us).unwrap_or(i64::MAX))
            .bind(run)
            .execute(&self.pool)
            .await?;
        Ok(())
    }
}

fn document(run: &str, value: &impl serde::Serialize) -> Result<String, StoreError> {
    serde_json::to_string(value).map_err(|error| StoreError::Damaged { run: run.to_owned(), error: error.to_string() })
}
