//! Prints a capture frame by frame, like tshark: in one of the formats of -T, or as statistics.
//!
//! A frame can have several units. A unit is a message, or a part of a connection that weft cannot
//! decode.

use std::collections::BTreeMap;
use std::io::{self, Write};

use weft_dissector::filter::{Filter, WantedFields};
use weft_dissector::output::columns::{ColumnFormat, ColumnsWriter};
use weft_dissector::output::ek::EkWriter;
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
use super::statistics::Statistics;
use super::style::LineStyle;
use super::{Arguments, Format, Out, OutputColumns, no_match};

/// What to print, apart from the frames that pass the filter.
pub(super) struct Presentation {
    pub(super) chosen: OutputColumns,
    pub(super) statistics: Statistics,
    pub(super) style: LineStyle,
}

/// Reads the capture and prints the frames that pass the filter, and the statistics.
pub(crate) fn run(
    arguments: &Arguments,
    mut input: Input,
    mut wanted: WantedFields,
    filter: Option<&Filter>,
    presentation: Presentation,
    out: &mut Out,
) -> anyhow::Result<()> {
    let Presentation { chosen, mut statistics, style } = presentation;
    let names = style.names.clone();
    let (mut printer, keep) = Printer::new(arguments, &input, &mut wanted, (chosen, style), out)?;
    let mut reading = Reading::new(arguments, wanted, keep, filter);
    reading.run(&mut input, &mut |step| match step {
        Step::Record(record, passes, context) => {
            statistics.record(record)?;
            if passes {
                printer.record(record, &context, out)?;
            }
            Ok(())
        }
        Step::Idle => {
            out.flush()?;
            Ok(())
        }
    })?;
    printer.finish(out)?;
    statistics.print(names.as_ref(), out)?;
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
    /// A frame with its units and findings, and whether the frame passes the filter.
    Record(&'r Record, bool, RecordContext<'r>),
    /// No frame of the live capture is ready, and the next frame can take long to arrive. The
    /// callback should flush its output now.
    Idle,
}

/// The state of earlier frames that the output of a frame needs.
pub(super) struct RecordContext<'r> {
    /// The senders of all connections.
    senders: &'r Senders,
    /// Time of the previous frame that passed the filter, in nanoseconds since 1970.
    displayed: Option<u64>,
}

impl<'f> Reading<'f> {
    pub(super) fn new(
        arguments: &Arguments,
        wanted: WantedFields,
        keep: RecordParts,
        filter: Option<&'f Filter>,
    ) -> Self {
        let mut reading = Reading::of_all(&arguments.file.decode, wanted, keep, filter);
        reading.dissector = arguments.tshark.decode(reading.dissector);
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
        each: &mut dyn FnMut(Step<'_>) -> anyhow::Result<()>,
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
    fn drain(
        &mut self,
        filter: Option<&Filter>,
        each: &mut dyn FnMut(Step<'_>) -> anyhow::Result<()>,
    ) -> anyhow::Result<()> {
        while let Some(record) = self.frames.ready() {
            let passes = filter.is_none_or(|filter| filter.matches(&record.values));
            self.matched |= passes;
            let context = RecordContext { senders: &self.senders, displayed: self.frames.displayed() };
            each(Step::Record(&record, passes, context))?;
            if passes {
                self.frames.mark_displayed(&record);
            }
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
    /// No frames, because of -q or -Q.
    Nothing,
    /// Text, with the packet comments of the frames if -V requests them.
    Text(Colour, Option<Comments>, LineStyle),
    Fields(FieldsWriter),
    Json(PacketsWriter),
    Ek(EkWriter),
    Columns(ColumnsWriter),
    Pdml,
}

impl Printer {
    /// Makes the printer for -T, and prints the start of the output. Returns the printer and the
    /// parts of the records that it needs.
    fn new(
        arguments: &Arguments,
        input: &Input,
        wanted: &mut WantedFields,
        (chosen, style): (OutputColumns, LineStyle),
        out: &mut Out,
    ) -> io::Result<(Self, RecordParts)> {
        let OutputColumns { fields, columns } = chosen;
        let has_layers = fields.is_empty();
        let layers = RecordParts { layers: has_layers, findings: has_layers, ..RecordParts::default() };
        let without_parts = RecordParts::default();
        if arguments.is_quiet() {
            return Ok((Printer::Nothing, without_parts));
        }
        Ok(match arguments.format {
            Some(Format::Fields) => {
                let mut writer = FieldsWriter::new(fields, columns);
                writer.header(out)?;
                (Printer::Fields(writer), without_parts)
            }
            Some(Format::Json) => (Printer::Json(PacketsWriter::new(fields)), layers),
            Some(Format::Ek) => (Printer::Ek(EkWriter::new(fields)), layers),
            Some(Format::Pdml) => {
                pdml::head(input.name(), out)?;
                (Printer::Pdml, layers)
            }
            Some(format @ (Format::Psml | Format::Tabs)) => {
                let format = if format == Format::Psml { ColumnFormat::Psml } else { ColumnFormat::Tabs };
                let writer = ColumnsWriter::new(format, wanted);
                writer.head(out)?;
                (Printer::Columns(writer), without_parts)
            }
            Some(Format::Text) | None => {
                let comments = arguments.verbose.then(|| input.comments());
                let (trees, octets) = (arguments.verbose, arguments.hex);
                let parts = RecordParts { summaries: true, findings: true, trees, octets, ..without_parts };
                (Printer::Text(arguments.color.decide(), comments, style), parts)
            }
        })
    }

    fn record(&mut self, record: &Record, context: &RecordContext<'_>, out: &mut Out) -> io::Result<()> {
        match self {
            Printer::Nothing => Ok(()),
            Printer::Fields(writer) => writer.record(&record.values, out),
            Printer::Json(writer) => writer.record(record, out),
            Printer::Ek(writer) => writer.record(record, out),
            Printer::Columns(writer) => writer.record(&record.values, out),
            Printer::Pdml => pdml::record(record, out),
            Printer::Text(colour, comments, style) => {
                let (time, names) = (style.time(&record.facts, context.displayed), style.names.as_ref());
                writeln!(out, "{}", text::frame_line(record, &time, names))?;
                if let Some(comments) = comments {
                    out.write_all(comment_lines(comments, record.facts.number).as_bytes())?;
                }
                for unit in &record.units {
                    out.write_all(unit.tree.as_bytes())?;
                }
                for finding in &record.findings {
                    let lines = text::finding_lines_with(finding, context.senders, names);
                    writeln!(out, "{}", colour.severity(finding.severity, &lines))?;
                }
                out.write_all(hexdump(&record.octets, 0, 8).as_bytes())
            }
        }
    }

    fn finish(self, out: &mut Out) -> io::Result<()> {
        match self {
            Printer::Json(writer) => writer.finish(out),
            Printer::Columns(writer) => writer.tail(out),
            Printer::Pdml => pdml::tail(out),
            Printer::Nothing | Printer::Text(..) | Printer::Fields(_) | Printer::Ek(_) => Ok(()),
        }
    }
}
