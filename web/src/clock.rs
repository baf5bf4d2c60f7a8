//! The time of day. Tests set it, so that they never wait for real time.

use std::time::Duration;

#[cfg(test)]
use tokio::sync::watch;
use weft_suites::clock;

/// The longest sleep. After a sleep, a changed clock of the machine takes effect.
const STEP: Duration = Duration::from_secs(30);

/// A source of the time of day. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub(crate) enum Clock {
    /// The clock of the machine.
    #[default]
    System,
    /// The clock of a test, in milliseconds since 1970-01-01 UTC.
    #[cfg(test)]
    Manual(watch::Receiver<u64>),
}

impl Clock {
    /// Returns milliseconds since 1970-01-01 UTC.
    pub(crate) fn now_ms(&self) -> u64 {
        match self {
            Clock::System => clock::unix_ns() / 1_000_000,
            #[cfg(test)]
            Clock::Manual(time) => *time.borrow(),
        }
    }

    /// Waits until a time, in milliseconds since 1970-01-01 UTC.
    pub(crate) async fn wait_until(&self, unix_ms: u64) {
        match self {
            Clock::System => loop {
                let left = unix_ms.saturating_sub(self.now_ms());
                if left == 0 {
                    return;
                }
                tokio::time::sleep(Duration::from_millis(left).min(STEP)).await;
            },
            #[cfg(test)]
            Clock::Manual(time) => {
                let mut time = time.clone();
                if time.wait_for(|now| *now >= unix_ms).await.is_err() {
                    // The test has ended, and its clock with it.
                    std::future::pending::<()>().await;
                }
            }
        }
    }
}
