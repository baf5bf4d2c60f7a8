//! `weft ping`: exchanges data with rping or weft over the software RNIC, as client or as server.

mod times;

use std::io::{self, Write};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::Semaphore;
use weft_core::text::visible_in_line;
use weft_dissector::output::text::counted;
use weft_peer::driver::cm::ConnectRequest;
use weft_peer::driver::{Device, TrafficLog};
use weft_peer::workload::ping::{Client, SIZES, Server, printed};
use weft_peer::workload::{WorkloadError, or_reject};

use crate::exit::{note, reject};
use crate::rnic::{self, RnicArguments, SideArguments};
use crate::runtime;
use crate::signals;
use times::Times;

/// The default size in the source code of rping. The manual page of rping wrongly has 100.
const DEFAULT_SIZE: u32 = 64;
/// Maximum number of clients that a server with `-P` serves at a time.
const CLIENTS: usize = 1024;

/// The command line.
#[derive(clap::Args)]
#[command(
    disable_version_flag = true,
    group = clap::ArgGroup::new("side").args(["server", "client"]).required(true),
    after_help = "The short options are those of librdmacm's rping, which can be the peer.\n\n\
    Each round has two parts. First, the client sends the address of its data in a Send, and the\n\
    server reads the data by an RDMA Read. Then the client sends the address of a second buffer, and\n\
    the server writes the data to this buffer by an RDMA Write.\n\n\
    Exit codes:\n  \
    0  all rounds succeeded\n  \
    1  the data differs, or the connection broke\n  \
    3  no connection\n\n\
    Examples:\n  \
    weft ping -s -a 127.0.0.1                       serve one client\n  \
    weft ping -c -a 127.0.0.1 -V -C 100 -S 65535    run 100 rounds, and compare all bytes\n  \
    weft ping -c -a 192.0.2.17 -C 3 --trace         run 3 rounds, and print each message"
)]
pub(crate) struct Arguments {
    #[command(flatten)]
    side: SideArguments,
    /// Print the data of each round
    #[arg(short = 'v', long)]
    verbose: bool,
    /// Client: compare the returned data with the sent data
    #[arg(short = 'V', long)]
    validate: bool,
    /// Client: stop after this many rounds (default: until Ctrl-C)
    #[arg(short = 'C', long, value_name = "ROUNDS")]
    count: Option<u64>,
    /// Client: use this many bytes per round, 23 to 65535
    ///
    /// If the server is rping, start it with the same size. weft's server accepts all sizes. If
    /// weft's server is the target of a test, use `rping_size = 65535` in the target file.
    #[arg(short = 'S', long, default_value_t = DEFAULT_SIZE)]
    size: u32,
    /// Server: serve several clients at a time, until Ctrl-C
    #[arg(short = 'P', long, requires = "server")]
    persistent: bool,
    /// Print progress to standard error
    #[arg(short = 'd', long)]
    debug: bool,
    /// Client: pause this many milliseconds before the first message
    ///
    /// Linux's software iWARP driver (siw) loses a message that arrives immediately after its MPA
    /// Reply. A pause of 50 ms avoids the loss.
    #[arg(long, value_name = "MS", default_value_t = 0)]
    settle: u64,
    /// Client: print one JSON object at the end
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    rnic: RnicArguments,
}

/// Runs the command.
pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    if !SIZES.contains(&arguments.size) {
        let (least, most) = (SIZES.start(), SIZES.end());
        reject!("--size {} is out of range; rping's data has {least} to {most} bytes", arguments.size);
    }
    runtime::on_one_thread(arguments.rnic.watch.around(async |traffic| {
        let is_client = arguments.side.client;
        let done = if is_client { client(arguments, traffic).await } else { server(arguments, traffic).await };
        done.map(|()| ExitCode::SUCCESS)
    }))
}

/// Connects, runs the rounds, and prints the summary.
async fn client(arguments: &Arguments, traffic: Option<TrafficLog>) -> anyhow::Result<()> {
    let address = arguments.side.resolve().await?;
    let device = arguments.rnic.open(traffic)?;
    let mut client = Client::new(&device, arguments.size, arguments.validate).map_err(rnic::workload_error)?;
    let connected = client.connect(address, arguments.rnic.mpa.settings()).await;
    let connected = connected.map_err(|error| rnic::unreachable(address, &error))?;
    if arguments.debug {
        note(&format!("connected with {address}: {}", rnic::agreed(&connected)));
    }
    if connected.negotiated.enhanced.is_some_and(|agreed| agreed.ird == 0) {
        note("IRD is 0: the server cannot Read at the start of each round; raise --ird here and --ord on the server");
    }
    tokio::time::sleep(Duration::from_millis(arguments.settle)).await;
    let mut times = Times::default();
    let mut out = io::stdout().lock();
    let rounds = async {
        for _ in 0..arguments.count.unwrap_or(u64::MAX) {
            let begin = Instant::now();
            let data = client.round().await.map_err(rnic::workload_error)?;
            times.add(begin.elapsed());
            if arguments.verbose {
                writeln!(out, "ping data: {}", visible_in_line(&printed(&data)))?;
            }
        }
        Ok::<(), anyhow::Error>(())
    };
    tokio::select! {
        done = rounds => done?,
        _ = signals::interrupted() => {}
    }
    client.disconnect().await.map_err(rnic::workload_error)?;
    drop(client);
    summary(arguments, &mut times, &mut out)
}

/// Prints the summary as JSON, or with `--debug` as text.
fn summary(arguments: &Arguments, times: &mut Times, out: &mut impl Write) -> anyhow::Result<()> {
    let [least, middle, most] = times.summary().map(|time| time.as_secs_f64() * 1e6);
    let (rounds, size, validated) = (times.rounds(), arguments.size, arguments.validate);
    if arguments.json {
        let summary = serde_json::json!({
            "kind": "ping", "rounds": rounds, "octets": size, "validated": validated,
            "round_us": { "min": least, "median": middle, "max": most },
        });
        writeln!(out, "{summary}")?;
    } else if arguments.debug {
        let compared = if validated { ", all compared" } else { "" };
        note(&format!(
            "{} of {size} bytes{compared}; a round took {least:.0} to {most:.0} us, median {middle:.0} us",
            counted(rounds, "round")
        ));
    }
    Ok(())
}

/// Serves one client, or with `-P` all clients until a signal.
async fn server(arguments: &Arguments, traffic: Option<TrafficLog>) -> anyhow::Result<()> {
    let address = arguments.side.resolve().await?;
    let device = arguments.rnic.open(traffic)?;
    let listener = rnic::listen(&device, address, arguments.rnic.mpa.settings())?;
    let mut interrupted = signals::interrupted();
    if arguments.debug || arguments.side.port == 0 {
        note(&format!("listening on {}", listener.local_addr()));
    }
    let settings = Serving { verbose: arguments.verbose, debug: arguments.debug };
    if !arguments.persistent {
        let one = async {
            let request = loop {
                match listener.next().await {
                    Ok(request) => break request,
                    // The client did not use RDMA, so wait for the next client.
                    Err(error) if arguments.debug => note(&format!("a connection failed: {error}")),
                    Err(_) => {}
                }
            };
            drop(listener);
            serve(&device, request, settings).await.map_err(rnic::workload_error)
        };
        return tokio::select! {
            served = one => served,
            stop = interrupted => Err(stop.before("a client was done")),
        };
    }
    let slots = Arc::new(Semaphore::new(CLIENTS));
    loop {
        // Acquiring cannot fail, because nothing closes the semaphore. A client above the limit
        // waits for its MPA Reply.
        let slot = tokio::select! {
            slot = Arc::clone(&slots).acquire_owned() => slot.ok(),
            _ = &mut interrupted => return Ok(()),
        };
        let request = tokio::select! {
            request = listener.next() => request,
            _ = &mut interrupted => return Ok(()),
        };
        let device = device.clone();
        tokio::spawn(async move {
            let _slot = slot;
            let served = match request {
                Ok(request) => serve(&device, request, settings).await,
                Err(error) => Err(error.into()),
            };
            if let Err(error) = served {
                note(&format!("serving a client failed: {error}"));
            }
        });
    }
}

/// What the server prints.
#[derive(Debug, Clone, Copy)]
struct Serving {
    verbose: bool,
    debug: bool,
}

/// Serves one client until it disconnects.
async fn serve(device: &Device, request: ConnectRequest, settings: Serving) -> Result<(), WorkloadError> {
    let (mut server, request) = or_reject(request, Server::new(device, *SIZES.end())).await?;
    let connected = server.accept(request)?;
    if settings.debug {
        note(&format!("a client is connected: {}", rnic::agreed(&connected)));
    }
    if connected.negotiated.enhanced.is_some_and(|agreed| agreed.ord == 0) {
        note("ORD is 0: this server cannot Read at the start of each round; raise --ord here and --ird on the client");
    }
    while let Some(data) = server.round().await? {
        if settings.verbose {
            // If the reader closes the output, the server still serves the client.
            let _ = writeln!(io::stdout(), "server ping data: {}", visible_in_line(&printed(&data)));
        }
    }
    server.disconnect().await
}
