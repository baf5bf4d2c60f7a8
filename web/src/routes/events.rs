//! A run in progress, as Server-Sent Events.
//!
//! A stream begins with the content of the store, so a client that connects late misses nothing.
//! Then the stream follows the journal of the run ([`crate::live`]), whose lines have ids. If a
//! client reconnects with a `Last-Event-ID`, the stream continues after the line with that id. A
//! stream reports each case once. If a client reads so slowly that the journal has dropped the next
//! line, the stream ends. A browser then reconnects.

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

use super::extract::Path;
use super::find::find_record;
use crate::access::Session;
use crate::app::App;
use crate::failure::Failure;
use crate::live::{JournalPosition, Update};

/// The maximum number of updates that wait for one browser.
const QUEUE: usize = 32;
/// The maximum number of cases that a stream reads from the store at once. These cases stay in
/// memory until the client has read them.
const PART: u32 = 256;
/// The maximum number of streams that read from the store at the same time. Pages also need
/// connections to the store.
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
    let Some(slot) = app.streams.take(Some(&session)) else {
        return Err(Failure::Busy("Too many event streams are open. Close one, or try again later."));
    };
    let is_over = find_record(&app, &run).await?.summary.is_some();
    let (sender, receiver) = mpsc::channel(QUEUE);
    let last = headers.get(LAST).and_then(|last| last.to_str().ok()).map(ToOwned::to_owned);
    tokio::spawn(async move {
        let mut stopped = app.stopped.clone();
        // Get the position in the journal before reading the store. Then no case is lost: a case
        // that ends in between is in the store and in the journal.
        let position = app.live.join(&run, &app.store, is_over);
        let gone = sender.clone();
        let stream = Stream { app: &app, run: &run, sender };
        tokio::select! {
            ended = stream.run(position, last.as_deref()) => if let Err(StreamEnd::Store(error)) = ended {
                tracing::error!("events of run {run}: {error}");
            },
            () = gone.closed() => {}
            _ = stopped.wait_for(|stopped| *stopped) => {}
        }
        drop(slot);
    });
    Ok(Sse::new(ReceiverStream::new(receiver)).keep_alive(KeepAlive::default()))
}

/// Why a stream ends.
enum StreamEnd {
    /// Everything was sent, the run is unknown, or the client is gone.
    Done,
    Store(StoreError),
}

impl From<StoreError> for StreamEnd {
    fn from(error: StoreError) -> Self {
        StreamEnd::Store(error)
    }
}

/// One stream.
struct Stream<'a> {
    app: &'a App,
    run: &'a str,
    sender: mpsc::Sender<Item>,
}

impl Stream<'_> {
    async fn run(&self, position: Option<JournalPosition>, last: Option<&str>) -> Result<(), StreamEnd> {
        self.send(Event::default().retry(RECONNECT).comment("")).await?;
        let Some(mut position) = position else {
            return self.send_stored().await.map(drop);
        };
        let mut sent = HashSet::new();
        if !last.is_some_and(|last| position.resume(last)) {
            sent = self.send_stored().await?;
            if let Some(waits) = position.waits() {
                self.send_update(&waits).await?;
            }
        }
        while let Some(lines) = position.read().await {
            for (number, line) in lines {
                let is_sent = line.case.is_some_and(|(key, is_finished)| match is_finished {
                    true => sent.remove(&*key),
                    false => sent.contains(&*key),
                });
                if !is_sent {
                    self.send(Event::default().id(position.id(number)).data(&*line.data)).await?;
                }
            }
        }
        Ok(())
    }

    /// Sends the finished cases in the store and returns their keys. If the run is over, also sends
    /// the end of the run and returns [`StreamEnd::Done`].
    async fn send_stored(&self) -> Result<HashSet<String>, StreamEnd> {
        let record = self.app.store.record(self.run).await?.ok_or(StreamEnd::Done)?;
        let mut sent = HashSet::new();
        let mut from = 0;
        loop {
            let part = self.read(from..from.saturating_add(PART)).await?;
            if part.is_empty() {
                break;
            }
            for case in part {
                if let Some(update) = Update::of_case(&case) {
                    self.send_update(&update).await?;
                    // While the run is in progress, a line of the journal can repeat this case. The
                    // caller uses the key to skip that line.
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
                Err(StreamEnd::Done)
            }
            None => Ok(sent),
        }
    }

    async fn read(&self, indices: Range<u32>) -> Result<Vec<PlannedCase>, StreamEnd> {
        let _permit = self.app.readers.acquire().await.map_err(|_| StreamEnd::Done)?;
        Ok(self.app.store.planned_at(self.run, indices).await?)
    }

    async fn send_update(&self, update: &Update) -> Result<(), StreamEnd> {
        // An update always has a JSON form.
        let Ok(event) = Event::default().json_data(update) else { return Ok(()) };
        self.send(event).await
    }

    async fn send(&self, event: Event) -> Result<(), StreamEnd> {
        self.sender.send(Ok(event)).await.map_err(|_| StreamEnd::Done)
    }
}
