//! `-w` without `-i`: writes the frames that pass the filter, and all other frames that are
//! necessary for judging these frames again.
//!
//! A finding depends on earlier frames of its connection, and FPDUs are unreadable without the
//! start-up frames. So weft writes either all frames of a connection or none of these frames. weft
//! reads the capture twice: first to find the connections, then to copy their frames.

use std::fs::File;
use std::io::{self, BufReader, BufWriter, IsTerminal, Read, Write};
use std::path::Path;
use weft_dissector::StreamSet;

use weft_core::wire::portmap::UDP_PORT;
use weft_dissector::filter::{Filter, WantedFields};
use weft_dissector::output::excerpt::Excerpt;
use weft_dissector::output::frames::{Record, RecordParts};
use weft_dissector::output::text::counted;
use weft_dissector::source::{Frame, decompressed};
use weft_dissector::{Finding, TransportKind};

use crate::exit::{BadInput, note, reject, unwritable};
use crate::input::{DecodeAs, Input, RereadableCapture, refuse_same};

use super::Arguments;
use super::frame_writer::FrameWriter;
use super::frames::{Reading, Step};

/// The comment in the header of the pcapng file.
const COMMENT: &str = "Filtered by weft; findings are packet comments.";

/// The first bytes of a pcapng file.
const PCAPNG_MAGIC: [u8; 4] = [0x0a, 0x0d, 0x0d, 0x0a];

type Out = BufWriter<Box<dyn Write>>;

/// Reads the capture, and writes the selected frames to `to`.
pub(crate) fn run(
    arguments: &Arguments,
    to: &Path,
    wanted: &WantedFields,
    filter: Option<&Filter>,
) -> anyhow::Result<()> {
    let from = arguments.file.path()?;
    refuse_same(from, to)?;
    if to == Path::new("-") && io::stdout().is_terminal() {
        reject!("refusing to write a capture to a terminal; redirect the output or use -w FILE");
    }
    let capture = RereadableCapture::open(from)?;
    let chosen = match filter {
        Some(_) => FrameSelection::find(arguments, &capture, wanted, filter)?,
        None => FrameSelection::default(),
    };
    let mut input = capture.input()?;
    let mut wanted = wanted.clone();
    wanted.set_comments(input.comments());
    wanted.set_time_resolution(input.time_resolution());
    let copy = CaptureCopy::new(&capture, to)?;
    let mut reading = Reading::new(arguments, wanted, copy.parts(), filter);
    let written = copy.frames(&mut reading, &mut input, |record, passes| passes || chosen.has(record))?;
    note(&format!("{}: {written}", input.name()));
    reading.conclude(input)
}

/// Writes all frames of `connections` to `to`, with the findings as comments, and the frames that
/// are necessary for judging these connections again.
pub(in crate::cmd) fn write_connections(
    capture: &RereadableCapture,
    decode: &DecodeAs,
    connections: StreamSet,
    to: &Path,
) -> anyhow::Result<()> {
    let chosen = FrameSelection { connections, any: true };
    let copy = CaptureCopy::new(capture, to)?;
    let mut reading = Reading::of_all(decode, WantedFields::default(), copy.parts(), None);
    copy.frames(&mut reading, &mut capture.input()?, |record, _| chosen.has(record))?;
    Ok(())
}

/// The numbers of written frames and connections.
#[derive(Default)]
struct CopyCounts {
    frames: u64,
    connections: u64,
    /// Number of frames with findings as comments.
    commented: u64,
}

impl std::fmt::Display for CopyCounts {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (frames, connections) = (counted(self.frames, "frame"), counted(self.connections, "TCP connection"));
        write!(f, "{frames} of {connections} written, {} with findings as comments", self.commented)
    }
}

/// The frames that are written in addition to the frames that pass the filter.
#[derive(Default)]
struct FrameSelection {
    /// Connections with a frame that passes the filter.
    connections: StreamSet,
    /// Whether any frame passes the filter.
    any: bool,
}

impl FrameSelection {
    /// Reads the capture for the first time.
    fn find(
        arguments: &Arguments,
        capture: &RereadableCapture,
        wanted: &WantedFields,
        filter: Option<&Filter>,
    ) -> anyhow::Result<Self> {
        let mut chosen = FrameSelection::default();
        let (mut input, mut wanted) = (capture.input()?, wanted.clone());
        wanted.set_comments(input.comments());
        wanted.set_time_resolution(input.time_resolution());
        Reading::new(arguments, wanted, RecordParts::default(), filter).run(&mut input, &mut |step| {
            if let Step::Record(record, true, _) = step {
                chosen.any = true;
                if let Some(stream) = record.stream {
                    chosen.connections.insert(stream);
                }
            }
            Ok(())
        })?;
        Ok(chosen)
    }

    /// Returns whether the frame is necessary for judging the frames that pass the filter. Port
    /// mapper messages are necessary, because they name addresses of iWARP and SDP connections. IP
    /// fragments are necessary, because weft does not know their connection.
    fn has(&self, record: &Record) -> bool {
        let is_port_mapper = || {
            record.facts.packet.is_some_and(|packet| {
                let ports = [packet.src.port(), packet.dst.port()];
                packet.transport == TransportKind::Udp && ports.contains(&UDP_PORT)
            })
        };
        match record.stream {
            Some(stream) => self.connections.contains(stream),
            None => self.any && (record.fragment || is_port_mapper()),
        }
    }
}

/// A reader that ends where the file cannot be read or decompressed. weft then copies the frames
/// before this position. The [`Input`] of the same file reports the damage.
struct UndamagedReader<R>(R);

impl<R: Read> Read for UndamagedReader<R> {
    fn read(&mut self, octets: &mut [u8]) -> io::Result<usize> {
        match self.0.read(octets) {
            Err(error) if error.kind() != io::ErrorKind::Interrupted => Ok(0),
            read => read,
        }
    }
}

/// Writes the copied frames.
enum CaptureCopy {
    /// The input is a pcapng, whose blocks are copied.
    Pcapng(Box<Excerpt<Box<dyn Read>, Out>>),
    /// The input has another format, without comments.
    Other(Box<FrameWriter<Out>>),
}

impl CaptureCopy {
    fn new(capture: &RereadableCapture, path: &Path) -> anyhow::Result<Self> {
        let fault = |error: io::Error| BadInput(format!("{}: {}", path.display(), unwritable(path, &error)));
        let mut from = decompressed(Box::new(capture.octets()))?;
        let mut magic = Vec::new();
        (&mut from).take(PCAPNG_MAGIC.len() as u64).read_to_end(&mut magic)?;
        let out: Box<dyn Write> =
            if path == Path::new("-") { Box::new(io::stdout()) } else { Box::new(File::create(path).map_err(fault)?) };
        let out = BufWriter::with_capacity(1 << 16, out);
        if magic == PCAPNG_MAGIC {
            let from = UndamagedReader(io::Cursor::new(magic).chain(from));
            let from: Box<dyn Read> = Box::new(BufReader::new(from));
            return Ok(CaptureCopy::Pcapng(Box::new(Excerpt::new(from, out, COMMENT))));
        }
        Ok(CaptureCopy::Other(Box::new(FrameWriter::new(out, COMMENT).map_err(fault)?)))
    }

    /// The parts of a record that [`CaptureCopy::record`] needs.
    fn parts(&self) -> RecordParts {
        let needs_octets = matches!(self, CaptureCopy::Other(_));
        RecordParts { octets: needs_octets, findings: true, ..RecordParts::default() }
    }

    /// Copies the frames for which `is_wanted` returns true. Its second argument is whether the
    /// frame passes the filter.
    fn frames(
        mut self,
        reading: &mut Reading<'_>,
        input: &mut Input,
        is_wanted: impl Fn(&Record, bool) -> bool,
    ) -> anyhow::Result<CopyCounts> {
        let (mut written, mut connections) = (CopyCounts::default(), StreamSet::default());
        reading.run(input, &mut |step| match step {
            // If the dissector reports a finding after the record of the finding's frame, the
            // finding gets a separate record. The separate record has no frame to copy.
            Step::Record(record, passes, _) if record.facts.len.is_some() && is_wanted(record, passes) => {
                if let Some(stream) = record.stream {
                    connections.insert(stream);
                }
                self.record(record, &mut written)?;
                Ok(())
            }
            Step::Record(..) | Step::Idle => Ok(()),
        })?;
        self.finish(reading.is_at_limit(input))?;
        written.connections = connections.count();
        Ok(written)
    }

    fn record(&mut self, record: &Record, written: &mut CopyCounts) -> io::Result<()> {
        let comments: Vec<_> = record.findings.iter().map(comment).collect();
        let is_commented = match self {
            CaptureCopy::Pcapng(excerpt) => excerpt.packet(record.facts.number, &comments)?,
            CaptureCopy::Other(writer) => {
                let frame = Frame {
                    number: record.facts.number,
                    time: record.facts.time,
                    interface: record.interface,
                    link_type: record.link_type,
                    octets: &record.octets,
                    wire_len: record.facts.len.map_or(0, |(wire_len, _)| wire_len),
                };
                writer.frame(&frame, &comments)?;
                true
            }
        };
        written.frames += 1;
        written.commented += u64::from(is_commented && !comments.is_empty());
        Ok(())
    }

    /// Completes the output. If `-c` did not end the reading (`is_at_limit` is false), also copies
    /// the blocks after the last frame, because these blocks can describe earlier frames.
    fn finish(self, is_at_limit: bool) -> io::Result<()> {
        match self {
            CaptureCopy::Pcapng(excerpt) if is_at_limit => excerpt.into_output().map(drop),
            CaptureCopy::Pcapng(excerpt) => excerpt.finish().map(drop),
            CaptureCopy::Other(writer) => writer.finish(),
        }
    }
}

/// Formats a finding as a packet comment.
pub(super) fn comment(finding: &Finding) -> String {
    let row = finding.requirement.row();
    format!(
        "{} {} ({}): {}; expected {}; found {}",
        finding.severity, row.id, row.level, row.summary, finding.expected, finding.found
    )
}
