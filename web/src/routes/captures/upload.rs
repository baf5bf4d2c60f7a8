//! Uploads of captures: as a form of the page, or as the body of an API request.

use axum::body::Body;
use axum::extract::multipart::{Field, Multipart, MultipartError, MultipartRejection};
use axum::extract::{Extension, State};
use axum::response::Redirect;
use tokio_stream::StreamExt;

use crate::access::Session;
use crate::app::App;
use crate::authorize::FORGED;
use crate::captures::upload::UploadError;
use crate::failure::Failure;
use crate::view::url;

/// The maximum number of fields in a form.
const FIELDS: usize = 4;
/// The maximum length of the form key in bytes.
const MAX_KEY_LEN: usize = 1024;

fn cut_off(error: &MultipartError) -> Failure {
    Failure::Upload(UploadError::CutOff(error.body_text()))
}

/// Receives the form of the page. The form has the form key first, then the file.
pub(in crate::routes) async fn form(
    State(app): State<App>,
    Extension(session): Extension<Session>,
    form: Result<Multipart, MultipartRejection>,
) -> Result<Redirect, Failure> {
    let mut form = form.map_err(|error| Failure::Upload(UploadError::CutOff(error.body_text())))?;
    let silence = app.captures.uploads.silence;
    let mut is_ours = session.form_key.is_none();
    for _ in 0..FIELDS {
        let next = tokio::time::timeout(silence, form.next_field());
        let next = next.await.map_err(|_| Failure::Upload(UploadError::TooSlow))?.map_err(|error| cut_off(&error))?;
        let Some(mut field) = next else { break };
        match (field.name(), is_ours) {
            (Some("key"), false) => {
                let key = tokio::time::timeout(silence, short(&mut field));
                is_ours = session.is_form_key(&key.await.map_err(|_| Failure::Upload(UploadError::TooSlow))??);
            }
            (Some("file"), true) => {
                let id = file(&app, field).await.map_err(Failure::Upload)?;
                return Ok(Redirect::to(&url::capture(&id)));
            }
            // Do not read other fields before the key is checked.
            (_, false) => return Err(FORGED),
            (_, true) => {}
        }
    }
    Err(if is_ours { Failure::Upload(UploadError::CutOff("the form has no file".to_owned())) } else { FORGED })
}

async fn file(app: &App, mut field: Field<'_>) -> Result<String, UploadError> {
    let name = field.file_name().unwrap_or_default().to_owned();
    let mut receiving = app.captures.uploads.begin(app.captures.folder.as_ref())?;
    while receiving.take(async { field.chunk().await.transpose() }).await? {}
    receiving.finish(&name).await
}

/// Reads a field of at most [`MAX_KEY_LEN`] bytes.
async fn short(field: &mut Field<'_>) -> Result<String, Failure> {
    let mut key = Vec::new();
    while let Some(chunk) = field.chunk().await.map_err(|error| cut_off(&error))? {
        key.extend_from_slice(&chunk);
        if key.len() > MAX_KEY_LEN {
            return Err(FORGED);
        }
    }
    Ok(String::from_utf8_lossy(&key).into_owned())
}

/// Stores the body of an API request as a file. Returns the id of the capture.
pub(in crate::routes) async fn body(app: &App, name: &str, body: Body) -> Result<String, Failure> {
    let taken = async {
        let mut receiving = app.captures.uploads.begin(app.captures.folder.as_ref())?;
        let mut chunks = body.into_data_stream();
        while receiving.take(chunks.next()).await? {}
        receiving.finish(name).await
    };
    taken.await.map_err(Failure::Upload)
}
