//! Writes a run into the results store. The run survives if the store cannot be written for a
//! while. Possible reasons are a database server that restarts, a file that another program locks,
//! and a full disk.
//!
//! A write is tried again for [`RETRY_TIME`]. If all tries fail, the run continues without the
//! store. The results of the run are in memory and, with their evidence, on disk, so the reports
//! are complete. The recorder tries again periodically, and once more when the run ends. The
//! summary states how many results the store did not get.

use std::time::Duration;

use tokio::sync::watch;
use tokio::time::Instant;

use super::cancelled;
use crate::model::{CaseResult, Summary};
use crate::store::{Store, StoreError};

/// How long a write is tried again before the run continues without the store.
const RETRY_TIME: Duration = Duration::from_secs(60);
/// The first pause between two tries. Each pause is twice as long as the previous pause, up to
/// `LONGEST_PAUSE`.
const FIRST_PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_secs(5);
/// The pause between two tries of a run that continues without the store.
const RETRY_INTERVAL: Duration = Duration::from_secs(30);

/// How long a caller waits for the store.
#[derive(Debug, Clone)]
pub(super) struct RetryPolicy {
    limit: Duration,
    cancel: Option<watch::Receiver<bool>>,
}

impl RetryPolicy {
    /// Returns a policy. A caller waits for the store for at most `limit`, or for at most one
    /// minute if `limit` is `None`. The wait ends early if the run is cancelled.
    pub(super) fn new(limit: Option<Duration>, cancel: Option<watch::Receiver<bool>>) -> Self {
        RetryPolicy { limit: limit.unwrap_or(RETRY_TIME), cancel }
    }

    /// Returns the tries of one write. The caller makes the first try itself:
    ///
    /// ```text
    /// let mut retries = retry_policy.retries();
    /// while let Err(error) = write().await {
    ///     retries.wait_after(error).await?;
    /// }
    /// ```
    pub(super) fn retries(&mut self) -> Retries<'_> {
        Retries { retry_policy: self, began: Instant::now(), pause: FIRST_PAUSE }
    }
}

/// The tries of one write. The write must be safe to repeat.
pub(super) struct Retries<'a> {
    retry_policy: &'a mut RetryPolicy,
    began: Instant,
    pause: Duration,
}

impl Retries<'_> {
    /// Waits before the next try. Returns the error if there is no next try: the write can never
    /// succeed, it has failed for too long, or the run is cancelled.
    pub(super) async fn wait_after(&mut self, error: StoreError) -> Result<(), StoreError> {
        let left = self.retry_policy.limit.saturating_sub(self.began.elapsed());
        if left.is_zero() || !error.may_pass() {
            return Err(error);
        }
        if self.pause == FIRST_PAUSE {
            tracing::warn!("{error}; trying again for {} s", left.as_secs());
        }
        tokio::select! {
            () = tokio::time::sleep(self.pause.min(left)) => {}
            () = cancelled(&mut self.retry_policy.cancel) => return Err(error),
        }
        self.pause = LONGEST_PAUSE.min(self.pause * 2);
        Ok(())
    }
}

/// Records one run in the store.
pub(super) struct Recorder {
    store: Store,
    run: String,
    retry_policy: RetryPolicy,
    clock: RunClock,
    /// Finished cases that the store does not have yet.
    pending: Vec<CaseResult>,
    /// Is `Some` while the run continues without the store.
    outage: Option<Outage>,
}

/// Measures how long a run takes, including the time before it was stopped and resumed.
#[derive(Debug, Clone, Copy)]
pub(super) struct RunClock {
    began: std::time::Instant,
    before_us: u64,
}

impl RunClock {
    pub(super) fn new(began: std::time::Instant, before_us: u64) -> Self {
        RunClock { began, before_us }
    }

    pub(super) fn spent_us(self) -> u64 {
        self.before_us.saturating_add(u64::try_from(self.began.elapsed().as_micros()).unwrap_or(u64::MAX))
    }
}

struct Outage {
    /// Time of the next try.
    next_try: Instant,
    /// Why the store could not be written.
    why: StoreError,
}

impl Recorder {
    pub(super) fn new(store: Store, run: String, retry_policy: RetryPolicy, clock: RunClock) -> Self {
        Recorder { store, run, retry_policy, clock, pending: Vec::new(), outage: None }
    }

    /// Stores a finished case.
    pub(super) async fn finish_case(&mut self, result: &CaseResult) {
        self.pending.push(result.clone());
        match &self.outage {
            None => match self.write_pending().await {
                Ok(()) => self.pending.clear(),
                Err(why) => self.continue_without_store(why),
            },
            Some(outage) if outage.next_try <= Instant::now() => self.try_again().await,
            Some(_) => {}
        }
    }

    /// Writes a sign of life of the run's process.
    pub(super) async fn beat(&mut self) {
        match &self.outage {
            // A failed sign of life is not repeated, because the next one follows soon.
            None => {
                if let Err(error) = self.store.beat(&self.run, self.clock.spent_us()).await {
                    tracing::debug!(%error, "the results store did not accept the sign of life of this run");
                }
            }
            Some(outage) if outage.next_try <= Instant::now() => self.try_again().await,
            Some(_) => {}
        }
    }

    async fn write_pending(&mut self) -> Result<(), StoreError> {
        let mut retries = self.retry_policy.retries();
        while let Err(error) = self.store.finish_cases(&self.run, &self.pending, self.clock.spent_us()).await {
            retries.wait_after(error).await?;
        }
        Ok(())
    }

    /// Ends the run in the store. If the store lacks a part of the run, returns the reason.
    pub(super) async fn finish(mut self, planned: u64, summary: &Summary) -> Option<String> {
        if self.outage.is_some() {
            self.try_again().await;
        }
        if self.outage.is_none()
            && let Err(why) = self.write_end(summary).await
        {
            self.continue_without_store(why);
        }
        self.store.close().await;
        let why = self.outage?.why;
        Some(match self.pending.len() {
            0 => format!("the results store lacks the end of this run: {why}"),
            missing => format!("the results store lacks {missing} of the {planned} results of this run: {why}"),
        })
    }

    async fn write_end(&mut self, summary: &Summary) -> Result<(), StoreError> {
        let mut retries = self.retry_policy.retries();
        while let Err(error) = self.store.finish(&self.run, summary).await {
            retries.wait_after(error).await?;
        }
        Ok(())
    }

    /// Lets the run continue without the store.
    fn continue_without_store(&mut self, why: StoreError) {
        tracing::error!("{why}; the run continues without the results store, and its reports will be complete");
        self.outage = Some(Outage { next_try: Instant::now() + RETRY_INTERVAL, why });
    }

    /// Tries once to write the pending results.
    async fn try_again(&mut self) {
        match self.store.finish_cases(&self.run, &self.pending, self.clock.spent_us()).await {
            Ok(()) => {
                tracing::warn!("the results store is available again and has all finished cases");
                self.pending.clear();
                self.outage = None;
            }
            Err(why) => self.outage = Some(Outage { next_try: Instant::now() + RETRY_INTERVAL, why }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The error of a server that restarts.
    fn passing() -> StoreError {
        StoreError::from(sqlx::Error::from(std::io::Error::from(std::io::ErrorKind::ConnectionReset)))
    }

    #[tokio::test(start_paused = true)]
    async fn tries_again_for_a_minute() {
        let began = Instant::now();
        let mut retry_policy = RetryPolicy::new(None, None);
        let mut retries = retry_policy.retries();
        let mut count = 0;
        while retries.wait_after(passing()).await.is_ok() {
            count += 1;
        }
        assert_eq!(began.elapsed(), Duration::from_secs(60));
        assert!((10..30).contains(&count), "{count}");
    }

    #[tokio::test(start_paused = true)]
    async fn does_not_repeat_what_can_never_succeed() {
        assert!(RetryPolicy::new(None, None).retries().wait_after(StoreError::Address).await.is_err());
    }

    #[tokio::test(start_paused = true)]
    async fn stops_waiting_when_the_run_is_cancelled() {
        let (cancel, receiver) = watch::channel(false);
        let mut retry_policy = RetryPolicy::new(None, Some(receiver));
        let mut retries = retry_policy.retries();
        assert!(retries.wait_after(passing()).await.is_ok());
        cancel.send_replace(true);
        assert!(retries.wait_after(passing()).await.is_err());
    }
}
