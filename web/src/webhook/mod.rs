//! Sends a message when the verdict of a target changes: from passed to failed, back, or because
//! the target is down or up again.
//!
//! All runs that finish in the store cause messages, also runs of other processes. Therefore the
//! server reads the list of finished runs at an interval, and at once when one of its own runs has
//! ended. Runs that had finished when the server started cause no message, so a restart repeats
//! nothing. Messages are sent one after the other, by a task of their own, so no run waits for the
//! receiver.

mod change;
mod post;
mod url;

use std::collections::HashSet;
use std::sync::Arc;

use tokio::sync::{Notify, watch};
use weft_suites::model::RunStatus;
use weft_suites::store::{Store, StoreError};

use crate::clock::Clock;
pub use url::Webhook;

/// Milliseconds between two searches for finished runs of other processes.
pub(crate) const INTERVAL_MS: u64 = 30_000;

/// Notes the ends of runs. Cheap to clone. Clones share the notes.
#[derive(Debug, Clone, Default)]
pub(crate) struct RunEnds(Arc<Notify>);

impl RunEnds {
    /// Notes that a run of this server has ended. Never waits.
    pub(crate) fn note(&self) {
        self.0.notify_one();
    }

    /// Waits until a run has ended, unless one has ended since the last call. Only one task at a
    /// time may wait.
    pub(crate) async fn ended(&self) {
        self.0.notified().await;
    }
}

/// Sends the messages about finished runs.
#[derive(Debug)]
pub(crate) struct Messages {
    webhook: Webhook,
    store: Store,
    clock: Clock,
    /// The runs that need no message any more, with the status with which they finished.
    known: HashSet<(String, RunStatus)>,
    /// The time of the last search, in milliseconds since 1970-01-01 UTC.
    searched_ms: u64,
    /// Whether the last search failed.
    has_failed: bool,
}

impl Messages {
    /// Starts to watch the store. Runs that have finished before this call cause no message.
    ///
    /// # Errors
    /// The store fails.
    pub(crate) async fn new(webhook: Webhook, store: Store, clock: Clock) -> Result<Self, StoreError> {
        let searched_ms = clock.now_ms();
        let known = store.finished_runs().await?.into_iter().collect();
        Ok(Messages { webhook, store, clock, known, searched_ms, has_failed: false })
    }

    async fn send(mut self, ends: RunEnds, mut stopped: watch::Receiver<bool>) {
        loop {
            let next_ms = self.searched_ms.saturating_add(INTERVAL_MS);
            tokio::select! {
                () = self.clock.wait_until(next_ms) => {}
                () = ends.ended() => {}
                _ = stopped.wait_for(|stopped| *stopped) => return,
            }
            tokio::select! {
                () = self.send_new() => {}
                _ = stopped.wait_for(|stopped| *stopped) => return,
            }
        }
    }

    /// Sends the messages about runs that have finished since the last search, oldest run first.
    pub(crate) async fn send_new(&mut self) {
        self.searched_ms = self.clock.now_ms();
        let finished = match self.store.finished_runs().await {
            Ok(finished) => finished,
            Err(error) => {
                // While the store does not answer, one line is enough.
                if !std::mem::replace(&mut self.has_failed, true) {
                    tracing::error!("webhook: {error}");
                }
                return;
            }
        };
        self.has_failed = false;
        let new = finished.iter().filter(|run| !self.known.contains(*run)).map(|(run, _)| run.clone());
        let new: Vec<String> = new.collect();
        // Also forgets deleted runs, and runs that are now resumed.
        self.known = finished.into_iter().collect();
        for run in new {
            send_message(&self.webhook, &self.store, &run).await;
        }
    }
}

/// Sends messages until `stopped` becomes `true`. Without `messages`, does nothing.
pub(crate) async fn send_messages(messages: Option<Messages>, ends: RunEnds, stopped: watch::Receiver<bool>) {
    if let Some(messages) = messages {
        messages.send(ends, stopped).await;
    }
}

/// Sends a message about a run, if the run changes the verdict of its target.
async fn send_message(webhook: &Webhook, store: &Store, run: &str) {
    let message = match change::change(store, run).await {
        Ok(Some(change)) => serde_json::to_string(&change).map_err(|error| error.to_string()),
        Ok(None) => return,
        Err(error) => Err(error.to_string()),
    };
    match message {
        Ok(message) => webhook.post(&message).await,
        Err(error) => tracing::error!("webhook: run {run}: {error}"),
    }
}
