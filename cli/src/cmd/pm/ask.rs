//! `weft pm ask`: the PM Client.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::process::ExitCode;
use std::time::Duration;

use serde_json::json;
use tokio::net::TcpSocket;
use weft_core::wire::portmap::{Cache, PmTime, UDP_PORT};
use weft_peer::Deviations;
use weft_peer::driver::portmap::{Mapped, PmClient, PmError, follow, socket_at, source_for};
use weft_peer::portmap::{Ask, ClientSettings, Fallback, Resolution, Resolved};

use crate::exit::{BadInput, HARNESS, UNEXPECTED, UNREACHABLE, Unsuccessful, note, print_line};
use crate::rnic::host_and_port;
use crate::runtime;
use crate::signals;
use crate::watch::WatchArguments;

/// The command line.
#[derive(clap::Args)]
#[command(
    disable_version_flag = true,
    after_help = "Exit codes: 0 an SDP Address was received; 1 denied, or reset at the SDP Address: use plain\n\
    TCP; 3 no answer, or no connection. If there are several queries, the last one counts.\n\n\
    Traces and captures show the port mapper at port 3935, whatever --mapper is, because readers\n\
    detect it by this port."
)]
pub(crate) struct Arguments {
    /// Query this service, HOST:PORT, as plain TCP would reach it
    #[arg(value_name = "SERVICE")]
    service: String,
    /// Query this mapper, HOST or HOST:PORT (default: the service's host, port 3935)
    #[arg(long, value_name = "HOST")]
    mapper: Option<String>,
    /// Name this ADDRESS or ADDRESS:PORT as origin of the connection
    ///
    /// The default is the address that this host would use, and a free port.
    #[arg(long, value_name = "ADDRESS")]
    from: Option<String>,
    /// Wait this many milliseconds before the first repetition
    ///
    /// The wait doubles, up to 4 seconds.
    #[arg(long, value_name = "MS", default_value_t = 500, value_parser = clap::value_parser!(u64).range(1..=3_600_000))]
    wait: u64,
    /// Repeat a query at most this often
    #[arg(long, value_name = "COUNT", default_value_t = 4, value_parser = clap::value_parser!(u32).range(..=1000))]
    repeats: u32,
    /// Send this many queries; weft caches an answer for its PmTime
    #[arg(long, value_name = "TIMES", default_value_t = 1)]
    count: u32,
    /// Pause this many milliseconds between two queries
    #[arg(long, value_name = "MS", default_value_t = 0)]
    pause: u64,
    /// Connect by TCP to the result and close
    ///
    /// If the SDP Address resets the connection, weft connects to the service by plain TCP.
    #[arg(long)]
    connect: bool,
    /// Follow Linux's iwpmd instead of the draft
    ///
    /// Requests then have 64 bytes, and weft acknowledges each repeated answer.
    #[arg(long)]
    linux: bool,
    /// Continue to listen for this many milliseconds after the last answer
    #[arg(long, value_name = "MS", default_value_t = 0)]
    linger: u64,
    /// Violate a rule on purpose; repeatable
    ///
    /// `weft deviations pm.` lists the names.
    #[arg(long, value_name = "NAME")]
    deviate: Vec<String>,
    /// Print one JSON object per query
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    watch: WatchArguments,
}

/// Queries the port mapper.
pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let deviations = Deviations::from_names(arguments.deviate.iter().map(String::as_str))
        .map_err(|error| BadInput(error.to_string()))?;
    runtime::on_one_thread(async {
        let (tape, watch) = arguments.watch.start()?.unzip();
        let service = host_and_port(&arguments.service, None).await?;
        let mapper = match &arguments.mapper {
            Some(mapper) => host_and_port(mapper, Some(UDP_PORT)).await?,
            None => SocketAddr::new(service.ip(), UDP_PORT),
        };
        let (connecting, reserved) = connecting(arguments, service).await?;
        let settings = ClientSettings {
            wait: Duration::from_millis(arguments.wait),
            repeats: arguments.repeats,
            acknowledges_repeats: arguments.linux,
            in_linux_manner: arguments.linux,
            deviations,
            ..ClientSettings::default()
        };
        let local = if mapper.is_ipv4() == connecting.is_ipv4() { connecting.ip() } else { unspecified(mapper) };
        let client = PmClient::bind_to(&[SocketAddr::new(local, 0)], settings, tape.as_ref())
            .map_err(|error| BadInput(format!("cannot query from {local}: {error}")))?;
        let ask = Ask { mapper, service, connecting };
        let outcome = tokio::select! {
            outcome = questions(arguments, &client, ask, reserved) => outcome,
            stop = signals::interrupted() => Err(stop.before("the last answer")),
        };
        tokio::time::sleep(Duration::from_millis(arguments.linger)).await;
        drop(client);
        if let Some(watch) = watch {
            watch.finish()?;
        }
        match outcome? {
            None | Some(Resolution::Sdp { .. }) => Ok(ExitCode::SUCCESS),
            Some(Resolution::Conventional { why: Fallback::Silent | Fallback::Absent, .. }) => {
                Ok(ExitCode::from(UNREACHABLE))
            }
            Some(Resolution::Conventional { .. }) => Ok(ExitCode::from(UNEXPECTED)),
        }
    })
}

/// Sends all queries; returns the last answer.
async fn questions(
    arguments: &Arguments,
    client: &PmClient,
    ask: Ask,
    reserved: TcpSocket,
) -> anyhow::Result<Option<Resolution>> {
    let mut reserved = Some(reserved);
    let mut last = None;
    for number in 0..arguments.count {
        if number > 0 {
            tokio::time::sleep(Duration::from_millis(arguments.pause)).await;
        }
        let resolved = client.resolve(ask).await.map_err(|error| match error {
            PmError::Ask(error) => anyhow::Error::new(BadInput(error.to_string())),
            PmError::Ended => Unsuccessful { code: HARNESS, text: error.to_string() }.into(),
        })?;
        print(arguments, &resolved);
        last = Some(resolved.resolution);
        if arguments.connect {
            let socket = match reserved.take() {
                Some(socket) => socket,
                None => bound(SocketAddr::new(ask.connecting.ip(), 0))?.0,
            };
            last = Some(connect(client, ask, resolved.resolution, socket).await?);
        }
    }
    Ok(last)
}

/// Connects; if the SDP Address resets the connection, to the Conventional Address.
async fn connect(client: &PmClient, ask: Ask, resolution: Resolution, socket: TcpSocket) -> anyhow::Result<Resolution> {
    let mapped = follow(client, ask, resolution, socket).await;
    let Mapped { stream, resolution } =
        mapped.map_err(|error| Unsuccessful { code: UNREACHABLE, text: format!("no connection: {error}") })?;
    if let Resolution::Conventional { why: Fallback::Reset, .. } = resolution {
        note("the SDP Address reset the connection; using plain TCP");
    }
    note(&format!("connected {} to {}", stream.local_addr()?, stream.peer_addr()?));
    Ok(resolution)
}

/// Prints a resolution, one line.
fn print(arguments: &Arguments, resolved: &Resolved) {
    let Resolved { ask, resolution, requests, .. } = resolved;
    if arguments.json {
        let (result, pm_time, cached) = match resolution {
            Resolution::Sdp { pm_time, cached, .. } => ("sdp", Some(pm_time.0), *cached),
            Resolution::Conventional { why: Fallback::Denied, .. } => ("denied", None, false),
            Resolution::Conventional { why: Fallback::Silent, .. } => ("silent", None, false),
            Resolution::Conventional { why: Fallback::Absent, .. } => ("absent", None, false),
            Resolution::Conventional { why: Fallback::Reset, .. } => ("reset", None, false),
        };
        let line = json!({
            "kind": "pm_answer", "service": ask.service, "mapper": ask.mapper, "connecting": ask.connecting,
            "result": result, "address": resolution.address(), "pm_time": pm_time, "cached": cached, "requests": requests,
        });
        return print_line!("{line}");
    }
    let sent = if *requests == 1 { "1 request".to_owned() } else { format!("{requests} requests") };
    match resolution {
        Resolution::Sdp { address, pm_time, cached: true } => {
            print_line!("{}: SDP at {address}, from a cached answer that is valid {}", ask.service, kept(*pm_time));
        }
        Resolution::Sdp { address, pm_time, cached: false } => {
            print_line!("{}: SDP at {address}, valid {} ({sent})", ask.service, kept(*pm_time));
        }
        Resolution::Conventional { address, why } => {
            print_line!("{}: plain TCP at {address}: {why} ({sent} to {})", ask.service, ask.mapper);
        }
    }
}

fn kept(pm_time: PmTime) -> String {
    match pm_time.cache() {
        Cache::Once => "for one connection".to_owned(),
        Cache::For(time) => format!("for {} s", time.as_secs_f64()),
        Cache::Forever => "forever".to_owned(),
    }
}

fn unspecified(like: SocketAddr) -> IpAddr {
    if like.is_ipv4() { Ipv4Addr::UNSPECIFIED.into() } else { Ipv6Addr::UNSPECIFIED.into() }
}

/// The source of the connection, and a TCP socket that reserves its port.
async fn connecting(arguments: &Arguments, service: SocketAddr) -> anyhow::Result<(SocketAddr, TcpSocket)> {
    let from = match &arguments.from {
        Some(from) => host_and_port(from, Some(0)).await?,
        None => {
            let source = source_for(service).await;
            let source = source.map_err(|error| crate::rnic::unreachable(service, &error))?;
            SocketAddr::new(source, 0)
        }
    };
    let (socket, local) = bound(from)?;
    Ok((local, socket))
}

fn bound(from: SocketAddr) -> anyhow::Result<(TcpSocket, SocketAddr)> {
    socket_at(from).map_err(|error| BadInput(format!("cannot connect from {from}: {error}")).into())
}
