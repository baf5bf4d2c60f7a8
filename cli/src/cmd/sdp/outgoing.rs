//! Opens connections by SDP, with or without a port mapper.

use std::io::ErrorKind;
use std::net::SocketAddr;

use tokio::net::TcpStream;
use weft_core::wire::portmap::UDP_PORT;
use weft_peer::driver::portmap::{ConnectError, Mapped, PmClient, follow, socket_at, source_for};
use weft_peer::driver::sdp::{SdpError, SdpSettings, SdpStream, Side};
use weft_peer::driver::{Device, TrafficLog};
use weft_peer::portmap::{ClientSettings, Fallback, Query, Resolution};
use weft_peer::sdp::Refusal;

use super::expiring_cache::ExpiringCache;

/// The reason why a connection failed.
#[derive(Debug, thiserror::Error)]
pub(super) enum ConnectorError {
    /// The TCP connection or the start-up of SDP failed.
    #[error("{address}: {error}")]
    Sdp { address: SocketAddr, error: SdpError },
    /// The query to the port mapper failed, or the connection to the returned address failed.
    #[error(transparent)]
    Mapped(#[from] ConnectError),
    /// The port mapper has no SDP Address for the service, and plain TCP is not allowed.
    #[error("{service} is not reachable by SDP, because {why}")]
    Plain { service: SocketAddr, why: Fallback },
}

/// Opens connections.
#[derive(Clone)]
pub(super) struct Connector {
    device: Device,
    settings: SdpSettings,
    client: PmClient,
    /// SDP addresses to which a connection timed out.
    failed: ExpiringCache<SdpError>,
    /// Port mappers that did not answer a query.
    silent: ExpiringCache<Fallback>,
}

impl Connector {
    /// Connects through `device`. `traffic` also records the queries to port mappers.
    pub(super) fn new(device: &Device, settings: SdpSettings, traffic: Option<&TrafficLog>) -> std::io::Result<Self> {
        let client = PmClient::bind(ClientSettings::default(), traffic)?;
        let (failed, silent) = (ExpiringCache::default(), ExpiringCache::default());
        Ok(Connector { device: device.clone(), settings, client, failed, silent })
    }

    /// Returns a copy that connects from this source address and port.
    pub(super) fn with_source(&self, source: Option<SocketAddr>) -> Self {
        Connector { settings: SdpSettings { source, ..self.settings }, ..self.clone() }
    }

    /// Connects by SDP to this address, without a port mapper.
    pub(super) async fn connect_directly(&self, address: SocketAddr) -> Result<SdpStream, ConnectorError> {
        self.start(address, SdpStream::connect(&self.device, address, self.settings)).await
    }

    /// Connects by SDP to `address`. If that fails, connects by plain TCP to the service.
    pub(super) async fn connect_with_fallback(
        &self,
        address: SocketAddr,
        service: SocketAddr,
    ) -> Result<Side, ConnectorError> {
        if let Ok(stream) = self.connect_directly(address).await {
            return Ok(Side::Sdp(stream));
        }
        let plain = async {
            let source = self.source(service).await?;
            let (socket, _) = socket_at(source)?;
            socket.connect(service).await
        };
        plain.await.map(Side::Tcp).map_err(tcp(service))
    }

    /// Connects to a service by SDP if `mapper` has an SDP Address for the service. Otherwise
    /// connects by plain TCP if `may_be_plain` is true, and fails if it is false.
    pub(super) async fn connect_mapped(
        &self,
        mapper: SocketAddr,
        service: SocketAddr,
        may_be_plain: bool,
    ) -> Result<Side, ConnectorError> {
        let source = self.source(service).await.map_err(tcp(service))?;
        let (socket, connecting) = socket_at(source).map_err(tcp(service))?;
        let query = Query { mapper, service, connecting };
        let resolution = self.resolve(query).await?;
        if may_be_plain {
            let Mapped { stream, resolution } = follow(&self.client, query, resolution, socket).await?;
            return match resolution {
                Resolution::Sdp { address, .. } => self.start_sdp(stream, address).await,
                Resolution::Conventional { .. } => Ok(Side::Tcp(stream)),
            };
        }
        match resolution {
            Resolution::Sdp { address, .. } => {
                let stream = match socket.connect(address).await {
                    Ok(stream) => stream,
                    Err(error) => {
                        // Remove the port mapper's answer from the cache, because its address did
                        // not work.
                        let _ = self.client.reset(query, address).await;
                        return Err(tcp(address)(error));
                    }
                };
                self.start_sdp(stream, address).await
            }
            Resolution::Conventional { why, .. } => Err(ConnectorError::Plain { service, why }),
        }
    }

    /// If the port mapper recently left a query without an answer, returns the address for plain
    /// TCP at once. Otherwise queries the port mapper. The draft allows only PMAccepts in a cache,
    /// so this side never caches a PMDeny.
    async fn resolve(&self, query: Query) -> Result<Resolution, ConnectorError> {
        if let Some(why) = self.silent.find(query.mapper) {
            return Ok(Resolution::Conventional { address: query.service, why });
        }
        let resolution = self.client.resolve(query).await.map_err(ConnectError::from)?.resolution;
        if let Resolution::Conventional { why: why @ Fallback::Silent, .. } = resolution {
            self.silent.insert(query.mapper, why);
        }
        Ok(resolution)
    }

    /// The source address of a connection to `target`.
    async fn source(&self, target: SocketAddr) -> std::io::Result<SocketAddr> {
        let port = self.settings.source.map_or(0, |source| source.port());
        match self.settings.source.map(|source| source.ip()).filter(|ip| !ip.is_unspecified()) {
            Some(ip) => Ok(SocketAddr::new(ip, port)),
            None => Ok(SocketAddr::new(source_for(target).await?, port)),
        }
    }

    /// Starts SDP on a TCP connection to the SDP Address.
    async fn start_sdp(&self, stream: TcpStream, address: SocketAddr) -> Result<Side, ConnectorError> {
        self.start(address, SdpStream::over(&self.device, stream, self.settings)).await.map(Side::Sdp)
    }

    /// If a connection to `address` recently timed out, fails at once with the same error.
    /// Otherwise awaits the start of SDP.
    async fn start(
        &self,
        address: SocketAddr,
        starting: impl Future<Output = Result<SdpStream, SdpError>>,
    ) -> Result<SdpStream, ConnectorError> {
        let failed = |error| ConnectorError::Sdp { address, error };
        if let Some(error) = self.failed.find(address) {
            return Err(failed(error));
        }
        starting.await.inspect_err(|error| self.remember(address, error)).map_err(failed)
    }

    /// Stores the error of a connection that timed out.
    fn remember(&self, address: SocketAddr, error: &SdpError) {
        let waited = match error {
            SdpError::Io(kind, _) => {
                matches!(kind, ErrorKind::TimedOut | ErrorKind::HostUnreachable | ErrorKind::NetworkUnreachable)
            }
            SdpError::Refused(Refusal::TimedOut) => true,
            _ => false,
        };
        if waited {
            self.failed.insert(address, error.clone());
        }
    }
}

fn tcp(address: SocketAddr) -> impl FnOnce(std::io::Error) -> ConnectorError {
    move |error| ConnectorError::Mapped(ConnectError::Tcp { address, error })
}

/// The address of the port mapper on the service's host.
pub(super) fn mapper_of(service: SocketAddr) -> SocketAddr {
    SocketAddr::new(service.ip(), UDP_PORT)
}
