//! Files of evidence.
//!
//! A request names a run, a case and a kind; the path comes from the stored result and never from the request. It must still
//! lead, without links, into the run's folder: a store that somebody tampered with opens no other file.

use std::path::{Component, Path, PathBuf};

use axum::body::Body;
use axum::extract::{Path as Address, State};
use axum::http::header;
use axum::response::{IntoResponse, Response};
use weft_suites::model::{CaseKey, EvidenceKind};

use super::{find_case, find_run};
use crate::app::{App, Failure};

/// The longest file that is handed out; evidence of one case is far below.
const MAX_FILE: u64 = 64 << 20;
/// Newer runs that are looked through for one that overwrote the files; behind so many, one has to be assumed.
const NEWER: u32 = 50;

const GONE: Failure = Failure::NotFound("There is no such file.");

pub(super) async fn file(
    State(app): State<App>,
    Address((run, kind, case)): Address<(String, String, String)>,
) -> Result<Response, Failure> {
    let (kind, mime, extension) = match kind.as_str() {
        "pcapng" => (EvidenceKind::Pcapng, "application/octet-stream", "pcapng"),
        "transcript" => (EvidenceKind::Transcript, "application/json", "json"),
        _ => return Err(GONE),
    };
    let run = find_run(&app, &run).await?;
    let id = &run.record.info.id;
    let (_, key) = find_case(&run, &case)?;
    let result = app.store.result(id, &key).await?.ok_or(GONE)?;
    if !is_kept(&app, id, &key).await? {
        return Err(Failure::NotFound(
            "Later runs in the same folder write to the same files, so this run has none of its own any more.",
        ));
    }
    let path = inside(&app.folder, result.evidence.path(kind).ok_or(GONE)?).await.ok_or(GONE)?;
    let octets = tokio::fs::read(&path).await.map_err(Failure::File)?;
    let name = format!("attachment; filename=\"{}.{extension}\"", file_name(&key));
    let headers = [(header::CONTENT_TYPE, mime.to_owned()), (header::CONTENT_DISPOSITION, name)];
    Ok((headers, Body::from(octets)).into_response())
}

/// Are the files of this case still those of run `run`? A newer run in the same folder writes to the same paths.
pub(super) async fn is_kept(app: &App, run: &str, key: &CaseKey) -> Result<bool, Failure> {
    let newer = app.store.runs(NEWER).await?;
    if !newer.iter().any(|record| record.info.id == run) {
        return Ok(false);
    }
    for record in newer.iter().take_while(|record| record.info.id != run) {
        if app.store.result(&record.info.id, key).await?.is_some() {
            return Ok(false);
        }
    }
    Ok(true)
}

/// The file at `path` below `folder`; `None` where that leads elsewhere, or to no plain file of bounded length.
async fn inside(folder: &Path, path: &str) -> Option<PathBuf> {
    let path = Path::new(path);
    if !path.components().all(|part| matches!(part, Component::Normal(_))) {
        return None;
    }
    let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
    let folder = tokio::fs::canonicalize(folder).await.ok()?;
    let wanted = folder.join(path);
    // A link on the way gives another path.
    let real = tokio::fs::canonicalize(&wanted).await.ok()?;
    let meta = tokio::fs::metadata(&real).await.ok()?;
    (real == wanted && meta.is_file() && meta.len() <= MAX_FILE).then_some(real)
}

/// The case as a file name: letters, digits and a few signs.
fn file_name(key: &CaseKey) -> String {
    let safe = |c: char| if c.is_ascii_alphanumeric() || matches!(c, '.' | '=' | '-') { c } else { '_' };
    key.path().chars().map(safe).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn only_plain_files_of_the_folder() {
        let folder = tempfile::tempdir().unwrap();
        let outside = tempfile::NamedTempFile::new().unwrap();
        std::fs::create_dir(folder.path().join("cases")).unwrap();
        std::fs::write(folder.path().join("cases/a.pcapng"), "x").unwrap();
        std::os::unix::fs::symlink(outside.path(), folder.path().join("cases/link")).unwrap();
        std::os::unix::fs::symlink("a.pcapng", folder.path().join("cases/inner")).unwrap();
        assert!(inside(folder.path(), "cases/a.pcapng").await.is_some());
        let outside = outside.path().to_str().unwrap();
        for path in ["../x", "cases/../cases/a.pcapng", outside, "cases/link", "cases/inner", "cases", "", "none"] {
            assert_eq!(inside(folder.path(), path).await, None, "{path}");
        }
    }

    #[test]
    fn file_names_are_harmless() {
        let key = CaseKey::new("mpa/7.1.1-key/a\"b\r\n;c");
        assert_eq!(file_name(&key), "mpa_7.1.1-key_a_22b_0D_0A_3Bc_default");
    }
}
