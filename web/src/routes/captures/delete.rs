//! Deletes a capture in the folder. The capture of a case belongs to its run and cannot be deleted.

use axum::extract::{Extension, State};
use axum::response::Redirect;

use super::find;
use crate::access::Session;
use crate::app::App;
use crate::failure::Failure;
use crate::routes::extract::Path;

pub(in crate::routes) async fn form(
    State(app): State<App>,
    Extension(session): Extension<Session>,
    Path(id): Path<String>,
) -> Result<Redirect, Failure> {
    remove(&app, &session, &id).await?;
    Ok(Redirect::to("/captures"))
}

pub(in crate::routes) async fn remove(app: &App, session: &Session, id: &str) -> Result<(), Failure> {
    let subject = find(app, session, id).await?;
    let (Some(folder), Some(entry)) = (&app.captures.folder, &subject.entry) else {
        return Err(Failure::Forbidden("The capture of a case belongs to its run and cannot be deleted."));
    };
    folder.remove(entry).await.map_err(Failure::File)
}
