//! `weft dissect`: a capture, unit by unit with findings, or frame by frame in tshark's manners.

mod count;
mod events;
mod excerpt;
mod frames;
mod order;
mod units;

use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use weft_dissector::filter::{Filter, Known, Slot, Wanted, known};
use weft_dissector::output::fields::Columns;

use crate::colour::When;
use crate::exit::BadInput;
use crate::input::{CaptureFile, Ring, refused};

/// The command line.
#[derive(clap::Args)]
// -V is tshark's here.
#[command(
    disable_version_flag = true,
    after_help = "Examples:\n  weft dissect capture.pcap                    one line a unit, findings below\n  \
    weft dissect -V capture.pcapng.gz            with every field\n  \
    weft dissect --json - < capture.pcap         JSON Lines\n  \
    weft dissect capture.pcap -Y 'iwarp_rdma.opcode == Send && crc_status != good'\n  \
    weft dissect capture.pcap -T fields -e frame.number -e iwarp_mpa.ulpdulength\n  \
    weft dissect capture.pcap -Y finding -w bad.pcapng   connections with findings, as packet comments\n  \
    weft dissect -i eth0 -f 'tcp port 7174' -w all.pcapng  as it comes, and kept; Ctrl-C ends it\n\n\
    Exit codes: 0 the capture was read, whatever was found in it (`weft lint` judges: 1 for findings); 2 it cannot be \
    read, or the command line makes no sense."
)]
pub(crate) struct Arguments {
    #[command(flatten)]
    file: CaptureFile,
    /// Only units (with -T and -w: frames) that pass a display filter in Wireshark's language
    #[arg(short = 'Y', long = "display-filter", value_name = "FILTER")]
    filter: Option<String>,
    /// JSON Lines: one object a unit, one a finding (kind "finding")
    #[arg(long)]
    json: bool,
    /// One record a frame, its units joined
    #[arg(short = 'T', value_name = "FORMAT", value_enum)]
    format: Option<Format>,
    /// A field to show, with -T fields or -T json; again for more
    #[arg(short = 'e', value_name = "FIELD")]
    fields: Vec<String>,
    /// How -T fields writes: header=y|n, separator=C, occurrence=f|l|a, aggregator=C, quote=d|s|n
    #[arg(short = 'E', value_name = "NAME=VALUE")]
    settings: Vec<String>,
    /// Every field of every unit
    #[arg(short = 'V', long)]
    verbose: bool,
    /// A hex dump of each unit's octets, without markers and CRC field (with -T: of each frame's)
    #[arg(short = 'x', long)]
    hex: bool,
    /// Read only the first N frames
    #[arg(short = 'c', long = "count", value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    count: Option<u64>,
    /// For those used to tshark: names are never resolved, and lines come out as they are ready
    #[arg(short = 'n', short_alias = 'l', hide = true, action = clap::ArgAction::Count)]
    _habit: u8,
    /// Write a pcapng of the connections whose frames pass, with findings as packet comments
    ///
    /// Each connection is written from its first frame to its last, so that weft and Wireshark can read the result. Frames of no
    /// TCP connection are written if they pass; if any frame passes, also all messages of the port mapper and all IP fragments. From
    /// a pcapng, comments, interfaces, name resolution and drop counts are kept. - is standard output. The capture is read twice:
    /// standard input is copied to the folder for temporary files first. With -i: write all that is captured, and print.
    #[arg(short = 'w', long = "write", value_name = "OUT")]
    write: Option<PathBuf>,
    /// With -i and -w, another file after filesize:KB, duration:SECONDS or packets:N; files:N keeps the newest
    #[arg(short = 'b', long = "ring-buffer", value_name = "WHEN", requires = "write", help_heading = "Live capture")]
    ring: Vec<String>,
    /// List the interfaces that can be captured on
    #[arg(short = 'D', long = "list-interfaces", exclusive = true, help_heading = "Live capture")]
    interfaces: bool,
    /// Counts at the end, on standard error: frames, connections, FPDUs, CRCs; findings, where the output can show any
    #[arg(long)]
    summary: bool,
    /// Print nothing but the summary
    #[arg(short = 'q', long)]
    quiet: bool,
    /// Colour
    #[arg(long, value_enum, default_value_t)]
    color: When,
    /// List what there is, as tshark does: fields
    #[arg(short = 'G', value_name = "WHAT", value_enum, exclusive = true)]
    list: Option<List>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Format {
    /// A line a frame
    Text,
    /// Columns of the fields that -e names
    Fields,
    /// An array of frames
    Json,
    /// XML
    Pdml,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum List {
    /// Every field and protocol that filters and -e know
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
    let mut wanted = Wanted::default();
    let filter = match &arguments.filter {
        Some(text) => Some(parse(text, &mut wanted)?),
        None => None,
    };
    let columns = columns(arguments, &mut wanted)?;
    let ring = Ring::read(&arguments.ring)?;
    if !arguments.ring.is_empty() && !arguments.is_live() {
        return Err(
            BadInput("-b goes with -i IF and -w: a capture that is read is filtered into one file".to_owned()).into()
        );
    }
    if let Some(path) = arguments.write.as_ref().filter(|_| !arguments.is_live()) {
        excerpt::run(arguments, path, &wanted, filter.as_ref())?;
        return Ok(ExitCode::SUCCESS);
    }
    let input = arguments.file.open_and_write(arguments.write.as_deref().map(|path| (path, ring)))?;
    if arguments.format.is_some() {
        frames::run(arguments, input, wanted, filter.as_ref(), columns, &mut out)?;
    } else {
        units::run(arguments, input, &wanted, filter.as_ref(), &mut out)?;
    }
    Ok(ExitCode::SUCCESS)
}

impl Arguments {
    /// Is it about an interface?
    fn is_live(&self) -> bool {
        self.file.live.interface().is_some()
    }

    /// Refuses options that say two different things, and says what to use instead.
    fn agree(&self) -> Result<(), BadInput> {
        let (json, format) = (self.json, self.format.is_some());
        let write = self.write.is_some() && !self.is_live();
        if self.is_live() && self.write.as_deref() == Some(Path::new("-")) {
            return Err(BadInput("-w - is for captures that are read; with -i name a file".to_owned()));
        }
        let message = match () {
            () if json && format => "--json has an object a unit, -T json one a frame; use one of them",
            () if json && self.verbose => "--json has every field already; leave -V out, or --json for text",
            () if json && self.hex => "--json has no hex dump; use -x without it, or -T fields -e payload",
            () if write && (json || format) => {
                "-w writes a capture instead of printing; run once with it and once without"
            }
            () if write && (self.verbose || self.hex) => {
                "-w prints nothing, so -V and -x have no use with it; leave them out"
            }
            () if self.quiet && (json || format || write) => {
                "-q prints nothing but the summary; use --summary to have it beside other output"
            }
            () => return Ok(()),
        };
        Err(BadInput(message.to_owned()))
    }
}

/// The message for a filter that nothing passes: empty output alone may mean many things.
fn no_match(name: &str) -> String {
    format!("{name}: no matches: nothing in it passes the filter")
}

/// Reads a filter; its errors point at the column below the command's own line.
pub(crate) fn parse(text: &str, wanted: &mut Wanted) -> Result<Filter, BadInput> {
    use std::io::IsTerminal;
    Filter::parse(text, wanted).map_err(|error| {
        if io::stderr().is_terminal() {
            BadInput(format!("{error}\n{}", error.pointed(text)))
        } else {
            BadInput(error.to_string())
        }
    })
}

/// The fields of -e and the settings of -E.
struct Chosen {
    fields: Vec<(Slot, &'static Known)>,
    columns: Columns,
}

fn columns(arguments: &Arguments, wanted: &mut Wanted) -> Result<Chosen, BadInput> {
    let format = arguments.format;
    if !arguments.fields.is_empty() && !matches!(format, Some(Format::Fields | Format::Json)) {
        return Err(BadInput("-e goes with -T fields or -T json".to_owned()));
    }
    if !arguments.settings.is_empty() && format != Some(Format::Fields) {
        return Err(BadInput("-E goes with -T fields".to_owned()));
    }
    if format == Some(Format::Fields) && arguments.fields.is_empty() {
        return Err(BadInput("-T fields needs -e FIELD, once for each column; -G fields lists all of them".to_owned()));
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
            BadInput(format!("-e: {name} is no field or protocol; {hint}"))
        })?;
        Ok((wanted.add(known), known))
    });
    Ok(Chosen { fields: fields.collect::<Result<_, BadInput>>()?, columns })
}

fn list_interfaces(out: &mut Out) -> anyhow::Result<ExitCode> {
    for (index, interface) in weft_capture::interfaces().map_err(|error| refused(&error))?.iter().enumerate() {
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
