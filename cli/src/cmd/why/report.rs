//! `--report`: writes a page for a ticket about connections with a problem, and the packets of
//! these connections next to it.
//!
//! weft reads the capture three times: to find the connections, to collect their diagrams and
//! bytes, and to copy their packets.

use std::fs::{self, File};
use std::io::{self, BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use weft_dissector::browse::Details;
use weft_dissector::diagnosis::{Diagnosis, Problem};
use weft_dissector::exchange::Exchange;
use weft_dissector::output::connection_ladder::{Subject, Timeline};
use weft_dissector::source::Frame;
use weft_dissector::unit::Unit;
use weft_dissector::{Dissector, Finding, FrameNumber, Packet, Sink, StreamSet};
use weft_suites::report::{CaptureTicket, ConnectionEvidence};

use crate::cmd::dissect::write_connections;
use crate::exit::{UNEXPECTED, note, print_line, reject, write_file};
use crate::input::{Input, Next, RereadableCapture, refuse_same, remark};

use super::{Arguments, explain};

/// Maximum number of connections in a ticket.
const MAX_CONNECTIONS: usize = 8;
/// Maximum number of frames of a connection whose bytes are shown.
const MAX_FRAMES: usize = 8;
/// Maximum number of rows of a diagram, and number of rows before and after each deciding frame.
const ROWS: (usize, usize) = (400, 5);
/// Maximum size in bytes of packets that an HTML page contains.
const MAX_INCLUDED: u64 = 1 << 20;

/// The format of the page.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Format {
    Html,
    Markdown,
}

/// Writes the page `to`. Returns the same exit code as without `--report`.
pub(super) fn run(arguments: &Arguments, to: &Path) -> anyhow::Result<ExitCode> {
    arguments.live.reject_without_interface()?;
    let from = arguments.only_file()?;
    let format = format(to)?;
    // A capture next to the page can have the name `ticket.pcapng`.
    let packets = to.with_extension("packets.pcapng");
    for written in [to, packets.as_path()] {
        refuse_same(from, written)?;
    }
    let capture = RereadableCapture::open(from)?;
    let input = capture.input()?;
    let name = input.name().to_owned();
    let (why, dissector) = explain(arguments, input)?;
    remark(&name, &dissector);
    let found = why.found(arguments.stream);
    if found.is_empty() {
        return Ok(ExitCode::from(why.report_nothing(&name, arguments)));
    }
    let is_faulty = found.iter().any(|diagnosis| !diagnosis.is_healthy());
    let (chosen, further) = choose(found, arguments.is_selective());
    if chosen.is_empty() {
        note(&format!("{name}: no connection has a problem, so there is no report; --connection N reports one anyway"));
        return Ok(ExitCode::SUCCESS);
    }
    let connections = collect(arguments, capture.input()?, &chosen);
    let mut streams = StreamSet::default();
    for diagnosis in &chosen {
        streams.insert(diagnosis.stream);
    }
    if is_new(arguments, &packets) {
        write_connections(&capture, &arguments.decode, streams, &packets)?;
    } else {
        let folder = tempfile::tempdir()?;
        let own = folder.path().join("packets.pcapng");
        write_connections(&capture, &arguments.decode, streams, &own)?;
        refuse_other(&packets, &own)?;
    }
    let included = if format == Format::Html { small_file(&packets) } else { None };
    let packets_name = packets.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let ticket = CaptureTicket { capture: name, connections, further, packets: packets_name, included };
    let text = match format {
        Format::Html => ticket.html()?,
        Format::Markdown => ticket.markdown(),
    };
    write_file(to, text)?;
    print_line!("report: {}", to.display());
    print_line!("packets: {} (with their payload; to share them without it: weft scrub)", packets.display());
    Ok(ExitCode::from(if is_faulty { UNEXPECTED } else { 0 }))
}

/// Returns whether weft may write the file with the packets. The command line does not name this
/// file, so an existing one can be a capture of the user.
fn is_new(arguments: &Arguments, packets: &Path) -> bool {
    arguments.force || fs::symlink_metadata(packets).is_err()
}

/// Fails if the existing file `packets` differs from the packets of the report, which are in `own`.
/// They are equal if there is a report in the other format.
fn refuse_other(packets: &Path, own: &Path) -> anyhow::Result<()> {
    if !has_same_content(packets, own).unwrap_or(false) {
        reject!(
            "{}: the file exists, and the packets of the report would replace it; use another name for the report, or \
             add --force",
            packets.display()
        );
    }
    Ok(())
}

/// Compares two files.
fn has_same_content(one: &Path, other: &Path) -> io::Result<bool> {
    if fs::metadata(one)?.len() != fs::metadata(other)?.len() {
        return Ok(false);
    }
    let (mut one, mut other) = (BufReader::new(File::open(one)?), BufReader::new(File::open(other)?));
    loop {
        let (some, same) = (one.fill_buf()?, other.fill_buf()?);
        let len = some.len().min(same.len());
        if some[..len] != same[..len] {
            return Ok(false);
        }
        if len == 0 {
            return Ok(some.len() == same.len());
        }
        one.consume(len);
        other.consume(len);
    }
}

/// The format that the name of the page selects.
fn format(to: &Path) -> anyhow::Result<Format> {
    let extension = to.extension().unwrap_or_default().to_string_lossy().to_lowercase();
    match &*extension {
        "html" | "htm" => Ok(Format::Html),
        "md" | "markdown" => Ok(Format::Markdown),
        _ => reject!("--report {}: use a name that ends with .html or .md", to.display()),
    }
}

impl Arguments {
    /// The only capture. Only one capture can have a report.
    fn only_file(&self) -> anyhow::Result<&PathBuf> {
        match (&self.files[..], &self.read) {
            ([path], None) | ([], Some(path)) => Ok(path),
            _ => reject!("--report needs exactly one capture"),
        }
    }
}

/// Returns the connections of the ticket, and the number of further connections. Without a
/// selection of the user, these are the connections with a problem. Connections that failed come
/// first.
fn choose(mut found: Vec<&Diagnosis>, is_selective: bool) -> (Vec<&Diagnosis>, usize) {
    if !is_selective {
        found.retain(|diagnosis| !diagnosis.is_healthy());
    }
    found.sort_by_key(|diagnosis| (!diagnosis.is_failure(), diagnosis.is_healthy()));
    let further = found.len().saturating_sub(MAX_CONNECTIONS);
    found.truncate(MAX_CONNECTIONS);
    (found, further)
}

/// Reads the capture, and collects the evidence about the connections.
fn collect(arguments: &Arguments, mut input: Input, chosen: &[&Diagnosis]) -> Vec<ConnectionEvidence> {
    let mut all = Collector(chosen.iter().map(|diagnosis| Evidence::new(diagnosis)).collect());
    let mut dissector = arguments.decode.apply(Dissector::default());
    while let Next::Frame(frame) = input.next() {
        all.begin(&frame);
        dissector.frame(&frame, &mut all);
    }
    dissector.finish(&mut all);
    let with_diagnosis = all.0.into_iter().zip(chosen);
    with_diagnosis.map(|(evidence, diagnosis)| evidence.with((*diagnosis).clone())).collect()
}

/// The content of a file, if it is small.
fn small_file(path: &Path) -> Option<Vec<u8>> {
    let is_small = fs::metadata(path).is_ok_and(|metadata| metadata.len() <= MAX_INCLUDED);
    if is_small { fs::read(path).ok() } else { None }
}

/// The deciding frames: those of the events that led to the end, and the first frames with the
/// problems that caused the end. Without such events, the first frames of all problems.
fn deciding_frames(diagnosis: &Diagnosis) -> Vec<FrameNumber> {
    let first = |problem: &Problem| problem.frames.first().copied();
    let causes = diagnosis.problems.iter().filter(|problem| problem.is_cause).filter_map(first);
    let mut frames: Vec<FrameNumber> = diagnosis.chain.iter().filter_map(|link| link.frame).chain(causes).collect();
    if frames.is_empty() {
        frames = diagnosis.problems.iter().filter_map(first).collect();
    }
    frames.sort_unstable();
    frames.dedup();
    frames.truncate(MAX_FRAMES);
    frames
}

/// Collects the diagram and the bytes of one connection.
struct Evidence {
    timeline: Timeline,
    frames: Vec<Details>,
}

impl Evidence {
    fn new(diagnosis: &Diagnosis) -> Self {
        let frames = deciding_frames(diagnosis);
        let (most, context) = ROWS;
        let mut timeline = Timeline::new(Subject::Stream(diagnosis.stream), most);
        if !frames.is_empty() {
            let relevant = frames.iter().copied().chain(diagnosis.ending.frame).collect();
            timeline = timeline.near(relevant, context);
        }
        Evidence { timeline, frames: frames.into_iter().map(|frame| Details::new(frame, 0)).collect() }
    }

    fn with(self, diagnosis: Diagnosis) -> ConnectionEvidence {
        let frames = self.frames.into_iter().flat_map(Details::into_frames).collect();
        ConnectionEvidence { diagnosis, ladder: self.timeline.ladder(), frames }
    }
}

/// Passes the dissector's results to the evidence of all connections.
struct Collector(Vec<Evidence>);

impl Collector {
    /// Registers a frame before the dissector reads it.
    fn begin(&mut self, frame: &Frame<'_>) {
        for evidence in &mut self.0 {
            evidence.timeline.at(frame.time);
            evidence.frames.iter_mut().for_each(|details| details.frame(frame));
        }
    }
}

impl Sink for Collector {
    fn unit(&mut self, unit: &Unit<'_>) {
        for evidence in &mut self.0 {
            evidence.timeline.unit(unit);
            evidence.frames.iter_mut().for_each(|details| details.unit(unit));
        }
    }

    fn finding(&mut self, finding: &Finding) {
        for evidence in &mut self.0 {
            evidence.timeline.finding(finding);
            evidence.frames.iter_mut().for_each(|details| details.finding(finding));
        }
    }

    fn exchange(&mut self, exchange: &Exchange, over: bool) {
        self.0.iter_mut().for_each(|evidence| evidence.timeline.exchange(exchange, over));
    }

    fn packet(&mut self, packet: &Packet) {
        self.0.iter_mut().for_each(|evidence| evidence.timeline.packet(packet));
    }
}
