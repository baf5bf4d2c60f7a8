//! The folder of captures. A request identifies a file by an id, which is a hash of the file name.
//! No part of a request is ever used as a path.

use std::collections::HashSet;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use weft_dissector::source::is_capture_name;

use super::attempt::{self, BEGUN};
use super::id::id;
use super::source::Source;

/// The maximum number of names that are read from the folder.
const MAX_NAMES: usize = 10_000;
/// The prefix of the names of unfinished uploads.
pub(super) const UNFINISHED: &str = ".weft-upload-";
/// If an unfinished upload is older than this, weft assumes that the server was killed during the
/// upload.
const OLD: Duration = Duration::from_secs(24 * 3600);

/// The folder of captures. Cheap to clone.
#[derive(Debug, Clone)]
pub(crate) struct CaptureFolder {
    pub(super) path: Arc<Path>,
}

/// A capture in the folder.
#[derive(Debug, Clone)]
pub(crate) struct Entry {
    /// The id of the capture: 16 hexadecimal digits.
    pub(crate) id: String,
    pub(crate) name: String,
    pub(crate) source: Source,
    /// Whether an earlier attempt to read the capture did not finish, and the file has not changed
    /// since then.
    pub(crate) was_attempted: bool,
}

impl CaptureFolder {
    pub(crate) fn new(path: PathBuf) -> Self {
        CaptureFolder { path: path.into() }
    }

    /// Returns the captures in the folder. The most recently changed capture is first.
    pub(crate) async fn entries(&self) -> io::Result<Vec<Entry>> {
        let path = Arc::clone(&self.path);
        tokio::task::spawn_blocking(move || entries(&path)).await.map_err(io::Error::other)?
    }

    /// Returns the capture with this id, or `None` if there is no such capture.
    pub(crate) async fn find(&self, id: &str) -> io::Result<Option<Entry>> {
        Ok(self.entries().await?.into_iter().find(|entry| entry.id == id))
    }

    /// Deletes the capture and its mark file. A mark file is the hidden file of an unfinished
    /// attempt to read the capture ([`attempt`]).
    pub(crate) async fn remove(&self, entry: &Entry) -> io::Result<()> {
        tokio::fs::remove_file(&entry.source.path).await?;
        // Ignore an error, because usually there is no mark file.
        let _ = tokio::fs::remove_file(self.path.join(format!("{BEGUN}{}", entry.id))).await;
        Ok(())
    }

    /// Deletes old unfinished uploads, and the mark files of captures that no longer exist.
    pub(crate) fn sweep(&self) -> io::Result<()> {
        let entries = entries(&self.path)?;
        for file in std::fs::read_dir(&self.path)?.take(MAX_NAMES) {
            let file = file?;
            let is_unfinished = file.file_name().to_string_lossy().starts_with(UNFINISHED);
            let age = file.metadata().and_then(|meta| meta.modified()).ok().and_then(|since| since.elapsed().ok());
            let name = file.file_name();
            let is_stale = attempt::marked(&name).is_some_and(|id| !entries.iter().any(|entry| entry.id == id));
            if is_stale || is_unfinished && age.is_some_and(|age| age > OLD) {
                std::fs::remove_file(file.path())?;
            }
        }
        Ok(())
    }
}

fn entries(path: &Path) -> io::Result<Vec<Entry>> {
    let (mut found, mut marked) = (Vec::new(), HashSet::new());
    for file in std::fs::read_dir(path)?.take(MAX_NAMES) {
        let file = file?;
        let name = file.file_name();
        marked.extend(attempt::marked(&name).map(ToOwned::to_owned));
        // `metadata` of an entry does not follow links. Therefore the check below skips links. An
        // error means that the file was deleted meanwhile.
        let Ok(meta) = file.metadata() else { continue };
        if !is_capture_name(&name) || !meta.is_file() {
            continue;
        }
        let changed = meta.modified().unwrap_or(SystemTime::UNIX_EPOCH);
        let source = Source { path: file.path(), len: meta.len(), changed };
        found.push(Entry { id: id(&name), name: name.to_string_lossy().into_owned(), source, was_attempted: false });
    }
    for entry in found.iter_mut().filter(|entry| marked.contains(&entry.id)) {
        entry.was_attempted = attempt::is_of(&path.join(format!("{BEGUN}{}", entry.id)), &entry.source);
    }
    found.sort_by(|a, b| (b.source.changed, &a.name).cmp(&(a.source.changed, &b.name)));
    Ok(found)
}

#[cfg(test)]
mod tests {
    use std::ffi::OsStr;

    use super::super::attempt::Attempt;
    use super::*;

    #[tokio::test]
    async fn lists_only_captures_and_finds_them_by_id() {
        let folder = tempfile::tempdir().unwrap();
        let outside = tempfile::NamedTempFile::with_suffix(".pcap").unwrap();
        for name in [
            "a.pcap",
            "B.PCAPNG",
            "c.cap.gz",
            "d.pcapng.zst",
            "e.txt",
            "pcap",
            ".f.pcap",
            ".weft-upload-x.pcap",
            "i.snoop.xz",
        ] {
            std::fs::write(folder.path().join(name), "x").unwrap();
        }
        std::fs::create_dir(folder.path().join("g.pcap")).unwrap();
        std::os::unix::fs::symlink(outside.path(), folder.path().join("h.pcap")).unwrap();
        let captures = CaptureFolder::new(folder.path().to_owned());
        let mut names: Vec<String> = captures.entries().await.unwrap().into_iter().map(|entry| entry.name).collect();
        names.sort();
        assert_eq!(names, ["B.PCAPNG", "a.pcap", "c.cap.gz", "d.pcapng.zst", "i.snoop.xz"]);
        let entry = captures.find(&id(OsStr::new("a.pcap"))).await.unwrap().unwrap();
        assert_eq!((entry.name.as_str(), entry.id.len(), entry.source.len), ("a.pcap", 16, 1));
        for unknown in ["", "a.pcap", "../a.pcap", &id(OsStr::new("h.pcap")), &id(OsStr::new("e.txt"))] {
            assert!(captures.find(unknown).await.unwrap().is_none(), "{unknown}");
        }
        captures.remove(&entry).await.unwrap();
        assert!(captures.find(&entry.id).await.unwrap().is_none());
    }

    #[tokio::test]
    async fn a_capture_that_killed_the_server_is_marked_until_it_changes() {
        let folder = tempfile::tempdir().unwrap();
        let captures = CaptureFolder::new(folder.path().to_owned());
        let path = folder.path().join("a.pcap");
        std::fs::write(&path, "x").unwrap();
        let entry = async || captures.entries().await.unwrap().remove(0);
        assert!(!entry().await.was_attempted);
        // The server is killed before the attempt ends.
        let attempt = Attempt::begin(&entry().await.source).unwrap();
        assert!(entry().await.was_attempted && captures.entries().await.unwrap().len() == 1);
        captures.sweep().unwrap();
        assert!(entry().await.was_attempted, "the mark remains after a restart");
        std::fs::write(&path, "changed").unwrap();
        assert!(!entry().await.was_attempted);
        attempt.succeed();
        let _left = Attempt::begin(&entry().await.source).unwrap();
        captures.remove(&entry().await).await.unwrap();
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
    }

    #[test]
    fn deletes_marks_of_captures_that_are_gone() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.pcap");
        std::fs::write(&path, "x").unwrap();
        let source = entries(folder.path()).unwrap().remove(0).source;
        let _left = Attempt::begin(&source).unwrap();
        std::fs::remove_file(path).unwrap();
        CaptureFolder::new(folder.path().to_owned()).sweep().unwrap();
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
    }

    #[test]
    fn deletes_old_unfinished_uploads() {
        let folder = tempfile::tempdir().unwrap();
        let captures = CaptureFolder::new(folder.path().to_owned());
        let [old, new, other] =
            [".weft-upload-old", ".weft-upload-new", "old.pcap"].map(|name| folder.path().join(name));
        for path in [&old, &new, &other] {
            let file = std::fs::File::create(path).unwrap();
            if path != &new {
                file.set_modified(SystemTime::now() - 2 * OLD).unwrap();
            }
        }
        captures.sweep().unwrap();
        assert_eq!([&old, &new, &other].map(|path| path.exists()), [false, true, true]);
    }
}
