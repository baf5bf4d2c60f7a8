//! The output folder of runs. The files of the newest run are directly in the folder (the top).
//! Each earlier run has a subfolder.
//!
//! | file | content |
//! | --- | --- |
//! | `results.sqlite` | all runs |
//! | `run.json` | the [`RunInfo`] of the run whose files are at the top |
//! | `cases/`, `report.html`, `report.json`, `report.sarif`, `report.tap`, `junit.xml`, `summary.md` | the files of that run |
//! | `earlier/<run id>/` | the same files of an earlier run |
//!
//! So a CI job finds the files under fixed names, and no run overwrites the evidence of another
//! run. The files of the newest [`KEPT`] earlier runs are kept. All results stay in the store. Only
//! one run at a time may write.

use std::fs::{self, File, TryLockError};
use std::io;
use std::iter;
use std::path::{Path, PathBuf};

use crate::file;
use crate::model::RunInfo;
use crate::report;
use crate::run::error::RunError;
use crate::store::FILE_NAME;

/// Number of earlier runs whose files are kept.
pub const KEPT: usize = 20;

/// Name of the file that describes the run at the top.
const RUN: &str = "run.json";
/// The folder with the files of earlier runs.
const EARLIER: &str = "earlier";
/// Name of the folder in `earlier` for files of an unknown run.
const UNKNOWN: &str = "unknown";

/// Returns the names of a run's files at the top. `run.json` is the last name, because this file
/// has the run's id and must be moved last.
fn files() -> impl Iterator<Item = &'static str> {
    iter::once("cases").chain(report::names()).chain(iter::once(RUN))
}

/// Returns the folder below `out` that has the files of a run, if they still exist. The paths in
/// the run's evidence are relative to this folder.
#[must_use]
pub fn of_run(out: &Path, run: &str) -> PathBuf {
    if top(out).is_some_and(|top| top == run) { PathBuf::new() } else { Path::new(EARLIER).join(run) }
}

/// An output folder into which no run writes. While this value exists, no run can write into the
/// folder.
#[derive(Debug)]
pub struct IdleFolder {
    run: String,
    _lock: FolderLock,
}

impl IdleFolder {
    /// Id of the run whose files are at the top.
    #[must_use]
    pub fn run(&self) -> &str {
        &self.run
    }
}

/// Returns the run whose files are at the top of `out`, if no run is writing into `out`. Creates
/// nothing.
#[must_use]
pub fn lock_idle(out: &Path) -> Option<IdleFolder> {
    let run = top(out)?;
    let _lock = FolderLock::acquire(out).ok()?;
    Some(IdleFolder { run, _lock })
}

/// Returns the total size of the files of a run in `out`, in bytes. Returns 0 if there are none.
#[must_use]
pub fn size_of_run(out: &Path, run: &str) -> u64 {
    if !is_run_id(run) {
        return 0;
    }
    let own = out.join(of_run(out, run));
    files().map(|name| size(&own.join(name))).sum()
}

/// Deletes the files of a run that is over. Does nothing if `out` has none.
///
/// # Errors
/// A file cannot be deleted. Or the files are at the top, and a run is writing into `out`.
pub fn remove_run(out: &Path, run: &str) -> io::Result<()> {
    if !is_run_id(run) {
        return Ok(());
    }
    if top(out).is_some_and(|top| top == run) {
        let lock = FolderLock::acquire(out).map_err(|error| io::Error::other(error.to_string()))?;
        // Another run may have moved the files before this function got the lock.
        if top(out).is_some_and(|top| top == run) {
            return files().try_for_each(|name| remove(&lock.out.join(name)));
        }
    }
    remove(&out.join(EARLIER).join(run))
}

/// Returns the size of a file, or of all files in a folder, in bytes. Follows no links.
fn size(path: &Path) -> u64 {
    match fs::symlink_metadata(path) {
        Ok(meta) if meta.is_dir() => {
            fs::read_dir(path).into_iter().flatten().flatten().map(|entry| size(&entry.path())).sum()
        }
        Ok(meta) => meta.len(),
        Err(_) => 0,
    }
}

/// Deletes a file, or a folder with its files. Follows no links. A missing path is no error.
fn remove(path: &Path) -> io::Result<()> {
    let is_folder = fs::symlink_metadata(path).is_ok_and(|meta| meta.is_dir());
    let removed = if is_folder { fs::remove_dir_all(path) } else { fs::remove_file(path) };
    match removed {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// The lock of an output folder while a run writes into it. Other runs are locked out.
#[derive(Debug)]
pub(crate) struct FolderLock {
    out: PathBuf,
    _lock: Option<File>,
}

impl FolderLock {
    /// Creates the folder, and locks other runs out.
    pub(crate) fn acquire(out: &Path) -> Result<Self, RunError> {
        let failed = |error| RunError::Write { path: out.to_owned(), error };
        fs::create_dir_all(out).map_err(failed)?;
        let folder = File::open(out).map_err(failed)?;
        let lock = match folder.try_lock() {
            Ok(()) => Some(folder),
            Err(TryLockError::WouldBlock) => return Err(RunError::Busy { path: out.to_owned() }),
            // Some network file systems have no locks for folders.
            Err(TryLockError::Error(error)) => {
                tracing::debug!(%error, "no lock");
                None
            }
        };
        Ok(FolderLock { out: out.to_owned(), _lock: lock })
    }

    /// Puts this run at the top. Moves the files of another run from the top to the earlier runs.
    /// If this run was stopped earlier and is resumed now, moves its files back to the top.
    pub(crate) fn begin(&self, run: &RunInfo) -> Result<(), RunError> {
        self.arrange(run).map_err(|error| RunError::Write { path: self.out.clone(), error })
    }

    fn arrange(&self, run: &RunInfo) -> io::Result<()> {
        let earlier = self.out.join(EARLIER);
        match top(&self.out) {
            Some(id) if id == run.id => return Ok(()),
            Some(id) => move_files(&self.out, &earlier.join(id))?,
            // Files of an unknown run are not mixed with those of this run.
            None if files().any(|name| self.out.join(name).exists()) => {
                let unknown = earlier.join(UNKNOWN);
                if unknown.is_dir() {
                    fs::remove_dir_all(&unknown)?;
                }
                move_files(&self.out, &unknown)?;
            }
            None => {}
        }
        let own = earlier.join(&run.id);
        // The store of a resumed run can come from another host.
        if is_run_id(&run.id) && own.is_dir() {
            move_files(&own, &self.out)?;
            fs::remove_dir(&own)?;
        }
        file::replace(&self.out.join(RUN), (serde_json::to_string_pretty(run)? + "\n").as_bytes())?;
        remove_oldest(&earlier)
    }
}

/// Returns the run whose files are directly in this folder.
#[must_use]
pub fn run_of(out: &Path) -> Option<RunInfo> {
    serde_json::from_slice(&fs::read(out.join(RUN)).ok()?).ok()
}

/// Returns the store in the output folder of a run. For an earlier run, the store is in the folder
/// above `earlier`.
#[must_use]
pub fn store_of(out: &Path) -> Option<PathBuf> {
    let absolute = std::path::absolute(out).ok()?;
    let earlier = absolute.parent().filter(|parent| parent.ends_with(EARLIER)).and_then(Path::parent);
    [Some(absolute.as_path()), earlier]
        .into_iter()
        .flatten()
        .map(|folder| folder.join(FILE_NAME))
        .find(|file| file.is_file())
}

/// Returns the id of the run whose files are at the top.
fn top(out: &Path) -> Option<String> {
    let run = run_of(out)?;
    Some(run.id).filter(|id| is_run_id(id))
}

/// Returns whether a run can have this id. The id is checked because it becomes the name of a
/// folder.
fn is_run_id(id: &str) -> bool {
    let is_plain = id.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '.' | '-'));
    is_plain && !id.is_empty() && !id.starts_with('.')
}

/// Moves the files of a run to another folder.
fn move_files(from: &Path, to: &Path) -> io::Result<()> {
    fs::create_dir_all(to)?;
    for name in files() {
        match fs::rename(from.join(name), to.join(name)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
    }
    Ok(())
}

/// Removes the files of the oldest runs. The names of the folders sort by time, because an id
/// begins with its time.
fn remove_oldest(earlier: &Path) -> io::Result<()> {
    let Ok(entries) = fs::read_dir(earlier) else { return Ok(()) };
    let mut runs: Vec<PathBuf> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
    runs.retain(|path| path.join(RUN).is_file());
    runs.sort_unstable();
    let surplus = runs.len().saturating_sub(KEPT);
    runs.into_iter().take(surplus).try_for_each(fs::remove_dir_all)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::TargetInfo;

    fn run(id: &str) -> RunInfo {
        let target = TargetInfo {
            name: "builtin".into(),
            file: None,
            reached_by: "builtin".into(),
            role: crate::model::Role::Responder,
            service: "echo".into(),
            capabilities: Vec::new(),
            deviations: Vec::new(),
            identity: std::collections::BTreeMap::new(),
            device: std::collections::BTreeMap::new(),
            probed: None,
            probed_facts: None,
            lost_capabilities: Vec::new(),
        };
        RunInfo {
            id: id.into(),
            target,
            seed: 1,
            started_unix_ms: 0,
            weft_version: "0".into(),
            is_selection: false,
            rerun_of: None,
            suites: None,
            labels: std::collections::BTreeMap::new(),
        }
    }

    /// Simulates a run that writes its id into a file of a case.
    fn play(out: &Path, id: &str) {
        FolderLock::acquire(out).unwrap().begin(&run(id)).unwrap();
        fs::create_dir_all(out.join("cases/a")).unwrap();
        fs::write(out.join("cases/a/evidence"), id).unwrap();
    }

    fn evidence(out: &Path, id: &str) -> Option<String> {
        fs::read_to_string(out.join(of_run(out, id)).join("cases/a/evidence")).ok()
    }

    #[test]
    fn each_run_keeps_its_files() {
        let out = tempfile::tempdir().unwrap();
        let out = out.path();
        for id in ["1-a", "2-b", "3-c"] {
            play(out, id);
        }
        for id in ["1-a", "2-b", "3-c"] {
            assert_eq!(evidence(out, id).as_deref(), Some(id));
        }
        assert_eq!(fs::read_to_string(out.join("cases/a/evidence")).unwrap(), "3-c");
    }

    #[test]
    fn a_run_that_goes_on_has_its_files_at_the_top_again() {
        let out = tempfile::tempdir().unwrap();
        let out = out.path();
        play(out, "1-a");
        play(out, "2-b");
        FolderLock::acquire(out).unwrap().begin(&run("1-a")).unwrap();
        assert_eq!(of_run(out, "1-a"), Path::new(""));
        assert_eq!((evidence(out, "1-a").as_deref(), evidence(out, "2-b").as_deref()), (Some("1-a"), Some("2-b")));
        assert!(!out.join("earlier/1-a").exists());
    }

    #[test]
    fn the_oldest_go_and_what_is_no_run_stays() {
        let out = tempfile::tempdir().unwrap();
        let out = out.path();
        fs::create_dir_all(out.join("earlier/0-notes")).unwrap();
        for number in 100..102 + KEPT {
            play(out, &format!("{number}"));
        }
        assert_eq!((evidence(out, "100"), evidence(out, "101").as_deref()), (None, Some("101")));
        assert!(out.join("earlier/0-notes").is_dir());
    }

    #[test]
    fn removes_the_files_of_one_run_only() {
        let out = tempfile::tempdir().unwrap();
        let out = out.path();
        for id in ["1-a", "2-b", "3-c"] {
            play(out, id);
        }
        fs::write(out.join(FILE_NAME), "store").unwrap();
        assert!(size_of_run(out, "1-a") > 3 && size_of_run(out, "3-c") > 3);
        assert_eq!((size_of_run(out, "none"), size_of_run(out, "../earlier")), (0, 0));
        for foreign in ["none", "..", "../earlier", "", "/"] {
            remove_run(out, foreign).unwrap();
        }
        remove_run(out, "1-a").unwrap();
        assert_eq!((evidence(out, "1-a"), evidence(out, "2-b").as_deref()), (None, Some("2-b")));
        let lock = FolderLock::acquire(out).unwrap();
        remove_run(out, "3-c").expect_err("a run writes");
        drop(lock);
        remove_run(out, "3-c").unwrap();
        assert!(!out.join("cases").exists() && top(out).is_none() && out.join(FILE_NAME).is_file());
        assert_eq!(evidence(out, "2-b").as_deref(), Some("2-b"));
        play(out, "4-d");
        assert_eq!(evidence(out, "4-d").as_deref(), Some("4-d"));
    }

    #[test]
    fn finds_the_files_that_are_left_if_no_run_writes() {
        let out = tempfile::tempdir().unwrap();
        assert!(lock_idle(out.path()).is_none() && lock_idle(&out.path().join("none")).is_none());
        play(out.path(), "1-a");
        let files = lock_idle(out.path()).unwrap();
        assert_eq!(files.run(), "1-a");
        assert!(lock_idle(out.path()).is_none(), "the folder is locked");
        drop(files);
        let lock = FolderLock::acquire(out.path()).unwrap();
        assert!(lock_idle(out.path()).is_none(), "a run writes");
        drop(lock);
        assert!(lock_idle(out.path()).is_some());
    }

    #[test]
    fn one_run_at_a_time() {
        let out = tempfile::tempdir().unwrap();
        let lock = FolderLock::acquire(out.path()).unwrap();
        assert!(matches!(FolderLock::acquire(out.path()), Err(RunError::Busy { .. })));
        drop(lock);
        assert!(FolderLock::acquire(out.path()).is_ok());
    }

    #[test]
    fn a_damaged_or_foreign_name_moves_nothing_out_of_the_folder() {
        let outer = tempfile::tempdir().unwrap();
        let out = outer.path().join("out");
        for name in ["../../x", "/x", "..", ".x"] {
            play(&out, "1-a");
            fs::write(out.join(RUN), serde_json::to_string(&run(name)).unwrap()).unwrap();
            play(&out, "2-b");
            assert_eq!(fs::read_dir(outer.path()).unwrap().count(), 1, "{name}");
        }
        fs::write(out.join(RUN), "{").unwrap();
        play(&out, "3-c");
        assert_eq!(evidence(&out, "3-c").as_deref(), Some("3-c"));
        assert_eq!(fs::read_to_string(out.join("earlier/unknown/cases/a/evidence")).unwrap(), "2-b");
    }

    #[test]
    fn a_run_with_a_foreign_id_takes_no_files_of_other_folders() {
        let outer = tempfile::tempdir().unwrap();
        let (out, other) = (outer.path().join("out"), outer.path().join("other"));
        play(&out, "1-a");
        play(&other, "2-b");
        for id in ["../../other", other.to_str().unwrap(), "", "."] {
            FolderLock::acquire(&out).unwrap().begin(&run(id)).unwrap();
            assert_eq!(evidence(&other, "2-b").as_deref(), Some("2-b"), "{id}");
        }
        assert_eq!(evidence(&out, "1-a").as_deref(), Some("1-a"));
    }
}
