//! Two results over several cases or runs: the verdict of a run for each requirement, and the cases
//! that have different verdicts in different runs.

use std::collections::BTreeMap;

use sqlx::{AssertSqlSafe, Row};
use weft_core::RequirementId;

use super::read::damaged;
use super::{Store, StoreError};
use crate::model::{CaseKey, CaseResult, Counts, Score, Strength, Verdict, worst};

/// A variant of a case with different verdicts in a set of runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnstableCase {
    /// The variant of the case.
    pub key: CaseKey,
    /// Number of runs with each verdict.
    pub counts: Counts,
}

impl Store {
    /// Updates the run's verdict for each requirement that a finished case has judged. If the run
    /// already has a verdict for the requirement, the run keeps the worse of the two verdicts.
    pub(super) async fn judge(
        transaction: &mut sqlx::AnyConnection,
        run: &str,
        result: &CaseResult,
    ) -> Result<(), StoreError> {
        for (requirement, verdict) in worst([result]) {
            sqlx::query(
                "INSERT INTO judged (run_id, requirement, strength, verdict) VALUES ($1, $2, $3, $4) \
                 ON CONFLICT (run_id, requirement) DO UPDATE SET verdict = \
                 CASE WHEN excluded.verdict > judged.verdict THEN excluded.verdict ELSE judged.verdict END",
            )
            .bind(run)
            .bind(requirement.as_str())
            .bind(Strength::of(requirement.row()).as_str())
            .bind(verdict_code(verdict))
            .execute(&mut *transaction)
            .await?;
        }
        Ok(())
    }

    /// Returns the numbers of met and violated requirements of each of these runs. A run without a
    /// verdict on any requirement is omitted.
    ///
    /// # Errors
    /// The database fails.
    pub async fn scores(&self, runs: &[&str]) -> Result<BTreeMap<String, Score>, StoreError> {
        let mut scores: BTreeMap<String, Score> = BTreeMap::new();
        if runs.is_empty() {
            return Ok(scores);
        }
        let text = format!(
            "SELECT run_id, strength, verdict, COUNT(*) AS number FROM judged WHERE run_id IN ({}) \
             GROUP BY run_id, strength, verdict",
            placeholders(runs.len())
        );
        // The text has only constant parts and numbered placeholders.
        let mut query = sqlx::query(AssertSqlSafe(text));
        for run in runs {
            query = query.bind(*run);
        }
        for row in query.fetch_all(&self.pool).await? {
            let (run, strength): (String, String) = (row.try_get("run_id")?, row.try_get("strength")?);
            let number = u64::try_from(row.try_get::<i64, _>("number")?).unwrap_or(0);
            let known = Strength::ALL.into_iter().find(|known| known.as_str() == strength);
            if let (Some(strength), Some(verdict)) = (known, verdict(row.try_get("verdict")?)) {
                scores.entry(run).or_default().of_mut(strength).add(verdict, number);
            }
        }
        Ok(scores)
    }

    /// Returns the verdict of a run for each requirement: the worst verdict that a case of the run
    /// has for this requirement. Requirements that this version of weft does not know are omitted.
    ///
    /// # Errors
    /// The database fails.
    pub async fn judged(&self, run: &str) -> Result<BTreeMap<RequirementId, Verdict>, StoreError> {
        let rows = sqlx::query("SELECT requirement, verdict FROM judged WHERE run_id = $1").bind(run);
        let mut judged = BTreeMap::new();
        for row in rows.fetch_all(&self.pool).await? {
            let requirement: String = row.try_get("requirement")?;
            if let (Ok(requirement), Some(verdict)) = (requirement.parse(), verdict(row.try_get("verdict")?)) {
                judged.insert(requirement, verdict);
            }
        }
        Ok(judged)
    }

    /// Returns at most `limit` variants of cases with different verdicts in `runs`, sorted by key.
    ///
    /// # Errors
    /// The database fails, or a key in it is damaged.
    pub async fn unsteady(&self, runs: &[&str], limit: u32) -> Result<Vec<UnstableCase>, StoreError> {
        if runs.is_empty() {
            return Ok(Vec::new());
        }
        let counts: String = Verdict::ALL
            .into_iter()
            .enumerate()
            .map(|(at, verdict)| {
                format!(", CAST(SUM(CASE WHEN verdict = '{}' THEN 1 ELSE 0 END) AS BIGINT) AS v{at}", verdict.as_str())
            })
            .collect();
        let text = format!(
            "SELECT case_key{counts} FROM results WHERE run_id IN ({}) AND verdict IS NOT NULL \
             GROUP BY case_key HAVING MIN(verdict) <> MAX(verdict) ORDER BY case_key LIMIT {limit}",
            placeholders(runs.len())
        );
        // The text has only constant parts, names of verdicts, and numbers.
        let mut query = sqlx::query(AssertSqlSafe(text));
        for run in runs {
            query = query.bind(*run);
        }
        let unsteady = |row: &sqlx::any::AnyRow| {
            let key: String = row.try_get("case_key")?;
            let mut counts = Counts::default();
            for (at, verdict) in Verdict::ALL.into_iter().enumerate() {
                let number: i64 = row.try_get(format!("v{at}").as_str())?;
                (0..number).for_each(|_| counts.add(verdict));
            }
            Ok(UnstableCase { key: key.parse().map_err(|error| damaged("(any)", error))?, counts })
        };
        query.fetch_all(&self.pool).await?.iter().map(unsteady).collect()
    }
}

/// Returns `$1, $2, ...`, with `number` placeholders.
fn placeholders(number: usize) -> String {
    (1..=number).map(|at| format!("${at}")).collect::<Vec<_>>().join(", ")
}

fn verdict_code(verdict: Verdict) -> i64 {
    let verdict_code = Verdict::ALL.into_iter().position(|known| known == verdict).unwrap_or_default();
    i64::try_from(verdict_code).unwrap_or_default()
}

fn verdict(verdict_code: i64) -> Option<Verdict> {
    Verdict::ALL.get(usize::try_from(verdict_code).ok()?).copied()
}
