//! Uploads of captures. The file of an upload has a hidden name until the upload is complete and
//! weft has checked that the file is a capture. If an upload ends early (because of the client, a
//! limit, or a kill of the server), it adds no capture.

use std::ffi::OsStr;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tempfile::NamedTempFile;
use tokio::io::AsyncWriteExt;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use weft_dissector::source::is_capture_name;

use super::folder::{CaptureFolder, UNFINISHED};
use super::id::id;
use super::read;

/// The maximum number of concurrent uploads.
const MAX_UPLOADS: usize = 2;
/// The maximum time between two parts of an upload.
const SILENCE: Duration = Duration::from_secs(20);
/// The time that each upload is allowed to take, in addition to its length divided by [`SLOWEST`].
const GRACE: Duration = Duration::from_secs(60);
/// The minimum speed of an upload in bytes per second.
const SLOWEST: u64 = 16 << 10;
/// If the client's file name has more characters than this, weft keeps only the end of the name.
const MAX_NAME_LEN: usize = 100;
/// The maximum number of uploads with the same file name. From the second upload on, the stored
/// name has a number.
const MAX_NAMESAKES: usize = 1000;

/// Why an upload was rejected.
#[derive(Debug, thiserror::Error)]
pub(crate) enum UploadError {
    #[error("This server has no folder for captures; start it with weft web --captures DIR.")]
    NoFolder,
    #[error("{MAX_UPLOADS} uploads are in progress. Try again when one of them is complete.")]
    Busy,
    #[error("The capture is longer than the limit of {0} bytes (weft web --upload-limit).")]
    TooLong(u64),
    #[error("The upload was too slow.")]
    TooSlow,
    #[error("The upload is incomplete: {0}")]
    CutOff(String),
    #[error("The file is not a capture: {0}.")]
    NoCapture(String),
    #[error("The folder has too many captures with this name. Use another name.")]
    Namesakes,
    #[error("The upload cannot be stored: {0}")]
    Disk(#[from] io::Error),
}

/// The limits of uploads. Cheap to clone.
#[derive(Debug, Clone)]
pub(crate) struct Uploads {
    /// The maximum length of an upload in bytes.
    pub(crate) most: u64,
    /// [`SILENCE`], except in tests.
    pub(crate) silence: Duration,
    /// Always [`GRACE`].
    pub(crate) grace: Duration,
    permits: Arc<Semaphore>,
}

/// An upload in progress. Dropping this value deletes the file of the upload.
#[derive(Debug)]
pub(crate) struct Receiving {
    file: tokio::fs::File,
    stored: NamedTempFile,
    folder: Arc<Path>,
    octets: u64,
    uploads: Uploads,
    since: Instant,
    _permit: OwnedSemaphorePermit,
}

impl Uploads {
    pub(super) fn new(most: u64) -> Self {
        Uploads { most, silence: SILENCE, grace: GRACE, permits: Arc::new(Semaphore::new(MAX_UPLOADS)) }
    }

    /// Starts an upload into `folder`. Returns an error if there is no folder or if too many
    /// uploads are in progress.
    pub(crate) fn begin(&self, folder: Option<&CaptureFolder>) -> Result<Receiving, UploadError> {
        let folder = Arc::clone(&folder.ok_or(UploadError::NoFolder)?.path);
        let permit = Arc::clone(&self.permits).try_acquire_owned().map_err(|_| UploadError::Busy)?;
        let mut builder = tempfile::Builder::new();
        builder.prefix(UNFINISHED);
        // The umask of the process applies, as for any new file.
        #[cfg(unix)]
        builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o666));
        let stored = builder.tempfile_in(&folder)?;
        let file = tokio::fs::File::from_std(stored.as_file().try_clone()?);
        Ok(Receiving { file, stored, folder, octets: 0, uploads: self.clone(), since: Instant::now(), _permit: permit })
    }
}

impl Receiving {
    /// Waits for the next bytes from the client and stores them. Returns `false` at the end of the
    /// upload.
    pub(crate) async fn take<B: AsRef<[u8]>, E: std::fmt::Display>(
        &mut self,
        next: impl Future<Output = Option<Result<B, E>>>,
    ) -> Result<bool, UploadError> {
        let got = tokio::time::timeout(self.uploads.silence, next).await.map_err(|_| UploadError::TooSlow)?;
        let Some(chunk) = got.transpose().map_err(|error| UploadError::CutOff(error.to_string()))? else {
            return Ok(false);
        };
        self.octets += chunk.as_ref().len() as u64;
        if self.octets > self.uploads.most {
            return Err(UploadError::TooLong(self.uploads.most));
        }
        if self.since.elapsed() > self.uploads.grace + Duration::from_secs(self.octets / SLOWEST) {
            return Err(UploadError::TooSlow);
        }
        self.file.write_all(chunk.as_ref()).await?;
        Ok(true)
    }

    /// Checks that the file is a capture, and stores it under a name similar to `name`. Returns the
    /// id of the capture.
    pub(crate) async fn finish(self, name: &str) -> Result<String, UploadError> {
        let Receiving { mut file, stored, folder, .. } = self;
        file.flush().await?;
        file.sync_all().await?;
        let name = tidy(name);
        tokio::task::spawn_blocking(move || {
            read::check_capture(stored.path()).map_err(UploadError::NoCapture)?;
            store_as(stored, &folder, &name)
        })
        .await
        .map_err(io::Error::other)?
    }
}

/// Moves the file to `name` in the folder, or to a name with a number if `name` is in use. Returns
/// the id of the capture.
fn store_as(mut stored: NamedTempFile, folder: &Path, name: &str) -> Result<String, UploadError> {
    let (stem, ending) = name.split_once('.').unwrap_or((name, "pcap"));
    for number in 1..=MAX_NAMESAKES {
        let name = if number == 1 { name.to_owned() } else { format!("{stem}-{number}.{ending}") };
        match stored.persist_noclobber(folder.join(&name)) {
            Ok(_) => return Ok(id(OsStr::new(&name))),
            Err(error) if error.error.kind() == io::ErrorKind::AlreadyExists => stored = error.file,
            Err(error) => return Err(error.error.into()),
        }
    }
    Err(UploadError::Namesakes)
}

/// Returns a safe file name that is similar to the client's name. The safe name consists of ASCII
/// letters, digits, `.`, `_` and `-`, and has the extension of a capture.
fn tidy(name: &str) -> String {
    // Some clients send a path.
    let name = name.rsplit(['/', '\\']).next().unwrap_or_default();
    let safe = |c: char| if c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-') { c } else { '_' };
    let tidy: String = name.chars().map(safe).collect();
    let tidy = tidy.trim_start_matches(['.', '-']);
    let tidy = &tidy[tidy.len().saturating_sub(MAX_NAME_LEN)..];
    match tidy.trim_start_matches(['.', '-']) {
        "" => "capture.pcap".to_owned(),
        tidy if is_capture_name(OsStr::new(tidy)) => tidy.to_owned(),
        tidy => format!("{tidy}.pcap"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn makes_safe_names_with_the_extension_of_a_capture() {
        for (given, name) in [
            ("a.pcap", "a.pcap"),
            ("A b\u{e4}.pcapng.gz", "A_b_.pcapng.gz"),
            ("C:\\x\\y.cap", "y.cap"),
            ("../../etc/passwd", "passwd.pcap"),
            ("..", "capture.pcap"),
            ("", "capture.pcap"),
            (".pcap", "pcap.pcap"),
            ("-rf.pcap", "rf.pcap"),
            ("a\0\r\n\"<b>.pcap", "a_____b_.pcap"),
            (".weft-upload-1.pcap", "weft-upload-1.pcap"),
            ("a.erf.lz4", "a.erf.lz4"),
        ] {
            assert_eq!(tidy(given), name, "{given:?}");
        }
        assert_eq!(tidy(&format!("{}.pcap", "a".repeat(300))).len(), MAX_NAME_LEN);
    }

    #[test]
    fn never_replaces_a_file_with_the_same_name() {
        let folder = tempfile::tempdir().unwrap();
        let one = |text: &str| {
            let file = NamedTempFile::new_in(folder.path()).unwrap();
            std::fs::write(file.path(), text).unwrap();
            store_as(file, folder.path(), "a.pcap.gz").unwrap()
        };
        let ids = ["1", "2", "3"].map(one);
        assert_ne!(ids[0], ids[1]);
        for (name, text) in [("a.pcap.gz", "1"), ("a-2.pcap.gz", "2"), ("a-3.pcap.gz", "3")] {
            assert_eq!(std::fs::read_to_string(folder.path().join(name)).unwrap(), text);
        }
    }
}
