//! Signs of life of runs. The process of a run writes a sign of life every few seconds. If an
//! unfinished run has had no sign of life for a while, the run is broken: its process was killed,
//! or its host is down.
//!
//! The status of a run is computed when it is read. So no process has to watch runs, and a resumed
//! run is no longer broken. Times come from the database's clock, because the clocks of several
//! hosts may differ.

use sqlx::{AnyConnection, AssertSqlSafe, Row};

use super::{Store, StoreError};

/// Seconds without a sign of life after which a run is broken. This time is longer than the time
/// for which a run waits for its store.
const SILENCE: u32 = 90;

impl Store {
    /// Writes a sign of life of a run, and the time that the run took so far, in microseconds.
    ///
    /// # Errors
    /// The database fails.
    pub(crate) async fn beat(&self, run: &str, spent_us: u64) -> Result<(), StoreError> {
        self.alive(&mut *self.pool.acquire().await?, run, spent_us).await
    }

    /// Like [`beat`](Self::beat), on a connection or within a transaction.
    pub(super) async fn alive(
        &self,
        connection: &mut AnyConnection,
        run: &str,
        spent_us: u64,
    ) -> Result<(), StoreError> {
        let text = format!(
            "UPDATE runs SET alive_unix_s = {}, spent_us = CASE WHEN $1 > spent_us THEN $2 ELSE spent_us END \
             WHERE id = $3",
            self.now()
        );
        let spent_us = i64::try_from(spent_us).unwrap_or(i64::MAX);
        let update = sqlx::query(AssertSqlSafe(text)).bind(spent_us).bind(spent_us).bind(run);
        update.execute(connection).await?;
        Ok(())
    }

    /// Returns the time that a run took until its last sign of life, in microseconds. If the run
    /// was stopped and resumed, the time between the stop and the resumption is not included.
    /// Returns 0 if the time is unknown.
    ///
    /// # Errors
    /// The database fails.
    pub(super) async fn spent_us(&self, run: &str) -> Result<u64, StoreError> {
        let row = sqlx::query("SELECT spent_us FROM runs WHERE id = $1").bind(run).fetch_optional(&self.pool).await?;
        let spent = row.map(|row| row.try_get::<i64, _>("spent_us")).transpose()?;
        Ok(spent.and_then(|spent| u64::try_from(spent).ok()).unwrap_or(0))
    }

    /// Returns an SQL expression for the database's clock, in seconds since 1970.
    pub(super) fn now(&self) -> &'static str {
        if self.is_file {
            "CAST(strftime('%s', 'now') AS INTEGER)"
        } else {
            "CAST(EXTRACT(EPOCH FROM clock_timestamp()) AS BIGINT)"
        }
    }

    /// Returns an SQL expression for the status of a row of `runs`.
    pub(super) fn status(&self) -> String {
        let now = self.now();
        format!(
            "CASE WHEN runs.status IN ('planned', 'waiting-for-target', 'running') \
             AND {now} - runs.alive_unix_s > {SILENCE} THEN 'broken' ELSE runs.status END"
        )
    }
}
