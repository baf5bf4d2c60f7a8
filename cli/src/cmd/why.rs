//! `weft why`: explains what happened on each connection of a capture, and why it ended.

mod report;

use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use serde_json::{Value, json};
use weft_dissector::contents::Contents;
use weft_dissector::diagnosis::{Diagnoses, Diagnosis, ExchangeReport};
use weft_dissector::output::text::counted;
use weft_dissector::unit::Unit;
use weft_dissector::{Dissector, Finding, Packet, Sink, StreamId};

use super::answers::{Answers, SelectedConnections, write_comments};
use super::captures::{NamedCaptures, Out, for_each};
use super::lint::select::{Selection, of_filter};
use crate::exit::{BadInput, UNEXPECTED, USAGE, note};
use crate::input::{DecodeAs, Input, LiveArguments, Next, remark};

/// The command line.
#[derive(clap::Args)]
#[command(after_help = "Exit codes:\n  \
    0  no connection has a problem\n  \
    1  a connection has a problem: an error ended it, or an endpoint violated requirements\n  \
    2  a capture cannot be read, or has nothing to explain (no iWARP, SDP or port mapper)\n\
    If there are several captures, weft exits with the highest of their codes.\n\n\
    A paragraph begins with the answer. Then it lists the events that led to the end, with their\n\
    frames. \"Not in this capture\" precedes what the capture does not show. weft accuses an\n\
    endpoint or the network only if the capture proves the fault.\n\n\
    Examples:\n  \
    weft why capture.pcap                        explain each connection\n  \
    weft why --stream 3 capture.pcap             explain one connection\n  \
    weft why --report ticket.html capture.pcap   write a page for a ticket\n  \
    weft why --json capture.pcap.gz              print all facts as JSON, one object per connection\n  \
    weft why -Y 'ip.addr == 10.1.0.1' captures   explain the connections of one host, in a folder\n  \
    weft why --merge ring_*.pcapng               explain the files of a ring as one capture")]
pub(crate) struct Arguments {
    /// Explain these captures, or all captures in these folders; use - for standard input
    ///
    /// docs/captures.md lists the formats.
    #[arg(value_name = "FILE", required_unless_present_any = ["read", "interface"], conflicts_with = "interface")]
    files: Vec<PathBuf>,
    /// Explain this capture (same as FILE, for users of tshark)
    #[arg(short = 'r', long = "read-file", value_name = "FILE", conflicts_with = "files", id = "read")]
    read: Option<PathBuf>,
    #[command(flatten)]
    decode: DecodeAs,
    /// Read all captures as one, sorted by the times of the frames
    ///
    /// Use this option for the files of a ring buffer, or for captures of the same traffic by
    /// several taps.
    #[arg(long, conflicts_with = "interface")]
    merge: bool,
    /// Explain only the connection with this number; `weft dissect` prints the numbers
    #[arg(long, visible_alias = "connection", value_name = "N")]
    stream: Option<StreamId>,
    /// Explain only connections with a unit or a finding that passes this display filter
    ///
    /// A unit is an MPA start-up frame, an FPDU or an SDP message. The filter has Wireshark's
    /// language.
    #[arg(short = 'Y', long = "display-filter", value_name = "FILTER")]
    filter: Option<String>,
    /// Print one JSON object per connection, and one with the counts
    ///
    /// docs/why.md describes the keys. The object with the counts has the kind "summary".
    #[arg(long)]
    json: bool,
    /// Write a page for a ticket (.html or .md), and the packets next to it (.packets.pcapng)
    ///
    /// The page has the paragraphs of the connections with a problem, the relevant rows of their
    /// sequence diagrams, the bytes of the deciding frames with marks, and the text of the violated
    /// requirements. The packets are all frames of these connections. An HTML page also contains
    /// the packets, if they have at most 1 MiB. With --connection or -Y, the page is about the
    /// selected connections.
    #[arg(long, value_name = "OUT", conflicts_with_all = ["json", "merge", "interface"])]
    report: Option<PathBuf>,
    /// With --report: replace an existing file with the name of the packets
    #[arg(long, requires = "report")]
    force: bool,
    // These options come last, because their heading "Live capture" applies to all later options.
    #[command(flatten)]
    live: LiveArguments,
}

/// Reads the captures and prints the paragraphs.
pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    // Report a wrong filter once, not for each capture.
    arguments.selection()?;
    if let Some(to) = &arguments.report {
        return report::run(arguments, to);
    }
    let Arguments { files, read, merge, live, json, .. } = arguments;
    let named = NamedCaptures { files, read: read.as_ref(), merge: *merge, live, json: *json };
    for_each(&named, |input, several, out| one(arguments, input, several, out))
}

impl Arguments {
    fn selection(&self) -> Result<Option<Selection>, BadInput> {
        self.filter.as_deref().map(of_filter).transpose()
    }

    /// Returns whether the user selects connections.
    fn is_selective(&self) -> bool {
        self.stream.is_some() || self.filter.is_some()
    }
}

/// Reads one input to its end, and diagnoses its connections.
fn explain(arguments: &Arguments, mut input: Input) -> anyhow::Result<(Why, Dissector)> {
    let mut reading = Reading { selection: arguments.selection()?, ..Reading::default() };
    if let Some(selection) = &mut reading.selection {
        selection.set_comments(input.comments());
        reading.selected = SelectedConnections::one_by_one();
    }
    let mut sinks = (Diagnoses::default(), reading);
    let mut dissector = arguments.decode.apply(Dissector::default());
    loop {
        match input.next() {
            Next::Frame(frame) => {
                if let Some(selection) = &mut sinks.1.selection {
                    selection.frame(&frame);
                }
                dissector.frame(&frame, &mut sinks);
            }
            Next::Idle => input.idle(),
            Next::End => break,
        }
    }
    dissector.finish(&mut sinks);
    let (diagnoses, Reading { mut contents, selected, .. }) = sinks;
    input.ignore_partial_frames(&mut dissector);
    input.close()?;
    contents.unread = dissector.unread();
    Ok((Why { answers: Answers::of(diagnoses, selected), contents }, dissector))
}

/// Explains one input. Returns the exit code for this input. If `several` is set, the output names
/// the capture.
fn one(arguments: &Arguments, input: Input, several: bool, out: &mut Out) -> anyhow::Result<u8> {
    let name = input.name().to_owned();
    let comments = input.comments();
    let (why, dissector) = explain(arguments, input)?;
    let found = why.found(arguments.stream);
    let exchanges: &[ExchangeReport] = if arguments.is_selective() { &[] } else { why.answers.exchanges() };
    if arguments.json {
        for diagnosis in &found {
            print(out, &name, "connection", serde_json::to_value(diagnosis))?;
        }
        for exchange in exchanges {
            print(out, &name, "exchange", serde_json::to_value(exchange))?;
        }
    } else {
        if several {
            writeln!(out, "{name}:")?;
        }
        write_comments(&comments, out)?;
        for diagnosis in &found {
            writeln!(out, "{diagnosis}\n")?;
        }
        for exchange in exchanges {
            writeln!(out, "{exchange}\n")?;
        }
    }
    let problems = found.iter().filter(|diagnosis| !diagnosis.is_healthy()).count() + exchanges.len();
    why.summary(arguments, &name, (found.len(), problems), out)?;
    out.flush()?;
    if found.is_empty() && exchanges.is_empty() {
        return Ok(why.report_nothing(&name, arguments));
    }
    remark(&name, &dissector);
    Ok(if problems > 0 { UNEXPECTED } else { 0 })
}

/// Prints an object as one line, with its kind and the name of the capture.
fn print(out: &mut Out, file: &str, kind: &str, object: serde_json::Result<Value>) -> io::Result<()> {
    let mut object = object?;
    object["kind"] = kind.into();
    object["file"] = file.into();
    writeln!(out, "{object}")
}

/// The answers about one input.
struct Why {
    answers: Answers,
    contents: Contents,
}

impl Why {
    /// The diagnoses to print.
    fn found(&self, stream: Option<StreamId>) -> Vec<&Diagnosis> {
        let is_selected = |diagnosis: &&Diagnosis| stream.is_none_or(|stream| stream == diagnosis.stream);
        self.answers.connections().filter(is_selected).collect()
    }

    /// Reports that there is nothing to explain. Returns the exit code.
    fn report_nothing(&self, name: &str, arguments: &Arguments) -> u8 {
        let contents = &self.contents;
        if arguments.is_selective() {
            note(&format!("{name}: nothing to explain, because the selection has no connection with iWARP or SDP"));
        } else {
            let why = "nothing to explain, because the capture has no iWARP, SDP or port mapper";
            note(&format!("{name}: {why}; it has {contents}"));
        }
        USAGE
    }

    /// Prints the counts: of the connections, and of these with a problem.
    fn summary(
        &self,
        arguments: &Arguments,
        name: &str,
        (connections, problems): (usize, usize),
        out: &mut Out,
    ) -> io::Result<()> {
        let (others, unstored) = (self.answers.diagnoses().others(), self.answers.diagnoses().unstored());
        if arguments.json {
            let summary = json!({
                "kind": "summary", "file": name, "connections": connections, "problems": problems,
                "other_connections": others, "unstored_connections": unstored,
            });
            return writeln!(out, "{summary}");
        }
        let explained = counted(connections as u64, "connection");
        let problems = counted(problems as u64, "problem");
        write!(out, "{name}: {explained}, {problems}, {}", counted(others, "other TCP connection"))?;
        match self.answers.unexplained() {
            None => writeln!(out)?,
            Some(unexplained) => writeln!(out, "; {unexplained}")?,
        }
        if self.answers.connections().any(Diagnosis::has_storage_commands) {
            writeln!(out, "{name}: has storage commands; to list them with their latencies: weft io {name}")?;
        }
        Ok(())
    }
}

/// Selects connections, and names the protocols of the capture.
#[derive(Default)]
struct Reading {
    contents: Contents,
    selection: Option<Selection>,
    selected: SelectedConnections,
}

impl Sink for Reading {
    fn unit(&mut self, unit: &Unit<'_>) {
        self.contents.unit(unit);
        if let Some(selection) = &mut self.selection
            && selection.unit(unit)
            && !selection.uses_findings()
        {
            self.selected.add(unit.stream);
        }
    }

    fn finding(&mut self, finding: &Finding) {
        if let Some(selection) = &mut self.selection
            && selection.finding(finding)
        {
            self.selected.add(finding.stream);
        }
    }

    fn packet(&mut self, packet: &Packet) {
        self.contents.packet(packet);
        if let Some(selection) = &mut self.selection {
            selection.packet(packet);
        }
    }
}
