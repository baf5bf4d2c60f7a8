//! `weft follow`: prints the messages or bytes of one connection.

use std::cell::RefCell;
use std::io::{self, BufWriter, Write};
use std::process::ExitCode;

use weft_dissector::Dissector;
use weft_dissector::StreamId;
use weft_dissector::output::follow::{Follow, Piece, Subject};
use weft_dissector::output::hexdump::hexdump;
use weft_dissector::output::text::counted;

use crate::exit::reject;
use crate::input::CaptureFile;
use crate::one_of::one_of;

/// The command line.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  \
    weft follow capture.pcap --stream 2                               print the messages\n  \
    weft follow capture.pcap --direction 0 --what payload --raw > f   save the sent data")]
pub(crate) struct Arguments {
    /// Follow the connection with this number; `weft dissect` prints the numbers
    #[arg(long, value_name = "N", default_value_t = StreamId::FIRST)]
    stream: StreamId,
    /// Print one direction: 0 from the sender of the first frame, 1 from its peer
    #[arg(long, value_name = "0|1", value_parser = clap::value_parser!(u8).range(0..=1))]
    direction: Option<u8>,
    /// Choose what to print
    #[arg(long, default_value = "messages", value_parser = one_of([
        ("messages", "Complete RDMAP messages, SDP messages and start-up frames", Subject::Messages),
        ("payload", "The data in Sends, RDMA Writes and Read Responses; also all bytes outside MPA", Subject::Payload),
        ("octets", "Bytes of start-up frames and FPDUs, without markers and CRC fields", Subject::Octets),
    ]))]
    what: Subject,
    /// Write only the bytes themselves, without a hex dump or other text
    #[arg(long)]
    raw: bool,
    // These options come last, because their heading "Live capture" applies to all later options.
    #[command(flatten)]
    file: CaptureFile,
}

/// Reads the capture and prints the connection.
pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let input = arguments.file.open()?;
    let name = input.name().to_owned();
    let out = BufWriter::new(io::stdout().lock());
    let what = arguments.what;
    let mut printer = Printer { what, raw: arguments.raw, out, written: [0; 2] };
    let failed = RefCell::new(Ok(()));
    let mut follow = Follow::new(arguments.stream, arguments.direction, what, |piece: &Piece<'_>| {
        let mut failed = failed.borrow_mut();
        if failed.is_ok() {
            *failed = printer.piece(piece);
        }
    });
    // If the reader closes the output, stop: the capture can be long or endless.
    let dissector = arguments.file.decode.apply(Dissector::default());
    input.dissect_until(dissector, &mut follow, || failed.borrow().is_err())?;
    let is_seen = follow.is_seen();
    failed.into_inner()?;
    printer.out.flush()?;
    if !is_seen {
        reject!("{name}: there is no TCP connection {}", arguments.stream);
    }
    Ok(ExitCode::SUCCESS)
}

/// Prints the pieces of the connection.
struct Printer<W: Write> {
    what: Subject,
    raw: bool,
    out: W,
    /// Number of printed bytes of each direction.
    written: [usize; 2],
}

impl<W: Write> Printer<W> {
    fn piece(&mut self, piece: &Piece<'_>) -> io::Result<()> {
        if self.raw {
            return self.out.write_all(piece.octets);
        }
        if let Some(head) = &piece.head {
            writeln!(self.out, "{head}")?;
        }
        if self.what != Subject::Messages {
            return self.row(piece);
        }
        self.out.write_all(hexdump(piece.octets, 0, 8).as_bytes())?;
        if piece.more > 0 {
            writeln!(self.out, "        and {} more", counted(piece.more, "byte"))?;
        }
        Ok(())
    }

    /// Prints the bytes of a piece as a hex dump. Bytes of direction 1 are indented.
    fn row(&mut self, piece: &Piece<'_>) -> io::Result<()> {
        let index = usize::from(piece.direction);
        let dump = hexdump(piece.octets, self.written[index], 4 * index);
        self.written[index] += piece.octets.len();
        self.out.write_all(dump.as_bytes())
    }
}
