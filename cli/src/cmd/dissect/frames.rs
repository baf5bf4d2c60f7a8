//! Prints a capture frame by frame, like tshark: as text, fields, JSON, or PDML.
//!
//! A frame can have several units. A unit is a message, or a part of a connection that weft cannot
//! decode.

use std::collections::BTreeMap;
use std::io::{self, Write};

use weft_dissector::filter::{Filter, WantedFields};
use weft_dissector::output::fields::FieldsWriter;
use weft_dissector::output::frames::{Frames, Record, RecordParts};
use weft_dissector::output::hexdump::hexdump;
use weft_dissector::output::packets::PacketsWriter;
use weft_dissector::output::senders::Senders;
use weft_dissector::output::{pdml, text};
use weft_dissector::source::Comments;
use weft_dissector::unit::Unit;
use weft_dissector::{Dissector, Finding, FrameNumber, Packet, Sink};

use crate::colour::Colour;
use crate::exit::note;
use crate::input::{DecodeAs, Input, Next, remark};

use super::comments::comment_lines;
use super::count::{CountedItem, Counts};
use super::{Arguments, Format, Out, OutputColumns, no_match};

/// Reads the capture and prints the frames that pass the filter.
pub(crate) fn run(
    arguments: &Arguments,
    mut input: Input,
    wanted: WantedFields,
    filter: Option<&Filter>,
    chosen: OutputColumns,
    out: &mut Out,
) -> anyhow::Result<()> {
    let only_fields = !chosen.fields.is_empty();
    let (mut printer, keep) = match arguments.format {
        Some(Format::Fields) => {
            let mut writer = FieldsWriter::new(chosen.fields, chosen.columns);
            writer.header(out)?;
            (Printer::Fields(writer), RecordParts::default())
        }
        Some(Format::Json) => {
            let layers = !only_fields;
            (
                Printer::Json(PacketsWriter::new(chosen.fields)),
                RecordParts { layers, findings: layers, ..RecordParts::default() },
            )
        }
        Some(Format::Pdml) => {
            pdml::head(input.name(), out)?;
            (Printer::Pdml, RecordParts { layers: true, findings: true, ..RecordParts::default() })
        }
        Some(Format::Text) | None => (
            Printer::Text(arguments.color.decide(), arguments.verbose.then(|| input.comments())),
            RecordParts {
                summaries: true,
                findings: true,
                trees: arguments.verbose,
                octets: arguments.hex,
                ..RecordParts::default()
            },
        ),
    };
    let mut reading = Reading::new(arguments, wanted, keep, filter);
    reading.run(&mut input, &mut |step| match step {
        Step::Record(record, true, senders) => printer.record(record, senders, out),
        Step::Record(_, false, _) => Ok(()),
        Step::Idle => out.flush(),
    })?;
    printer.finish(out)?;
    out.flush()?;
    reading.conclude(input)
}

/// Reads a capture, and collects the units and findings of each frame.
pub(super) struct Reading<'f> {
    dissector: Dissector,
    collector: FrameCollector,
    filter: Option<&'f Filter>,
    /// Maximum number of frames to read.
    limit: u64,
    /// Whether the output shows findings. If so, the summary also counts the findings.
    judged: bool,
}

/// The argument of the callback of [`Reading::run`].
pub(super) enum Step<'r> {
    /// A frame with its units and findings, whether the frame passes the filter, and the senders of
    /// all connections.
    Record(&'r Record, bool, &'r Senders),
    /// No frame of the live capture is ready, and the next frame can take long to arrive. The
    /// callback should flush its output now.
    Idle,
}

impl<'f> Reading<'f> {
    pub(super) fn new(
        arguments: &Arguments,
        wanted: WantedFields,
        keep: RecordParts,
        filter: Option<&'f Filter>,
    ) -> Self {
        let mut reading = Reading::of_all(&arguments.file.decode, wanted, keep, filter);
        reading.collector.pending_counts = arguments.summary.then(PendingCounts::default);
        reading.limit = arguments.count.unwrap_or(u64::MAX);
        reading
    }

    /// Reads all frames, and counts nothing for a summary.
    pub(super) fn of_all(
        decode: &DecodeAs,
        wanted: WantedFields,
        keep: RecordParts,
        filter: Option<&'f Filter>,
    ) -> Self {
        let judged = keep.findings || wanted.findings();
        let dissector = if judged || wanted.monitor() { Dissector::default() } else { Dissector::units_only() };
        let dissector = decode.apply(dissector);
        let (frames, senders) = (Frames::new(wanted, keep), Senders::default());
        let collector = FrameCollector { frames, senders, pending_counts: None, matched: false };
        Reading { dissector, collector, filter, limit: u64::MAX, judged }
    }

    /// Reads the capture, and calls `each` for each frame, in the order of the frame numbers.
    pub(super) fn run(
        &mut self,
        input: &mut Input,
        each: &mut dyn FnMut(Step<'_>) -> io::Result<()>,
    ) -> anyhow::Result<()> {
        while input.frames() < self.limit {
            let frame = match input.next() {
                Next::Frame(frame) => frame,
                Next::Idle => {
                    each(Step::Idle)?;
                    input.idle();
                    continue;
                }
                Next::End => break,
            };
            self.collector.frames.begin(&frame);
            self.dissector.frame(&frame, &mut self.collector);
            self.collector.frames.end(!self.dissector.holds_back());
            self.collector.drain(self.filter, each)?;
        }
        self.dissector.finish(&mut self.collector);
        self.collector.frames.finish();
        self.collector.drain(self.filter, each)?;
        Ok(())
    }

    /// Returns whether the limit of `-c` ended the reading. The rest of the capture is then unread.
    pub(super) fn is_at_limit(&self, input: &Input) -> bool {
        input.frames() >= self.limit
    }

    /// Prints the final notes: a note if no frame passed the filter, the summary, and a note if the
    /// capture is damaged.
    pub(super) fn conclude(mut self, input: Input) -> anyhow::Result<()> {
        if self.filter.is_some() && !self.collector.matched && input.frames() > 0 {
            note(&no_match(input.name()));
        }
        if let Some(PendingCounts { passed: mut counts, .. }) = self.collector.pending_counts {
            counts.frames = input.frames();
            note(&format!("{}: {}", input.name(), counts.summary(self.filter.is_some(), self.judged)));
        }
        let name = input.name().to_owned();
        input.ignore_partial_frames(&mut self.dissector);
        input.close()?;
        remark(&name, &self.dissector);
        Ok(())
    }
}

/// Collects the units and findings of each frame from the dissector.
struct FrameCollector {
    frames: Frames,
    senders: Senders,
    /// The counts for the summary, if `--summary` requests them.
    pending_counts: Option<PendingCounts>,
    /// Whether a frame has passed the filter.
    matched: bool,
}

/// Counts the units and findings of the frames that pass the filter.
///
/// A frame is pending until all of its units and findings are known. Usually only one frame is
/// pending at a time.
#[derive(Default)]
struct PendingCounts {
    passed: Counts,
    /// Number of a pending frame. `noted` contains the units and findings of this frame.
    first: FrameNumber,
    noted: Vec<CountedItem>,
    /// Counts of the other pending frames, by frame number.
    others: BTreeMap<FrameNumber, Counts>,
}

impl PendingCounts {
    /// Counts a unit or finding of the pending frame `number`.
    fn note(&mut self, number: FrameNumber, counted: CountedItem) {
        if self.noted.is_empty() && !self.others.contains_key(&number) {
            self.first = number;
        }
        if self.first == number {
            self.noted.push(counted);
        } else {
            self.others.entry(number).or_default().count(counted);
        }
    }

    /// Adds the counts of the pending frame `number` to the totals if the frame passes the filter.
    fn decide(&mut self, number: FrameNumber, passes: bool) {
        if self.first == number {
            let noted = self.noted.drain(..);
            if passes {
                noted.for_each(|counted| self.passed.count(counted));
            }
        } else if let Some(counts) = self.others.remove(&number)
            && passes
        {
            self.passed.add(&counts);
        }
    }
}

impl FrameCollector {
    /// Calls `each` for all complete frames.
    fn drain(&mut self, filter: Option<&Filter>, each: &mut dyn FnMut(Step<'_>) -> io::Result<()>) -> io::Result<()> {
        while let Some(record) = self.frames.ready() {
            let passes = filter.is_none_or(|filter| filter.matches(&record.values));
            self.matched |= passes;
            each(Step::Record(&record, passes, &self.senders))?;
            if let Some(pending_counts) = &mut self.pending_counts {
                pending_counts.decide(record.facts.number, passes);
            }
            self.frames.recycle(record);
        }
        Ok(())
    }
}

impl Sink for FrameCollector {
    fn unit(&mut self, unit: &Unit<'_>) {
        if let Some(pending_counts) = &mut self.pending_counts {
            pending_counts.note(unit.frame, CountedItem::unit(unit));
        }
        self.frames.unit(unit);
    }

    fn finding(&mut self, finding: &Finding) {
        if let Some(pending_counts) = &mut self.pending_counts {
            pending_counts.note(finding.frame, CountedItem::finding(finding));
        }
        self.frames.finding(finding);
    }

    fn packet(&mut self, packet: &Packet) {
        if let Some(pending_counts) = &mut self.pending_counts {
            pending_counts.passed.packet(packet);
        }
        self.senders.packet(packet);
        self.frames.packet(packet);
    }

    fn fragment(&mut self, _: FrameNumber) {
        self.frames.fragment();
    }
}

/// Prints frames in one of the formats.
enum Printer {
    /// Text, with the packet comments of the frames if -V requests them.
    Text(Colour, Option<Comments>),
    Fields(FieldsWriter),
    Json(PacketsWriter),
    Pdml,
}

impl Printer {
    fn record(&mut self, record: &Record, senders: &Senders, out: &mut Out) -> io::Result<()> {
        match self {
            Printer::Fields(writer) => writer.record(&record.values, out),
            Printer::Json(writer) => writer.record(record, out),
            Printer::Pdml => pdml::record(record, out),
            Printer::Text(colour, comments) => {
                writeln!(out, "{}", text::frame_line(record))?;
                if let Some(comments) = comments {
                    out.write_all(comment_lines(comments, record.facts.number).as_bytes())?;
                }
                for unit in &record.units {
                    out.write_all(unit.tree.as_bytes())?;
                }
                for finding in &record.findings {
                    writeln!(out, "{}", colour.severity(finding.severity, &text::finding_lines(finding, senders)))?;
                }
                out.write_all(hexdump(&record.octets, 0, 8).as_bytes())
            }
        }
    }

    fn finish(self, out: &mut Out) -> io::Result<()> {
        match self {
            Printer::Json(writer) => writer.finish(out),
            Printer::Pdml => pdml::tail(out),
            Printer::Text(..) | Printer::Fields(_) => Ok(()),
        }
    }
}
