//! Passes over a capture file, each with a time limit.

use std::fs::File;
use std::io;
use std::path::Path;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

use tokio::sync::watch;
use weft_dissector::browse::detail::Detail;
use weft_dissector::browse::index::MAX_FRAMES;
use weft_dissector::browse::{self, Control, Details, FilteredFrames, FrameList, Pass, Reader, Stop, Survey, Tail};
use weft_dissector::output::connection_ladder::{Subject, Timeline};
use weft_dissector::output::ladder::Ladder;
use weft_dissector::source::{Capture, OpenError};
use weft_dissector::{FrameNumber, StreamId};

use super::cache::Progress;

/// The maximum number of connections with statistics in a survey.
const MAX_CONNECTIONS: usize = 10_000;
/// A pass checks the time and the memory once in this number of frames.
pub(super) const STRIDE: u64 = 256;
/// The reason that users see if a pass takes too much memory.
pub(super) const NO_MEMORY: &str = "the server has no memory left for captures";

/// The limits of a pass.
#[derive(Debug, Clone)]
pub(crate) struct Budget {
    pub(crate) time: Duration,
    /// The maximum number of frames in a survey.
    pub(crate) frames: usize,
    /// Becomes `true` when the server stops.
    pub(crate) stopped: watch::Receiver<bool>,
}

impl Default for Budget {
    fn default() -> Self {
        let stopped = watch::channel(false).1;
        Budget { time: Duration::from_secs(60), frames: MAX_FRAMES, stopped }
    }
}

/// Makes the survey of the capture at `path`. If reading stops early, the survey is incomplete and
/// has a note.
///
/// # Errors
/// Returns the reason if the capture cannot be read.
pub(crate) fn make_survey(path: &Path, budget: &Budget, progress: &Progress) -> Result<Survey, String> {
    let mut pass = Pass::new(Survey::with_room(budget.frames, MAX_CONNECTIONS));
    let read = read(path, budget, progress, &mut pass)?;
    Ok(Survey::of(pass, read.note))
}

/// Returns the numbers of the frames that match the filter. Reads at most as many frames as a
/// survey.
pub(crate) fn filter_frames(
    path: &Path,
    filter: &str,
    budget: &Budget,
    progress: &Progress,
) -> Result<FrameList, String> {
    let mut filtered = FilteredFrames::new(filter).map_err(|error| error.to_string())?.with_limit(budget.frames);
    read(path, budget, progress, &mut filtered)?.check_not_stopped()?;
    Ok(filtered.finish().into())
}

/// Returns the details of frame `focus` and of at most `neighbours` frames on each side. Reads no
/// frame after frame `until`.
pub(crate) fn details(
    path: &Path,
    (focus, neighbours): (FrameNumber, u64),
    until: FrameNumber,
    budget: &Budget,
    progress: &Progress,
) -> Result<Vec<Detail>, String> {
    let mut pass = Pass::new(Details::new(focus, neighbours).until(until));
    read(path, budget, progress, &mut pass)?.check_not_stopped()?;
    if !pass.is_complete() {
        pass.finish();
    }
    Ok(pass.into_collector().into_frames())
}

/// Returns the ladder diagram of a connection, with at most `rows` rows. Returns `None` if there is
/// no connection with the number `stream`.
pub(crate) fn ladder(
    path: &Path,
    stream: StreamId,
    rows: usize,
    budget: &Budget,
    progress: &Progress,
) -> Result<Option<Ladder>, String> {
    let mut pass = Pass::new(Timeline::new(Subject::Stream(stream), rows));
    read(path, budget, progress, &mut pass)?.check_not_stopped()?;
    pass.finish();
    Ok(pass.into_collector().ladder())
}

/// Checks that the file is a capture. Returns the reason if the file is not a capture.
pub(crate) fn check_capture(path: &Path) -> Result<(), String> {
    let file = File::open(path).map_err(|error| error.to_string())?;
    let budget = Budget { time: Duration::from_secs(10), ..Budget::default() };
    let timed = Tail::new(file, TimeLimit { budget, since: Instant::now() });
    Capture::from_reader(Box::new(timed)).map(drop).map_err(|error| reason(&error))
}

/// Returns the error as a clause with a subject. Most messages of [`OpenError`] have no subject,
/// because they are written to follow the name of a file.
pub(super) fn reason(error: &OpenError) -> String {
    match error {
        OpenError::Io(error) => error.to_string(),
        other => format!("it {other}"),
    }
}

/// How a pass over a capture ended.
struct ReadOutcome {
    /// Why not all frames were read. `None` if all needed frames were read.
    note: Option<String>,
    /// Whether the server stopped the pass. Otherwise the note is about the file.
    is_stopped: bool,
}

impl ReadOutcome {
    /// Rejects the result of a pass that the server stopped. Such a result is incomplete, but would
    /// look complete.
    ///
    /// # Errors
    /// Returns the reason why the server stopped the pass.
    fn check_not_stopped(self) -> Result<(), String> {
        match self.note {
            Some(why) if self.is_stopped => Err(why),
            _ => Ok(()),
        }
    }
}

/// Gives frames to `reader` until `reader` needs no more frames, until the file ends, or until the
/// time or the memory is used up.
fn read(path: &Path, budget: &Budget, progress: &Progress, reader: &mut impl Reader) -> Result<ReadOutcome, String> {
    let file = File::open(path).map_err(|error| error.to_string())?;
    let since = Instant::now();
    let timed = Tail::new(file, TimeLimit { budget: budget.clone(), since });
    let mut capture = Capture::from_reader(Box::new(timed)).map_err(|error| reason(&error))?;
    let mut stopped = None;
    let goes_on = |reader: &mut _, frame: FrameNumber| {
        let frames = u64::from(frame);
        if frames.is_multiple_of(STRIDE) {
            progress.frames.store(frames, Relaxed);
            let why = if progress.share.resize(Reader::memory(reader)) {
                budget.check(since).err().map(|error| error.to_string())
            } else {
                Some(NO_MEMORY.to_owned())
            };
            stopped = why.map(|why| format!("reading stopped after frame {frame}: {why}"));
        }
        stopped.is_none()
    };
    Ok(match browse::read(&mut capture, 0, reader, goes_on) {
        Stop::Cancelled => ReadOutcome { note: stopped, is_stopped: true },
        Stop::ReaderComplete => ReadOutcome { note: None, is_stopped: false },
        // If a read call failed because the budget was used up, the capture reports a damaged file.
        // To distinguish this case from real damage, check the budget again.
        Stop::AtEnd => {
            ReadOutcome { note: capture.note().map(str::to_owned), is_stopped: budget.check(since).is_err() }
        }
    })
}

impl Budget {
    fn check(&self, since: Instant) -> io::Result<()> {
        if *self.stopped.borrow() {
            return Err(io::Error::other("the server is stopping"));
        }
        if since.elapsed() > self.time {
            return Err(io::Error::new(
                io::ErrorKind::TimedOut,
                format!("reading takes longer than the limit of {} s", self.time.as_secs()),
            ));
        }
        Ok(())
    }
}

/// Limits the time for reading a file. The check between frames is not enough: a small compressed
/// file can unpack to very many bytes without a frame.
struct TimeLimit {
    budget: Budget,
    since: Instant,
}

impl Control for TimeLimit {
    fn readable(&mut self, _: u64) -> io::Result<u64> {
        self.budget.check(self.since)?;
        Ok(u64::MAX)
    }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::super::memory::Memory;
    use super::*;

    fn path(name: &str) -> PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../captures").join(name)
    }

    /// Makes a progress with unlimited memory.
    fn free() -> Progress {
        Progress::new(Memory::new(usize::MAX).share())
    }

    /// Makes a capture of `count` connections. Each connection has one packet, an MPA Request.
    fn connections(count: u32) -> tempfile::NamedTempFile {
        let mut file = tempfile::NamedTempFile::with_suffix(".pcap").unwrap();
        // Version 2.4, link type 101: each frame is an IP packet.
        let mut octets =
            Vec::from([0xd4, 0xc3, 0xb2, 0xa1, 2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 101, 0, 0, 0]);
        for number in 0..count {
            let request = *b"MPA ID Req Frame\x40\x01\x00\x00";
            let [high, low] = u16::try_from(number % 50_000 + 1000).unwrap().to_be_bytes();
            let host = u8::try_from(number / 50_000).unwrap();
            let ip = [0x45, 0, 0, 60, 0, 0, 0, 0, 64, 6, 0, 0, 10, 0, host, 1, 10, 1, 0, 2];
            let tcp = [high, low, 0x1c, 0x06, 0, 0, 0, 1, 0, 0, 0, 1, 0x50, 0x18, 4, 0, 0, 0, 0, 0];
            let record = [number.to_le_bytes(), [0; 4], [60, 0, 0, 0], [60, 0, 0, 0]].concat();
            octets.extend([&record[..], &ip, &tcp, &request].concat());
        }
        std::io::Write::write_all(&mut file, &octets).unwrap();
        file
    }

    #[test]
    fn many_connections_take_bounded_memory() {
        let file = connections(12_000);
        let survey = make_survey(file.path(), &Budget::default(), &free()).unwrap();
        assert_eq!((survey.stats.connections().count(), survey.stats.unstored_connections()), (10_000, 2000));
        assert_eq!(survey.stats.totals().connections, 12_000);
        let more = make_survey(connections(24_000).path(), &Budget::default(), &free()).unwrap();
        // This survey has 12,000 more rows, each with its text, addresses and problems.
        assert!(more.memory() < survey.memory() + (12_000 * 640), "{} {}", more.memory(), survey.memory());
    }

    #[test]
    fn a_survey_stops_when_there_is_no_memory_left() {
        let file = connections(12_000);
        let memory = Memory::new(8 << 20);
        let progress = Progress::new(memory.share());
        let survey = make_survey(file.path(), &Budget::default(), &progress).unwrap();
        let rows = survey.index.rows().len();
        assert!((256..12_000).contains(&rows) && progress.share.is_exhausted(), "{rows}");
        assert!(survey.note.as_ref().is_some_and(|note| note.contains("memory")), "{:?}", survey.note);
        // There is no list, because an incomplete list would look complete.
        let filtered = filter_frames(file.path(), "tcp", &Budget::default(), &Progress::new(memory.share()));
        assert!(filtered.is_err_and(|why| why.contains("memory")));
    }

    #[test]
    fn one_pass_makes_the_complete_survey() {
        let survey = make_survey(&path("siw/probe-ops.pcap"), &Budget::default(), &free()).unwrap();
        assert!(
            survey.note.is_none() && survey.stats.connections().count() > 0 && !survey.operations.list().is_empty()
        );
        assert!(survey.memory() > browse::Collector::memory(&survey.index));
    }

    #[test]
    fn a_pass_ends_at_its_time_limit_or_when_the_server_stops() {
        let budget = Budget { time: Duration::ZERO, ..Budget::default() };
        let survey = make_survey(&path("siw/rping-crc.pcap"), &budget, &free());
        assert!(survey.unwrap_err().contains("longer than the limit of 0 s"));
        let (_stop, stopped) = watch::channel(true);
        let survey = make_survey(&path("siw/rping-crc.pcap"), &Budget { stopped, ..Budget::default() }, &free());
        assert!(survey.unwrap_err().contains("is stopping"));
    }

    #[test]
    fn an_incomplete_survey_has_a_note() {
        let budget = Budget { frames: 10, ..Budget::default() };
        let survey = make_survey(&path("siw/rping-crc.pcap"), &budget, &free()).unwrap();
        assert_eq!(
            (survey.index.rows().len(), survey.note.as_deref()),
            (10, Some("only the first 10 frames are shown"))
        );
        assert_eq!(filter_frames(&path("siw/rping-crc.pcap"), "frame", &budget, &free()).unwrap().len(), 10);
    }

    #[test]
    fn recognises_captures() {
        assert!(check_capture(&path("README.md")).unwrap_err().contains("is not a capture that weft reads"));
        assert!(check_capture(&path("siw/rping-crc.pcap")).is_ok());
        assert!(check_capture(&path("none")).is_err());
    }
}
