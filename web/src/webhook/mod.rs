//! Sends a message when the verdict of a target changes: from passed to failed, back, or because
//! the target is down or up again.
//!
//! Only runs that this server starts cause messages. Messages are sent one after the other, by a
//! task of their own, so no run waits for the receiver.

mod change;
mod post;
mod url;

use tokio::sync::{mpsc, watch};
use weft_suites::store::Store;

pub use url::Webhook;

/// Maximum number of ended runs that wait for their message.
const WAITING: usize = 64;

/// Notes the ends of runs. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub(crate) struct RunEnds(Option<mpsc::Sender<String>>);

impl RunEnds {
    /// Makes a channel. The receiver gets the ids of the runs.
    pub(crate) fn channel() -> (Self, mpsc::Receiver<String>) {
        let (sender, receiver) = mpsc::channel(WAITING);
        (RunEnds(Some(sender)), receiver)
    }

    /// Notes that a run has ended. Never waits.
    pub(crate) fn note(&self, run: String) {
        let Some(sender) = &self.0 else { return };
        if let Err(mpsc::error::TrySendError::Full(run)) = sender.try_send(run) {
            tracing::error!("webhook: too many messages are waiting; run {run} gets no message");
        }
    }
}

/// Sends the messages about ended runs until `stopped` becomes `true`.
pub(crate) async fn send_messages(
    webhook: Option<Webhook>,
    store: Store,
    mut ends: mpsc::Receiver<String>,
    mut stopped: watch::Receiver<bool>,
) {
    let Some(webhook) = webhook else { return };
    let work = async {
        while let Some(run) = ends.recv().await {
            send_message(&webhook, &store, &run).await;
        }
    };
    tokio::select! {
        () = work => {}
        _ = stopped.wait_for(|stopped| *stopped) => {}
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
