//! The captures of the folder. What is in them is read on the side, one after the other.

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
    let lines = entries.iter().take(MOST).map(|entry| Line::new(entry, app.captures.known(&entry.source)));
    Ok(Html(captures::list(Some(lines.collect()), more, form_key, most_upload)?))
}

/// Has the newest captures read that nobody looked at yet.
pub(in crate::routes) async fn read_some(app: &App, entries: &[Entry]) {
    let unread = entries.iter().take(MOST).filter(|entry| app.captures.known(&entry.source).is_none());
    for entry in unread.take(READ) {
        app.captures.prepare(&entry.source).await;
    }
}
