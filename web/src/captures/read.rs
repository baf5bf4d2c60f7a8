//! Passes over a capture file, each with a time limit.

use std::fs::File;
use std::io;
use std::path::Path;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

use tokio::sync::watch;
use weft_dissector::StreamId;
use weft_dissector::browse::detail::Detail;
use weft_dissector::browse::index::MOST_FRAMES;
use weft_dissector::browse::{self, Control, Details, FrameList, Pass, Reader, Sieve, Stop, Survey, Tail};
use weft_dissector::output::ladder::Ladder;
use weft_dissector::output::story::{Story, Subject};
use weft_dissector::source::{Capture, OpenError};

use super::cache::Progress;

/// The maximum number of connections with statistics in a survey.
const MOST_CONNECTIONS: usize = 10_000;
/// A pass checks the time and the memory once in this many frames.
pub(super) const STRIDE: u64 = 256;
/// Why a pass stops that takes too much memory.
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
        Budget { time: Duration::from_secs(60), frames: MOST_FRAMES, stopped }
    }
}

/// The survey of the capture at `path`.
///
/// # Errors
/// Why the capture cannot be read.
pub(crate) fn make_survey(path: &Path, budget: &Budget, progress: &Progress) -> Result<Survey, String> {
    let mut pass = Pass::new(Survey::with_room(budget.frames, MOST_CONNECTIONS));
    let read = read(path, budget, progress, &mut pass)?;
    Ok(Survey::of(pass, read.note))
}

/// The numbers of the frames that pass the filter, among those that a survey has.
pub(crate) fn sift(path: &Path, filter: &str, budget: &Budget, progress: &Progress) -> Result<FrameList, String> {
    let mut sieve = Sieve::new(filter).map_err(|error| error.to_string())?.with_limit(budget.frames);
    read(path, budget, progress, &mut sieve)?.unstopped()?;
    Ok(sieve.finish().into())
}

/// The details of a frame and its neighbours, which are complete when frame `until` has been read.
pub(crate) fn details(
    path: &Path,
    (focus, neighbours): (u64, u64),
    until: u64,
    budget: &Budget,
    progress: &Progress,
) -> Result<Vec<Detail>, String> {
    let mut pass = Pass::new(Details::new(focus, neighbours).until(until));
    read(path, budget, progress, &mut pass)?.unstopped()?;
    if !pass.has_enough() {
        pass.finish();
    }
    Ok(pass.into_collector().into_frames())
}

/// The ladder of a connection; `None` if there is no connection with that number.
pub(crate) fn ladder(
    path: &Path,
    stream: StreamId,
    rows: usize,
    budget: &Budget,
    progress: &Progress,
) -> Result<Option<Ladder>, String> {
    let mut pass = Pass::new(Story::new(Subject::Stream(stream), rows));
    read(path, budget, progress, &mut pass)?.unstopped()?;
    pass.finish();
    Ok(pass.into_collector().ladder())
}

/// Checks that the file is a capture.
pub(crate) fn recognise(path: &Path) -> Result<(), String> {
    let file = File::open(path).map_err(|error| error.to_string())?;
    let budget = Budget { time: Duration::from_secs(10), ..Budget::default() };
    let timed = Tail::new(file, TimeLimit { budget, since: Instant::now() });
    Capture::from_reader(Box::new(timed)).map(drop).map_err(|error| reason(&error))
}

/// The reason as a clause: most messages of [`OpenError`] follow the name of a file.
pub(super) fn reason(error: &OpenError) -> String {
    match error {
        OpenError::Io(error) => error.to_string(),
        other => format!("it {other}"),
    }
}

/// How a pass over a capture ended.
struct Passed {
    /// Why not all frames were read.
    note: Option<String>,
    /// The server stopped the pass; the file is not damaged.
    is_stopped: bool,
}

impl Passed {
    /// # Errors
    /// Why the server stopped the pass: an incomplete result would look complete.
    fn unstopped(self) -> Result<(), String> {
        match self.note {
            Some(why) if self.is_stopped => Err(why),
            _ => Ok(()),
        }
    }
}

/// Hands frames to `reader` while it needs more, and while there is time and memory.
fn read(path: &Path, budget: &Budget, progress: &Progress, reader: &mut impl Reader) -> Result<Passed, String> {
    let file = File::open(path).map_err(|error| error.to_string())?;
    let since = Instant::now();
    let timed = Tail::new(file, TimeLimit { budget: budget.clone(), since });
    let mut capture = Capture::from_reader(Box::new(timed)).map_err(|error| reason(&error))?;
    let mut stopped = None;
    let goes_on = |reader: &mut _, frames: u64| {
        if frames.is_multiple_of(STRIDE) {
            progress.frames.store(frames, Relaxed);
            let why = if progress.share.hold(Reader::memory(reader)) {
                budget.check(since).err().map(|error| error.to_string())
            } else {
                Some(NO_MEMORY.to_owned())
            };
            stopped = why.map(|why| format!("reading stopped after frame {frames}: {why}"));
        }
        stopped.is_none()
    };
    Ok(match browse::read(&mut capture, 0, reader, goes_on) {
        Stop::Cancelled => Passed { note: stopped, is_stopped: true },
        Stop::HasEnough => Passed { note: None, is_stopped: false },
        // If the budget stops the reader, the capture reports damage.
        Stop::AtEnd => Passed { note: capture.note().map(str::to_owned), is_stopped: budget.check(since).is_err() },
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
                format!("it takes longer than the limit of {} s", self.time.as_secs()),
            ));
        }
        Ok(())
    }
}

/// Limits the time for reading a file: a small compressed file may unpack to very many bytes
/// without a frame.
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

    /// A progress with unlimited memory.
    fn free() -> Progress {
        Progress::new(Memory::new(usize::MAX).share())
    }

    /// A capture of `count` connections, each with one packet, an MPA Request.
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
        assert_eq!((survey.stats.connections().count(), survey.stats.further()), (10_000, 2000));
        assert_eq!(survey.stats.totals().connections, 12_000);
        let more = make_survey(connections(24_000).path(), &Budget::default(), &free()).unwrap();
        // 12,000 more rows with their texts and addresses.
        assert!(more.memory() < survey.memory() + (12_000 * 512), "{} {}", more.memory(), survey.memory());
    }

    #[test]
    fn a_survey_stops_when_there_is_no_memory_left() {
        let file = connections(12_000);
        let memory = Memory::new(8 << 20);
        let progress = Progress::new(memory.share());
        let survey = make_survey(file.path(), &Budget::default(), &progress).unwrap();
        let rows = survey.index.rows().len();
        assert!((256..12_000).contains(&rows) && progress.share.is_starved(), "{rows}");
        assert!(survey.note.as_ref().is_some_and(|note| note.contains("memory")), "{:?}", survey.note);
        // An incomplete list would look complete.
        let sifted = sift(file.path(), "tcp", &Budget::default(), &Progress::new(memory.share()));
        assert!(sifted.is_err_and(|why| why.contains("memory")));
    }

    #[test]
    fn one_pass_makes_the_complete_survey() {
        let survey = make_survey(&path("siw/probe-ops.pcap"), &Budget::default(), &free()).unwrap();
        assert!(
            survey.note.is_none() && survey.stats.connections().count() > 0 && !survey.operations.list().is_empty()
        );
        assert!(survey.memory() > survey.index.memory());
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
        assert_eq!(sift(&path("siw/rping-crc.pcap"), "frame", &budget, &free()).unwrap().len(), 10);
    }

    #[test]
    fn recognises_captures() {
        assert!(recognise(&path("README.md")).unwrap_err().contains("is not a capture that weft reads"));
        assert!(recognise(&path("siw/rping-crc.pcap")).is_ok());
        assert!(recognise(&path("none")).is_err());
    }
}
