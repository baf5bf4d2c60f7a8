//! Signs of life. The process of a run writes one every few seconds. A run that is not over and has had none for a while is
//! broken: its process was killed, or its host is gone.
//!
//! Nothing has to be running to notice that, and a run that is resumed is no longer broken: its status is computed whenever
//! it is read. Times are the database's, because the clocks of several hosts may differ.

use super::{Store, StoreError};

/// Seconds without a sign of life after which a run is broken. It is longer than a run waits for its store.
const SILENCE: u32 = 90;

impl Store {
    /// A sign of life of a run.
    ///
    /// # Errors
    /// The database.
    pub(crate) async fn beat(&self, run: &str) -> Result<(), StoreError> {
        let text = format!("UPDATE runs SET alive_unix_s = {} WHERE id = $1", self.now());
        sqlx::query(sqlx::AssertSqlSafe(text)).bind(run).execute(&self.pool).await?;
        Ok(())
    }

    /// The database's clock as an expression, in seconds since 1970.
    pub(super) fn now(&self) -> &'static str {
        if self.is_file {
            "CAST(strftime('%s', 'now') AS INTEGER)"
        } else {
            "CAST(EXTRACT(EPOCH FROM clock_timestamp()) AS BIGINT)"
        }
    }

    /// The status of a row of `runs` as an expression.
    pub(super) fn status(&self) -> String {
        let now = self.now();
        format!(
            "CASE WHEN runs.status IN ('planned', 'waiting-for-target', 'running') \
             AND {now} - runs.alive_unix_s > {SILENCE} THEN 'broken' ELSE runs.status END"
        )
    }
}
