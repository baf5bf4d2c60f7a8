//! Passes over a capture file, each with a bound on time.

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
use weft_dissector::source::{Capture, Frame};
use weft_dissector::stats::Stats;
use weft_dissector::unit::Unit;
use weft_dissector::{Dissector, Finding, Packet, Sink};

use super::cache::Progress;

/// Operations that are kept.
const MOST_OPERATIONS: usize = 100_000;
/// The clock is looked at this often, in frames.
const LOOK: u64 = 256;

/// What a pass may take.
#[derive(Debug, Clone)]
pub(crate) struct Budget {
    pub(crate) time: Duration,
    /// Frames that a survey takes in.
    pub(crate) frames: usize,
    /// Becomes `true` when the server goes down.
    pub(crate) stopped: watch::Receiver<bool>,
}

impl Default for Budget {
    fn default() -> Self {
        let stopped = watch::channel(false).1;
        Budget { time: Duration::from_secs(60), frames: weft_dissector::browse::index::MOST_FRAMES, stopped }
    }
}

/// What is in a capture.
#[derive(Debug)]
pub(crate) struct Survey {
    pub(crate) index: Index,
    pub(crate) stats: Stats,
    /// Reads and atomic operations with the number of their connection, as they were answered.
    pub(crate) operations: Vec<(u32, Operation)>,
    /// Operations that are not kept.
    pub(crate) left_out: u64,
    /// Why not all of it was read.
    pub(crate) note: Option<String>,
}

impl Survey {
    /// Reads the capture at `path`.
    ///
    /// # Errors
    /// Why it cannot be read at all.
    pub(crate) fn read(path: &Path, budget: &Budget, progress: &Progress) -> Result<Self, String> {
        let mut survey = Survey {
            index: Index::with_room(budget.frames),
            stats: Stats::default(),
            operations: Vec::new(),
            left_out: 0,
            note: None,
        };
        let mut dissector = Dissector::default();
        let mut is_full = false;
        let read = pass(path, budget, progress, |frame| {
            is_full = !survey.index.begin(frame);
            if !is_full {
                dissector.frame(frame, &mut survey);
            }
            !is_full
        })?;
        survey.index.end();
        dissector.finish(&mut survey);
        survey.note =
            if is_full { Some(format!("only the first {} frames are shown", budget.frames)) } else { read.note };
        Ok(survey)
    }

    /// Octets, about.
    pub(crate) fn memory(&self) -> usize {
        // A connection's numbers are a few kB.
        self.index.memory()
            + self.operations.capacity() * size_of::<(u32, Operation)>()
            + self.stats.connections().count() * 4096
            + self.stats.exchanges().count() * 512
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

/// Numbers of the frames that pass the filter, of those that an index holds.
pub(crate) fn sift(path: &Path, filter: &str, budget: &Budget, progress: &Progress) -> Result<Vec<u64>, String> {
    let mut sieve = Sieve::new(filter).map_err(|error| error.to_string())?;
    let mut frames = 0;
    pass(path, budget, progress, |frame| {
        frames += 1;
        if frames > budget.frames {
            return false;
        }
        sieve.frame(frame);
        true
    })?
    .unstopped()?;
    Ok(sieve.finish())
}

/// A frame and so many neighbours, of which all is known when frame `until` is read.
pub(crate) fn details(
    path: &Path,
    (focus, neighbours): (u64, u64),
    until: u64,
    budget: &Budget,
    progress: &Progress,
) -> Result<Vec<Detail>, String> {
    let mut details = Details::new(focus, neighbours);
    let mut dissector = Dissector::default();
    let mut is_past = false;
    pass(path, budget, progress, |frame| {
        is_past = frame.number > until;
        if !is_past {
            details.frame(frame);
            dissector.frame(frame, &mut details);
        }
        !is_past
    })?
    .unstopped()?;
    if !is_past {
        dissector.finish(&mut details);
    }
    Ok(details.into_frames())
}

/// The ladder of a connection; `None` where there is none of that number.
pub(crate) fn ladder(
    path: &Path,
    stream: u32,
    rows: usize,
    budget: &Budget,
    progress: &Progress,
) -> Result<Option<Ladder>, String> {
    let mut story = Story::new(Subject::Stream(stream), rows);
    let mut dissector = Dissector::default();
    pass(path, budget, progress, |frame| {
        story.at(frame.time);
        dissector.frame(frame, &mut story);
        true
    })?
    .unstopped()?;
    dissector.finish(&mut story);
    Ok(story.ladder())
}

/// Octets of memory, about.
pub(crate) fn memory(detail: &Detail) -> usize {
    let fields: usize = detail.units.iter().map(|unit| unit.fields.len()).sum();
    size_of::<Detail>() + detail.octets.len() + fields * 256 + detail.findings.len() * 512
}

/// Is it a capture at all?
pub(crate) fn recognise(path: &Path) -> Result<(), String> {
    let file = File::open(path).map_err(|error| error.to_string())?;
    let timed =
        Timed { file, budget: Budget { time: Duration::from_secs(10), ..Budget::default() }, since: Instant::now() };
    Capture::from_reader(Box::new(timed)).map(drop).map_err(|error| error.to_string())
}

/// How a pass over a capture ended.
struct Passed {
    /// Why not all frames came.
    note: Option<String>,
    /// It was this server that did not go on, and no damage of the file.
    is_stopped: bool,
}

impl Passed {
    /// # Errors
    /// Why this server did not go on: part of an answer would look like all of it.
    fn unstopped(self) -> Result<(), String> {
        match self.note {
            Some(why) if self.is_stopped => Err(why),
            _ => Ok(()),
        }
    }
}

/// Hands frames to `each` as long as it wants more.
fn pass(
    path: &Path,
    budget: &Budget,
    progress: &Progress,
    mut each: impl FnMut(&Frame<'_>) -> bool,
) -> Result<Passed, String> {
    let file = File::open(path).map_err(|error| error.to_string())?;
    let since = Instant::now();
    let timed = Timed { file, budget: budget.clone(), since };
    let mut capture = Capture::from_reader(Box::new(timed)).map_err(|error| error.to_string())?;
    let mut frames = 0;
    while let Some(frame) = capture.next_frame() {
        frames += 1;
        if !each(&frame) {
            return Ok(Passed { note: None, is_stopped: false });
        }
        if frames % LOOK == 0 {
            progress.frames.store(frames, Relaxed);
            if let Err(error) = budget.check(since) {
                let note = Some(format!("reading stopped after frame {frames}: {error}"));
                return Ok(Passed { note, is_stopped: true });
            }
        }
    }
    // A reader that was stopped is damage to who reads by it.
    Ok(Passed { note: capture.note().map(str::to_owned), is_stopped: budget.check(since).is_err() })
}

impl Budget {
    fn check(&self, since: Instant) -> io::Result<()> {
        if *self.stopped.borrow() {
            return Err(io::Error::other("the server goes down"));
        }
        if since.elapsed() > self.time {
            return Err(io::Error::new(
                io::ErrorKind::TimedOut,
                format!("it takes longer than {} s, which is as long as this server reads", self.time.as_secs()),
            ));
        }
        Ok(())
    }
}

/// A file that is read for a bounded time: a few octets may unpack to very many, of which none is a frame.
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

    use super::*;

    fn path(name: &str) -> PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../captures").join(name)
    }

    #[test]
    fn one_pass_tells_all() {
        let survey = Survey::read(&path("siw/probe-ops.pcap"), &Budget::default(), &Progress::default()).unwrap();
        assert!(survey.note.is_none() && survey.stats.connections().count() > 0 && !survey.operations.is_empty());
        assert!(survey.memory() > survey.index.memory());
    }

    #[test]
    fn a_pass_ends_when_its_time_is_over_or_the_server_goes_down() {
        let budget = Budget { time: Duration::ZERO, ..Budget::default() };
        let survey = Survey::read(&path("siw/rping-crc.pcap"), &budget, &Progress::default());
        assert!(survey.unwrap_err().contains("longer than 0 s"));
        let (_tell, stopped) = watch::channel(true);
        let survey =
            Survey::read(&path("siw/rping-crc.pcap"), &Budget { stopped, ..Budget::default() }, &Progress::default());
        assert!(survey.unwrap_err().contains("goes down"));
    }

    #[test]
    fn a_survey_of_some_frames_says_so() {
        let budget = Budget { frames: 10, ..Budget::default() };
        let survey = Survey::read(&path("siw/rping-crc.pcap"), &budget, &Progress::default()).unwrap();
        assert_eq!(
            (survey.index.rows().len(), survey.note.as_deref()),
            (10, Some("only the first 10 frames are shown"))
        );
        assert_eq!(sift(&path("siw/rping-crc.pcap"), "frame", &budget, &Progress::default()).unwrap().len(), 10);
    }

    #[test]
    fn what_is_no_capture_is_told() {
        assert!(recognise(&path("README.md")).unwrap_err().contains("no capture that weft reads"));
        assert!(recognise(&path("siw/rping-crc.pcap")).is_ok());
        assert!(recognise(&path("none")).is_err());
    }
}
