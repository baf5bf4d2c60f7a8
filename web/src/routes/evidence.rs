//! Sends the files of evidence.
//!
//! A request names a run, a case and a kind of file. The path of the file comes from the stored
//! result, never from the request. The path must lead, without links, into the folder `cases` of
//! the run. A manipulated store therefore gives no access to other files in the folder of the run:
//! the store, reports and files of users.

use std::path::{Component, Path, PathBuf};

use axum::body::Body;
use axum::extract::State;
use axum::http::header;
use axum::response::{IntoResponse, Response};
use tokio::io::AsyncReadExt;
use tokio_util::io::ReaderStream;
use weft_suites::folder;
use weft_suites::model::{CaseKey, CaseResult, EvidenceKind, RunInfo};

use super::extract::Path as Address;
use super::find::{find_case, find_run};
use crate::app::App;
use crate::failure::Failure;
use crate::starter;

/// Name of the folder with the evidence, in the folder of a run.
const CASES: &str = "cases";
/// The maximum length of a file in bytes. A case can send and receive 80 MiB, and each packet adds
/// headers.
const MAX_FILE: u64 = 256 << 20;

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
    let path = evidence_path(&app, &run.record.info, &result, kind).await.ok_or(GONE)?;
    let file = tokio::fs::File::open(&path).await.map_err(Failure::File)?;
    let length = file.metadata().await.map_err(Failure::File)?.len();
    let name = format!("attachment; filename=\"{}.{extension}\"", file_name(&key));
    let headers = [
        (header::CONTENT_TYPE, mime.to_owned()),
        (header::CONTENT_LENGTH, length.to_string()),
        (header::CONTENT_DISPOSITION, name),
    ];
    Ok((headers, Body::from_stream(ReaderStream::new(file.take(length)))).into_response())
}

/// Returns the path of a file of evidence of a result, if the file exists.
pub(super) async fn evidence_path(
    app: &App,
    run: &RunInfo,
    result: &CaseResult,
    kind: EvidenceKind,
) -> Option<PathBuf> {
    let path = PathBuf::from(result.evidence.path(kind)?);
    let (folder, run) = (app.folder.clone(), run.clone());
    let look = move || bases(&folder, &run).iter().find_map(|base| of_case(&folder, base, &path));
    tokio::task::spawn_blocking(look).await.ok().flatten()
}

/// Returns the folders that can contain the files of a run, relative to the server's folder.
pub(super) fn bases(folder: &Path, run: &RunInfo) -> Vec<PathBuf> {
    let own = folder::of_run(folder, &run.id);
    // If this server started the run, the files of the run are in the folder of the target.
    let of_target = starter::target_folder(&run.target.name).map(|target_folder| {
        let of_run = folder::of_run(&folder.join(&target_folder), &run.id);
        target_folder.join(of_run)
    });
    [own].into_iter().chain(of_target).collect()
}

/// Returns the canonical path of the evidence file `path` in the run's folder `folder/base`.
/// Returns `None` if `path` is not a file in the folder `cases`.
pub(super) fn of_case(folder: &Path, base: &Path, path: &Path) -> Option<PathBuf> {
    if path.starts_with(CASES) { inside(folder, &base.join(path)) } else { None }
}

/// Returns the canonical path of the file `path` in `folder`. Returns `None` if the file is outside
/// `folder`, is not a regular file, is too long, or if a part of the path is a link.
fn inside(folder: &Path, path: &Path) -> Option<PathBuf> {
    if !path.components().all(|part| matches!(part, Component::Normal(_))) {
        return None;
    }
    let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
    let folder = std::fs::canonicalize(folder).ok()?;
    let wanted = folder.join(path);
    // If a part of the path is a link, the canonical path differs.
    let real = std::fs::canonicalize(&wanted).ok()?;
    let meta = std::fs::metadata(&real).ok()?;
    (real == wanted && meta.is_file() && meta.len() <= MAX_FILE).then_some(real)
}

/// Returns the key of the case as a file name. The file name has only ASCII letters, digits, `.`,
/// `=`, `-` and `_`.
pub(super) fn file_name(key: &CaseKey) -> String {
    let safe = |c: char| if c.is_ascii_alphanumeric() || matches!(c, '.' | '=' | '-') { c } else { '_' };
    key.path().chars().map(safe).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_plain_files_of_the_folder() {
        let folder = tempfile::tempdir().unwrap();
        let outside = tempfile::NamedTempFile::new().unwrap();
        std::fs::create_dir(folder.path().join("cases")).unwrap();
        std::fs::write(folder.path().join("cases/a.pcapng"), "x").unwrap();
        std::os::unix::fs::symlink(outside.path(), folder.path().join("cases/link")).unwrap();
        std::os::unix::fs::symlink("a.pcapng", folder.path().join("cases/inner")).unwrap();
        assert!(inside(folder.path(), Path::new("cases/a.pcapng")).is_some());
        let outside = outside.path().to_str().unwrap();
        for path in ["../x", "cases/../cases/a.pcapng", outside, "cases/link", "cases/inner", "cases", "", "none"] {
            assert_eq!(inside(folder.path(), Path::new(path)), None, "{path}");
        }
    }

    #[test]
    fn serves_the_folder_of_cases_only() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["cases", "earlier/1/cases", "cases-2"] {
            std::fs::create_dir_all(folder.path().join(name)).unwrap();
            std::fs::write(folder.path().join(name).join("a.pcapng"), "x").unwrap();
        }
        std::fs::write(folder.path().join("results.sqlite"), "x").unwrap();
        let serves = |base: &str, path: &str| of_case(folder.path(), Path::new(base), Path::new(path)).is_some();
        assert!(serves("", "cases/a.pcapng") && serves("earlier/1", "cases/a.pcapng"));
        for path in ["results.sqlite", "earlier/1/cases/a.pcapng", "cases-2/a.pcapng", "cases/../results.sqlite"] {
            assert!(!serves("", path), "{path}");
        }
    }

    #[test]
    fn file_names_are_harmless() {
        let key = CaseKey::new("mpa/7.1.1-key/a\"b\r\n;c");
        assert_eq!(file_name(&key), "mpa_7.1.1-key_a_22b_0D_0A_3Bc_default");
    }
}
