//! `weft serve`: runs the builtin responder as a server for other implementations.
//!
//! The server listens on two ports. One port has the echo service, which sends each Send back. The
//! other port serves the workloads: it is the peer of `weft ping`, `weft probe`, `weft bench` and
//! `weft cat`.

mod shares;
mod workloads;

use std::io::{self, Write};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::process::ExitCode;

use weft_peer::Settings;
use weft_peer::driver::serve::{ConnectionEvent, ConnectionReport, Server, ServerSettings};
use weft_peer::hostile::mangle::Mangling;
use weft_peer::mpa::Negotiated;

use crate::mangle::MangleArguments;
use crate::rnic;
use crate::runtime;
use crate::signals;
use crate::watch::WatchArguments;

/// The command line.
#[derive(clap::Args)]
#[command(after_help = "The responder listens on two ports:\n  \
    --listen     the echo service, which accepts all MPA Requests and sends each Send back\n  \
    --workloads  the peer of `weft ping`, `weft probe`, `weft bench` and `weft cat`. The private data\n               \
    of the MPA Request selects the service. Without private data, the service is an rping server.\n               \
    Each peer address can use at most 1 GiB of memory.\n\n\
    --trace and --write apply to both ports. weft prints the events of all connections to standard\n\
    error. Ctrl-C stops weft.\n\n\
    Examples:\n  \
    weft serve                                     run a correct responder for this host\n  \
    weft serve --deviate mpa.accepts-wrong-key     violate a rule on purpose\n  \
    weft serve --seed 7                            damage the sent traffic in the same way in each run\n  \
    weft serve --mangle truncate,reset=50,cut=2    truncate messages, reset connections, split writes")]
pub(crate) struct Arguments {
    /// Run the echo service on this address (default 127.0.0.1:7175)
    ///
    /// The echo service sends each received Send back. For port 0, weft uses a free port and prints
    /// it.
    #[arg(long, value_name = "ADDRESS")]
    listen: Option<SocketAddr>,
    /// Listen on this address for `weft ping` and other clients
    ///
    /// This port serves ping, probe, bench and cat. The default is 127.0.0.1:7174. If only --listen
    /// is given, weft does not open this port.
    #[arg(long, value_name = "ADDRESS")]
    workloads: Option<SocketAddr>,
    /// Violate a rule on purpose, on both ports; repeatable
    ///
    /// `weft deviations` lists the names and the violated rules.
    #[arg(long, value_name = "NAME")]
    deviate: Vec<String>,
    /// Print nothing about connections
    #[arg(long, short)]
    quiet: bool,
    #[command(flatten)]
    mangle: MangleArguments,
    #[command(flatten)]
    watch: WatchArguments,
}

/// The default address of the echo service.
const ECHO: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 7175);
/// The default address of ping, probe, bench and cat.
const WORKLOADS: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 7174);

/// Serves both ports until a signal stops the command.
pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let deviations = rnic::deviations(&arguments.deviate)?;
    let connection = Settings { deviations: deviations.clone(), ..Settings::default() };
    runtime::take_all_descriptors();
    runtime::block_on(arguments.watch.around(async |traffic| {
        let mangling = arguments.mangle.mangling();
        let settings = ServerSettings {
            connection,
            mangling: mangling.clone(),
            traffic: traffic.clone(),
            ..ServerSettings::default()
        };
        let listen = arguments.listen.unwrap_or(ECHO);
        let server = Server::bind(listen, settings).map_err(|error| rnic::cannot_listen(listen, &error))?;
        let signal = signals::interrupted();
        // If the reader of the output is gone, the server continues.
        let _ = writeln!(io::stdout(), "listening on {}", server.local_addr());
        let workloads = arguments.workloads.or(arguments.listen.is_none().then_some(WORKLOADS));
        if let Some(address) = workloads {
            let address = workloads::start(address, deviations, mangling.clone(), traffic, arguments.quiet)?;
            let _ = writeln!(io::stdout(), "serving ping, probe, bench and cat on {address}");
        }
        let stop = server.stop_handle();
        let interrupted = tokio::spawn(async move {
            signal.await;
            stop.stop();
        });
        let quiet = arguments.quiet;
        let served = server.run_reporting(move |report| {
            if !quiet {
                let _ = writeln!(io::stderr(), "{}", line(&report, mangling.as_ref()));
            }
        });
        served.await;
        interrupted.abort();
        Ok(ExitCode::SUCCESS)
    }))
}

/// Formats an event of the echo service as a line.
fn line(report: &ConnectionReport, mangling: Option<&Mangling>) -> String {
    let what = match report.event {
        ConnectionEvent::Accepted => match mangling.map(|mangling| mangling.seed_of(report.number - 1)) {
            Some(seed) => format!("TCP connected; data to this peer is mangled with seed {seed}"),
            None => "TCP connected".to_owned(),
        },
        ConnectionEvent::Established(negotiated) => agreed(&negotiated),
        ConnectionEvent::Closed { closed, sends } => {
            let how = closed.map_or_else(|| "closed during the start-up".to_owned(), |closed| closed.to_string());
            format!("{how}; {sends} {} received", if sends == 1 { "Send" } else { "Sends" })
        }
    };
    format!("{:>4}  {}  {what}", report.number, report.peer)
}

/// Describes the negotiated parameters.
fn agreed(negotiated: &Negotiated) -> String {
    let yes = |yes: bool| if yes { "on" } else { "off" };
    let (crc, to, from) = (yes(negotiated.crc), yes(negotiated.markers_sent), yes(negotiated.markers_received));
    let revision = negotiated.peer_revision;
    let mut text = format!("MPA revision {revision}: CRC {crc}, markers to the peer {to}, from the peer {from}");
    if let Some(agreed) = &negotiated.enhanced {
        text.push_str(&format!(", IRD {} ORD {}", agreed.ird, agreed.ord));
    }
    text
}
