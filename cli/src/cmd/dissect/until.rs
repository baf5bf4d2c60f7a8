//! `--until finding`: waits for the first finding, and saves the frames of its connection.
//!
//! weft keeps the latest frames in memory ([`KeptFrames`]). After the first finding, it keeps only
//! frames of the connection of the finding, until the connection closes, a time has passed, or the
//! memory is full. Then it writes these frames, and the first frames of the connection.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use tempfile::{Builder, TempPath};
use weft_core::requirement::Severity;
use weft_core::wire::portmap::UDP_PORT;
use weft_dissector::output::senders::Senders;
use weft_dissector::output::text::{counted, finding_lines};
use weft_dissector::source::Frame;
use weft_dissector::unit::Unit;
use weft_dissector::{Dissector, Finding, FrameNumber, Packet, Sink, StreamId, TransportKind};

use crate::cmd::lint::select::{Selection, of_filter};
use crate::colour::Colour;
use crate::exit::{BadInput, UNEXPECTED, note, reject, unwritable};
use crate::input::{Input, Next, refuse_same, remark};
use crate::select::duration;

use super::excerpt::comment;
use super::frame_writer::FrameWriter;
use super::kept_frames::{KeptFrames, Openings, Owner};
use super::{Arguments, Out};

/// The comment in the header of the pcapng file.
const COMMENT: &str = "The connection of the first finding, saved by weft; findings are packet comments.";
/// Maximum number of findings that are comments.
const MAX_FINDINGS: usize = 4096;
/// Maximum number of connections whose FIN is remembered.
const MAX_CLOSING: usize = 4096;

/// The options of the wait.
#[derive(Debug, Clone, Copy, clap::Args)]
pub(super) struct UntilArguments {
    /// Stop at the first finding, save its connection with -w, and exit with 1
    ///
    /// weft keeps the latest frames in memory, and writes nothing before the event. The file then
    /// has the frames of the TCP connection before and after the finding, and the first frames of
    /// the connection, even if they are older than --keep. Findings are comments on their packets.
    ///
    /// A finding counts if it is an error or a warning. With -Y, each finding that passes the
    /// filter counts, for example -Y 'finding.requirement == "MPA-7.1.1-2"'.
    ///
    /// Use this option for faults that come once a night. If there is no finding, weft writes no
    /// file, keeps an existing one, and exits with 0.
    #[arg(long, value_enum, value_name = "EVENT", requires = "write", conflicts_with_all = ["json", "format", "fields",
        "verbose", "hex", "ring", "summary", "quiet", "read_filter", "statistics"])]
    pub(super) until: Option<Until>,
    /// Keep the frames of this time before the finding, such as 90s or 5m (with --until)
    #[arg(long, value_name = "TIME", default_value = "60s", requires = "until", value_parser = duration)]
    keep: Duration,
    /// Keep at most this many MiB of frames (with --until)
    #[arg(long, value_name = "MIB", default_value_t = 256, requires = "until",
        value_parser = clap::value_parser!(u32).range(1..=65_536))]
    keep_size: u32,
    /// After the finding, wait at most this time for the end of the connection (with --until)
    #[arg(long, value_name = "TIME", default_value = "10s", requires = "until", value_parser = duration)]
    after: Duration,
}

/// What ends the wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum Until {
    /// The first finding
    Finding,
}

/// Reads frames until the first finding, and saves its connection.
pub(super) fn run(arguments: &Arguments, out: &mut Out) -> anyhow::Result<ExitCode> {
    let Some(to) = &arguments.write else { reject!("--until needs -w FILE") };
    if to == Path::new("-") {
        reject!("-w - cannot be combined with --until; use -w FILE");
    }
    if !arguments.is_live() {
        arguments.file.files().try_for_each(|from| refuse_same(from, to))?;
    }
    let selection = arguments.filter.as_deref().map(of_filter).transpose()?;
    let mut input = arguments.file.open()?;
    // weft creates the file before it waits, because the wait can be long.
    let destination = Destination::create(to)?;
    let mut watch = Watch::new(arguments, selection);
    if let Some(selection) = &mut watch.selection {
        selection.set_comments(input.comments());
    }
    let mut dissector = arguments.decode(Dissector::default());
    let is_at_end = watch_frames(arguments, &mut input, &mut dissector, &mut watch, out);
    if is_at_end && watch.found.is_none() {
        dissector.finish(&mut watch);
        input.ignore_partial_frames(&mut dissector);
    }
    watch.print(out);
    let name = input.name().to_owned();
    let closed = input.close();
    remark(&name, &dissector);
    let Some(found) = watch.found.take() else {
        drop(destination);
        closed?;
        note(&format!("{name}: no finding, so no file was written"));
        return Ok(ExitCode::SUCCESS);
    };
    let path = destination.path.display().to_string();
    let written = watch.write(&found, destination)?;
    closed?;
    watch.printed?;
    let what = found.stream.map_or_else(String::new, |stream| format!(" of TCP connection {stream}"));
    note(&format!("{name}: {}{what} written to {path}; `weft why {path}` explains it", counted(written, "frame")));
    Ok(ExitCode::from(UNEXPECTED))
}

/// Reads frames until the wait is over. Returns whether the capture has ended before.
fn watch_frames(
    arguments: &Arguments,
    input: &mut Input,
    dissector: &mut Dissector,
    watch: &mut Watch,
    out: &mut Out,
) -> bool {
    let limit = arguments.count.unwrap_or(u64::MAX);
    while input.frames() < limit {
        match input.next() {
            Next::Frame(frame) => {
                watch.begin(&frame);
                dissector.frame(&frame, watch);
                if watch.end(&frame) {
                    return false;
                }
            }
            Next::Idle => {
                input.idle();
                continue;
            }
            Next::End => break,
        }
        watch.print(out);
        if let Some(deadline) = watch.deadline() {
            input.end_at(deadline);
        }
    }
    true
}

/// The first finding, and the wait after it.
struct Found {
    stream: Option<StreamId>,
    /// The findings about the connection. The first one ended the wait.
    findings: Vec<Finding>,
    /// The time at which weft no longer waits for the end of the connection, in nanoseconds since
    /// 1970.
    deadline: u64,
    /// Number of bytes in the frame of the finding and the frames after it.
    later_octets: usize,
    is_printed: bool,
}

/// The end of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Closing {
    /// Only this endpoint sent a FIN.
    Half(SocketAddr),
    /// Both endpoints sent a FIN. The last acknowledgement is missing.
    Full,
    /// The connection is over.
    Over,
}

/// Waits for the first finding.
struct Watch {
    selection: Option<Selection>,
    senders: Senders,
    kept: KeptFrames,
    openings: Openings,
    closing: BTreeMap<StreamId, Closing>,
    /// Time of the current frame, in nanoseconds since 1970.
    now: u64,
    /// The connection of the current frame.
    owner: Owner,
    /// How long to wait for the end of the connection, in nanoseconds.
    after: u64,
    found: Option<Found>,
    colour: Colour,
    /// The result of printing the finding. If this fails, weft still saves the frames.
    printed: io::Result<()>,
}

impl Watch {
    fn new(arguments: &Arguments, selection: Option<Selection>) -> Self {
        let UntilArguments { keep, keep_size, after, .. } = arguments.until;
        let nanoseconds = |duration: Duration| u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX);
        let most = usize::try_from(u64::from(keep_size) << 20).unwrap_or(usize::MAX);
        Watch {
            selection,
            senders: Senders::default(),
            kept: KeptFrames::new(nanoseconds(keep), most),
            openings: Openings::default(),
            closing: BTreeMap::new(),
            now: 0,
            owner: Owner::Nobody,
            after: nanoseconds(after),
            found: None,
            colour: arguments.color.decide(),
            printed: Ok(()),
        }
    }

    /// Registers a frame before the dissector reads it.
    fn begin(&mut self, frame: &Frame<'_>) {
        (self.now, self.owner) = (frame.time, Owner::Nobody);
        if let Some(selection) = &mut self.selection {
            selection.frame(frame);
        }
    }

    /// Keeps the frame that the dissector has read. Returns whether the wait is over.
    fn end(&mut self, frame: &Frame<'_>) -> bool {
        let Some(found) = &mut self.found else {
            if let Owner::Connection(stream) = self.owner {
                self.openings.push(stream, frame);
            }
            self.kept.push(frame, self.owner);
            return false;
        };
        let (stream, deadline) = (found.stream, found.deadline);
        if self.owner.concerns(stream) {
            // The frame of the finding is always kept. The later ones get half of the memory.
            if found.later_octets > self.kept.most() / 2 {
                return true;
            }
            found.later_octets = found.later_octets.saturating_add(frame.octets.len());
            self.kept.make_room(frame.octets.len());
            self.kept.add(frame, self.owner);
        }
        self.now > deadline || stream.is_none_or(|stream| self.closing.get(&stream) == Some(&Closing::Over))
    }

    /// The time at which the wait is over, if it has begun.
    fn deadline(&self) -> Option<u64> {
        self.found.as_ref().map(|found| found.deadline)
    }

    /// Prints the first finding, once.
    fn print(&mut self, out: &mut Out) {
        let Some(found) = self.found.as_mut().filter(|found| !found.is_printed) else { return };
        found.is_printed = true;
        if let Some(finding) = found.findings.first() {
            let lines = self.colour.severity(finding.severity, &finding_lines(finding, &self.senders));
            self.printed = writeln!(out, "{lines}").and_then(|()| out.flush());
        }
    }

    /// Writes the kept frames of the connection, after its first frames. Returns the number of
    /// frames.
    fn write(&mut self, found: &Found, mut destination: Destination) -> anyhow::Result<u64> {
        let mut comments: BTreeMap<FrameNumber, Vec<String>> = BTreeMap::new();
        for finding in &found.findings {
            comments.entry(finding.frame).or_default().push(comment(finding));
        }
        let path = destination.path.clone();
        let (mut count, mut written) = (0, Ok(()));
        let first = self.kept.first();
        let mut write = |frame: &Frame<'_>, owner: Owner| {
            if written.is_ok() && owner.concerns(found.stream) {
                let comments = comments.get(&frame.number).map_or(&[][..], Vec::as_slice);
                written = destination.writer.frame(frame, comments);
                count += 1;
            }
        };
        if let Some(mut opening) = found.stream.and_then(|stream| self.openings.take(stream)) {
            opening.for_each(|frame, owner| {
                if frame.number < first {
                    write(frame, owner);
                }
            });
        }
        self.kept.for_each(&mut write);
        written.and_then(|()| destination.finish()).map_err(|error| unwritten(&path, &error))?;
        Ok(count)
    }

    /// Notes the FINs and RSTs of a connection.
    fn close(&mut self, stream: StreamId, packet: &Packet, fin: bool, rst: bool) {
        let next = match self.closing.get(&stream) {
            _ if rst => Closing::Over,
            Some(Closing::Half(first)) if fin && *first != packet.src => Closing::Full,
            Some(Closing::Full) if !fin => Closing::Over,
            None if fin => Closing::Half(packet.src),
            _ => return,
        };
        if self.closing.len() >= MAX_CLOSING {
            self.closing.pop_first();
        }
        self.closing.insert(stream, next);
    }
}

impl Sink for Watch {
    fn unit(&mut self, unit: &Unit<'_>) {
        if let Some(selection) = &mut self.selection {
            selection.unit(unit);
        }
    }

    fn finding(&mut self, finding: &Finding) {
        if let Some(found) = &mut self.found {
            if found.stream == finding.stream && found.findings.len() < MAX_FINDINGS {
                found.findings.push(finding.clone());
            }
            return;
        }
        let counts = match &mut self.selection {
            Some(selection) => selection.finding(finding),
            None => finding.severity > Severity::Note,
        };
        if counts {
            self.kept.retain(finding.stream);
            self.found = Some(Found {
                stream: finding.stream,
                findings: vec![finding.clone()],
                deadline: self.now.saturating_add(self.after),
                later_octets: 0,
                is_printed: false,
            });
        }
    }

    fn packet(&mut self, packet: &Packet) {
        self.senders.packet(packet);
        if let Some(selection) = &mut self.selection {
            selection.packet(packet);
        }
        match packet.transport {
            TransportKind::Tcp { stream, fin, rst, .. } => {
                self.owner = Owner::Connection(stream);
                self.close(stream, packet, fin, rst);
            }
            TransportKind::Udp if [packet.src.port(), packet.dst.port()].contains(&UDP_PORT) => {
                self.owner = Owner::Any;
            }
            TransportKind::Udp => {}
        }
    }

    fn fragment(&mut self, _: FrameNumber) {
        self.owner = Owner::Any;
    }
}

/// The file that the frames go to.
///
/// The frames go to a temporary file in the same folder, so that an existing file stays as it is if
/// there is no finding. A device or a FIFO is written directly.
struct Destination {
    path: PathBuf,
    temporary: Option<TempPath>,
    writer: FrameWriter<BufWriter<File>>,
}

impl Destination {
    fn create(path: &Path) -> anyhow::Result<Self> {
        let is_special = fs::metadata(path).is_ok_and(|metadata| !metadata.is_file());
        let opened = if is_special { File::create(path).map(|file| (file, None)) } else { temporary(path) };
        let (file, temporary) = opened.map_err(|error| unwritten(path, &error))?;
        let writer = FrameWriter::new(BufWriter::new(file), COMMENT).map_err(|error| unwritten(path, &error))?;
        Ok(Destination { path: path.to_owned(), temporary, writer })
    }

    /// Ends the file and gives it its name.
    fn finish(self) -> io::Result<()> {
        self.writer.finish()?;
        match self.temporary {
            // An existing link keeps its target, as with a file that is written directly.
            Some(temporary) => {
                temporary.persist(fs::canonicalize(&self.path).unwrap_or(self.path)).map_err(io::Error::from)
            }
            None => Ok(()),
        }
    }
}

/// Makes a temporary file in the folder of `path`.
fn temporary(path: &Path) -> io::Result<(File, Option<TempPath>)> {
    let path = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let readable = fs::Permissions::from_mode(0o666);
    let made = Builder::new().prefix(".weft-").suffix(".pcapng").permissions(readable).tempfile_in(folder)?;
    let (file, temporary) = made.into_parts();
    Ok((file, Some(temporary)))
}

/// The error for a file that cannot be written.
fn unwritten(path: &Path, error: &io::Error) -> anyhow::Error {
    BadInput(format!("{}: {}", path.display(), unwritable(path, error))).into()
}
