//! `weft stats`: prints statistics about each iWARP connection of a capture, and the totals.

use std::io::{self, BufWriter, Write};
use std::process::ExitCode;

use serde_json::Value;
use weft_dissector::diagnosis::Diagnoses;
use weft_dissector::output::json::JsonWriter;
use weft_dissector::output::text::{counted, exchange_line};
use weft_dissector::stats::{ConnectionStats, Stats};
use weft_dissector::{Dissector, StreamId};

use super::answers::{Answers, SelectedConnections, brief_diagnoses};
use crate::exit::BadInput;
use crate::input::CaptureFile;

/// The command line.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  \
    weft stats capture.pcap               print each connection and the totals\n  \
    weft stats --stream 3 capture.pcap    print one connection")]
pub(crate) struct Arguments {
    /// Print only the connection with this number; `weft dissect` prints the numbers
    #[arg(long, value_name = "N")]
    stream: Option<StreamId>,
    /// Print one JSON object per connection, and one with the totals
    ///
    /// The object with the totals has the kind "total". Times are in nanoseconds.
    #[arg(long)]
    json: bool,
    // These options come last, because their heading "Live capture" applies to all later options.
    #[command(flatten)]
    file: CaptureFile,
}

/// Reads the capture and prints the numbers.
pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let input = arguments.file.open()?;
    let name = input.name().to_owned();
    let mut read = (Stats::default(), (!arguments.json).then(brief_diagnoses));
    input.dissect(arguments.file.decode.apply(Dissector::default()), &mut read)?;
    let (stats, diagnoses) = read;
    let mut out = BufWriter::new(io::stdout().lock());
    let totals = stats.totals();
    if let Some(stream) = arguments.stream {
        let connection = one(&stats, stream, &name)?;
        write_answers(diagnoses, Some(stream), &mut out)?;
        if arguments.json {
            json(&mut out, "connection", serde_json::to_value(connection))?;
        } else {
            write!(out, "{connection}")?;
        }
    } else if arguments.json {
        for connection in stats.connections_and_findings() {
            json(&mut out, "connection", serde_json::to_value(connection))?;
        }
        for exchange in stats.exchanges() {
            JsonWriter::default().exchange(exchange, &mut out)?;
        }
        json(&mut out, "total", serde_json::to_value(&totals))?;
    } else {
        write_answers(diagnoses, None, &mut out)?;
        for connection in stats.connections_and_findings() {
            writeln!(out, "{connection}")?;
        }
        for exchange in stats.exchanges() {
            writeln!(out, "{}", exchange_line(exchange))?;
        }
        if !totals.is_empty() {
            writeln!(out, "{totals}")?;
        }
        let others = counted(totals.other_connections, "other TCP connection");
        write!(out, "{name}: {} with iWARP, {others}", counted(totals.connections, "connection"))?;
        match totals.port_mapper {
            0 => {}
            datagrams => write!(out, ", {datagrams} port mapper datagrams")?,
        }
        match totals.further_exchanges {
            0 => writeln!(out)?,
            further => writeln!(out, "; exchanges counted, but not shown: {further}")?,
        }
    }
    out.flush()?;
    Ok(ExitCode::SUCCESS)
}

/// Writes the answers about the connection `stream`, or about all connections.
fn write_answers(diagnoses: Option<Diagnoses>, stream: Option<StreamId>, out: &mut impl Write) -> io::Result<()> {
    let Some(diagnoses) = diagnoses else { return Ok(()) };
    let mut selected = SelectedConnections::default();
    if stream.is_some() {
        selected = SelectedConnections::one_by_one();
        selected.add(stream);
    }
    Answers::of(diagnoses, selected).write(|_| true, out)
}

/// Returns the statistics of the connection `stream` in the capture `name`.
fn one<'s>(stats: &'s Stats, stream: StreamId, name: &str) -> Result<&'s ConnectionStats, BadInput> {
    let found = stats.connections_and_findings().into_iter().find(|connection| connection.stream == stream);
    let totals = stats.totals();
    found.ok_or_else(|| {
        BadInput(if u64::from(stream) >= totals.connections + totals.other_connections {
            format!("{name}: there is no TCP connection {stream}")
        } else if totals.further_connections > 0 {
            format!(
                "{name}: weft stored no statistics of TCP connection {stream}, because there are too many connections"
            )
        } else {
            format!("{name}: TCP connection {stream} has no iWARP or SDP, and no findings")
        })
    })
}

/// Prints an object as one line, with its kind.
fn json(out: &mut impl Write, kind: &str, object: serde_json::Result<Value>) -> io::Result<()> {
    let mut object = object?;
    object["kind"] = kind.into();
    writeln!(out, "{object}")
}
