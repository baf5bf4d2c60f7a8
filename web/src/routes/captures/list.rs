//! The page with the captures in the folder. The server reads these captures in the background.

use std::sync::Arc;

use axum::extract::{Extension, State};
use axum::response::Html;

use crate::access::{Role, Session};
use crate::app::App;
use crate::captures::folder::Entry;
use crate::failure::Failure;
use crate::view::captures::{self, Line};

/// The maximum number of captures on the page.
pub(in crate::routes) const MAX_LISTED: usize = 500;
/// The maximum number of captures that the server starts to read each time a client opens the list.
const READ: usize = 8;

pub(in crate::routes) async fn page(
    State(app): State<App>,
    Extension(session): Extension<Session>,
) -> Result<Html<String>, Failure> {
    let form_key = session.form_key.as_deref().filter(|_| session.role == Role::Operator);
    let most_upload = app.captures.uploads.most;
    let Some(folder) = &app.captures.folder else {
        return Ok(Html(captures::list(None, 0, form_key, most_upload)?));
    };
    let entries = folder.entries().await.map_err(Failure::File)?;
    read_some(&app, &entries).await;
    let more = entries.len().saturating_sub(MAX_LISTED);
    let lines = entries.iter().take(MAX_LISTED).map(|entry| {
        let failed = entry.was_attempted && !app.captures.is_being_read(&entry.source);
        let failed =
            failed.then(|| Err(Arc::from("an earlier attempt to read the file failed; open the capture to retry")));
        Line::new(entry, app.captures.cached(&entry.source).or(failed))
    });
    Ok(Html(captures::list(Some(lines.collect()), more, form_key, most_upload)?))
}

/// Starts to read the newest unread captures in the background. A capture that could not be read,
/// or that killed the server, is read only when a user opens it.
pub(in crate::routes) async fn read_some(app: &App, entries: &[Entry]) {
    // Read nothing while memory is short, so that many large captures do not evict each other again
    // and again.
    if !app.captures.memory.is_free() {
        return;
    }
    let may_be_read = |entry: &&Entry| !entry.was_attempted && app.captures.cached(&entry.source).is_none();
    let unread = entries.iter().take(MAX_LISTED).filter(may_be_read);
    for entry in unread.take(READ) {
        app.captures.prepare(&entry.source).await;
    }
}
