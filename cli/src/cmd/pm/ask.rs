//! `weft pm ask`: queries a port mapper. This side is the PM Client of the SDP draft
//! (draft-pinkerton-iwarp-sdp-01).

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::process::ExitCode;
use std::time::Duration;

use serde_json::json;
use tokio::net::TcpSocket;
use weft_core::wire::portmap::{Cache, PmTime, UDP_PORT};
use weft_peer::driver::portmap::{Mapped, PmClient, PmError, follow, socket_at, source_for};
use weft_peer::portmap::{ClientSettings, Fallback, Query, Resolution, Resolved};

use crate::exit::{BadInput, CommandFailure, HARNESS, UNEXPECTED, UNREACHABLE, note, print_json, print_line};
use crate::rnic::{deviations, host_and_port};
use crate::runtime;
use crate::signals;
use crate::watch::WatchArguments;

/// The command line.
#[derive(clap::Args)]
#[command(
    disable_version_flag = true,
    after_help = "--trace and --write show port 3935 as the mapper's port, also if --mapper names another port.\n\
    The reason: programs that read captures detect the protocol by port 3935.\n\n\
    Exit codes (for the last query, if there are several):\n  \
    0  the mapper answered with an SDP Address\n  \
    1  the mapper denied the query, or the SDP Address reset the connection: use plain TCP\n  \
    3  no answer, or no connection\n\n\
    Examples:\n  \
    weft pm ask 192.0.2.17:80              query the SDP Address of a service\n  \
    weft pm ask 192.0.2.17:80 --connect    query the SDP Address, and connect to it"
)]
pub(crate) struct Arguments {
    /// Query the SDP Address of the service that has this TCP address (HOST:PORT)
    #[arg(value_name = "SERVICE")]
    service: String,
    /// Use this port mapper
    ///
    /// You can add :PORT to HOST. The default is port 3935 on the host of the service.
    #[arg(long, value_name = "HOST")]
    mapper: Option<String>,
    /// Put this address into the query as the source of the connection that follows
    ///
    /// You can add :PORT to ADDRESS. The default is the source address that this host uses for the
    /// service, and a free port.
    #[arg(long, value_name = "ADDRESS")]
    from: Option<String>,
    /// Repeat a query after this many milliseconds without an answer
    ///
    /// The time doubles after each repetition, up to 4 seconds.
    #[arg(long, value_name = "MS", default_value_t = 500, value_parser = clap::value_parser!(u64).range(1..=3_600_000))]
    wait: u64,
    /// Repeat an unanswered query at most this many times
    #[arg(long, value_name = "COUNT", default_value_t = 4, value_parser = clap::value_parser!(u32).range(..=1000))]
    repeats: u32,
    /// Query this many times
    ///
    /// An answer is valid for the time in its field PmTime. During this time, weft uses this answer
    /// again instead of a new query.
    #[arg(long, value_name = "TIMES", default_value_t = 1)]
    count: u32,
    /// Pause this many milliseconds between two queries
    #[arg(long, value_name = "MS", default_value_t = 0)]
    pause: u64,
    /// Connect to the returned address by TCP, and close the connection
    ///
    /// If the SDP Address resets the connection, weft connects to the service by plain TCP.
    #[arg(long)]
    connect: bool,
    /// Behave like iwpmd (Linux's port mapper) where iwpmd differs from the SDP draft
    ///
    /// Requests then have 64 bytes, and weft also acknowledges repeated answers.
    #[arg(long)]
    linux: bool,
    /// Wait this many milliseconds for more messages after the last answer
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
    let deviations = deviations(&arguments.deviate)?;
    runtime::on_one_thread(arguments.watch.around(async |traffic| {
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
            linux_format: arguments.linux,
            deviations,
            ..ClientSettings::default()
        };
        let local = if mapper.is_ipv4() == connecting.is_ipv4() { connecting.ip() } else { unspecified(mapper) };
        let client = PmClient::bind_to(&[SocketAddr::new(local, 0)], settings, traffic.as_ref())
            .map_err(|error| BadInput(format!("cannot query from {local}: {error}")))?;
        let query = Query { mapper, service, connecting };
        let outcome = tokio::select! {
            outcome = questions(arguments, &client, query, reserved) => outcome,
            stop = signals::interrupted() => Err(stop.before("the last answer")),
        };
        tokio::time::sleep(Duration::from_millis(arguments.linger)).await;
        match outcome? {
            None | Some(Resolution::Sdp { .. }) => Ok(ExitCode::SUCCESS),
            Some(Resolution::Conventional { why: Fallback::Silent | Fallback::Absent, .. }) => {
                Ok(ExitCode::from(UNREACHABLE))
            }
            Some(Resolution::Conventional { .. }) => Ok(ExitCode::from(UNEXPECTED)),
        }
    }))
}

/// Sends all queries. Returns the last answer, or `None` for `--count 0`.
async fn questions(
    arguments: &Arguments,
    client: &PmClient,
    query: Query,
    reserved: TcpSocket,
) -> anyhow::Result<Option<Resolution>> {
    let mut reserved = Some(reserved);
    let mut last = None;
    for number in 0..arguments.count {
        if number > 0 {
            tokio::time::sleep(Duration::from_millis(arguments.pause)).await;
        }
        let resolved = client.resolve(query).await.map_err(|error| match error {
            PmError::Query(error) => anyhow::Error::new(BadInput(error.to_string())),
            PmError::Ended => CommandFailure { code: HARNESS, text: error.to_string() }.into(),
        })?;
        print(arguments, &resolved);
        last = Some(resolved.resolution);
        if arguments.connect {
            let socket = match reserved.take() {
                Some(socket) => socket,
                None => bound(SocketAddr::new(query.connecting.ip(), 0))?.0,
            };
            last = Some(connect(client, query, resolved.resolution, socket).await?);
        }
    }
    Ok(last)
}

/// Connects to the result of a query. If the SDP Address resets the connection, connects to the
/// Conventional Address (the service's address for plain TCP).
async fn connect(
    client: &PmClient,
    query: Query,
    resolution: Resolution,
    socket: TcpSocket,
) -> anyhow::Result<Resolution> {
    let mapped = follow(client, query, resolution, socket).await;
    let Mapped { stream, resolution } =
        mapped.map_err(|error| CommandFailure { code: UNREACHABLE, text: format!("cannot connect: {error}") })?;
    if let Resolution::Conventional { why: Fallback::Reset, .. } = resolution {
        note("the SDP Address reset the connection; using plain TCP");
    }
    note(&format!("connected from {} to {}", stream.local_addr()?, stream.peer_addr()?));
    Ok(resolution)
}

/// Prints the result of a query as one line.
fn print(arguments: &Arguments, resolved: &Resolved) {
    let Resolved { query, resolution, requests, .. } = resolved;
    if arguments.json {
        let (result, pm_time, cached) = match resolution {
            Resolution::Sdp { pm_time, cached, .. } => ("sdp", Some(pm_time.0), *cached),
            Resolution::Conventional { why: Fallback::Denied, .. } => ("denied", None, false),
            Resolution::Conventional { why: Fallback::Silent, .. } => ("silent", None, false),
            Resolution::Conventional { why: Fallback::Absent, .. } => ("absent", None, false),
            Resolution::Conventional { why: Fallback::Reset, .. } => ("reset", None, false),
        };
        let line = json!({
            "kind": "pm_answer", "service": query.service, "mapper": query.mapper, "connecting": query.connecting,
            "result": result, "address": resolution.address(), "pm_time": pm_time, "cached": cached, "requests": requests,
        });
        return print_json(&line);
    }
    let sent = if *requests == 1 { "1 request".to_owned() } else { format!("{requests} requests") };
    match resolution {
        Resolution::Sdp { address, pm_time, cached: true } => {
            print_line!("{}: use SDP at {address}; this cached answer is valid {}", query.service, kept(*pm_time));
        }
        Resolution::Sdp { address, pm_time, cached: false } => {
            print_line!("{}: use SDP at {address}; this answer is valid {} ({sent})", query.service, kept(*pm_time));
        }
        Resolution::Conventional { address, why } => {
            print_line!("{}: use plain TCP at {address}, because {why} ({sent} to {})", query.service, query.mapper);
        }
    }
}

/// Describes how long an answer is valid.
fn kept(pm_time: PmTime) -> String {
    match pm_time.cache() {
        Cache::Once => "for one connection".to_owned(),
        Cache::For(time) => format!("for {} s", time.as_secs_f64()),
        Cache::Forever => "forever".to_owned(),
    }
}

/// Returns the unspecified address of the address family of `like`.
fn unspecified(like: SocketAddr) -> IpAddr {
    if like.is_ipv4() { Ipv4Addr::UNSPECIFIED.into() } else { Ipv6Addr::UNSPECIFIED.into() }
}

/// Returns the source address of the later connection, and a TCP socket that reserves this address.
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
