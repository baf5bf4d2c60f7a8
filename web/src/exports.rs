//! The limits of concurrent exports of runs as zip files.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Semaphore;

/// The limits of concurrent exports of runs.
#[derive(Debug, Clone)]
pub(crate) struct Exports {
    /// Permits for concurrent exports. Each export builds a report in memory, so there are only a
    /// few permits.
    pub(crate) permits: Arc<Semaphore>,
    /// How long a request waits for a permit.
    pub(crate) wait: Duration,
    /// The time within which a client must read each piece of 64 KiB.
    pub(crate) piece_timeout: Duration,
}

impl Default for Exports {
    fn default() -> Self {
        Exports {
            permits: Arc::new(Semaphore::new(4)),
            wait: Duration::from_secs(10),
            piece_timeout: Duration::from_secs(5),
        }
    }
}
