//! Checks display filters.

use tokio::sync::Semaphore;
use weft_dissector::filter::{Filter, FilterError, WantedFields};

use crate::failure::Failure;

const STOPPING: Failure = Failure::Busy("This server is stopping.");

/// Limits how many filters are compiled at the same time.
static COMPILERS: Semaphore = Semaphore::const_new(2);

/// Returns the error in a display filter, or `None` if the filter is valid. Compiles the filter on
/// a blocking thread. The compilation of each regular expression can take milliseconds, and would
/// block a runtime thread for this time.
///
/// # Errors
/// Returns an error if the server stops before the filter is compiled.
pub(in crate::routes) async fn filter_error(text: String) -> Result<Option<FilterError>, Failure> {
    // The closure owns the permit, because the closure continues if the client disconnects. The
    // semaphore is never closed.
    let permit = COMPILERS.acquire().await.map_err(|_| STOPPING)?;
    let compile = move || {
        let _permit = permit;
        Filter::parse(&text, &mut WantedFields::default()).err()
    };
    // If the runtime stops, it cancels blocking tasks that still wait for a thread. A cancelled
    // task is no fault, but a panic in the task is a fault.
    tokio::task::spawn_blocking(compile).await.map_err(|error| match error.try_into_panic() {
        Ok(panic) => std::panic::resume_unwind(panic),
        Err(_) => STOPPING,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reports_a_filter_that_a_stopping_runtime_cancels() {
        let runtime = tokio::runtime::Runtime::new().unwrap();
        let stopped = runtime.handle().clone();
        runtime.shutdown_background();
        // A runtime that has ended cancels every new blocking task.
        let read = stopped.block_on(filter_error("tcp.stream == 1".to_owned()));
        assert!(matches!(read, Err(Failure::Busy(_))), "{read:?}");
    }
}
