//! Connections that this side opens by SDP, with a port mapper or without.

use std::net::SocketAddr;

use tokio::net::TcpStream;
use weft_core::wire::portmap::UDP_PORT;
use weft_peer::driver::portmap::{ConnectError, Mapped, PmClient, connect, socket_at, source_for};
use weft_peer::driver::sdp::{SdpError, SdpSettings, SdpStream, Side};
use weft_peer::driver::{Device, Tape};
use weft_peer::portmap::{Ask, ClientSettings, Fallback, Resolution};

/// Why there is no connection.
#[derive(Debug, thiserror::Error)]
pub(super) enum OutwardError {
    /// SDP's start-up, or TCP below it.
    #[error("{address}: {error}")]
    Sdp { address: SocketAddr, error: SdpError },
    /// On the way to the SDP Address.
    #[error(transparent)]
    Mapped(#[from] ConnectError),
    /// Plain TCP is not wanted.
    #[error("{service} is not reached by SDP: {why}")]
    Plain { service: SocketAddr, why: Fallback },
}

/// Who connects.
#[derive(Clone)]
pub(super) struct Outward {
    device: Device,
    settings: SdpSettings,
    client: PmClient,
}

impl Outward {
    /// Connections of `device`; questions to port mappers go on `tape`, too.
    pub(super) fn new(device: &Device, settings: SdpSettings, tape: Option<&Tape>) -> std::io::Result<Self> {
        let client = PmClient::bind(ClientSettings::default(), tape)?;
        Ok(Outward { device: device.clone(), settings, client })
    }

    /// By SDP to its very address.
    pub(super) async fn direct(&self, address: SocketAddr) -> Result<SdpStream, OutwardError> {
        SdpStream::connect(&self.device, address, self.settings)
            .await
            .map_err(|error| OutwardError::Sdp { address, error })
    }

    /// To a service, by SDP where `mapper` has an SDP Address for it; else by plain TCP, where that `may_be_plain`.
    pub(super) async fn mapped(
        &self,
        mapper: SocketAddr,
        service: SocketAddr,
        may_be_plain: bool,
    ) -> Result<Side, OutwardError> {
        if may_be_plain {
            let Mapped { stream, resolution } = connect(&self.client, mapper, service).await?;
            return match resolution {
                Resolution::Sdp { address, .. } => self.over(stream, address).await,
                Resolution::Conventional { .. } => Ok(Side::Tcp(stream)),
            };
        }
        let tcp = |address| move |error| OutwardError::Mapped(ConnectError::Tcp { address, error });
        let source = source_for(service).await.map_err(tcp(service))?;
        let (socket, connecting) = socket_at(SocketAddr::new(source, 0)).map_err(tcp(service))?;
        let ask = Ask { mapper, service, connecting };
        match self.client.resolve(ask).await.map_err(ConnectError::from)?.resolution {
            Resolution::Sdp { address, .. } => {
                let stream = match socket.connect(address).await {
                    Ok(stream) => stream,
                    Err(error) => {
                        // The answer is not kept any longer.
                        let _ = self.client.reset(ask, address).await;
                        return Err(tcp(address)(error));
                    }
                };
                self.over(stream, address).await
            }
            Resolution::Conventional { why, .. } => Err(OutwardError::Plain { service, why }),
        }
    }

    async fn over(&self, stream: TcpStream, address: SocketAddr) -> Result<Side, OutwardError> {
        let stream = SdpStream::over(&self.device, stream, self.settings).await;
        stream.map(Side::Sdp).map_err(|error| OutwardError::Sdp { address, error })
    }
}

/// The port mapper at a service's own host.
pub(super) fn mapper_of(service: SocketAddr) -> SocketAddr {
    SocketAddr::new(service.ip(), UDP_PORT)
}
