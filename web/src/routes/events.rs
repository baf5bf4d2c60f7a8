//! A run as it goes on, as Server-Sent Events.
//!
//! A stream begins with what the store knows, so that whoever joins late, comes back or fell behind misses nothing; then it
//! follows the hub. A run of another process is read from the store again and again. Every case is told once in a stream.

use std::collections::HashSet;
use std::convert::Infallible;
use std::time::Duration;

use axum::extract::{Path, State};
use axum::response::IntoResponse;
use axum::response::sse::{Event, KeepAlive, Sse};
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use weft_suites::clock;
use weft_suites::store::StoreError;

use super::find_run;
use crate::app::{App, Failure};
use crate::live::{Passed, Update};

/// Updates on their way to one browser.
const QUEUE: usize = 64;
/// The store is read this often while the hub is silent: the run may be another process's.
const LOOK: Duration = Duration::from_millis(700);

type Item = Result<Event, Infallible>;

pub(super) async fn stream(State(app): State<App>, Path(run): Path<String>) -> Result<impl IntoResponse, Failure> {
    find_run(&app, &run).await?;
    let (sender, receiver) = mpsc::channel(QUEUE);
    tokio::spawn(async move {
        let mut stopped = app.stopped.clone();
        let mut teller = Teller { app: &app, run: &run, sender, told: HashSet::new() };
        tokio::select! {
            told = teller.tell() => if let Err(Ended::Store(error)) = told {
                tracing::error!("events of run {run}: {error}");
            },
            _ = stopped.wait_for(|stopped| *stopped) => {}
        }
    });
    Ok(Sse::new(ReceiverStream::new(receiver)).keep_alive(KeepAlive::default()))
}

/// Why a stream ends.
enum Ended {
    /// All was told, or the browser is gone.
    Done,
    Store(StoreError),
}

impl From<StoreError> for Ended {
    fn from(error: StoreError) -> Self {
        Ended::Store(error)
    }
}

/// One stream.
struct Teller<'a> {
    app: &'a App,
    run: &'a str,
    sender: mpsc::Sender<Item>,
    /// Keys of finished cases that were told.
    told: HashSet<String>,
}

impl Teller<'_> {
    async fn tell(&mut self) -> Result<(), Ended> {
        // First join, then read: what happens in between arrives twice, not never.
        let mut passed = self.app.hub.join();
        self.tell_stored().await?;
        loop {
            match tokio::time::timeout(LOOK, passed.recv()).await {
                Ok(Ok(Passed::Update(run, update))) if *run == *self.run => self.update(update).await?,
                Ok(Ok(Passed::Update(..))) => {}
                Ok(Ok(Passed::Missed) | Err(RecvError::Lagged(_))) | Err(_) => self.tell_stored().await?,
                Ok(Err(RecvError::Closed)) => return Ok(()),
            }
        }
    }

    /// Tells what the store knows and was not told yet.
    async fn tell_stored(&mut self) -> Result<(), Ended> {
        let Some(detail) = self.app.store.run(self.run).await? else { return Err(Ended::Done) };
        for case in detail.planned {
            if let (Some(verdict), Some(duration)) = (case.verdict, case.duration_us) {
                let (key, duration) = (case.key.to_string(), clock::duration(duration));
                self.update(Update::Finished { key, verdict, duration }).await?;
            }
        }
        match detail.record.summary {
            Some(summary) => self.update(Update::done(&summary)).await,
            None => Ok(()),
        }
    }

    async fn update(&mut self, update: Update) -> Result<(), Ended> {
        let is_old = match &update {
            Update::Finished { key, .. } => !self.told.insert(key.clone()),
            // The store was ahead of the hub.
            Update::Started { key } | Update::Step { key, .. } => self.told.contains(key),
            Update::Waiting { .. } | Update::Done { .. } => false,
        };
        if is_old {
            return Ok(());
        }
        let is_last = matches!(update, Update::Done { .. });
        if let Ok(event) = Event::default().json_data(&update) {
            self.sender.send(Ok(event)).await.map_err(|_| Ended::Done)?;
        }
        if is_last { Err(Ended::Done) } else { Ok(()) }
    }
}
