//! Prints a capture unit by unit, as text lines or JSON Lines. A unit is a message, or a part of a
//! connection that weft cannot decode.

use std::io::{self, Write};

use weft_dissector::exchange::Exchange;
use weft_dissector::filter::{Filter, WantedFields};
use weft_dissector::output::hexdump::hexdump;
use weft_dissector::output::{json::JsonWriter, senders::Senders, text};
use weft_dissector::source::Comments;
use weft_dissector::tree::tree;
use weft_dissector::unit::{Kind, Unit};
use weft_dissector::{Dissector, Finding, FrameNumber, Packet, Sink};

use crate::colour::Colour;
use crate::exit::note;
use crate::input::{Input, Next, remark};

use super::comments::comment_lines;
use super::count::Counts;
use super::events::Events;
use super::order::{LineSorter, Rank, UnitKey};
use super::selection::{Selection, Waiting};
use super::style::{LineStyle, UnitTimes};
use super::{Arguments, Out, no_match};

/// Reads the capture and prints the units that pass the filter, with their findings.
pub(crate) fn run(
    arguments: &Arguments,
    mut input: Input,
    wanted: &WantedFields,
    filter: Option<&Filter>,
    style: LineStyle,
    out: &mut Out,
) -> anyhow::Result<()> {
    let format = if arguments.is_quiet() {
        Format::Nothing
    } else if arguments.json {
        Format::Json(JsonWriter::default())
    } else {
        Format::Text {
            verbose: arguments.verbose,
            hex: arguments.hex,
            colour: arguments.color.decide(),
            senders: Senders::default(),
            comments: input.comments(),
            commented: FrameNumber::NONE,
            times: UnitTimes::new(style),
        }
    };
    let selection = filter.map(|filter| Selection::new(filter, wanted));
    let order = matches!(format, Format::Text { .. }).then(LineSorter::default);
    let printer = Printer { out, format, order, origin: None, failed: Ok(()) };
    let mut output =
        Output { printer, selection, counts: Counts::default(), now: 0, events: Events::default(), found: false };
    let mut dissector = arguments.decode(Dissector::default());
    let limit = arguments.count.unwrap_or(u64::MAX);
    while input.frames() < limit {
        let frame = match input.next() {
            Next::Frame(frame) => frame,
            Next::Idle => {
                output.printer.pause()?;
                input.idle();
                continue;
            }
            Next::End => break,
        };
        let previous = output.printer.origin.is_some().then_some(output.now);
        let origin = *output.printer.origin.get_or_insert(frame.time);
        if let Some(selection) = &mut output.selection {
            selection.begin(&frame, origin, previous);
        }
        output.now = frame.time;
        output.printer.begin(frame.number, frame.time);
        dissector.frame(&frame, &mut output);
        std::mem::replace(&mut output.printer.failed, Ok(()))?;
    }
    dissector.finish(&mut output);
    output.release();
    output.printer.finish()?;
    output.counts.frames = input.frames();
    if arguments.summary || arguments.quiet {
        note(&format!("{}: {}", input.name(), output.counts.summary(filter.is_some(), true)));
    }
    let (name, frames) = (input.name().to_owned(), input.frames());
    let nothing = output.counts.no_messages(output.events.resets);
    let (found, nothing) = (output.found, format!("{name}: {nothing}"));
    let empty = output.selection.filter(|selection| !selection.matched);
    let hidden = empty.as_ref().is_some_and(|selection| selection.has_hidden_segment);
    let is_empty = empty.is_some();
    input.ignore_partial_frames(&mut dissector);
    input.close()?;
    remark(&name, &dissector);
    if !found && frames > 0 {
        note(&nothing);
    } else if hidden {
        note(&format!("{name}: no unit passes the filter, but frames do; print frames with -T, such as -T text"));
    } else if is_empty && frames > 0 {
        note(&no_match(&name));
    }
    Ok(())
}

/// The output format. `Nothing` is `--quiet`.
enum Format {
    Nothing,
    Json(JsonWriter),
    Text {
        verbose: bool,
        hex: bool,
        colour: Colour,
        senders: Senders,
        comments: Comments,
        /// The number of the frame whose comments were printed last.
        commented: FrameNumber,
        times: UnitTimes,
    },
}

/// Renders units and findings.
struct Printer<'o> {
    out: &'o mut Out,
    format: Format,
    /// Sorts text lines by frame. `None` for other formats.
    order: Option<LineSorter>,
    /// Capture time of the first frame, in nanoseconds since 1970.
    origin: Option<u64>,
    /// The first error of `out`. It is stored here because the dissector's callbacks cannot return
    /// errors.
    failed: io::Result<()>,
}

/// Receives units and findings from the dissector, and prints them if they pass the filter.
struct Output<'o, 'f> {
    printer: Printer<'o>,
    selection: Option<Selection<'f>>,
    counts: Counts,
    /// Capture time of the current frame, in nanoseconds since 1970.
    now: u64,
    events: Events,
    /// Whether the capture has any iWARP or SDP message.
    found: bool,
}

impl Output<'_, '_> {
    /// Prints the waiting unit if it passes the filter.
    fn release(&mut self) {
        let Some(selection) = &mut self.selection else { return };
        if let Some(waiting) = selection.waiting.take()
            && selection.filter.matches(&selection.waiting_values)
        {
            selection.matched = true;
            self.counts.add(&waiting.counts);
            self.printer.octets(waiting.key, waiting.rendered);
        }
    }
}

impl Sink for Output<'_, '_> {
    fn unit(&mut self, unit: &Unit<'_>) {
        self.found |= !matches!(unit.kind, Kind::Streaming { .. } | Kind::Gap { .. } | Kind::Unparsed { .. });
        self.release();
        let origin = self.printer.origin.unwrap_or(0);
        let key = (unit.stream, unit.direction, unit.frame);
        let Some(selection) = &mut self.selection else {
            self.counts.unit(unit);
            return self.printer.unit(unit, key);
        };
        selection.collect(unit, origin);
        if selection.wanted.findings() {
            std::mem::swap(&mut selection.values, &mut selection.waiting_values);
            let mut rendered = Vec::new();
            // Writing to memory cannot fail.
            let _ = self.printer.format.unit(unit, origin, &mut rendered);
            let mut counts = Counts::default();
            counts.unit(unit);
            selection.waiting = Some(Waiting { key, rendered, counts });
            return;
        }
        let passed = selection.filter.matches(&selection.values);
        selection.decided(key, passed);
        selection.matched |= passed;
        if passed {
            self.counts.unit(unit);
            self.printer.unit(unit, key);
        }
    }

    fn finding(&mut self, finding: &Finding) {
        let Some(selection) = &mut self.selection else {
            self.counts.finding(finding);
            return self.printer.finding(finding);
        };
        let key = (finding.stream, finding.direction, finding.frame);
        if let Some(waiting) = selection.waiting.as_mut().filter(|waiting| waiting.key == key) {
            selection.wanted.finding(finding, &mut selection.waiting_values);
            waiting.counts.finding(finding);
            let _ = self.printer.format.finding(finding, &mut waiting.rendered);
            return;
        }
        let verdict = if selection.wanted.findings() { None } else { selection.verdict(key) };
        selection.values.clear();
        selection.wanted.finding(finding, &mut selection.values);
        if !selection.add_frame(finding.frame) {
            selection.wanted.frame_of_finding(finding, &mut selection.values);
        }
        if verdict.unwrap_or_else(|| selection.filter.matches(&selection.values)) {
            selection.matched = true;
            self.release();
            self.counts.finding(finding);
            self.printer.finding(finding);
        }
    }

    fn exchange(&mut self, exchange: &Exchange, over: bool) {
        if over && self.selection.is_none() && self.printer.failed.is_ok() {
            self.printer.failed = self.printer.format.exchange(exchange, &mut *self.printer.out);
        }
    }

    fn packet(&mut self, packet: &Packet) {
        self.counts.packet(packet);
        match &mut self.printer.format {
            Format::Nothing => {}
            Format::Json(writer) => writer.packet(packet),
            Format::Text { senders, .. } => senders.packet(packet),
        }
        if let Some(selection) = &mut self.selection {
            selection.packet(packet);
        }
        let event = self.events.of(packet);
        let selects_segments = self.selection.as_ref().is_some_and(|selection| selection.selects_segments);
        if event.is_none() && !selects_segments {
            return;
        }
        let Some(order) = &mut self.printer.order else {
            if let Some(selection) = self.selection.as_mut().filter(|it| selects_segments && !it.has_hidden_segment) {
                selection.has_hidden_segment = selection.frame_passes(packet.frame);
            }
            return;
        };
        if let Some(selection) = &mut self.selection {
            if !selection.frame_passes(packet.frame) {
                return;
            }
            selection.matched = true;
        }
        let (rank, what) = event.unwrap_or_else(|| (Rank::Segment, text::packet_summary(packet)));
        let Format::Text { times, .. } = &self.printer.format else { return };
        let time = times.of(packet.frame, self.now, self.printer.origin.unwrap_or(self.now));
        let line = text::event_line(packet, &time, times.style.names.as_ref(), &what);
        order.add(packet.frame, rank, None, format!("{line}\n").into());
    }
}

impl Printer<'_> {
    /// Starts a frame, and writes the lines of earlier frames that need not wait any longer.
    fn begin(&mut self, number: FrameNumber, time: u64) {
        match &mut self.format {
            Format::Nothing => {}
            Format::Json(writer) => writer.frame(number, time),
            Format::Text { times, .. } => times.begin(number, time),
        }
        if let Some(order) = &mut self.order {
            order.begin(number);
            if self.failed.is_ok() {
                self.failed = order.drain(&mut *self.out);
            }
        }
    }

    fn unit(&mut self, unit: &Unit<'_>, key: UnitKey) {
        let origin = self.origin.unwrap_or(0);
        if self.order.is_some() {
            let mut rendered = Vec::new();
            // Writing to memory cannot fail.
            let _ = self.format.unit(unit, origin, &mut rendered);
            self.octets(key, rendered);
        } else if self.failed.is_ok() {
            self.failed = self.format.unit(unit, origin, &mut *self.out);
        }
    }

    fn finding(&mut self, finding: &Finding) {
        if let Some(order) = &mut self.order {
            let mut rendered = Vec::new();
            let _ = self.format.finding(finding, &mut rendered);
            order.finding((finding.stream, finding.direction, finding.frame), rendered);
        } else if self.failed.is_ok() {
            self.failed = self.format.finding(finding, &mut *self.out);
        }
    }

    /// Prints the output for the unit at `key`.
    fn octets(&mut self, key: UnitKey, rendered: Vec<u8>) {
        match &mut self.order {
            Some(order) => order.add(key.2, Rank::Unit, Some(key), rendered),
            None if self.failed.is_ok() => self.failed = self.out.write_all(&rendered),
            None => {}
        }
    }

    fn finish(&mut self) -> io::Result<()> {
        std::mem::replace(&mut self.failed, Ok(()))?;
        self.pause()
    }

    /// Writes all lines, because the next frame can take long to arrive. Later, weft sometimes
    /// prints more lines for these frames.
    fn pause(&mut self) -> io::Result<()> {
        if let Some(order) = &mut self.order {
            order.finish(&mut *self.out)?;
        }
        self.out.flush()
    }
}

impl Format {
    fn unit(&mut self, unit: &Unit<'_>, origin: u64, out: &mut dyn Write) -> io::Result<()> {
        match self {
            Format::Nothing => Ok(()),
            Format::Json(writer) => writer.write(unit, out),
            Format::Text { verbose, hex, colour, comments, commented, times, .. } => {
                let line = if times.is_default() {
                    text::unit_line(unit, origin)
                } else {
                    let time = times.of(unit.frame, unit.time, origin);
                    text::unit_line_at(unit, &time, times.style.names.as_ref())
                };
                let line = match unit.kind {
                    Kind::Startup(..) => colour.strong(&line),
                    Kind::Streaming { .. } | Kind::Gap { .. } | Kind::Unparsed { .. } => colour.faint(&line),
                    _ if line.contains("CRC BAD") || line.contains("MARKER") => colour.wrong(&line),
                    _ => line,
                };
                writeln!(out, "{line}")?;
                if *verbose {
                    // If a frame has several units, print its comments at the first unit only.
                    if std::mem::replace(commented, unit.frame) != unit.frame {
                        out.write_all(comment_lines(comments, unit.frame).as_bytes())?;
                    }
                    out.write_all(text::tree_lines(&tree(unit)).as_bytes())?;
                }
                if *hex {
                    out.write_all(hexdump(octets(unit), 0, 8).as_bytes())?;
                }
                Ok(())
            }
        }
    }

    /// Prints a port mapper exchange. Text has no line for an exchange, because each of its
    /// datagrams has a line.
    fn exchange(&mut self, exchange: &Exchange, out: &mut dyn Write) -> io::Result<()> {
        match self {
            Format::Nothing | Format::Text { .. } => Ok(()),
            Format::Json(writer) => writer.exchange(exchange, out),
        }
    }

    fn finding(&mut self, finding: &Finding, out: &mut dyn Write) -> io::Result<()> {
        match self {
            Format::Nothing => Ok(()),
            Format::Json(writer) => writer.finding(finding, out),
            Format::Text { colour, senders, times, .. } => {
                let lines = text::finding_lines_with(finding, senders, times.style.names.as_ref());
                writeln!(out, "{}", colour.severity(finding.severity, &lines))
            }
        }
    }
}

/// Returns the bytes of a unit for the hex dump. Returns only the first bytes of data outside MPA,
/// and no bytes for missing or undecoded parts.
fn octets<'a>(unit: &Unit<'a>) -> &'a [u8] {
    match unit.kind {
        Kind::Startup(_, part) | Kind::Sdp(_, _, part) | Kind::PortMapper(part) => part.raw().0,
        Kind::Fpdu(fpdu) => fpdu.body.raw().0,
        Kind::Streaming { head, .. } => head,
        Kind::Gap { .. } | Kind::Unparsed { .. } => &[],
    }
}
