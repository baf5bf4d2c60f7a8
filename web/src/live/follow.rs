//! A run of another process: the store is read again and again, and what is new is told.

use std::sync::Arc;
use std::time::Duration;

use weft_suites::model::RunStatus;
use weft_suites::store::{Store, StoreError};

use super::{Journal, Live, Update};

/// The store is read this often.
const LOOK: Duration = Duration::from_millis(700);

/// Tells until the run is over, nobody looks any more, or the run tells by itself.
pub(super) async fn follow(live: Live, store: Store, journal: Arc<Journal>) {
    let mut is_first = true;
    while !journal.is_own() && !live.forget(&journal) {
        match look(&store, &journal).await {
            Ok(Some(planned)) if is_first => {
                journal.measure(planned);
                is_first = false;
            }
            Ok(Some(_)) => {}
            Ok(None) => return journal.end(),
            Err(error) => {
                tracing::error!("run {}: {error}", journal.run());
                return journal.end();
            }
        }
        tokio::time::sleep(LOOK).await;
    }
}

/// Tells what is new. How many cases are planned, where the run goes on.
async fn look(store: &Store, journal: &Journal) -> Result<Option<u64>, StoreError> {
    let planned = store.planned(journal.run()).await?;
    let number = planned.len() as u64;
    for case in planned {
        if let (Some(verdict), Some(duration)) = (case.verdict, case.duration_us) {
            journal.tell(Update::finished(case.key.to_string(), verdict, duration));
        }
    }
    let Some(record) = store.record(journal.run()).await? else { return Ok(None) };
    Ok(match record.summary {
        None if record.status == RunStatus::Broken => None,
        Some(summary) => {
            // Cases that came to their end since the plan was read.
            for case in store.planned(journal.run()).await? {
                if let (Some(verdict), Some(duration)) = (case.verdict, case.duration_us) {
                    journal.tell(Update::finished(case.key.to_string(), verdict, duration));
                }
            }
            journal.tell(Update::done(&summary));
            None
        }
        None => Some(number),
    })
}
