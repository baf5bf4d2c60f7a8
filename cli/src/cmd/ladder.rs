//! `weft ladder`: draws a connection or a port mapper exchange as a sequence diagram.

use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use weft_dissector::Dissector;
use weft_dissector::StreamId;
use weft_dissector::output::connection_ladder::{Subject, Timeline};

use crate::exit::{reject, write_file};
use crate::input::{CaptureFile, Next, remark};

/// The command line.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  \
    weft ladder capture.pcap --stream 2       draw a connection as text\n  \
    weft ladder capture.pcap -o ladder.svg    draw the first connection as SVG")]
pub(crate) struct Arguments {
    /// Draw the connection with this number; `weft dissect` prints the numbers
    #[arg(long, value_name = "N", default_value_t = StreamId::FIRST)]
    stream: StreamId,
    /// Draw the port mapper exchange with this number instead of a connection
    ///
    /// An exchange is a query to a port mapper with its answers. `weft stats` lists the exchanges.
    #[arg(long, value_name = "N", conflicts_with = "stream")]
    exchange: Option<u64>,
    /// Write an SVG file instead of text
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Draw at most this many rows (one per message, TCP event or finding)
    #[arg(long, value_name = "N", default_value_t = 400)]
    rows: usize,
    /// Make the text this many columns wide
    #[arg(long, value_name = "N", default_value_t = 100)]
    width: usize,
    // These options come last, because their heading "Live capture" applies to all later options.
    #[command(flatten)]
    file: CaptureFile,
}

/// Reads the capture and draws.
pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let mut input = arguments.file.open()?;
    let name = input.name().to_owned();
    let subject = arguments.exchange.map_or(Subject::Stream(arguments.stream), Subject::Exchange);
    let mut timeline = Timeline::new(subject, arguments.rows);
    let mut dissector = arguments.file.decode.apply(Dissector::default());
    loop {
        match input.next() {
            Next::Frame(frame) => {
                timeline.at(frame.time);
                dissector.frame(&frame, &mut timeline);
            }
            Next::Idle => {}
            Next::End => break,
        }
    }
    dissector.finish(&mut timeline);
    input.ignore_partial_frames(&mut dissector);
    input.close()?;
    remark(&name, &dissector);
    let Some(ladder) = timeline.ladder() else {
        let what = match subject {
            Subject::Stream(stream) => format!("TCP connection {stream}"),
            Subject::Exchange(number) => format!("port mapper exchange {number}"),
        };
        reject!("{name}: there is no {what}");
    };
    match &arguments.output {
        Some(path) => write_file(path, ladder.svg() + "\n")?,
        None => io::stdout().lock().write_all(ladder.text(arguments.width).as_bytes())?,
    }
    Ok(ExitCode::SUCCESS)
}
