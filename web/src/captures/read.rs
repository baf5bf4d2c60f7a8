//! Passes over a capture file, each with a time limit.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

use tokio::sync::watch;
use weft_dissector::browse::detail::Detail;
use weft_dissector::browse::{Details, Index, Sieve};
use weft_dissector::context::Context;
use weft_dissector::exchange::Exchange;
use weft_dissector::fact::{Fact, Operation};
use weft_dissector::output::ladder::Ladder;
use weft_dissector::output::story::{Story, Subject};
use weft_dissector::source::{Capture, Frame, OpenError};
use weft_dissector::stats::Stats;
use weft_dissector::unit::Unit;
use weft_dissector::{Dissector, Finding, Packet, Sink};

use super::cache::Progress;

/// The maximum number of operations in a survey.
const MOST_OPERATIONS: usize = 100_000;
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
        Budget { time: Duration::from_secs(60), frames: weft_dissector::browse::index::MOST_FRAMES, stopped }
    }
}

/// The content of a capture.
#[derive(Debug)]
pub(crate) struct Survey {
    pub(crate) index: Index,
    pub(crate) stats: Stats,
    /// Reads and atomic operations with the number of their connection, in the order of their
    /// responses.
    pub(crate) operations: Vec<(u32, Operation)>,
    /// The number of further operations.
    pub(crate) left_out: u64,
    /// Why the capture was not read to its end.
    pub(crate) note: Option<String>,
    /// Reports on connections that were joined or dropped, and on frames that were not read.
    pub(crate) remarks: Vec<String>,
}

/// A survey in progress.
struct Surveying {
    survey: Survey,
    dissector: Dissector,
    is_full: bool,
}

impl Pass for Surveying {
    fn frame(&mut self, frame: &Frame<'_>) -> bool {
        self.is_full = !self.survey.index.begin(frame);
        if !self.is_full {
            self.dissector.frame(frame, &mut self.survey);
        }
        !self.is_full
    }

    fn memory(&self) -> usize {
        self.survey.memory() + self.dissector.memory()
    }
}

impl Survey {
    /// Reads the capture at `path`.
    ///
    /// # Errors
    /// Why the capture cannot be read.
    pub(crate) fn read(path: &Path, budget: &Budget, progress: &Progress) -> Result<Self, String> {
        let survey = Survey {
            index: Index::with_room(budget.frames),
            stats: Stats::with_room(MOST_CONNECTIONS),
            operations: Vec::new(),
            left_out: 0,
            note: None,
            remarks: Vec::new(),
        };
        let mut surveying = Surveying { survey, dissector: Dissector::default(), is_full: false };
        let read = pass(path, budget, progress, &mut surveying)?;
        let Surveying { mut survey, mut dissector, is_full } = surveying;
        survey.index.end();
        dissector.finish(&mut survey);
        survey.remarks = dissector.remarks();
        survey.note =
            if is_full { Some(format!("only the first {} frames are shown", budget.frames)) } else { read.note };
        Ok(survey)
    }

    /// The approximate size in bytes.
    pub(crate) fn memory(&self) -> usize {
        self.index.memory() + self.stats.memory() + self.operations.capacity() * size_of::<(u32, Operation)>()
    }
}

impl Sink for Survey {
    fn unit(&mut self, unit: &Unit<'_>) {
        self.index.unit(unit);
        self.stats.unit(unit);
    }

    fn finding(&mut self, finding: &Finding) {
        self.index.finding(finding);
        self.stats.finding(finding);
    }

    fn fact(&mut self, stream: u32, fact: &Fact) {
        self.stats.fact(stream, fact);
        if let Fact::Operation(operation) = fact {
            if self.operations.len() < MOST_OPERATIONS {
                self.operations.push((stream, *operation));
            } else {
                self.left_out += 1;
            }
        }
    }

    fn exchange(&mut self, exchange: &Exchange, over: bool) {
        self.stats.exchange(exchange, over);
    }

    fn ended(&mut self, stream: u32, context: &Context) {
        self.stats.ended(stream, context);
    }

    fn packet(&mut self, packet: &Packet) {
        self.index.packet(packet);
        self.stats.packet(packet);
    }
}

struct Sifting {
    sieve: Sieve,
    /// Frames that may still be read.
    left: usize,
}

impl Pass for Sifting {
    fn frame(&mut self, frame: &Frame<'_>) -> bool {
        if self.left == 0 {
            return false;
        }
        self.left -= 1;
        self.sieve.frame(frame);
        true
    }

    fn memory(&self) -> usize {
        self.sieve.memory()
    }
}

/// The numbers of the frames that pass the filter, among those that a survey has.
pub(crate) fn sift(path: &Path, filter: &str, budget: &Budget, progress: &Progress) -> Result<Vec<u64>, String> {
    let sieve = Sieve::new(filter).map_err(|error| error.to_string())?;
    let mut sifting = Sifting { sieve, left: budget.frames };
    pass(path, budget, progress, &mut sifting)?.unstopped()?;
    Ok(sifting.sieve.finish())
}

struct Detailing {
    details: Details,
    dissector: Dissector,
    until: u64,
    is_past: bool,
}

impl Pass for Detailing {
    fn frame(&mut self, frame: &Frame<'_>) -> bool {
        self.is_past = frame.number > self.until;
        if !self.is_past {
            self.details.frame(frame);
            self.dissector.frame(frame, &mut self.details);
        }
        !self.is_past
    }

    /// Without the details, which are small.
    fn memory(&self) -> usize {
        self.dissector.memory()
    }
}

/// The details of a frame and its neighbours, which are complete when frame `until` has been read.
pub(crate) fn details(
    path: &Path,
    (focus, neighbours): (u64, u64),
    until: u64,
    budget: &Budget,
    progress: &Progress,
) -> Result<Vec<Detail>, String> {
    let details = Details::new(focus, neighbours);
    let mut detailing = Detailing { details, dissector: Dissector::default(), until, is_past: false };
    pass(path, budget, progress, &mut detailing)?.unstopped()?;
    let Detailing { mut details, mut dissector, is_past, .. } = detailing;
    if !is_past {
        dissector.finish(&mut details);
    }
    Ok(details.into_frames())
}

struct Drawing {
    story: Story,
    dissector: Dissector,
}

impl Pass for Drawing {
    fn frame(&mut self, frame: &Frame<'_>) -> bool {
        self.story.at(frame.time);
        self.dissector.frame(frame, &mut self.story);
        true
    }

    /// Without the story, which is small.
    fn memory(&self) -> usize {
        self.dissector.memory()
    }
}

/// The ladder of a connection; `None` if there is no connection with that number.
pub(crate) fn ladder(
    path: &Path,
    stream: u32,
    rows: usize,
    budget: &Budget,
    progress: &Progress,
) -> Result<Option<Ladder>, String> {
    let story = Story::new(Subject::Stream(stream), rows);
    let mut drawing = Drawing { story, dissector: Dissector::default() };
    pass(path, budget, progress, &mut drawing)?.unstopped()?;
    let Drawing { mut story, mut dissector } = drawing;
    dissector.finish(&mut story);
    Ok(story.ladder())
}

/// The approximate size in bytes.
pub(crate) fn memory(detail: &Detail) -> usize {
    let fields: usize = detail.units.iter().map(|unit| unit.fields.len()).sum();
    size_of::<Detail>() + detail.octets.len() + fields * 256 + detail.findings.len() * 512
}

/// Checks that the file is a capture.
pub(crate) fn recognise(path: &Path) -> Result<(), String> {
    let file = File::open(path).map_err(|error| error.to_string())?;
    let timed =
        Timed { file, budget: Budget { time: Duration::from_secs(10), ..Budget::default() }, since: Instant::now() };
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

/// A consumer of the frames of a capture.
trait Pass {
    /// The next frame; false if it needs no more.
    fn frame(&mut self, frame: &Frame<'_>) -> bool;

    /// Its approximate memory in bytes.
    fn memory(&self) -> usize;
}

/// Hands frames to `work` while it wants more, and while there is time and memory.
fn pass(path: &Path, budget: &Budget, progress: &Progress, work: &mut impl Pass) -> Result<Passed, String> {
    let file = File::open(path).map_err(|error| error.to_string())?;
    let since = Instant::now();
    let timed = Timed { file, budget: budget.clone(), since };
    let mut capture = Capture::from_reader(Box::new(timed)).map_err(|error| reason(&error))?;
    let mut frames = 0;
    while let Some(frame) = capture.next_frame() {
        frames += 1;
        if !work.frame(&frame) {
            return Ok(Passed { note: None, is_stopped: false });
        }
        if frames % STRIDE == 0 {
            progress.frames.store(frames, Relaxed);
            let memory = if progress.share.hold(work.memory()) { Ok(()) } else { Err(NO_MEMORY.to_owned()) };
            if let Err(error) = memory.and_then(|()| budget.check(since).map_err(|error| error.to_string())) {
                let note = Some(format!("reading stopped after frame {frames}: {error}"));
                return Ok(Passed { note, is_stopped: true });
            }
        }
    }
    // If the budget stops the reader, the capture reports damage.
    Ok(Passed { note: capture.note().map(str::to_owned), is_stopped: budget.check(since).is_err() })
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

/// A file with a time limit for reading: a small compressed file may unpack to very many bytes
/// without a frame.
struct Timed {
    file: File,
    budget: Budget,
    since: Instant,
}

impl Read for Timed {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        self.budget.check(self.since)?;
        self.file.read(out)
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
        let survey = Survey::read(file.path(), &Budget::default(), &free()).unwrap();
        assert_eq!((survey.stats.connections().count(), survey.stats.further()), (10_000, 2000));
        assert_eq!(survey.stats.totals().connections, 12_000);
        let more = Survey::read(connections(24_000).path(), &Budget::default(), &free()).unwrap();
        // 12,000 more rows with their texts and addresses.
        assert!(more.memory() < survey.memory() + (12_000 * 512), "{} {}", more.memory(), survey.memory());
    }

    #[test]
    fn a_survey_stops_when_there_is_no_memory_left() {
        let file = connections(12_000);
        let memory = Memory::new(8 << 20);
        let progress = Progress::new(memory.share());
        let survey = Survey::read(file.path(), &Budget::default(), &progress).unwrap();
        let rows = survey.index.rows().len();
        assert!((256..12_000).contains(&rows) && progress.share.is_starved(), "{rows}");
        assert!(survey.note.as_ref().is_some_and(|note| note.contains("memory")), "{:?}", survey.note);
        // An incomplete list would look complete.
        let sifted = sift(file.path(), "tcp", &Budget::default(), &Progress::new(memory.share()));
        assert!(sifted.is_err_and(|why| why.contains("memory")));
    }

    #[test]
    fn one_pass_makes_the_complete_survey() {
        let survey = Survey::read(&path("siw/probe-ops.pcap"), &Budget::default(), &free()).unwrap();
        assert!(survey.note.is_none() && survey.stats.connections().count() > 0 && !survey.operations.is_empty());
        assert!(survey.memory() > survey.index.memory());
    }

    #[test]
    fn a_pass_ends_at_its_time_limit_or_when_the_server_stops() {
        let budget = Budget { time: Duration::ZERO, ..Budget::default() };
        let survey = Survey::read(&path("siw/rping-crc.pcap"), &budget, &free());
        assert!(survey.unwrap_err().contains("longer than the limit of 0 s"));
        let (_stop, stopped) = watch::channel(true);
        let survey = Survey::read(&path("siw/rping-crc.pcap"), &Budget { stopped, ..Budget::default() }, &free());
        assert!(survey.unwrap_err().contains("is stopping"));
    }

    #[test]
    fn an_incomplete_survey_has_a_note() {
        let budget = Budget { frames: 10, ..Budget::default() };
        let survey = Survey::read(&path("siw/rping-crc.pcap"), &budget, &free()).unwrap();
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
