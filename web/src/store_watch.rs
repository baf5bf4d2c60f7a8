//! Watches the results store. If the store does not answer, requests fail soon.
//!
//! Queries have no time limit, because a page about many runs can take long. Instead, if a request
//! takes longer than [`SLOW`], a small query on separate connections probes the store. If the probe
//! does not succeed within [`PROBE`], the store counts as gone and the request fails.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Mutex;
use tokio::time::{Instant, sleep, timeout};
use weft_suites::store::{Store, StoreError};

use crate::failure::Failure;

/// A request that takes longer than this time probes the store, and repeats the probe at this
/// interval.
const SLOW: Duration = Duration::from_secs(1);
/// A store that does not answer a probe within this time counts as gone.
const PROBE: Duration = Duration::from_millis(500);
/// How long the result of a failed probe is valid for all requests.
const FRESH: Duration = Duration::from_millis(500);

/// Probes the store. Cheap to clone. Clones share the probes.
#[derive(Debug, Clone)]
pub(crate) struct StoreWatch(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    store: Store,
    /// The time of the last probe if this probe failed, otherwise `None`. Locked during a probe, so
    /// only one probe runs at a time. Requests that wait for the lock share the result of a failed
    /// probe.
    failed: Mutex<Option<Instant>>,
}

impl StoreWatch {
    /// Makes a watch that probes `store`. Pages must not use the connections of `store`.
    pub(crate) fn new(store: Store) -> Self {
        StoreWatch(Arc::new(Inner { store, failed: Mutex::default() }))
    }

    /// Returns whether the store answers now. Logs when the result changes.
    pub(crate) async fn is_available(&self) -> bool {
        let mut failed = self.0.failed.lock().await;
        if failed.is_some_and(|at| at.elapsed() < FRESH) {
            return false;
        }
        let trouble = match timeout(PROBE, self.0.store.runs(1)).await {
            // The store answers, although one run is damaged.
            Ok(Ok(_) | Err(StoreError::Damaged { .. })) => None,
            Ok(Err(error)) => Some(error.to_string()),
            Err(_) => Some(format!("results store: no answer within {} ms", PROBE.as_millis())),
        };
        match &trouble {
            Some(trouble) if failed.is_none() => tracing::error!("{trouble}"),
            None if failed.is_some() => tracing::info!("the results store answers again"),
            _ => {}
        }
        *failed = trouble.map(|_| Instant::now());
        failed.is_none()
    }

    /// Waits for `work`, unless the store stops answering.
    ///
    /// # Errors
    /// Returns [`Failure::NoStore`] if the store stops answering.
    pub(crate) async fn while_available<T>(&self, work: impl Future<Output = T>) -> Result<T, Failure> {
        tokio::select! {
            done = work => Ok(done),
            () = self.gone() => Err(Failure::NoStore),
        }
    }

    async fn gone(&self) {
        loop {
            sleep(SLOW).await;
            if !self.is_available().await {
                return;
            }
        }
    }
}
