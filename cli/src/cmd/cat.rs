//! `weft cat`: transfers a file or a pipe over RDMA, by Sends, RDMA Writes or RDMA Reads, in either
//! direction. At the end, both sides compare the length and a hash of the bytes.

use std::fs::File;
use std::io::{self, Read, Write};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use weft_peer::driver::Tape;
use weft_peer::driver::cm::Listener;
use weft_peer::workload::WorkloadError;
use weft_peer::workload::bench::Carrier;
use weft_peer::workload::cat::{Ask, Cat, Totals};

use crate::exit::{BadInput, note};
use crate::mangle::MangleArguments;
use crate::rnic::{self, MpaArguments};
use crate::runtime;
use crate::watch::WatchArguments;

/// The command line.
#[derive(clap::Args)]
#[command(
    after_help = "Without FILE, weft sends standard input, or writes the received bytes to standard output. The\n\
    connecting side selects --by and --pull for both sides.\n\n\
    Exit codes:\n  \
    0  both sides have the same bytes\n  \
    1  the bytes differ, or the connection broke\n  \
    3  no connection\n\n\
    Examples:\n  \
    weft cat --listen -a 127.0.0.1 > copy            wait for a peer and receive a file\n  \
    weft cat -a 127.0.0.1 --by write original        send a file by RDMA Writes\n  \
    weft cat -a 127.0.0.1 --by read --pull > copy    fetch a file from the listening side"
)]
pub(crate) struct Arguments {
    /// Send this file, or write the received bytes to it
    #[arg(value_name = "FILE")]
    file: Option<PathBuf>,
    /// Wait for a connection of one peer instead of connecting to it
    #[arg(short = 'l', long, conflicts_with_all = ["by", "pull"])]
    listen: bool,
    /// Connect to this address; with --listen, listen on it
    #[arg(short = 'a', long, value_name = "ADDRESS", default_value = "127.0.0.1")]
    address: String,
    /// Use this TCP port; with --listen, 0 means a free port, which weft prints
    #[arg(short = 'p', long, default_value_t = 7174)]
    port: u16,
    /// Transfer the bytes by these operations
    #[arg(long, value_enum, default_value_t = By::Write)]
    by: By,
    /// Receive from the peer instead of sending
    #[arg(long)]
    pull: bool,
    /// Print nothing on success
    #[arg(short, long)]
    quiet: bool,
    #[command(flatten)]
    mpa: MpaArguments,
    #[command(flatten)]
    mangle: MangleArguments,
    #[command(flatten)]
    watch: WatchArguments,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum By {
    /// RDMA Reads by the receiving side
    Read,
    /// Sends
    Send,
    /// RDMA Writes
    Write,
}

/// Sends or receives.
pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    runtime::on_one_thread(async {
        arguments.watch.around(async |tape| cat(arguments, tape).await).await.map(|()| ExitCode::SUCCESS)
    })
}

async fn cat(arguments: &Arguments, tape: Option<Tape>) -> anyhow::Result<()> {
    let address = rnic::resolve(&arguments.address, arguments.port).await?;
    let device = rnic::open(tape, arguments.mangle.mangling())?;
    let settings = arguments.mpa.settings();
    let (mut cat, gives) = if arguments.listen {
        let listener =
            Listener::bind(&device, address, settings).map_err(|error| rnic::cannot_listen(address, &error))?;
        note(&format!("listening on {}", listener.local_addr()));
        loop {
            // After a peer of another program, wait for the next peer.
            let accepted = match listener.next().await {
                Ok(request) => Cat::accept(&device, request).await,
                Err(error) => Err(error.into()),
            };
            match accepted {
                Ok((cat, ask)) => break (cat, ask.pull),
                Err(error) => note(&format!("a connection failed: {error}")),
            }
        }
    } else {
        let carrier = match arguments.by {
            By::Read => Carrier::Read,
            By::Send => Carrier::Send,
            By::Write => Carrier::Write,
        };
        let ask = Ask { carrier, pull: arguments.pull };
        (Cat::connect(&device, address, settings, ask).await.map_err(rnic::not_begun(address))?, !arguments.pull)
    };
    let begin = Instant::now();
    let totals = if gives { give(arguments, &mut cat).await? } else { take(arguments, &mut cat).await? };
    let time = begin.elapsed();
    if arguments.listen { cat.ended().await } else { cat.disconnect().await }.map_err(rnic::failed)?;
    if !arguments.quiet {
        note(&summary(totals, gives, time));
    }
    Ok(())
}

/// Sends the file or standard input.
async fn give(arguments: &Arguments, cat: &mut Cat) -> anyhow::Result<Totals> {
    let mut from: Box<dyn Read + Send> = match &arguments.file {
        Some(path) => Box::new(File::open(path).map_err(|error| BadInput(format!("{}: {error}", path.display())))?),
        None => Box::new(io::stdin()),
    };
    cat.give(&mut |room| from.read(room).map_err(|error| format!("reading: {error}"))).await.map_err(rnic::failed)
}

/// Receives into the file or standard output.
async fn take(arguments: &Arguments, cat: &mut Cat) -> anyhow::Result<Totals> {
    let mut to: Box<dyn Write + Send> = match &arguments.file {
        Some(path) => Box::new(File::create(path).map_err(|error| BadInput(format!("{}: {error}", path.display())))?),
        None => Box::new(io::stdout()),
    };
    let written = |error: io::Error| format!("writing: {error}");
    let totals = cat.take(&mut |octets| to.write_all(octets).map_err(written)).await.map_err(rnic::failed)?;
    to.flush().map_err(|error| rnic::failed(WorkloadError::Local(written(error))))?;
    Ok(totals)
}

fn summary(totals: Totals, gives: bool, time: Duration) -> String {
    let Totals { length, hash } = totals;
    let way = if gives { "sent" } else { "received" };
    let rate = length as f64 / time.as_secs_f64().max(f64::MIN_POSITIVE) / 1e6;
    format!("{length} bytes {way}, {rate:.1} MB/s; both sides have the FNV-1a hash {hash:016x}")
}
