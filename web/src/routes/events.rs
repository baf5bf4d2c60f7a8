//! A run as it goes on, as Server-Sent Events.
//!
//! A stream begins with what the store knows, so that whoever joins late misses nothing; then it follows the run's journal
//! ([`crate::live`]), whose lines have ids. Who comes back with `Last-Event-ID` goes on behind that line. Every case is told once in a
//! stream. Who reads so slowly that the journal has dropped the next line is let go; a browser comes back by itself.

use std::collections::HashSet;
use std::convert::Infallible;
use std::ops::Range;

use axum::extract::{Extension, State};
use axum::http::HeaderMap;
use axum::response::IntoResponse;
use axum::response::sse::{Event, KeepAlive, Sse};
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use weft_suites::store::{PlannedCase, StoreError};

use super::ask::Path;
use super::find_record;
use crate::access::Session;
use crate::app::{App, Failure};
use crate::live::{Place, Update};

/// Updates on their way to one browser.
const QUEUE: usize = 32;
/// Cases that are read from the store at once: all that a stream holds, however slowly it is read.
const PART: u32 = 256;
/// Streams that read from the store at a time, so that a crowd leaves connections to the pages.
pub(crate) const READERS: usize = 2;
/// After a lost connection a browser waits as long before it comes back.
const COME_BACK: std::time::Duration = std::time::Duration::from_secs(1);
const LAST: &str = "last-event-id";

type Item = Result<Event, Infallible>;

pub(super) async fn stream(
    State(app): State<App>,
    Extension(session): Extension<Session>,
    Path(run): Path<String>,
    headers: HeaderMap,
) -> Result<impl IntoResponse, Failure> {
    let Some(room) = app.streams.take(Some(&session)) else {
        return Err(Failure::Busy("Too many event streams are open. Close one, or try again later."));
    };
    let is_over = find_record(&app, &run).await?.summary.is_some();
    let (sender, receiver) = mpsc::channel(QUEUE);
    let last = headers.get(LAST).and_then(|last| last.to_str().ok()).map(ToOwned::to_owned);
    tokio::spawn(async move {
        let mut stopped = app.stopped.clone();
        // First join, then read the store: what happens in between is known twice and not never.
        let place = app.live.join(&run, &app.store, is_over);
        let gone = sender.clone();
        let teller = Teller { app: &app, run: &run, sender };
        tokio::select! {
            told = teller.tell(place, last.as_deref()) => if let Err(Ended::Store(error)) = told {
                tracing::error!("events of run {run}: {error}");
            },
            () = gone.closed() => {}
            _ = stopped.wait_for(|stopped| *stopped) => {}
        }
        drop(room);
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
}

impl Teller<'_> {
    async fn tell(&self, place: Option<Place>, last: Option<&str>) -> Result<(), Ended> {
        self.send(Event::default().retry(COME_BACK).comment("")).await?;
        let Some(mut place) = place else {
            return self.tell_stored().await.map(drop);
        };
        let mut told = HashSet::new();
        if !last.is_some_and(|last| place.go_on(last)) {
            told = self.tell_stored().await?;
            if let Some(waits) = place.waits() {
                self.send_update(&waits).await?;
            }
        }
        while let Some(lines) = place.read().await {
            for (number, line) in lines {
                let is_told = line.case.is_some_and(|(key, is_finished)| match is_finished {
                    true => told.remove(&*key),
                    false => told.contains(&*key),
                });
                if !is_told {
                    self.send(Event::default().id(place.id(number)).data(&*line.data)).await?;
                }
            }
        }
        Ok(())
    }

    /// Tells what the store knows; returns the cases that it told.
    async fn tell_stored(&self) -> Result<HashSet<String>, Ended> {
        let record = self.app.store.record(self.run).await?.ok_or(Ended::Done)?;
        let mut told = HashSet::new();
        let mut from = 0;
        loop {
            let part = self.read(from..from.saturating_add(PART)).await?;
            if part.is_empty() {
                break;
            }
            for case in part {
                if let (Some(verdict), Some(duration)) = (case.verdict, case.duration_us) {
                    self.send_update(&Update::finished(case.key.to_string(), verdict, duration)).await?;
                    // Where the run is over nothing follows that could tell it again.
                    if record.summary.is_none() {
                        told.insert(case.key.to_string());
                    }
                }
            }
            from = from.saturating_add(PART);
        }
        match record.summary {
            Some(summary) => {
                self.send_update(&Update::done(&summary)).await?;
                Err(Ended::Done)
            }
            None => Ok(told),
        }
    }

    async fn read(&self, places: Range<u32>) -> Result<Vec<PlannedCase>, Ended> {
        let _permit = self.app.readers.acquire().await.map_err(|_| Ended::Done)?;
        Ok(self.app.store.planned_at(self.run, places).await?)
    }

    async fn send_update(&self, update: &Update) -> Result<(), Ended> {
        // Nothing in it has no JSON.
        let Ok(event) = Event::default().json_data(update) else { return Ok(()) };
        self.send(event).await
    }

    async fn send(&self, event: Event) -> Result<(), Ended> {
        self.sender.send(Ok(event)).await.map_err(|_| Ended::Done)
    }
}
