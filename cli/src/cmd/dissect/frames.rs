//! Frame by frame, in tshark's manners: text, fields, JSON, PDML, and filtered captures.

use std::collections::{BTreeMap, HashMap};
use std::fs::File;
use std::io::{self, BufWriter, IsTerminal, Write};
use std::path::Path;

use weft_dissector::filter::{Filter, Wanted};
use weft_dissector::output::fields::FieldsWriter;
use weft_dissector::output::frames::{Frames, Keep, Record};
use weft_dissector::output::hexdump::hexdump;
use weft_dissector::output::packets::PacketsWriter;
use weft_dissector::output::pcapng::{Interface, PacketBlock, Writer};
use weft_dissector::output::{pdml, text};
use weft_dissector::unit::Unit;
use weft_dissector::{Dissector, Finding, Packet, Sink};

use crate::colour::Colour;
use crate::exit::{BadInput, note, unwritable};
use crate::input::{Input, Next, remark};

use super::count::{Counted, Counts};
use super::{Arguments, Chosen, Format, Out, no_match};

pub(crate) fn run(
    arguments: &Arguments,
    mut input: Input,
    wanted: Wanted,
    filter: Option<&Filter>,
    chosen: Chosen,
    out: &mut Out,
) -> anyhow::Result<()> {
    let only_fields = !chosen.fields.is_empty();
    // What comes from an interface is written before it is looked at.
    let filtered = arguments.write.as_ref().filter(|_| !arguments.is_live());
    let (mut printer, keep) = match (arguments.format, filtered) {
        (_, Some(path)) if input.is_at(path) => {
            return Err(BadInput(format!("{}: is the capture that is being read", path.display())).into());
        }
        (_, Some(path)) => (Printer::capture(path)?, Keep { octets: true, findings: true, ..Keep::default() }),
        (Some(Format::Fields), _) => {
            let mut writer = FieldsWriter::new(chosen.fields, chosen.columns);
            writer.header(out)?;
            (Printer::Fields(writer), Keep::default())
        }
        (Some(Format::Json), _) => {
            let layers = !only_fields;
            (Printer::Json(PacketsWriter::new(chosen.fields)), Keep { layers, findings: layers, ..Keep::default() })
        }
        (Some(Format::Pdml), _) => {
            pdml::head(input.name(), out)?;
            (Printer::Pdml, Keep { layers: true, findings: true, ..Keep::default() })
        }
        (Some(Format::Text) | None, None) => (
            Printer::Text(arguments.color.decide()),
            Keep {
                summaries: true,
                findings: true,
                trees: arguments.verbose,
                octets: arguments.hex,
                ..Keep::default()
            },
        ),
    };
    let judged = keep.findings || wanted.findings();
    let mut dissector = if judged || wanted.monitor() { Dissector::default() } else { Dissector::units_only() };
    let tally = arguments.summary.then(Tally::default);
    let mut gather = Gather { frames: Frames::new(wanted, keep), tally, matched: false };
    let limit = arguments.count.unwrap_or(u64::MAX);
    while input.frames() < limit {
        let frame = match input.next() {
            Next::Frame(frame) => frame,
            Next::Idle => {
                printer.flush(out)?;
                input.idle();
                continue;
            }
            Next::End => break,
        };
        gather.frames.begin(&frame);
        dissector.frame(&frame, &mut gather);
        gather.frames.end(!dissector.holds_back());
        gather.drain(filter, &mut printer, out)?;
    }
    dissector.finish(&mut gather);
    gather.frames.finish();
    gather.drain(filter, &mut printer, out)?;
    let written = printer.finish(out)?;
    out.flush()?;
    if let Some(written) = written {
        note(&format!("{}: {written}", input.name()));
    }
    if filter.is_some() && !gather.matched && input.frames() > 0 {
        note(&no_match(input.name()));
    }
    if let Some(Tally { passed: mut counts, .. }) = gather.tally {
        counts.frames = input.frames();
        note(&format!("{}: {}", input.name(), counts.told(filter.is_some(), judged)));
    }
    let name = input.name().to_owned();
    input.close()?;
    remark(&name, &dissector);
    Ok(())
}

struct Gather {
    frames: Frames,
    /// The numbers of the summary, when there is one.
    tally: Option<Tally>,
    /// A frame passed the filter.
    matched: bool,
}

/// Counts of the frames that pass.
#[derive(Default)]
struct Tally {
    passed: Counts,
    /// A frame that waits, mostly the only one, and what it adds if it passes.
    first: u64,
    noted: Vec<Counted>,
    /// What each of the others adds, by number.
    others: BTreeMap<u64, Counts>,
}

impl Tally {
    /// Notes what frame `number` adds.
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
    fn drain(&mut self, filter: Option<&Filter>, printer: &mut Printer, out: &mut Out) -> io::Result<()> {
        while let Some(record) = self.frames.ready() {
            let passes = filter.is_none_or(|filter| filter.matches(&record.values));
            if passes {
                self.matched = true;
                printer.record(&record, out)?;
            }
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
        self.frames.packet(packet);
    }
}

enum Printer {
    Text(Colour),
    Fields(FieldsWriter),
    Json(PacketsWriter),
    Pdml,
    Capture { writer: Box<Writer<Box<dyn Write>>>, interfaces: HashMap<(u32, u16), u32>, written: Written },
}

/// What was written to a capture.
#[derive(Default)]
struct Written {
    frames: u64,
    commented: u64,
}

impl std::fmt::Display for Written {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} written, {} with findings as comments", text::counted(self.frames, "frame"), self.commented)
    }
}

impl Printer {
    fn capture(path: &Path) -> Result<Self, BadInput> {
        let fault = |error: io::Error| BadInput(format!("{}: {}", path.display(), unwritable(path, &error)));
        let file: Box<dyn Write> = if path != Path::new("-") {
            Box::new(BufWriter::new(File::create(path).map_err(fault)?))
        } else if io::stdout().is_terminal() {
            return Err(BadInput("-w -: a capture is nothing for a terminal; redirect it".to_owned()));
        } else {
            Box::new(BufWriter::new(io::stdout()))
        };
        let writer = Writer::new(file, Some("Filtered by weft; findings are packet comments.")).map_err(fault)?;
        Ok(Printer::Capture { writer: Box::new(writer), interfaces: HashMap::new(), written: Written::default() })
    }

    fn record(&mut self, record: &Record, out: &mut Out) -> io::Result<()> {
        match self {
            Printer::Fields(writer) => writer.record(&record.values, out),
            Printer::Json(writer) => writer.record(record, out),
            Printer::Pdml => pdml::record(record, out),
            Printer::Text(colour) => {
                writeln!(out, "{}", text::frame_line(record))?;
                for unit in &record.units {
                    out.write_all(unit.tree.as_bytes())?;
                }
                for finding in &record.findings {
                    writeln!(out, "{}", colour.severity(finding.severity, &text::finding_lines(finding)))?;
                }
                out.write_all(hexdump(&record.octets, 0, 8).as_bytes())
            }
            Printer::Capture { writer, interfaces, written } => {
                // Frames that left before their last unit was certain were written then.
                let Some((wire_len, _)) = record.facts.len else { return Ok(()) };
                let key = (record.interface, record.link_type);
                let interface = match interfaces.get(&key) {
                    Some(number) => *number,
                    None => {
                        let number =
                            writer.interface(&Interface { link_type: record.link_type, ..Interface::default() })?;
                        interfaces.insert(key, number);
                        number
                    }
                };
                let comments: Vec<_> = record.findings.iter().map(comment).collect();
                written.frames += 1;
                written.commented += u64::from(!comments.is_empty());
                writer.packet(&PacketBlock {
                    interface,
                    time: record.facts.time,
                    octets: &record.octets,
                    wire_len,
                    way: None,
                    comments: &comments,
                })
            }
        }
    }

    /// Nothing may come for long.
    fn flush(&mut self, out: &mut Out) -> io::Result<()> {
        match self {
            Printer::Capture { writer, .. } => writer.get_mut().flush(),
            _ => out.flush(),
        }
    }

    /// Ends the output; gives what was written where that is a capture.
    fn finish(self, out: &mut Out) -> io::Result<Option<Written>> {
        match self {
            Printer::Json(writer) => writer.finish(out)?,
            Printer::Pdml => pdml::tail(out)?,
            Printer::Capture { writer, written, .. } => {
                writer.finish()?.flush()?;
                return Ok(Some(written));
            }
            Printer::Text(_) | Printer::Fields(_) => {}
        }
        Ok(None)
    }
}

fn comment(finding: &Finding) -> String {
    let row = finding.requirement.row();
    format!(
        "{} {} ({}): {}; expected {}; found {}",
        finding.severity, row.id, row.level, row.summary, finding.expected, finding.found
    )
}
