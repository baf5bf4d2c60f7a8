//! Writes files so that each file has either its complete new content or its old content. weft
//! writes the new content to a temporary file in the same folder, and waits until this content is
//! on the disk. Then weft renames the temporary file.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// Replaces the content of a file. If this fails, or if the process is killed, the file keeps its
/// old content.
pub(crate) fn replace(path: &Path, octets: &[u8]) -> io::Result<()> {
    let new = beside(path);
    let replaced = write(&new, octets).and_then(|()| fs::rename(&new, path));
    if replaced.is_err() {
        // The disk may be full, so the temporary file is removed. An error of this removal is
        // ignored, because the temporary file does no harm.
        let _ = fs::remove_file(&new);
    }
    replaced
}

fn write(new: &Path, octets: &[u8]) -> io::Result<()> {
    // A folder of another host can have a link with this name. Through the link, the new content
    // would replace another file of this host. A device has no content to replace.
    let is_link = fs::symlink_metadata(new).is_ok_and(|entry| entry.is_symlink());
    let is_device = fs::metadata(new).is_ok_and(|file| !file.is_file());
    if is_link && !is_device {
        fs::remove_file(new)?;
    }
    let mut file = File::create(new)?;
    file.write_all(octets)?;
    // Without this call, the later rename may reach the disk before the content does.
    file.sync_all()
}

/// Returns the name of the temporary file: `report.html.new` for `report.html`.
fn beside(path: &Path) -> PathBuf {
    let mut name = OsString::from(path);
    name.push(".new");
    name.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn replaces_all_of_a_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("report.html");
        replace(&path, b"first, and longer").unwrap();
        replace(&path, b"second").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"second");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[cfg(unix)]
    #[test]
    fn a_link_with_the_name_of_the_temporary_file_is_not_followed() {
        let (folder, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let path = folder.path().join("report.html");
        let [own, absent] = ["own", "absent"].map(|name| other.path().join(name));
        fs::write(&own, "of the user").unwrap();
        for at in [&own, &absent] {
            std::os::unix::fs::symlink(at, beside(&path)).unwrap();
            replace(&path, b"new").unwrap();
            assert_eq!(fs::read(&path).unwrap(), b"new");
            assert!(!fs::symlink_metadata(&path).unwrap().is_symlink());
        }
        assert_eq!(fs::read(&own).unwrap(), b"of the user");
        assert!(!absent.exists());
    }

    /// `/dev/full` acts like a full disk.
    #[cfg(target_os = "linux")]
    #[test]
    fn keeps_the_old_content_if_the_disk_is_full() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("report.html");
        fs::write(&path, "old").unwrap();
        std::os::unix::fs::symlink("/dev/full", beside(&path)).unwrap();
        let error = replace(&path, b"new").unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::StorageFull);
        assert_eq!(fs::read(&path).unwrap(), b"old");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "no other file remains");
    }
}
