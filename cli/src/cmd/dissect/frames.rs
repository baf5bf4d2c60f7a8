//! Prints a capture frame by frame, as tshark does: as text, fields, JSON, or PDML.

use std::collections::BTreeMap;
use std::io::{self, Write};

use weft_dissector::filter::{Filter, Wanted};
use weft_dissector::output::fields::FieldsWriter;
use weft_dissector::output::frames::{Frames, Keep, Record};
use weft_dissector::output::hexdump::hexdump;
use weft_dissector::output::packets::PacketsWriter;
use weft_dissector::output::senders::Senders;
use weft_dissector::output::{pdml, text};
use weft_dissector::source::Comments;
use weft_dissector::unit::Unit;
use weft_dissector::{Dissector, Finding, Packet, Sink};

use crate::colour::Colour;
use crate::exit::note;
use crate::input::{Input, Next, remark};

use super::comments::comment_lines;
use super::count::{Counted, Counts};
use super::{Arguments, Chosen, Format, Out, no_match};

/// Reads the capture and prints the frames that pass the filter.
pub(crate) fn run(
    arguments: &Arguments,
    mut input: Input,
    wanted: Wanted,
    filter: Option<&Filter>,
    chosen: Chosen,
    out: &mut Out,
) -> anyhow::Result<()> {
    let only_fields = !chosen.fields.is_empty();
    let (mut printer, keep) = match arguments.format {
        Some(Format::Fields) => {
            let mut writer = FieldsWriter::new(chosen.fields, chosen.columns);
            writer.header(out)?;
            (Printer::Fields(writer), Keep::default())
        }
        Some(Format::Json) => {
            let layers = !only_fields;
            (Printer::Json(PacketsWriter::new(chosen.fields)), Keep { layers, findings: layers, ..Keep::default() })
        }
        Some(Format::Pdml) => {
            pdml::head(input.name(), out)?;
            (Printer::Pdml, Keep { layers: true, findings: true, ..Keep::default() })
        }
        Some(Format::Text) | None => (
            Printer::Text(arguments.color.decide(), arguments.verbose.then(|| input.comments())),
            Keep {
                summaries: true,
                findings: true,
                trees: arguments.verbose,
                octets: arguments.hex,
                ..Keep::default()
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
    gather: Gather,
    filter: Option<&'f Filter>,
    /// Maximum number of frames to read.
    limit: u64,
    /// Whether the output shows findings, so that the summary counts them.
    judged: bool,
}

/// The argument of the callback of [`Reading::run`].
pub(super) enum Step<'r> {
    /// A frame with its units and findings, whether the frame passes the filter, and the senders of
    /// all connections.
    Record(&'r Record, bool, &'r Senders),
    /// The next frame of a live capture may take long. The callback flushes its output.
    Idle,
}

impl<'f> Reading<'f> {
    pub(super) fn new(arguments: &Arguments, wanted: Wanted, keep: Keep, filter: Option<&'f Filter>) -> Self {
        let judged = keep.findings || wanted.findings();
        let dissector = if judged || wanted.monitor() { Dissector::default() } else { Dissector::units_only() };
        let dissector = arguments.file.decode.apply(dissector);
        let tally = arguments.summary.then(Tally::default);
        let gather = Gather { frames: Frames::new(wanted, keep), senders: Senders::default(), tally, matched: false };
        Reading { dissector, gather, filter, limit: arguments.count.unwrap_or(u64::MAX), judged }
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
            self.gather.frames.begin(&frame);
            self.dissector.frame(&frame, &mut self.gather);
            self.gather.frames.end(!self.dissector.holds_back());
            self.gather.drain(self.filter, each)?;
        }
        self.dissector.finish(&mut self.gather);
        self.gather.frames.finish();
        self.gather.drain(self.filter, each)?;
        Ok(())
    }

    /// Returns whether the limit of `-c` was reached, so that the rest of the capture is not read.
    pub(super) fn is_at_limit(&self, input: &Input) -> bool {
        input.frames() >= self.limit
    }

    /// Prints the notes at the end: no match of the filter, the summary, and damage of the capture.
    pub(super) fn conclude(self, input: Input) -> anyhow::Result<()> {
        if self.filter.is_some() && !self.gather.matched && input.frames() > 0 {
            note(&no_match(input.name()));
        }
        if let Some(Tally { passed: mut counts, .. }) = self.gather.tally {
            counts.frames = input.frames();
            note(&format!("{}: {}", input.name(), counts.summary(self.filter.is_some(), self.judged)));
        }
        let name = input.name().to_owned();
        input.close()?;
        remark(&name, &self.dissector);
        Ok(())
    }
}

/// Collects the units and findings of each frame from the dissector.
struct Gather {
    frames: Frames,
    senders: Senders,
    /// The counts for the summary, if `--summary` requests them.
    tally: Option<Tally>,
    /// Whether a frame has passed the filter.
    matched: bool,
}

/// Counts the units and findings of the frames that pass the filter.
///
/// A frame is pending until all of its units and findings are known. Usually only one frame is
/// pending at a time.
#[derive(Default)]
struct Tally {
    passed: Counts,
    /// Number of a pending frame, and its units and findings.
    first: u64,
    noted: Vec<Counted>,
    /// Counts of the other pending frames, by frame number.
    others: BTreeMap<u64, Counts>,
}

impl Tally {
    /// Counts a unit or finding of the pending frame `number`.
    fn note(&mut self, number: u64, counted: Counted) {
        if self.noted.is_empty() && !self.others.contains_key(&number) {
            self.first = number;
        }
        if self.first == number {
            self.noted.push(counted);
        } else {
            self.others.entry(number).or_default().one(counted);
        }
    }

    /// Adds the counts of the pending frame `number` to the totals if the frame passes the filter.
    fn decide(&mut self, number: u64, passes: bool) {
        if self.first == number {
            let noted = self.noted.drain(..);
            if passes {
                noted.for_each(|counted| self.passed.one(counted));
            }
        } else if let Some(counts) = self.others.remove(&number)
            && passes
        {
            self.passed.add(&counts);
        }
    }
}

impl Gather {
    /// Calls `each` for all complete frames.
    fn drain(&mut self, filter: Option<&Filter>, each: &mut dyn FnMut(Step<'_>) -> io::Result<()>) -> io::Result<()> {
        while let Some(record) = self.frames.ready() {
            let passes = filter.is_none_or(|filter| filter.matches(&record.values));
            self.matched |= passes;
            each(Step::Record(&record, passes, &self.senders))?;
            if let Some(tally) = &mut self.tally {
                tally.decide(record.facts.number, passes);
            }
            self.frames.recycle(record);
        }
        Ok(())
    }
}

impl Sink for Gather {
    fn unit(&mut self, unit: &Unit<'_>) {
        if let Some(tally) = &mut self.tally {
            tally.note(unit.frame, Counted::unit(unit));
        }
        self.frames.unit(unit);
    }

    fn finding(&mut self, finding: &Finding) {
        if let Some(tally) = &mut self.tally {
            tally.note(finding.frame, Counted::finding(finding));
        }
        self.frames.finding(finding);
    }

    fn packet(&mut self, packet: &Packet) {
        if let Some(tally) = &mut self.tally {
            tally.passed.packet(packet);
        }
        self.senders.packet(packet);
        self.frames.packet(packet);
    }

    fn fragment(&mut self, _: u64) {
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
