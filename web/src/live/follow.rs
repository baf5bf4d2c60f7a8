//! Follows a run of another process: reads the store repeatedly, and adds new results to the run's
//! journal.

use std::sync::Arc;
use std::time::Duration;

use weft_suites::model::RunStatus;
use weft_suites::store::{Store, StoreError};

use super::{Journal, Live, Update};

/// Interval at which to read the store.
const POLL_INTERVAL: Duration = Duration::from_millis(700);

/// Follows the run until it is over, until no client reads the journal, or until a run of this
/// process writes the journal.
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
        tokio::time::sleep(POLL_INTERVAL).await;
    }
}

/// Adds the finished cases of the store to the journal. The journal ignores cases that it already
/// has. Returns the number of planned cases, or `None` if the run is over.
async fn look(store: &Store, journal: &Journal) -> Result<Option<u64>, StoreError> {
    let planned = store.planned(journal.run()).await?;
    planned.iter().filter_map(Update::of_case).for_each(|update| journal.add(update));
    let Some(record) = store.record(journal.run()).await? else { return Ok(None) };
    Ok(match record.summary {
        None if record.status == RunStatus::Broken => None,
        Some(summary) => {
            // Read the plan again, because more cases can finish after the plan was read above.
            let planned = store.planned(journal.run()).await?;
            planned.iter().filter_map(Update::of_case).for_each(|update| journal.add(update));
            journal.add(Update::done(&summary));
            None
        }
        None => Some(planned.len() as u64),
    })
}
