//! `weft dissect`: decodes a capture and prints units with findings, or frames like tshark.
//!
//! A unit is an MPA start-up frame, an FPDU, an SDP message, a port mapper message, or a part of a
//! connection that weft cannot decode.

mod annotate;
mod comments;
mod count;
mod events;
mod excerpt;
mod frame_writer;
mod frames;
mod kept_frames;
mod order;
mod selection;
mod statistics;
mod style;
mod tshark;
mod units;
mod until;

use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use weft_dissector::Dissector;
use weft_dissector::filter::{Filter, KnownField, Slot, WantedFields, known};
use weft_dissector::output::fields::Columns;

pub(super) use annotate::annotate;
pub(super) use excerpt::write_connections;
pub(super) use frame_writer::FrameWriter;

use self::frames::Presentation;
use self::statistics::Statistics;
use self::tshark::TsharkArguments;
use crate::colour::ColourChoice;
use crate::exit::{BadInput, reject};
use crate::input::{CaptureFile, Ring, open_error};

use until::UntilArguments;

/// The command line.
#[derive(clap::Args)]
// -V prints all fields, as in tshark.
#[command(
    disable_version_flag = true,
    after_help = "Exit codes:\n  \
    0  the capture was read, with or without findings (`weft lint` exits with 1 for findings)\n  \
    1  with --until: there was a finding, and its connection was saved\n  \
    2  the capture cannot be read, or the command line is wrong\n\n\
    Examples:\n  \
    weft dissect capture.pcap               print one line per unit, with its findings below\n  \
    weft dissect -V capture.pcapng.gz       print all fields\n  \
    weft dissect --json - < capture.pcap    print JSON Lines\n  \
    weft dissect capture.pcap -Y 'iwarp_rdma.opcode == Send && crc_status != good'\n  \
    weft dissect capture.pcap -T fields -e frame.number -e iwarp_mpa.ulpdulength\n  \
    weft dissect capture.pcap -Y finding -w bad.pcapng      save the connections with findings\n  \
    weft dissect capture.pcap -q -z conv,tcp -z io,stat,1   print statistics of tshark\n  \
    weft dissect -i eth0 -f 'tcp port 7174' -w all.pcapng   capture, print and save until Ctrl-C\n  \
    weft dissect -i eth0 --until finding --keep 60s -w fault.pcapng    save the first fault"
)]
pub(crate) struct Arguments {
    /// Print only units that pass this display filter (in Wireshark's language)
    ///
    /// With -T or -w, the filter selects frames instead of units. A filter with only fields of
    /// frames, such as tcp.analysis.retransmission, also selects TCP segments without a unit.
    #[arg(short = 'Y', long = "display-filter", value_name = "FILTER")]
    filter: Option<String>,
    /// Print JSON Lines: one object per unit and per finding
    ///
    /// The objects of findings have the kind "finding".
    #[arg(long)]
    json: bool,
    /// Print one record per frame, with all units of the frame, in this format
    #[arg(short = 'T', value_name = "FORMAT", value_enum)]
    format: Option<Format>,
    /// Print this field (with -T fields, -T json or -T ek); repeatable
    #[arg(short = 'e', value_name = "FIELD")]
    fields: Vec<String>,
    /// Set an option of -T fields, such as header=y; repeatable
    ///
    /// The options are header=y|n, separator=C, occurrence=f|l|a, aggregator=C and quote=d|s|n.
    #[arg(short = 'E', value_name = "NAME=VALUE")]
    settings: Vec<String>,
    /// Print all fields of each unit
    #[arg(short = 'V', long)]
    verbose: bool,
    /// Print a hex dump of each unit
    ///
    /// The dump omits markers and the CRC field. With -T, weft dumps the complete frame.
    #[arg(short = 'x', long)]
    hex: bool,
    /// Read only the first N frames
    #[arg(short = 'c', long = "count", value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    count: Option<u64>,
    /// Does nothing: accepts tshark's -n and -l. weft shows names only with -N, and delays no line.
    #[arg(short = 'n', short_alias = 'l', hide = true, action = clap::ArgAction::Count)]
    _habit: u8,
    /// Write a pcapng of the connections that pass -Y, with the findings as comments
    ///
    /// If a frame passes the filter of -Y, weft writes all frames of its TCP connection. Without
    /// the complete connection, weft and Wireshark could not decode the output. weft writes
    /// a frame without a TCP connection only if this frame passes the filter. There is one
    /// exception: if any frame passes, weft also writes all port mapper messages and all IP
    /// fragments.
    ///
    /// If the input is a pcapng, weft keeps its comments, interfaces, resolved names and drop
    /// counts. `-` is standard output. weft reads the capture twice, so it first copies standard
    /// input to the folder for temporary files.
    ///
    /// With -i, weft writes all captured frames, and prints the units that pass the filter.
    #[arg(short = 'w', long = "write", value_name = "OUT")]
    write: Option<PathBuf>,
    /// Start a new file after filesize:KB, duration:SECONDS or packets:N (with -i, -w)
    ///
    /// Repeat the option for several conditions. files:N keeps only the N newest files.
    #[arg(short = 'b', long = "ring-buffer", value_name = "WHEN", requires = "write", help_heading = "Live capture")]
    ring: Vec<String>,
    #[command(flatten)]
    until: UntilArguments,
    /// List the interfaces that weft can capture on, with numbers for -i
    #[arg(short = 'D', long = "list-interfaces", exclusive = true, help_heading = "Live capture")]
    interfaces: bool,
    /// Print counts to standard error at the end
    ///
    /// weft counts frames, connections, FPDUs and CRCs. If the output shows findings, weft also
    /// counts them.
    #[arg(long)]
    summary: bool,
    /// Print only the summary, or only the statistics of -z
    #[arg(short = 'q', long)]
    quiet: bool,
    /// Choose when to use colour (without a value: always)
    #[arg(long, value_enum, default_value_t, num_args = 0..=1, default_missing_value = "always")]
    color: ColourChoice,
    /// List the fields and protocols that -Y and -e accept (-G fields)
    #[arg(short = 'G', value_name = "WHAT", value_enum, exclusive = true)]
    list: Option<List>,
    #[command(flatten)]
    tshark: TsharkArguments,
    // These options come last, because their heading "Live capture" applies to all later options.
    #[command(flatten)]
    file: CaptureFile,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Format {
    /// One line per frame
    Text,
    /// Columns of the fields that -e names
    Fields,
    /// An array of frames
    Json,
    /// Lines of JSON for the bulk interface of Elasticsearch
    Ek,
    /// PDML, Wireshark's XML
    Pdml,
    /// PSML, Wireshark's XML of the columns number, time, addresses, protocol, length and info
    Psml,
    /// The same columns with tabs between them
    Tabs,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum List {
    /// The fields and protocols that -Y and -e accept
    Fields,
}

/// Standard output, buffered.
type Out = BufWriter<io::StdoutLock<'static>>;

/// Reads the capture and prints it.
pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let mut out = BufWriter::with_capacity(1 << 18, io::stdout().lock());
    if arguments.list.is_some() {
        return list(&mut out);
    }
    if arguments.interfaces {
        return list_interfaces(&mut out);
    }
    arguments.agree()?;
    if arguments.until.until.is_some() {
        return until::run(arguments, &mut out);
    }
    arguments.tshark.note_ignored();
    let mut wanted = WantedFields::default();
    arguments.tshark.apply(&mut wanted);
    let filter = arguments.filter(&mut wanted)?;
    let chosen = columns(arguments, &mut wanted)?;
    let read_filter = arguments.tshark.read_filter.as_deref();
    let statistics = Statistics::parse(&arguments.tshark.statistics, read_filter, &mut wanted)?;
    let is_by_frame = arguments.format.is_some() || !statistics.is_empty();
    if !is_by_frame && (arguments.write.is_none() || arguments.is_live()) {
        reject_fields_of_frames(&wanted)?;
    }
    let ring = Ring::read(&arguments.ring)?;
    if !arguments.ring.is_empty() && !arguments.is_live() {
        reject!("-b needs -i IF and -w, because weft writes a single file without -i");
    }
    if let Some(path) = arguments.write.as_ref().filter(|_| !arguments.is_live()) {
        excerpt::run(arguments, path, &wanted, filter.as_ref())?;
        return Ok(ExitCode::SUCCESS);
    }
    let input = arguments.file.open_and_write(arguments.write.as_deref().map(|path| (path, ring)))?;
    wanted.set_comments(input.comments());
    wanted.set_time_resolution(input.time_resolution());
    let style = arguments.tshark.style(&input)?;
    wanted.set_names(style.names.clone().unwrap_or_default());
    if is_by_frame {
        let presentation = Presentation { chosen, statistics, style };
        frames::run(arguments, input, wanted, filter.as_ref(), presentation, &mut out)?;
    } else {
        units::run(arguments, input, &wanted, filter.as_ref(), style, &mut out)?;
    }
    Ok(ExitCode::SUCCESS)
}

impl Arguments {
    /// Returns whether this command captures on an interface.
    fn is_live(&self) -> bool {
        self.file.live.interface().is_some()
    }

    /// Returns whether neither frames nor units are printed.
    fn is_quiet(&self) -> bool {
        self.quiet || self.tshark.errors_only
    }

    /// Applies the options about protocols of ports to a dissector.
    fn decode(&self, dissector: Dissector) -> Dissector {
        self.tshark.decode(self.file.decode.apply(dissector))
    }

    /// The filter of -R and -Y. A frame must pass both.
    fn filter(&self, wanted: &mut WantedFields) -> Result<Option<Filter>, BadInput> {
        match (&self.tshark.read_filter, &self.filter) {
            (None, None) => Ok(None),
            (Some(one), None) | (None, Some(one)) => parse(one, wanted).map(Some),
            (Some(read), Some(display)) => {
                // Parsed alone, an error has the right column.
                for text in [read, display] {
                    parse(text, &mut WantedFields::default())?;
                }
                parse(&format!("({read}) && ({display})"), wanted).map(Some)
            }
        }
    }

    /// Rejects options that contradict each other, and reports what to use instead.
    fn agree(&self) -> Result<(), BadInput> {
        let (json, format) = (self.json, self.format.is_some());
        let statistics = !self.tshark.statistics.is_empty();
        let write = self.write.is_some() && !self.is_live();
        if self.is_live() && self.write.as_deref() == Some(Path::new("-")) {
            reject!("-w - cannot be combined with -i; use -w FILE");
        }
        let message = match () {
            () if json && format => {
                "--json prints one object per unit, and -T json prints one per frame; use only one option"
            }
            () if json && self.verbose => "--json already has all fields; omit -V, or omit --json for text",
            () if json && statistics => "-z prints frames, and --json prints units; omit --json, or use -q -z",
            () if json && self.tshark.has_time() => {
                "--json has times in nanoseconds since 1970; omit -t, or use -T fields -e frame.time"
            }
            () if self.tshark.counts_from_printed_frames() && !format && !statistics => {
                "-t dd counts from the previous printed frame; add -T text to print frames"
            }
            () if write && statistics => "-w prints nothing; to print statistics, run weft a second time without -w",
            () if json && self.hex => "--json has no hex dump; omit --json, or use -T fields -e payload",
            () if write && (json || format) => {
                "-w writes a capture and prints nothing; to print, run weft a second time without -w"
            }
            () if write && (self.verbose || self.hex) => "-w prints nothing, so -V and -x have no effect; omit them",
            () if self.is_quiet() && !statistics && (json || format || write) => {
                "-q prints only the summary; to print the summary after other output, use --summary"
            }
            () => return Ok(()),
        };
        Err(BadInput(message.to_owned()))
    }
}

/// Formats the message for a filter that matches nothing. Without this message, a user could
/// misunderstand the empty output.
fn no_match(name: &str) -> String {
    format!("{name}: no unit or frame passes the filter")
}

/// Parses a display filter, and adds its fields to `wanted`. On a terminal, the message of an error
/// also shows the position of the error.
fn parse(text: &str, wanted: &mut WantedFields) -> Result<Filter, BadInput> {
    use std::io::IsTerminal;
    Filter::parse(text, wanted).map_err(|error| {
        if io::stderr().is_terminal() {
            BadInput(format!("{error}\n{}", error.pointed(text)))
        } else {
            BadInput(error.to_string())
        }
    })
}

/// Parses a display filter for units, and adds its fields to `wanted`.
pub(crate) fn parse_for_units(text: &str, wanted: &mut WantedFields) -> Result<Filter, BadInput> {
    let filter = parse(text, wanted)?;
    reject_fields_of_frames(wanted)?;
    Ok(filter)
}

/// Rejects fields that no unit has.
fn reject_fields_of_frames(wanted: &WantedFields) -> Result<(), BadInput> {
    if let Some(name) = wanted.field_of_frames() {
        reject!("{name} is a field of frames; use `weft dissect` with -T, such as -T text");
    }
    Ok(())
}

/// The fields of -e and the options of -E.
struct OutputColumns {
    fields: Vec<(Slot, &'static KnownField)>,
    columns: Columns,
}

fn columns(arguments: &Arguments, wanted: &mut WantedFields) -> Result<OutputColumns, BadInput> {
    let format = arguments.format;
    if !arguments.fields.is_empty() && !matches!(format, Some(Format::Fields | Format::Json | Format::Ek)) {
        reject!("-e needs -T fields, -T json or -T ek");
    }
    if !arguments.settings.is_empty() && format != Some(Format::Fields) {
        reject!("-E needs -T fields");
    }
    if format == Some(Format::Fields) && arguments.fields.is_empty() {
        reject!("-T fields needs -e FIELD for each column; -G fields lists all fields");
    }
    let mut columns = Columns::default();
    for setting in &arguments.settings {
        columns.set(setting).map_err(|error| BadInput(format!("-E: {error}")))?;
    }
    let fields = arguments.fields.iter().map(|name| {
        let known = known(name).ok_or_else(|| {
            let hint = match known::nearest(name) {
                Some(near) => format!("did you mean {near}?"),
                None => "`weft dissect -G fields` lists all".to_owned(),
            };
            BadInput(format!("-e: {name} is not a field or protocol; {hint}"))
        })?;
        Ok((wanted.add(known), known))
    });
    Ok(OutputColumns { fields: fields.collect::<Result<_, BadInput>>()?, columns })
}

fn list_interfaces(out: &mut Out) -> anyhow::Result<ExitCode> {
    for (index, interface) in weft_capture::interfaces().map_err(|error| open_error(&error))?.iter().enumerate() {
        write!(out, "{}. {}", index + 1, interface.name)?;
        if let Some(description) = &interface.description {
            write!(out, " ({description})")?;
        }
        let addresses: Vec<_> = interface.addresses.iter().map(ToString::to_string).collect();
        writeln!(out, "{}{}", if interface.up { "  " } else { "  down  " }, addresses.join(" "))?;
    }
    out.flush()?;
    Ok(ExitCode::SUCCESS)
}

fn list(out: &mut Out) -> anyhow::Result<ExitCode> {
    for known in known::all() {
        writeln!(out, "{}\t{}\t{}", known.name, known.label, known.section)?;
    }
    out.flush()?;
    Ok(ExitCode::SUCCESS)
}
