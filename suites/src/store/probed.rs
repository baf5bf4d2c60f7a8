//! The newest run that probed a target.

use sqlx::Row;

use super::read::parsed;
use super::{Store, StoreError};
use crate::model::{RunInfo, TargetInfo};

/// The facts of the probes, as the JSON of a run has them. In a string of the JSON, a backslash is
/// before each quotation mark, so a string does not contain this text.
const FACTS: &str = "\"probed_facts\":{";

impl Store {
    /// Returns the target of the newest run against `target` whose probes found out facts. Reruns
    /// do not count, because they use the facts of other runs.
    pub(crate) async fn last_probed(&self, target: &str) -> Result<Option<TargetInfo>, StoreError> {
        let row = sqlx::query(
            "SELECT id, info FROM runs WHERE target = $1 AND rerun_of IS NULL AND REPLACE(info, $2, '') <> info \
             ORDER BY sequence DESC, id DESC LIMIT 1",
        )
        .bind(target)
        .bind(FACTS)
        .fetch_optional(&self.pool)
        .await?;
        let Some(row) = row else { return Ok(None) };
        let id: String = row.try_get("id")?;
        let info: RunInfo = parsed(&id, &row.try_get::<String, _>("info")?)?;
        Ok(Some(info.target))
    }
}
