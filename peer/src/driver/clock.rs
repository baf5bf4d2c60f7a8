//! Real time for the state machines.

use core::time::Duration;
use std::future::pending;

use crate::time::Instant;

/// The clock of drivers that run in real time.
#[derive(Debug, Clone, Copy)]
pub(super) struct Clock(tokio::time::Instant);

impl Clock {
    pub(super) fn start() -> Self {
        Clock(tokio::time::Instant::now())
    }

    pub(super) fn now(self) -> Instant {
        Instant::ORIGIN + self.0.elapsed()
    }

    /// Converts `at` to the runtime's time. The result is at most one year from now, because no
    /// wait lasts that long.
    pub(super) fn to_tokio(self, at: Instant) -> tokio::time::Instant {
        let year = Duration::from_secs(365 * 24 * 3600);
        self.0 + at.since_origin().min(self.0.elapsed() + year)
    }

    /// Sleeps until `at`, or for ever if `at` is `None`.
    pub(super) async fn sleep_until(self, at: Option<Instant>) {
        match at {
            Some(at) => tokio::time::sleep_until(self.to_tokio(at)).await,
            None => pending().await,
        }
    }
}
