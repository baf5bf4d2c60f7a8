//! Deletes a capture in the folder. The capture of a case belongs to its run and cannot be deleted.

use axum::extract::State;
use axum::response::Redirect;

use super::Subject;
use crate::app::App;
use crate::failure::Failure;

pub(in crate::routes) async fn form(State(app): State<App>, subject: Subject) -> Result<Redirect, Failure> {
    remove(&app, &subject).await?;
    Ok(Redirect::to("/captures"))
}

pub(in crate::routes) async fn remove(app: &App, subject: &Subject) -> Result<(), Failure> {
    let (Some(folder), Some(entry)) = (&app.captures.folder, &subject.entry) else {
        return Err(Failure::Forbidden("The capture of a case belongs to its run and cannot be deleted."));
    };
    folder.remove(entry).await.map_err(Failure::File)
}
