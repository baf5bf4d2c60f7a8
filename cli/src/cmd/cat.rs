//! `weft cat`: sends or receives the bytes of a file or a pipe over RDMA, by Sends, RDMA Writes or
//! RDMA Reads. At the end, both sides compare the length and a hash of the bytes.

use std::fs::File;
use std::io::{self, Read, Write};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use weft_peer::driver::TrafficLog;
use weft_peer::workload::WorkloadError;
use weft_peer::workload::bench::Carrier;
use weft_peer::workload::cat::{Cat, Totals, TransferRequest};

use crate::exit::{BadInput, note};
use crate::one_of::one_of;
use crate::rnic::{self, RnicArguments};
use crate::runtime;

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
    /// Wait until a peer connects, instead of connecting to a peer
    #[arg(short = 'l', long, conflicts_with_all = ["by", "pull"])]
    listen: bool,
    /// Connect to this address; with --listen, listen on it
    #[arg(short = 'a', long, value_name = "ADDRESS", default_value = "127.0.0.1")]
    address: String,
    /// Use this TCP port; with --listen, 0 means a free port, which weft prints
    #[arg(short = 'p', long, default_value_t = 7174)]
    port: u16,
    /// Transfer the bytes by these operations
    #[arg(long, default_value = "write", value_parser = one_of([
        ("read", "RDMA Reads by the receiving side", Carrier::Read),
        ("send", "Sends", Carrier::Send),
        ("write", "RDMA Writes", Carrier::Write),
    ]))]
    by: Carrier,
    /// Receive from the peer instead of sending
    #[arg(long)]
    pull: bool,
    /// Print nothing on success
    #[arg(short, long)]
    quiet: bool,
    #[command(flatten)]
    rnic: RnicArguments,
}

/// Sends or receives.
pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let work = async |traffic| cat(arguments, traffic).await.map(|()| ExitCode::SUCCESS);
    runtime::on_one_thread(arguments.rnic.watch.around(work))
}

async fn cat(arguments: &Arguments, traffic: Option<TrafficLog>) -> anyhow::Result<()> {
    let address = rnic::resolve(&arguments.address, arguments.port).await?;
    let device = arguments.rnic.open(traffic)?;
    let settings = arguments.rnic.mpa.settings();
    let (mut cat, gives) = if arguments.listen {
        let listener = rnic::listen(&device, address, settings)?;
        note(&format!("listening on {}", listener.local_addr()));
        loop {
            // If the peer does not run `weft cat`, wait for the next peer.
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
        let ask = TransferRequest { carrier: arguments.by, pull: arguments.pull };
        (Cat::connect(&device, address, settings, ask).await.map_err(rnic::start_error(address))?, !arguments.pull)
    };
    let begin = Instant::now();
    let totals = if gives { give(arguments, &mut cat).await? } else { take(arguments, &mut cat).await? };
    let time = begin.elapsed();
    if arguments.listen { cat.ended().await } else { cat.disconnect().await }.map_err(rnic::workload_error)?;
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
    cat.send_stream(&mut |room| from.read(room).map_err(|error| format!("cannot read the input: {error}")))
        .await
        .map_err(rnic::workload_error)
}

/// Receives into the file or standard output.
async fn take(arguments: &Arguments, cat: &mut Cat) -> anyhow::Result<Totals> {
    let mut to: Box<dyn Write + Send> = match &arguments.file {
        Some(path) => Box::new(File::create(path).map_err(|error| BadInput(format!("{}: {error}", path.display())))?),
        None => Box::new(io::stdout()),
    };
    let written = |error: io::Error| format!("cannot write the received bytes: {error}");
    let received = cat.receive_stream(&mut |octets| to.write_all(octets).map_err(written)).await;
    let totals = received.map_err(rnic::workload_error)?;
    to.flush().map_err(|error| rnic::workload_error(WorkloadError::Local(written(error))))?;
    Ok(totals)
}

fn summary(totals: Totals, gives: bool, time: Duration) -> String {
    let Totals { length, hash } = totals;
    let way = if gives { "sent" } else { "received" };
    let rate = length as f64 / time.as_secs_f64().max(f64::MIN_POSITIVE) / 1e6;
    format!("{length} bytes {way}, {rate:.1} MB/s; both sides have the FNV-1a hash {hash:016x}")
}
