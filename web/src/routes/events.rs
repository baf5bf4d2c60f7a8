//! A run in progress, as Server-Sent Events.
//!
//! A stream begins with the content of the store, so a client that joins late misses nothing. Then
//! it follows the journal of the run ([`crate::live`]), whose lines have ids. A client that
//! reconnects with `Last-Event-ID` continues after that line. A stream reports each case once. If a
//! client reads so slowly that the journal has dropped the next line, the stream ends; a browser
//! reconnects.

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
use super::find::find_record;
use crate::access::Session;
use crate::app::App;
use crate::failure::Failure;
use crate::live::{Place, Update};

/// Updates that wait for one browser.
const QUEUE: usize = 32;
/// Cases that a stream reads from the store at once, and holds until the client takes them.
const PART: u32 = 256;
/// Streams that may read from the store at the same time: pages need connections to the store, too.
pub(crate) const READERS: usize = 2;
/// How long a browser waits before it reconnects.
const RECONNECT: std::time::Duration = std::time::Duration::from_secs(1);
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
        // Join before reading the store: a case that ends in between is then known twice, not lost.
        let place = app.live.join(&run, &app.store, is_over);
        let gone = sender.clone();
        let stream = Stream { app: &app, run: &run, sender };
        tokio::select! {
            ended = stream.run(place, last.as_deref()) => if let Err(Ended::Store(error)) = ended {
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
    /// The run is over, or the client is gone.
    Done,
    Store(StoreError),
}

impl From<StoreError> for Ended {
    fn from(error: StoreError) -> Self {
        Ended::Store(error)
    }
}

/// One stream.
struct Stream<'a> {
    app: &'a App,
    run: &'a str,
    sender: mpsc::Sender<Item>,
}

impl Stream<'_> {
    async fn run(&self, place: Option<Place>, last: Option<&str>) -> Result<(), Ended> {
        self.send(Event::default().retry(RECONNECT).comment("")).await?;
        let Some(mut place) = place else {
            return self.send_stored().await.map(drop);
        };
        let mut sent = HashSet::new();
        if !last.is_some_and(|last| place.resume(last)) {
            sent = self.send_stored().await?;
            if let Some(waits) = place.waits() {
                self.send_update(&waits).await?;
            }
        }
        while let Some(lines) = place.read().await {
            for (number, line) in lines {
                let is_sent = line.case.is_some_and(|(key, is_finished)| match is_finished {
                    true => sent.remove(&*key),
                    false => sent.contains(&*key),
                });
                if !is_sent {
                    self.send(Event::default().id(place.id(number)).data(&*line.data)).await?;
                }
            }
        }
        Ok(())
    }

    /// Sends the finished cases in the store and returns their keys.
    async fn send_stored(&self) -> Result<HashSet<String>, Ended> {
        let record = self.app.store.record(self.run).await?.ok_or(Ended::Done)?;
        let mut sent = HashSet::new();
        let mut from = 0;
        loop {
            let part = self.read(from..from.saturating_add(PART)).await?;
            if part.is_empty() {
                break;
            }
            for case in part {
                if let (Some(verdict), Some(duration)) = (case.verdict, case.duration_us) {
                    self.send_update(&Update::finished(case.key.to_string(), verdict, duration)).await?;
                    // After a finished run, nothing follows that could repeat a case.
                    if record.summary.is_none() {
                        sent.insert(case.key.to_string());
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
            None => Ok(sent),
        }
    }

    async fn read(&self, places: Range<u32>) -> Result<Vec<PlannedCase>, Ended> {
        let _permit = self.app.readers.acquire().await.map_err(|_| Ended::Done)?;
        Ok(self.app.store.planned_at(self.run, places).await?)
    }

    async fn send_update(&self, update: &Update) -> Result<(), Ended> {
        // An update always has a JSON form.
        let Ok(event) = Event::default().json_data(update) else { return Ok(()) };
        self.send(event).await
    }

    async fn send(&self, event: Event) -> Result<(), Ended> {
        self.sender.send(Ok(event)).await.map_err(|_| Ended::Done)
    }
}
