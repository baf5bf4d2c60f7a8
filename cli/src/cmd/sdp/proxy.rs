//! `weft sdp proxy`: relays connections between TCP and SDP.

use std::net::SocketAddr;
use std::pin::pin;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinSet;
use weft_core::wire::portmap::{PmTime, UDP_PORT};
use weft_peer::driver::portmap::PmServer;
use weft_peer::driver::sdp::{Incoming, SdpListener, Side, relay};
use weft_peer::driver::{Device, TrafficLog};
use weft_peer::portmap::{Mapping, ServerSettings, Table, Target};

use super::connection_log::{ConnectionLog, OutputArguments};
use super::endpoint::{Endpoint, Protocol};
use super::outgoing::{Connector, mapper_of};
use super::settings::SdpArguments;
use crate::exit::{BadInput, print_line, reject};
use crate::rnic::{cannot_listen, host_and_port};
use crate::runtime;
use crate::signals::{self, StopSignal};
use crate::watch::WatchArguments;

/// The command line.
#[derive(clap::Args)]
#[command(
    disable_version_flag = true,
    after_help = "ENDPOINT is tcp://HOST:PORT or sdp://HOST:PORT. One endpoint must be tcp, and one must be sdp. For\n\
    port 0 of --listen, the proxy uses a free port and prints it.\n\n\
    If one side closes or resets a connection, the proxy does the same on the other side. The proxy\n\
    prints a line for each finished connection to standard output, and the totals at the end.\n\n\
    After Ctrl-C or SIGTERM, the proxy accepts no more connections. It resets the open connections\n\
    after --grace seconds, or on a second signal.\n\n\
    Examples:\n  \
    weft sdp proxy --listen sdp://0.0.0.0:7080 --connect tcp://127.0.0.1:80         relay for a server\n  \
    weft sdp proxy --listen tcp://127.0.0.1:8080 --connect sdp://192.0.2.17:7080    relay for a client\n  \
    weft sdp proxy --listen tcp://127.0.0.1:8080 --connect sdp://192.0.2.17:80 --pm\n      \
    relay for a client, and query a port mapper\n  \
    weft sdp proxy --listen sdp://0.0.0.0:7080 --connect tcp://127.0.0.1:80 \\\n      \
    --pm-listen 0.0.0.0:3935 --service 0.0.0.0:80\n      \
    relay for a server, and run a port mapper"
)]
pub(crate) struct Arguments {
    /// Accept connections on this endpoint
    #[arg(long, value_name = "ENDPOINT")]
    listen: Endpoint,
    /// Relay each accepted connection to this endpoint
    #[arg(long, value_name = "ENDPOINT")]
    connect: Endpoint,
    /// Query a port mapper for the SDP Address of the service in --connect
    ///
    /// SERVER is the HOST or HOST:PORT of the port mapper (default: port 3935 of the service's
    /// host). If the service has no SDP Address, the proxy uses plain TCP.
    #[arg(long, value_name = "SERVER", num_args = 0..=1, default_missing_value = "")]
    pm: Option<String>,
    /// With --pm: never use plain TCP
    #[arg(long, requires = "pm")]
    sdp_only: bool,
    /// Also run a port mapper at this UDP address, which maps --service to --listen
    #[arg(long, value_name = "ADDRESS:PORT", requires = "service")]
    pm_listen: Option<SocketAddr>,
    /// With --pm-listen: map the service that has this TCP address
    ///
    /// The addresses 0.0.0.0 and :: match all addresses.
    #[arg(long, value_name = "ADDRESS:PORT", requires = "pm_listen")]
    service: Option<SocketAddr>,
    /// Serve at most this many connections at a time; further connections wait
    #[arg(long, value_name = "COUNT", default_value_t = 1024, value_parser = clap::value_parser!(u32).range(1..=1 << 20))]
    most: u32,
    /// Give open connections this many seconds to finish after the first signal
    #[arg(long, value_name = "SECONDS", default_value_t = 0)]
    grace: u64,
    #[command(flatten)]
    output: OutputArguments,
    #[command(flatten)]
    sdp: SdpArguments,
    #[command(flatten)]
    watch: WatchArguments,
}

/// Relays connections until a signal stops the command.
pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let (listen, connect) = (arguments.listen.protocol, arguments.connect.protocol);
    if listen == connect {
        reject!("both endpoints are {listen}://; use tcp for one and sdp for the other");
    }
    if arguments.pm.is_some() && connect != Protocol::Sdp {
        reject!("--pm needs --connect sdp://");
    }
    if arguments.pm_listen.is_some() && listen != Protocol::Sdp {
        reject!("--pm-listen needs --listen sdp://");
    }
    let work = async |traffic| serve(arguments, traffic).await.map(|()| ExitCode::SUCCESS);
    runtime::block_on(arguments.watch.around(work))
}

/// The state that all connections share.
struct Proxy {
    destination: Destination,
    mapped: Option<PmServer>,
    log: ConnectionLog,
    sdp: SdpArguments,
    stop: watch::Receiver<bool>,
}

/// The endpoint to which the proxy relays the connections.
enum Destination {
    Tcp(SocketAddr),
    Sdp(Connector, SocketAddr),
    /// A service whose SDP Address comes from a port mapper.
    Mapped {
        connector: Connector,
        mapper: SocketAddr,
        service: SocketAddr,
        may_be_plain: bool,
    },
}

async fn serve(arguments: &Arguments, traffic: Option<TrafficLog>) -> anyhow::Result<()> {
    let listen = host_and_port(&arguments.listen.at, None).await?;
    let device = arguments.sdp.open(traffic.clone())?;
    let destination = destination(arguments, &device, traffic.as_ref()).await?;
    let listener = match arguments.listen.protocol {
        Protocol::Tcp => TcpListener::bind(listen).await.map(Listener::Tcp),
        Protocol::Sdp => SdpListener::bind(&device, listen, arguments.sdp.relayed()).map(Box::new).map(Listener::Sdp),
    };
    let listener = listener.map_err(|error| cannot_listen(listen, &error))?;
    let local = listener.local_addr()?;
    let mapped = start_port_mapper(arguments, local, traffic.as_ref())?;
    let interrupted = signals::interrupted();
    print_line!("listening on {}://{local}", arguments.listen.protocol);
    if let Some(server) = &mapped {
        server.local_addrs().iter().for_each(|address| print_line!("port mapper on {address}"));
    }
    let (stopper, stop) = watch::channel(false);
    let log = ConnectionLog::new(&arguments.output);
    let proxy = Arc::new(Proxy { destination, mapped, log, sdp: arguments.sdp.clone(), stop });
    let mut connections = accept(&proxy, listener, arguments.most as usize, interrupted).await;
    drain(&mut connections, Duration::from_secs(arguments.grace), &stopper).await;
    proxy.log.finish();
    Ok(())
}

/// Accepts connections until a signal. Returns the connections that are still open.
async fn accept(
    proxy: &Arc<Proxy>,
    listener: Listener,
    most: usize,
    mut interrupted: impl Future<Output = StopSignal> + Unpin,
) -> JoinSet<()> {
    let room = Arc::new(Semaphore::new(most));
    let mut connections = JoinSet::new();
    loop {
        let next = async {
            // Acquiring cannot fail, because nothing closes the semaphore.
            let permit = Arc::clone(&room).acquire_owned().await.ok();
            (permit, listener.next().await)
        };
        tokio::select! {
            (permit, accepted) = next => match accepted {
                Ok(accepted) => {
                    let proxy = Arc::clone(proxy);
                    connections.spawn(async move {
                        proxy.relay_one(accepted).await;
                        drop(permit);
                    });
                }
                Err(error) => {
                    proxy.log.report_error(&format!("cannot accept a connection: {error}"));
                    tokio::time::sleep(runtime::ACCEPT_AGAIN).await;
                }
            },
            Some(_) = connections.join_next(), if !connections.is_empty() => {}
            _ = &mut interrupted => return connections,
        }
    }
}

/// Waits until all open connections have ended. After the time `grace` or on another signal, resets
/// the connections that are still open.
async fn drain(connections: &mut JoinSet<()>, grace: Duration, stopper: &watch::Sender<bool>) {
    let all = async { while connections.join_next().await.is_some() {} };
    tokio::select! {
        () = all => return,
        () = tokio::time::sleep(grace) => {}
        _ = signals::interrupted() => {}
    }
    // Sending can fail only if all connections have ended.
    let _ = stopper.send(true);
    while connections.join_next().await.is_some() {}
}

/// Resolves the endpoint of `--connect`.
async fn destination(
    arguments: &Arguments,
    device: &Device,
    traffic: Option<&TrafficLog>,
) -> anyhow::Result<Destination> {
    let address = host_and_port(&arguments.connect.at, None).await?;
    if arguments.connect.protocol == Protocol::Tcp {
        return Ok(Destination::Tcp(address));
    }
    let connector = Connector::new(device, arguments.sdp.relayed(), traffic)
        .context("cannot open a UDP socket for the port mapper")?;
    let mapper = match arguments.pm.as_deref() {
        None => return Ok(Destination::Sdp(connector, address)),
        Some("") => mapper_of(address),
        Some(mapper) => host_and_port(mapper, Some(UDP_PORT)).await?,
    };
    Ok(Destination::Mapped { connector, mapper, service: address, may_be_plain: !arguments.sdp_only })
}

/// Starts the port mapper of `--pm-listen`. Returns `None` without this option.
fn start_port_mapper(
    arguments: &Arguments,
    local: SocketAddr,
    traffic: Option<&TrafficLog>,
) -> anyhow::Result<Option<PmServer>> {
    let (Some(at), Some(service)) = (arguments.pm_listen, arguments.service) else { return Ok(None) };
    let mut table = Table::default();
    let mapping = Mapping { service, target: Target::Fixed(vec![local]), pm_time: PmTime(0) };
    table.insert(mapping).map_err(|error| BadInput(format!("--service {service}: {error}")))?;
    let server = PmServer::bind(&[at], ServerSettings::default(), table, traffic);
    Ok(Some(server.map_err(|error| BadInput(format!("cannot listen on {at}: {error}")))?))
}

enum Listener {
    Tcp(TcpListener),
    Sdp(Box<SdpListener>),
}

/// An accepted connection before its start-up.
enum AcceptedConnection {
    Tcp(TcpStream, SocketAddr),
    Sdp(Box<Incoming>),
}

impl Listener {
    fn local_addr(&self) -> std::io::Result<SocketAddr> {
        match self {
            Listener::Tcp(listener) => listener.local_addr(),
            Listener::Sdp(listener) => listener.local_addr(),
        }
    }

    async fn next(&self) -> std::io::Result<AcceptedConnection> {
        match self {
            Listener::Tcp(listener) => listener.accept().await.map(|(tcp, from)| AcceptedConnection::Tcp(tcp, from)),
            Listener::Sdp(listener) => listener.incoming().await.map(Box::new).map(AcceptedConnection::Sdp),
        }
    }
}

impl Proxy {
    /// Relays one connection until it ends.
    async fn relay_one(&self, accepted: AcceptedConnection) {
        let mut stopping = self.stop.clone();
        // Waiting cannot fail, because the sender outlives the connections.
        let mut stop = pin!(async { _ = stopping.wait_for(|stop| *stop).await });
        let entry = self.log.open(format!("{} to {}", accepted.from(), self.destination));
        let sides = tokio::select! {
            sides = self.sides(accepted) => sides,
            () = &mut stop => Err(anyhow::anyhow!("stopped")),
        };
        match sides {
            Ok((first, second)) => entry.finish_relayed(&relay(first, second, stop).await),
            Err(error) => entry.finish_failed(&format!("{error:#}")),
        }
    }

    /// Completes the start-up of both sides and returns them. If the second side fails, resets the
    /// first side.
    async fn sides(&self, accepted: AcceptedConnection) -> anyhow::Result<(Side, Side)> {
        let first = match accepted {
            AcceptedConnection::Tcp(tcp, _) => Side::Tcp(tcp),
            AcceptedConnection::Sdp(incoming) => {
                if let Some(server) = &self.mapped {
                    // Ignore errors, because a client can connect without the port mapper.
                    let _ = server.connected(incoming.peer_addr(), incoming.local_addr()?);
                }
                Side::Sdp(incoming.start().await?)
            }
        };
        match self.connect_onward().await {
            Ok(second) => {
                self.sdp.prepare(&first)?;
                self.sdp.prepare(&second)?;
                Ok((first, second))
            }
            Err(error) => {
                first.abort().await;
                Err(error)
            }
        }
    }

    /// Connects the second side.
    async fn connect_onward(&self) -> anyhow::Result<Side> {
        Ok(match &self.destination {
            Destination::Tcp(address) => {
                Side::Tcp(TcpStream::connect(address).await.with_context(|| address.to_string())?)
            }
            Destination::Sdp(connector, address) => Side::Sdp(connector.connect_directly(*address).await?),
            Destination::Mapped { connector, mapper, service, may_be_plain } => {
                connector.connect_mapped(*mapper, *service, *may_be_plain).await?
            }
        })
    }
}

impl AcceptedConnection {
    fn from(&self) -> SocketAddr {
        match self {
            AcceptedConnection::Tcp(_, from) => *from,
            AcceptedConnection::Sdp(incoming) => incoming.peer_addr(),
        }
    }
}

impl std::fmt::Display for Destination {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Destination::Tcp(address) => write!(f, "tcp://{address}"),
            Destination::Sdp(_, address) => write!(f, "sdp://{address}"),
            Destination::Mapped { service, .. } => write!(f, "{service}"),
        }
    }
}
