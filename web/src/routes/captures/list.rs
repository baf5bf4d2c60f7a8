//! The captures of the folder. The server reads them in the background.

use std::sync::Arc;

use axum::extract::{Extension, State};
use axum::response::Html;

use crate::access::{Role, Session};
use crate::app::App;
use crate::captures::shelf::Entry;
use crate::failure::Failure;
use crate::view::captures::{self, Line};

/// The maximum number of captures on the page.
pub(in crate::routes) const MOST: usize = 500;
/// The maximum number of captures that one view of the list has read in the background.
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
        let failed = failed.then(|| Err(Arc::from("an earlier attempt to read it failed; open it to try again")));
        Line::new(entry, app.captures.known(&entry.source).or(failed))
    });
    Ok(Html(captures::list(Some(lines.collect()), more, form_key, most_upload)?))
}

/// Has the newest unread captures read. A capture that could not be read, or that killed the
/// server, is read only when a user opens it.
pub(in crate::routes) async fn read_some(app: &App, entries: &[Entry]) {
    // Otherwise many large captures would evict each other again and again.
    if !app.captures.memory.is_free() {
        return;
    }
    let may_be_read = |entry: &&Entry| !entry.was_attempted && app.captures.known(&entry.source).is_none();
    let unread = entries.iter().take(MOST).filter(may_be_read);
    for entry in unread.take(READ) {
        app.captures.prepare(&entry.source).await;
    }
}
