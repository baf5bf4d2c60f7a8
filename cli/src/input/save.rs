//! `-w` with `-i`: writes all captured frames as pcapng, to one file or to a ring of files.
//!
//! A ring is a series of files. When a file is full, weft starts the next file. If there are then
//! too many files, weft deletes the oldest file.

use std::collections::VecDeque;
use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use weft_capture::{SNAP_LEN, Settings};
use weft_dissector::output::pcapng::{Interface, PacketBlock, Writer};
use weft_dissector::source::Frame;

use crate::exit::{BadInput, reject, unwritable};

use super::quantity::Limits;

/// The values of `-b`: the limits at which weft starts a new file, and the number of files to keep.
///
/// `octets`, `packets` and `duration` of [`Limits`] are the limits of a file. `duration` starts
/// with the first frame of the file. weft keeps only the newest files, at most `files` of them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Ring(Limits);

impl Ring {
    /// Parses the values of `-b`.
    pub(crate) fn read(words: &[String]) -> Result<Self, BadInput> {
        let usage = "filesize:KB, duration:SECONDS or packets:N, and files:N to keep N files";
        let ring = Ring(Limits::read(words, "-b", usage)?);
        if ring.0.files.is_some() && !ring.changes() {
            reject!("-b files:N needs one of filesize:KB, duration:SECONDS, packets:N");
        }
        Ok(ring)
    }

    /// Returns whether a condition can start a second file.
    pub(super) fn changes(&self) -> bool {
        let Limits { octets, duration, packets, .. } = self.0;
        octets.is_some() || duration.is_some() || packets.is_some()
    }
}

/// The writer of captured frames.
pub(super) struct Saver {
    path: PathBuf,
    ring: Ring,
    link_type: u16,
    settings: Settings,
    file: OpenFile,
    /// The files that are not deleted, oldest first. The number beside a path is the number of
    /// frames that weft wrote before it started this file.
    kept: VecDeque<(PathBuf, u64)>,
    /// Number of files so far, including deleted files.
    files: u64,
    frames: u64,
    /// Number of bytes in closed files.
    octets: u64,
}

/// The files that were written so far.
pub(crate) struct WrittenFiles {
    /// The files that are not deleted, oldest first. The number beside a path is the number of
    /// frames that weft wrote before it started this file.
    pub(crate) files: Vec<(PathBuf, u64)>,
    /// Number of bytes in the last file.
    pub(crate) octets: u64,
    /// Number of files so far, including deleted files.
    pub(crate) count: u64,
}

/// The file that weft currently writes.
struct OpenFile {
    writer: Writer<BufWriter<CountingFile>>,
    number: u32,
    path: PathBuf,
    frames: u64,
    /// Time of the file's first frame, in nanoseconds since 1970.
    begun: u64,
}

impl Saver {
    pub(super) fn new(path: &Path, ring: Ring, link_type: u16, settings: &Settings) -> anyhow::Result<Self> {
        let first = if ring.changes() { numbered(path, 1) } else { path.to_owned() };
        let file = OpenFile::new(first.clone(), link_type, settings)?;
        Ok(Saver {
            path: path.to_owned(),
            ring,
            link_type,
            settings: settings.clone(),
            file,
            kept: VecDeque::from([(first, 0)]),
            files: 1,
            frames: 0,
            octets: 0,
        })
    }

    pub(super) fn frame(&mut self, frame: &Frame<'_>) -> anyhow::Result<()> {
        if self.is_full(frame.time) {
            self.change()?;
        }
        if self.file.frames == 0 {
            self.file.begun = frame.time;
        }
        self.file.frames += 1;
        self.frames += 1;
        let block = PacketBlock {
            interface: self.file.number,
            time: frame.time,
            octets: frame.octets,
            wire_len: frame.wire_len,
            direction: None,
            comments: &[],
        };
        self.file.writer.packet(&block).map_err(|error| cannot(&self.file.path, &error))
    }

    pub(super) fn flush(&mut self) -> anyhow::Result<()> {
        self.file.writer.get_mut().flush().map_err(|error| cannot(&self.file.path, &error))
    }

    /// Number of bytes so far, in all files.
    pub(super) fn octets(&self) -> u64 {
        self.octets + self.file.octets()
    }

    /// Number of files so far, including deleted files.
    pub(super) fn files(&self) -> u64 {
        self.files
    }

    /// The files that were written so far. Call [`Saver::flush`] first. Otherwise some of the
    /// counted bytes are still buffered.
    pub(super) fn written(&self) -> WrittenFiles {
        let files = self.kept.iter().cloned().collect();
        WrittenFiles { files, octets: self.file.octets(), count: self.files }
    }

    /// Closes the file, and returns a summary for the final message.
    pub(super) fn finish(self) -> anyhow::Result<String> {
        let Saver { file, frames, files, path, kept, .. } = self;
        let at = file.path.clone();
        file.writer.finish().map_err(|error| cannot(&at, &error))?;
        Ok(match files {
            1 => format!("; {frames} written to {}", at.display()),
            _ => {
                let (last, kept) = (numbered(&path, files), kept.len());
                format!("; {frames} written to {files} files, of which {kept} remain; the last is {}", last.display())
            }
        })
    }

    /// Returns whether a frame with this time (nanoseconds since 1970) starts a new file.
    pub(super) fn is_full(&self, time: u64) -> bool {
        let Limits { octets, duration, packets, .. } = self.ring.0;
        self.file.frames > 0
            && (octets.is_some_and(|octets| self.file.octets() >= octets)
                || duration
                    .is_some_and(|duration| u128::from(time.saturating_sub(self.file.begun)) >= duration.as_nanos())
                || packets.is_some_and(|packets| self.file.frames >= packets))
    }

    /// Starts the next file, and deletes the oldest file if there are too many.
    fn change(&mut self) -> anyhow::Result<()> {
        self.files += 1;
        let path = numbered(&self.path, self.files);
        let next = OpenFile::new(path.clone(), self.link_type, &self.settings)?;
        let full = std::mem::replace(&mut self.file, next);
        self.octets += full.octets();
        full.writer.finish().map_err(|error| cannot(&full.path, &error))?;
        self.kept.push_back((path, self.frames));
        if self.ring.0.files.is_some_and(|files| self.kept.len() as u64 > files)
            && let Some((oldest, _)) = self.kept.pop_front()
        {
            match fs::remove_file(&oldest) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => {
                    reject!("{}: cannot be removed: {error}", oldest.display());
                }
                _ => {}
            }
        }
        Ok(())
    }
}

impl OpenFile {
    fn new(path: PathBuf, link_type: u16, settings: &Settings) -> anyhow::Result<Self> {
        let failed = |error: io::Error| cannot(&path, &error);
        let out = BufWriter::new(CountingFile { file: File::create(&path).map_err(failed)?, octets: 0 });
        let mut writer = Writer::new(out, None).map_err(failed)?;
        let snap_len = if settings.snap_len == SNAP_LEN { 0 } else { settings.snap_len };
        let description = settings.filter.as_ref().map(|filter| format!("capture filter: {filter}"));
        let (name, description) = (Some(&*settings.interface), description.as_deref());
        let interface = Interface { link_type, snap_len, name, description };
        let number = writer.interface(&interface).map_err(failed)?;
        Ok(OpenFile { writer, number, path, frames: 0, begun: 0 })
    }

    /// Number of bytes so far, including buffered bytes.
    fn octets(&self) -> u64 {
        let out = self.writer.get_ref();
        out.get_ref().octets + out.buffer().len() as u64
    }
}

/// A file, and the number of bytes written to it.
struct CountingFile {
    file: File,
    octets: u64,
}

impl Write for CountingFile {
    fn write(&mut self, octets: &[u8]) -> io::Result<usize> {
        let written = self.file.write(octets)?;
        self.octets += written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

fn cannot(path: &Path, error: &io::Error) -> anyhow::Error {
    BadInput(format!("{}: {}", path.display(), unwritable(path, error))).into()
}

/// Returns the path of file `number` of a ring. For `x.pcapng`, file 1 is `x_00001.pcapng`.
fn numbered(path: &Path, number: u64) -> PathBuf {
    let stem = path.file_stem().unwrap_or_default().to_string_lossy();
    let name = match path.extension() {
        Some(extension) => format!("{stem}_{number:05}.{}", extension.to_string_lossy()),
        None => format!("{stem}_{number:05}"),
    };
    path.with_file_name(name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use weft_dissector::link_type::ETHERNET;
    use weft_dissector::source::Capture;

    fn ring(words: &[&str]) -> Result<Ring, BadInput> {
        Ring::read(&words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>())
    }

    /// Writes frames `1..=count` of 1000 bytes, one second apart, into a ring.
    fn saved(folder: &Path, words: &[&str], count: u64) -> String {
        let mut saver = Saver::new(&folder.join("x.pcapng"), ring(words).unwrap(), 1, &Settings::new("lo")).unwrap();
        for number in 1..=count {
            let (time, octets) = (number * 1_000_000_000, &[7; 1000][..]);
            saver
                .frame(&Frame {
                    number: number.into(),
                    time,
                    interface: 0,
                    link_type: ETHERNET,
                    octets,
                    wire_len: 1000,
                })
                .unwrap();
        }
        saver.finish().unwrap()
    }

    /// The files of a folder, and the frame times of each in seconds.
    fn files(folder: &Path) -> Vec<(String, Vec<u64>)> {
        let mut all: Vec<_> = fs::read_dir(folder)
            .unwrap()
            .map(|entry| {
                let path = entry.unwrap().path();
                let mut capture = Capture::open(&path).unwrap();
                let mut times = Vec::new();
                while let Some(frame) = capture.next_frame() {
                    times.push(frame.time / 1_000_000_000);
                }
                assert_eq!(capture.note(), None);
                (path.file_name().unwrap().to_string_lossy().into_owned(), times)
            })
            .collect();
        all.sort();
        all
    }

    fn named(expected: &[(&str, &[u64])]) -> Vec<(String, Vec<u64>)> {
        expected.iter().map(|(name, times)| ((*name).to_owned(), times.to_vec())).collect()
    }

    #[test]
    fn writes_one_file_without_a_ring() {
        let folder = tempfile::tempdir().unwrap();
        let summary = saved(folder.path(), &[], 3);
        assert_eq!(files(folder.path()), named(&[("x.pcapng", &[1, 2, 3])]));
        assert_eq!(summary, format!("; 3 written to {}", folder.path().join("x.pcapng").display()));
    }

    #[test]
    fn a_ring_keeps_the_newest_files() {
        let folder = tempfile::tempdir().unwrap();
        let summary = saved(folder.path(), &["packets:2", "files:2"], 5);
        assert_eq!(files(folder.path()), named(&[("x_00002.pcapng", &[3, 4]), ("x_00003.pcapng", &[5])]));
        assert!(
            summary.starts_with("; 5 written to 3 files, of which 2 remain; the last is ")
                && summary.ends_with("x_00003.pcapng"),
            "{summary}"
        );
    }

    #[test]
    fn starts_a_new_file_by_size_and_by_time() {
        let folder = tempfile::tempdir().unwrap();
        // The file's header and the first frame are longer than 1000 bytes.
        saved(folder.path(), &["filesize:1"], 2);
        assert_eq!(files(folder.path()), named(&[("x_00001.pcapng", &[1]), ("x_00002.pcapng", &[2])]));
        let folder = tempfile::tempdir().unwrap();
        saved(folder.path(), &["duration:2"], 4);
        assert_eq!(files(folder.path()), named(&[("x_00001.pcapng", &[1, 2]), ("x_00002.pcapng", &[3, 4])]));
    }

    #[test]
    fn rejects_invalid_ring_options() {
        for words in [&["files:2"][..], &["files:0", "filesize:1"], &["filesize"], &["packets:-1"], &["size:1"]] {
            assert!(ring(words).is_err(), "{words:?}");
        }
        assert_eq!(
            ring(&["files:2"]).unwrap_err().to_string(),
            "-b files:N needs one of filesize:KB, duration:SECONDS, packets:N"
        );
    }

    #[test]
    fn names_a_file_that_cannot_be_created() {
        let path = Path::new("/weft-no-such-folder/x.pcapng");
        let error = Saver::new(path, Ring::default(), 1, &Settings::new("lo")).err().unwrap();
        assert_eq!(error.to_string(), "/weft-no-such-folder/x.pcapng: cannot be written: its folder does not exist");
    }
}
