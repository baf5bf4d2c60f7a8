//! `weft explain`: prints the fields of one frame, each with its bytes, value, meaning and section
//! of the specification.

mod tcp;

use std::io::{self, BufWriter, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use weft_dissector::output::text::{counted, summary};
use weft_dissector::tree::{Node, tree};
use weft_dissector::unit::Unit;
use weft_dissector::{Dissector, Finding, FrameNumber, Location, Packet, Sink, TransportKind};

use crate::colour::{Colour, ColourChoice};
use crate::exit::reject;
use crate::input::{DecodeAs, Input, Next};

use self::tcp::TcpAnalysis;

/// The command line.
#[derive(clap::Args)]
#[command(after_help = "Example:\n  \
    weft explain capture.pcap 12     explain frame 12")]
pub(crate) struct Arguments {
    /// Read this capture (such as pcapng, also compressed); use - for standard input
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Explain the frame with this number; the first frame is 1
    #[arg(value_name = "FRAME", value_parser = frame_number)]
    frame: FrameNumber,
    #[command(flatten)]
    decode: DecodeAs,
    /// Choose when to use colour
    #[arg(long, value_enum, default_value_t)]
    color: ColourChoice,
}

/// Parses the number of a frame.
fn frame_number(text: &str) -> Result<FrameNumber, &'static str> {
    text.parse().map_err(|_| "not the number of a frame, such as 12")
}

/// Maximum number of bytes that are printed for a field.
const MAX_SHOWN_OCTETS: usize = 8;

/// Reads the capture and explains the frame.
pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let mut input = Input::open(&arguments.file)?;
    let name = input.name().to_owned();
    let mut explain = Explain { number: arguments.frame, ..Explain::default() };
    let mut dissector = arguments.decode.apply(Dissector::default());
    let mut origin = None;
    while let Next::Frame(frame) = input.next() {
        let origin = *origin.get_or_insert(frame.time);
        if frame.number == arguments.frame {
            explain.octets = frame.octets.to_vec();
            explain.head = Some((frame.time.saturating_sub(origin), frame.wire_len));
        }
        explain.analysis.frame(&frame);
        dissector.frame(&frame, &mut explain);
    }
    dissector.finish(&mut explain);
    let frames = input.frames();
    input.close()?;
    let Some((since, wire_len)) = explain.head else {
        reject!("{name}: there is no frame {}; the last frame is {frames}", arguments.frame);
    };
    let mut out = BufWriter::new(io::stdout().lock());
    let colour = arguments.color.decide();
    let captured = explain.octets.len();
    let head = format!(
        "Frame {} of {name}: {captured} of {wire_len} bytes captured, {}.{:06} s after the first frame",
        arguments.frame,
        since / 1_000_000_000,
        since % 1_000_000_000 / 1_000
    );
    writeln!(out, "{}", colour.strong(&head))?;
    explain.print(colour, &mut out)?;
    out.flush()?;
    Ok(ExitCode::SUCCESS)
}

/// Collects the units and findings of one frame.
#[derive(Default)]
struct Explain {
    /// Number of the frame.
    number: FrameNumber,
    /// Nanoseconds since the first frame of the capture, and the length of the frame on the wire in
    /// bytes.
    head: Option<(u64, u32)>,
    /// The captured bytes of the frame.
    octets: Vec<u8>,
    packet: Option<Packet>,
    analysis: TcpAnalysis,
    /// What TCP shows about the frame.
    tcp_lines: Vec<String>,
    units: Vec<Explained>,
    findings: Vec<Finding>,
}

/// A unit with some of its bytes in the frame.
struct Explained {
    /// The summary of the unit.
    line: String,
    rows: Vec<Row>,
}

/// A field, or a group of fields, as a row of the output.
struct Row {
    /// Number of groups that contain this field.
    depth: usize,
    label: String,
    value: String,
    section: &'static str,
    located: Vec<Location>,
}

impl Sink for Explain {
    fn unit(&mut self, unit: &Unit<'_>) {
        let is_complete = unit.frame == self.number;
        // A unit belongs to its last frame, but some of its bytes can be in this frame.
        let part = || unit.locate(0..unit.octets_len()).iter().any(|located| located.frame == self.number);
        if !is_complete && (unit.frame < self.number || !part()) {
            return;
        }
        let mut line = summary(unit);
        if !is_complete {
            line = format!("{line}  (complete in frame {})", unit.frame);
        }
        let mut rows = Vec::new();
        flatten(&tree(unit), 0, unit, &mut rows);
        self.units.push(Explained { line, rows });
    }

    fn finding(&mut self, finding: &Finding) {
        if finding.frame == self.number || finding.locations.iter().any(|located| located.frame == self.number) {
            self.findings.push(finding.clone());
        }
    }

    fn packet(&mut self, packet: &Packet) {
        self.analysis.packet(packet);
        if packet.frame == self.number {
            self.packet = Some(*packet);
            self.tcp_lines = self.analysis.lines(packet.payload_len);
        }
    }
}

/// Appends the nodes of a tree, and all nodes below them, to `rows`.
fn flatten(nodes: &[Node], depth: usize, unit: &Unit<'_>, rows: &mut Vec<Row>) {
    for node in nodes {
        rows.push(Row {
            depth,
            label: node.label.to_owned(),
            value: node.value.clone(),
            section: node.section,
            located: if node.children.is_empty() { unit.locate(node.range.clone()) } else { Vec::new() },
        });
        flatten(&node.children, depth + 1, unit, rows);
    }
}

impl Explain {
    fn print(&self, colour: Colour, out: &mut dyn Write) -> io::Result<()> {
        match &self.packet {
            None => writeln!(out, "The frame has no TCP or UDP header, or is a fragment of an incomplete IP packet.")?,
            Some(packet) => {
                let Packet { src, dst, payload_len, .. } = packet;
                match packet.transport {
                    TransportKind::Udp => writeln!(out, "UDP {src} → {dst}, {payload_len} bytes")?,
                    TransportKind::Tcp { stream, seq, syn, fin, rst, ack } => {
                        write!(out, "TCP connection {stream}, {src} → {dst}, sequence number {seq}")?;
                        for (set, flag) in [(syn, "SYN"), (fin, "FIN"), (rst, "RST"), (ack, "ACK")] {
                            if set {
                                write!(out, ", {flag}")?;
                            }
                        }
                        writeln!(out, ", {payload_len} bytes")?;
                    }
                }
                self.tcp_lines.iter().try_for_each(|line| writeln!(out, "{line}"))?;
                if self.units.is_empty() {
                    writeln!(out, "The frame has no new bytes of a start-up frame, FPDU or other unit.")?;
                }
            }
        }
        for unit in &self.units {
            writeln!(out, "\n{}", colour.strong(&unit.line))?;
            for row in &unit.rows {
                self.row(row, colour, out)?;
            }
        }
        for finding in &self.findings {
            let row = finding.requirement.row();
            let head = format!("{} {}  {} ({} {})", finding.severity, row.id, row.level, row.catalogue, row.section);
            writeln!(out, "\n{}", colour.severity(finding.severity, &head))?;
            writeln!(out, "  {}", row.summary)?;
            if let Some(sentence) = row.sentence {
                writeln!(out, "  {}: \"{sentence}\"", row.citation())?;
            }
            writeln!(out, "  expected {}; found {}", finding.expected, finding.found)?;
            for located in &finding.locations {
                let (frame, len) = (located.frame, counted(located.len, "byte"));
                match located.offset {
                    Some(offset) => writeln!(out, "  in frame {frame}: {len} at offset {offset}")?,
                    None => writeln!(out, "  in frame {frame}: {len}")?,
                }
            }
        }
        Ok(())
    }

    fn row(&self, row: &Row, colour: Colour, out: &mut dyn Write) -> io::Result<()> {
        let indent = 2 * row.depth;
        if row.depth == 0 && row.value.is_empty() {
            return writeln!(out, "  {:32}{:43}{}", "", row.label, colour.faint(row.section));
        }
        let (offset, octets) = self.octets_of(&row.located);
        let colon = if row.value.is_empty() { "" } else { ": " };
        let text = format!("{:indent$}{}{colon}{}", "", row.label, row.value);
        let text = format!("  {offset:<6}{octets:<26}{text:<42}");
        writeln!(out, "{}", format!("{text} {}", colour.faint(row.section)).trim_end())
    }

    /// Returns the offset of a field in this frame and the first bytes of the field, as text. For a
    /// field in another frame, returns the number of that frame instead of the bytes.
    fn octets_of(&self, located: &[Location]) -> (String, String) {
        let Some(here) = located.iter().find(|located| located.frame == self.number) else {
            return match located.first() {
                Some(other) => (String::new(), format!("in frame {}", other.frame)),
                None => (String::new(), String::new()),
            };
        };
        let Some(offset) = here.offset.map(|offset| offset as usize) else { return ("?".into(), String::new()) };
        let len = usize::try_from(here.len).unwrap_or(usize::MAX);
        let octets = self.octets.get(offset..offset.saturating_add(len).min(self.octets.len())).unwrap_or(&[]);
        let mut shown: Vec<_> = octets.iter().take(MAX_SHOWN_OCTETS).map(|octet| format!("{octet:02x}")).collect();
        if octets.len() > MAX_SHOWN_OCTETS || located.len() > 1 {
            shown.truncate(MAX_SHOWN_OCTETS - 1);
            shown.push("…".to_owned());
        }
        (offset.to_string(), shown.join(" "))
    }
}
