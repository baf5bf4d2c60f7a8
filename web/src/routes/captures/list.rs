//! The captures of the folder. What is in them is read on the side, one after the other.

use std::sync::Arc;

use axum::extract::{Extension, State};
use axum::response::Html;

use crate::access::{Role, Session};
use crate::app::{App, Failure};
use crate::captures::shelf::Entry;
use crate::view::captures::{self, Line};

/// Captures on the page.
pub(in crate::routes) const MOST: usize = 500;
/// Captures that are read on the side, at most, because somebody looked at the list.
const READ: usize = 8;

pub(in crate::routes) async fn page(
    State(app): State<App>,
    Extension(session): Extension<Session>,
) -> Result<Html<String>, Failure> {
    let form_key = session.form_key.as_deref().filter(|_| session.role == Role::Operator);
    let most_upload = app.captures.uploads.most;
    let Some(shelf) = &app.captures.shelf else {
        return Ok(Html(captures::list(None, 0, form_key, most_upload)?));
    };
    let entries = shelf.entries().await.map_err(Failure::File)?;
    read_some(&app, &entries).await;
    let more = entries.len().saturating_sub(MOST);
    let lines = entries.iter().take(MOST).map(|entry| {
        let failed = entry.was_attempted && !app.captures.is_being_read(&entry.source);
        let failed = failed.then(|| Err(Arc::from("reading it failed before; open it to try again")));
        Line::new(entry, app.captures.known(&entry.source).or(failed))
    });
    Ok(Html(captures::list(Some(lines.collect()), more, form_key, most_upload)?))
}

/// Has the newest captures read that nobody looked at yet. One that could not be read, or that killed the server, waits for a
/// person.
pub(in crate::routes) async fn read_some(app: &App, entries: &[Entry]) {
    // Else each of many large captures would take the place of another, again and again.
    if !app.captures.memory.is_free() {
        return;
    }
    let may_be_read = |entry: &&Entry| !entry.was_attempted && app.captures.known(&entry.source).is_none();
    let unread = entries.iter().take(MOST).filter(may_be_read);
    for entry in unread.take(READ) {
        app.captures.prepare(&entry.source).await;
    }
}
