//! Files of evidence.
//!
//! A request names a run, a case and a kind; the path comes from the stored result and never from the request. It must still
//! lead, without links, into the run's folder: a store that somebody tampered with opens no other file.

use std::path::{Component, Path, PathBuf};

use axum::body::Body;
use axum::extract::{Path as Address, State};
use axum::http::header;
use axum::response::{IntoResponse, Response};
use weft_suites::folder;
use weft_suites::model::{CaseKey, CaseResult, EvidenceKind};

use super::{find_case, find_run};
use crate::app::{App, Failure};

/// The longest file that is handed out; evidence of one case is far below.
const MAX_FILE: u64 = 64 << 20;

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
    let path = place(&app, id, &result, kind).await.ok_or(GONE)?;
    let octets = tokio::fs::read(&path).await.map_err(Failure::File)?;
    let name = format!("attachment; filename=\"{}.{extension}\"", file_name(&key));
    let headers = [(header::CONTENT_TYPE, mime.to_owned()), (header::CONTENT_DISPOSITION, name)];
    Ok((headers, Body::from(octets)).into_response())
}

/// The file of a result, if it is there.
pub(super) async fn place(app: &App, run: &str, result: &CaseResult, kind: EvidenceKind) -> Option<PathBuf> {
    let path = folder::of_run(&app.folder, run).join(result.evidence.path(kind)?);
    inside(&app.folder, &path).await
}

/// The file at `path` below `folder`; `None` where that leads elsewhere, or to no plain file of bounded length.
async fn inside(folder: &Path, path: &Path) -> Option<PathBuf> {
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
pub(super) fn file_name(key: &CaseKey) -> String {
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
        assert!(inside(folder.path(), Path::new("cases/a.pcapng")).await.is_some());
        let outside = outside.path().to_str().unwrap();
        for path in ["../x", "cases/../cases/a.pcapng", outside, "cases/link", "cases/inner", "cases", "", "none"] {
            assert_eq!(inside(folder.path(), Path::new(path)).await, None, "{path}");
        }
    }

    #[test]
    fn file_names_are_harmless() {
        let key = CaseKey::new("mpa/7.1.1-key/a\"b\r\n;c");
        assert_eq!(file_name(&key), "mpa_7.1.1-key_a_22b_0D_0A_3Bc_default");
    }
}
