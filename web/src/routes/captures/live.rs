//! The live page of a capture in the folder, and the Server-Sent Events of the page.

use std::convert::Infallible;

use axum::extract::{Extension, State};
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{Html, IntoResponse};
use tokio::sync::mpsc;
use tokio_stream::StreamExt;
use tokio_stream::wrappers::ReceiverStream;

use super::Subject;
use crate::access::Session;
use crate::app::App;
use crate::captures::follow::follow;
use crate::failure::Failure;
use crate::view;

/// The maximum number of batches that wait for one browser.
const QUEUE: usize = 4;

pub(in crate::routes) async fn page(subject: Subject) -> Result<Html<String>, Failure> {
    let subject = growing(subject)?;
    Ok(Html(view::captures::live(&subject.id, &subject.name)?))
}

pub(in crate::routes) async fn events(
    State(app): State<App>,
    Extension(session): Extension<Session>,
    subject: Subject,
) -> Result<impl IntoResponse, Failure> {
    let subject = growing(subject)?;
    let Some(slot) = app.captures.followers.take(Some(&session)) else {
        return Err(Failure::Busy("Too many live pages of captures are open. Close one, or try again later."));
    };
    let (sender, receiver) = mpsc::channel(QUEUE);
    let (stopped, share) = (app.stopped.clone(), app.captures.memory.share());
    tokio::task::spawn_blocking(move || {
        follow(&subject.source.path, sender, &stopped, &share);
        drop(slot);
    });
    let events = ReceiverStream::new(receiver)
        .filter_map(|batch| Event::default().json_data(&batch).ok().map(Ok::<_, Infallible>));
    Ok(Sse::new(events).keep_alive(KeepAlive::default()))
}

/// Returns a capture in the folder. The capture of a case is an error, because it does not grow.
fn growing(subject: Subject) -> Result<Subject, Failure> {
    match subject.entry {
        Some(_) => Ok(subject),
        None => Err(Failure::NotFound("The capture of a case is complete; it has no live page.")),
    }
}
