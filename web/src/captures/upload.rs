//! Uploads. A file has a hidden name until it is complete and recognised as a capture. An upload
//! that ends early (by the client, the limit, or a kill of the server) adds no capture.

use std::ffi::OsStr;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tempfile::NamedTempFile;
use tokio::io::AsyncWriteExt;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::id::id;
use super::read;
use super::shelf::{self, Shelf, UNFINISHED};

/// The maximum number of concurrent uploads.
const MOST: usize = 2;
/// How long an upload may be silent.
const SILENCE: Duration = Duration::from_secs(20);
/// The time for each upload in addition to the time for its bytes.
const GRACE: Duration = Duration::from_secs(60);
/// The minimum speed in bytes per second.
const SLOWEST: u64 = 16 << 10;
/// The maximum length of a name.
const MOST_NAME: usize = 100;
/// The maximum number of files with one name, which get different numbers.
const MOST_NAMESAKES: usize = 1000;

/// Why an upload was rejected.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Refused {
    #[error("This server has no folder for captures; start it with weft web --captures DIR.")]
    NoFolder,
    #[error("{MOST} uploads are in progress. Try again when one of them is complete.")]
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
    pub(crate) silence: Duration,
    pub(crate) grace: Duration,
    room: Arc<Semaphore>,
}

/// An upload in progress. Dropping it deletes its file.
#[derive(Debug)]
pub(crate) struct Receiving {
    file: tokio::fs::File,
    stored: NamedTempFile,
    folder: Arc<Path>,
    octets: u64,
    uploads: Uploads,
    since: Instant,
    _room: OwnedSemaphorePermit,
}

impl Uploads {
    pub(super) fn new(most: u64) -> Self {
        Uploads { most, silence: SILENCE, grace: GRACE, room: Arc::new(Semaphore::new(MOST)) }
    }

    /// Starts an upload.
    pub(crate) fn begin(&self, shelf: Option<&Shelf>) -> Result<Receiving, Refused> {
        let folder = Arc::clone(&shelf.ok_or(Refused::NoFolder)?.folder);
        let room = Arc::clone(&self.room).try_acquire_owned().map_err(|_| Refused::Busy)?;
        let mut builder = tempfile::Builder::new();
        builder.prefix(UNFINISHED);
        // The umask of the process applies, as for any new file.
        #[cfg(unix)]
        builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o666));
        let stored = builder.tempfile_in(&folder)?;
        let file = tokio::fs::File::from_std(stored.as_file().try_clone()?);
        Ok(Receiving { file, stored, folder, octets: 0, uploads: self.clone(), since: Instant::now(), _room: room })
    }
}

impl Receiving {
    /// Waits for the next bytes from the client and stores them; `false` at the end of the upload.
    pub(crate) async fn take<B: AsRef<[u8]>, E: std::fmt::Display>(
        &mut self,
        next: impl Future<Output = Option<Result<B, E>>>,
    ) -> Result<bool, Refused> {
        let got = tokio::time::timeout(self.uploads.silence, next).await.map_err(|_| Refused::TooSlow)?;
        let Some(chunk) = got.transpose().map_err(|error| Refused::CutOff(error.to_string()))? else {
            return Ok(false);
        };
        self.octets += chunk.as_ref().len() as u64;
        if self.octets > self.uploads.most {
            return Err(Refused::TooLong(self.uploads.most));
        }
        if self.since.elapsed() > self.uploads.grace + Duration::from_secs(self.octets / SLOWEST) {
            return Err(Refused::TooSlow);
        }
        self.file.write_all(chunk.as_ref()).await?;
        Ok(true)
    }

    /// Completes the upload under a name like `name`. Returns the id of the capture.
    pub(crate) async fn finish(self, name: &str) -> Result<String, Refused> {
        let Receiving { mut file, stored, folder, .. } = self;
        file.flush().await?;
        file.sync_all().await?;
        let name = tidy(name);
        tokio::task::spawn_blocking(move || {
            read::recognise(stored.path()).map_err(Refused::NoCapture)?;
            settle(stored, &folder, &name)
        })
        .await
        .map_err(io::Error::other)?
    }
}

/// Gives the file an unused name.
fn settle(mut stored: NamedTempFile, folder: &Path, name: &str) -> Result<String, Refused> {
    let (stem, ending) = name.split_once('.').unwrap_or((name, "pcap"));
    for number in 1..=MOST_NAMESAKES {
        let name = if number == 1 { name.to_owned() } else { format!("{stem}-{number}.{ending}") };
        match stored.persist_noclobber(folder.join(&name)) {
            Ok(_) => return Ok(id(OsStr::new(&name))),
            Err(error) if error.error.kind() == io::ErrorKind::AlreadyExists => stored = error.file,
            Err(error) => return Err(error.error.into()),
        }
    }
    Err(Refused::Namesakes)
}

/// A safe file name that resembles the client's: letters, digits, a few punctuation characters, and
/// the extension of a capture.
fn tidy(name: &str) -> String {
    // Some clients send a path.
    let name = name.rsplit(['/', '\\']).next().unwrap_or_default();
    let safe = |c: char| if c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-') { c } else { '_' };
    let tidy: String = name.chars().map(safe).collect();
    let tidy = tidy.trim_start_matches(['.', '-']);
    let tidy = &tidy[tidy.len().saturating_sub(MOST_NAME)..];
    match tidy.trim_start_matches(['.', '-']) {
        "" => "capture.pcap".to_owned(),
        tidy if shelf::is_capture(OsStr::new(tidy)) => tidy.to_owned(),
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
        ] {
            assert_eq!(tidy(given), name, "{given:?}");
        }
        assert_eq!(tidy(&format!("{}.pcap", "a".repeat(300))).len(), MOST_NAME);
    }

    #[test]
    fn never_replaces_a_file_with_the_same_name() {
        let folder = tempfile::tempdir().unwrap();
        let one = |text: &str| {
            let file = NamedTempFile::new_in(folder.path()).unwrap();
            std::fs::write(file.path(), text).unwrap();
            settle(file, folder.path(), "a.pcap.gz").unwrap()
        };
        let ids = ["1", "2", "3"].map(one);
        assert_ne!(ids[0], ids[1]);
        for (name, text) in [("a.pcap.gz", "1"), ("a-2.pcap.gz", "2"), ("a-3.pcap.gz", "3")] {
            assert_eq!(std::fs::read_to_string(folder.path().join(name)).unwrap(), text);
        }
    }
}
