//! `weft follow`: the messages or octets of one connection.

use std::io::{self, BufWriter, Write};
use std::process::ExitCode;

use weft_dissector::exchange::Exchange;
use weft_dissector::output::hexdump::hexdump;
use weft_dissector::output::messages::{Message, Messages};
use weft_dissector::output::text::{exchange_line, summary};
use weft_dissector::unit::{Kind, Unit};
use weft_dissector::{Packet, Sink, TransportKind};

use crate::exit::BadInput;
use crate::input::CaptureFile;

/// The command line.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  weft follow capture.pcap --stream 0\n  \
    weft follow capture.pcap --stream 0 --direction 0 --what payload --raw > sent.bin")]
pub(crate) struct Arguments {
    #[command(flatten)]
    file: CaptureFile,
    /// The connection, as weft dissect numbers it
    #[arg(long, value_name = "N", default_value_t = 0)]
    stream: u32,
    /// Only what one end sends: 0 the end that sent the first frame, 1 the other
    #[arg(long, value_name = "0|1", value_parser = clap::value_parser!(u8).range(0..=1))]
    direction: Option<u8>,
    /// What to show
    #[arg(long, value_enum, default_value_t = Subject::Messages)]
    what: Subject,
    /// The octets alone, as they are
    #[arg(long)]
    raw: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Subject {
    /// RDMAP messages put together, SDP messages, start-up frames
    Messages,
    /// What Sends, Writes and Read Responses carry, and octets outside MPA as far as they are shown
    Payload,
    /// The octets of start-up frames and FPDUs, without markers and CRC fields
    Octets,
}

/// Reads the capture and prints the connection.
pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let input = arguments.file.open()?;
    let name = input.name().to_owned();
    let out = BufWriter::new(io::stdout().lock());
    let mut follow = Follow {
        stream: arguments.stream,
        direction: arguments.direction,
        what: arguments.what,
        raw: arguments.raw,
        out,
        messages: Messages::default(),
        written: [0; 2],
        seen: false,
        failed: Ok(()),
    };
    input.dissect(&mut follow)?;
    follow.failed?;
    follow.out.flush()?;
    if !follow.seen {
        return Err(BadInput(format!("{name}: there is no TCP connection {}", arguments.stream)).into());
    }
    Ok(ExitCode::SUCCESS)
}

struct Follow<W: Write> {
    stream: u32,
    direction: Option<u8>,
    what: Subject,
    raw: bool,
    out: W,
    messages: Messages,
    /// Octets shown of each direction.
    written: [usize; 2],
    seen: bool,
    failed: io::Result<()>,
}

impl<W: Write> Follow<W> {
    fn show(&mut self, unit: &Unit<'_>) -> io::Result<()> {
        let message = self.messages.unit(unit);
        let octets = match &unit.kind {
            Kind::Startup(_, part) | Kind::Sdp(_, _, part) => part.raw().0,
            Kind::Fpdu(fpdu) => fpdu.body.raw().0,
            Kind::Streaming { head, .. } => head,
            Kind::PortMapper(_) | Kind::Gap { .. } | Kind::Unparsed { .. } => &[],
        };
        match (self.what, &unit.kind) {
            (Subject::Octets, Kind::Sdp(..)) => Ok(()),
            (Subject::Octets, _) => self.octets(unit, octets),
            (Subject::Messages, Kind::Fpdu(_)) => match message {
                Some(message) => self.message(unit, &message),
                None => Ok(()),
            },
            (Subject::Messages, _) => {
                self.head(unit, unit.frame, &summary(unit))?;
                self.dump(octets)
            }
            (Subject::Payload, Kind::Fpdu(_)) => match message {
                Some(message) if carries(&message) => self.octets(unit, &message.octets),
                _ => Ok(()),
            },
            (Subject::Payload, Kind::Streaming { .. }) => self.octets(unit, octets),
            (Subject::Payload, _) => Ok(()),
        }
    }

    fn message(&mut self, unit: &Unit<'_>, message: &Message) -> io::Result<()> {
        let frames = match message.frames {
            (first, last) if first == last => String::new(),
            (first, _) => format!("  from frame {first}"),
        };
        self.head(unit, message.frames.1, &format!("{message}{frames}"))?;
        self.dump(&message.octets)?;
        let more = message.len - message.octets.len() as u64;
        if more > 0 && !self.raw {
            writeln!(self.out, "        and {more} octets more")?;
        }
        Ok(())
    }

    fn head(&mut self, unit: &Unit<'_>, frame: u64, what: &str) -> io::Result<()> {
        if self.raw {
            return Ok(());
        }
        writeln!(self.out, "frame {frame}  {} → {}  {what}", unit.ends.src_text, unit.ends.dst_text)
    }

    fn dump(&mut self, octets: &[u8]) -> io::Result<()> {
        if self.raw { self.out.write_all(octets) } else { self.out.write_all(hexdump(octets, 0, 8).as_bytes()) }
    }

    /// Octets of a direction as one row; those of the second end stand further right.
    fn octets(&mut self, unit: &Unit<'_>, octets: &[u8]) -> io::Result<()> {
        if self.raw {
            return self.out.write_all(octets);
        }
        let index = usize::from(unit.direction);
        let dump = hexdump(octets, self.written[index], 4 * index);
        self.written[index] += octets.len();
        self.out.write_all(dump.as_bytes())
    }
}

/// Does a message carry octets of the ULP, and not of RDMAP itself?
fn carries(message: &Message) -> bool {
    // RFC 5040: Write 0, Read Response 2, Sends 3 to 6; RFC 7306: Immediate Data 8 and 9.
    matches!(message.opcode.0, 0 | 2..=6 | 8 | 9)
}

impl<W: Write> Sink for Follow<W> {
    fn unit(&mut self, unit: &Unit<'_>) {
        let chosen = unit.stream == Some(self.stream) && self.direction.is_none_or(|one| one == unit.direction);
        if chosen && self.failed.is_ok() {
            self.failed = self.show(unit);
        }
    }

    fn exchange(&mut self, exchange: &Exchange, over: bool) {
        let chosen =
            !over && exchange.streams.last() == Some(&self.stream) && self.what == Subject::Messages && !self.raw;
        if chosen && self.failed.is_ok() {
            self.failed = writeln!(self.out, "{}", exchange_line(exchange));
        }
    }

    fn packet(&mut self, packet: &Packet) {
        self.seen |= matches!(packet.transport, TransportKind::Tcp { stream, .. } if stream == self.stream);
    }
}
