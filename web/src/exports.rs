//! The limits of exports.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Semaphore;

/// The limits of concurrent exports.
#[derive(Debug, Clone)]
pub(crate) struct Exports {
    /// There are few places, because a report is made in memory.
    pub(crate) room: Arc<Semaphore>,
    /// How long a request waits for a place.
    pub(crate) wait: Duration,
    /// How long a client may take for a piece of 64 KiB.
    pub(crate) take: Duration,
}

impl Default for Exports {
    fn default() -> Self {
        Exports { room: Arc::new(Semaphore::new(4)), wait: Duration::from_secs(10), take: Duration::from_secs(5) }
    }
}
