//! What changes on a target: the run to compare with, the cases with another verdict, and the
//! counts of the last runs. These queries read verdicts and counts, but no results.

use std::collections::{BTreeMap, BTreeSet};

use sqlx::Row;
use sqlx::any::AnyRow;

use super::read::{RunRecord, damaged, parsed, record};
use super::{Latest, Store, StoreError};
use crate::model::{CaseKey, Counts, RunStatus, Verdict};

/// A case with different verdicts in two runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VerdictChange {
    /// The variant of the case.
    pub key: CaseKey,
    /// Verdict in the earlier run.
    pub before: Verdict,
    /// Verdict in the later run.
    pub after: Verdict,
}

/// The part of a summary that a trend needs.
#[derive(serde::Deserialize)]
struct Counted {
    counts: Counts,
}

impl Store {
    /// Returns the run to compare the results of a target with: the last finished run that started
    /// at `until_unix_ms` or before, in milliseconds since 1970-01-01 UTC. Without such a run,
    /// returns the previous finished run. A complete run is compared only with complete runs, and a
    /// selection only with selections. Reruns do not count.
    ///
    /// # Errors
    /// The database fails, or a document in it is damaged.
    pub async fn earlier(&self, latest: &Latest, until_unix_ms: u64) -> Result<Option<RunRecord>, StoreError> {
        let query = self.records(
            "WHERE id = (SELECT id FROM runs \
             WHERE target = $1 AND is_selection = $2 AND status = 'done' AND rerun_of IS NULL \
             AND (sequence, id) < (SELECT sequence, id FROM runs AS other WHERE other.id = $3) \
             ORDER BY CASE WHEN started_unix_ms <= $4 THEN 0 ELSE 1 END, sequence DESC, id DESC LIMIT 1)",
        );
        let info = &latest.record.info;
        let until = i64::try_from(until_unix_ms).unwrap_or(i64::MAX);
        let query = sqlx::query(query).bind(&info.target.name).bind(i64::from(info.is_selection));
        let row = query.bind(&info.id).bind(until).fetch_optional(&self.pool).await?;
        row.as_ref().map(record).transpose()
    }

    /// Returns the cases whose verdict in the run `before` differs from the verdict that counts in
    /// `latest`, sorted by key. A case without a verdict in one of the two is omitted.
    ///
    /// # Errors
    /// The database fails, or a key or verdict in it is damaged.
    pub async fn changes(&self, before: &str, latest: &Latest) -> Result<Vec<VerdictChange>, StoreError> {
        let runs: BTreeSet<&str> = latest.runs().collect();
        let mut changes = Vec::new();
        for run in runs {
            let rows = sqlx::query(
                "SELECT later.case_key AS case_key, earlier.verdict AS old_verdict, later.verdict AS new_verdict \
                 FROM results AS later JOIN results AS earlier \
                 ON earlier.run_id = $1 AND earlier.case_key = later.case_key \
                 WHERE later.run_id = $2 AND later.verdict <> earlier.verdict",
            );
            for row in rows.bind(before).bind(run).fetch_all(&self.pool).await? {
                let change = verdict_change(run, &row)?;
                if latest.run_of(&change.key) == run {
                    changes.push(change);
                }
            }
        }
        changes.sort_by(|one, other| one.key.cmp(&other.key));
        Ok(changes)
    }

    /// Returns at most `limit` runs that are in progress: neither ended nor broken.
    ///
    /// # Errors
    /// The database fails, or a document in it is damaged.
    pub async fn active(&self, limit: u32) -> Result<Vec<RunRecord>, StoreError> {
        // Broken runs have old signs of life, so they are at the end.
        let query = self.records(
            "WHERE id IN (SELECT id FROM runs WHERE status IN ('planned', 'waiting-for-target', 'running') \
             ORDER BY alive_unix_s DESC, sequence DESC, id DESC LIMIT $1) \
             ORDER BY alive_unix_s DESC, sequence DESC, id DESC",
        );
        let rows = sqlx::query(query).bind(i64::from(limit)).fetch_all(&self.pool).await?;
        let mut records = rows.iter().map(record).collect::<Result<Vec<_>, _>>()?;
        records.retain(|record| record.status != RunStatus::Broken);
        Ok(records)
    }

    /// Returns the counts of the last finished runs of each target, oldest first. Each target has
    /// at most `each` runs. If a target has complete runs, only these count. Reruns do not count.
    ///
    /// # Errors
    /// The database fails, or a document in it is damaged.
    pub async fn recent_counts(&self, each: u32) -> Result<BTreeMap<String, Vec<Counts>>, StoreError> {
        let rows = sqlx::query(
            "SELECT runs.id AS id, runs.target AS target, runs.summary AS summary FROM runs JOIN ( \
             SELECT id AS run, RANK() OVER (PARTITION BY target ORDER BY is_selection) AS kind, \
             ROW_NUMBER() OVER (PARTITION BY target ORDER BY is_selection, sequence DESC, id DESC) AS place \
             FROM runs WHERE status = 'done' AND rerun_of IS NULL AND summary IS NOT NULL) AS recent \
             ON recent.run = runs.id WHERE recent.kind = 1 AND recent.place <= $1 \
             ORDER BY runs.sequence, runs.id",
        );
        let mut recent: BTreeMap<String, Vec<Counts>> = BTreeMap::new();
        for row in rows.bind(i64::from(each)).fetch_all(&self.pool).await? {
            let (id, summary): (String, String) = (row.try_get("id")?, row.try_get("summary")?);
            let Counted { counts } = parsed(&id, &summary)?;
            recent.entry(row.try_get("target")?).or_default().push(counts);
        }
        Ok(recent)
    }
}

fn verdict_change(run: &str, row: &AnyRow) -> Result<VerdictChange, StoreError> {
    let (key, before): (String, String) = (row.try_get("case_key")?, row.try_get("old_verdict")?);
    let after: String = row.try_get("new_verdict")?;
    Ok(VerdictChange {
        key: key.parse().map_err(|error| damaged(run, error))?,
        before: before.parse().map_err(|error| damaged(run, error))?,
        after: after.parse().map_err(|error| damaged(run, error))?,
    })
}
