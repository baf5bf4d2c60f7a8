//! The drivers: the only code of this crate that uses clocks, sockets and interfaces.

pub mod interfaces;
pub mod proxy;

use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// The current time in nanoseconds since 1970.
fn now() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
}

/// The time until `due`, but at most `most`.
fn wait_time(due: Option<u64>, most: Duration) -> Duration {
    due.map_or(most, |due| Duration::from_nanos(due.saturating_sub(now())).min(most))
}
