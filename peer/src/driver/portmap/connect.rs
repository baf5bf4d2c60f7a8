//! From a service's name in TCP's port space to a connection: with SDP, or without (section 7).

use std::io;
use std::net::{IpAddr, SocketAddr};

use tokio::net::{TcpSocket, TcpStream, UdpSocket};

use super::client::{PmClient, PmError};
use crate::portmap::{Ask, Resolution};

/// A connection, and what was agreed about it.
#[derive(Debug)]
pub struct Mapped {
    /// The connection; nothing was sent on it.
    pub stream: TcpStream,
    /// `Sdp`: a Hello comes first. `Conventional`: plain TCP.
    pub resolution: Resolution,
}

/// Why there is no connection.
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    /// The question.
    #[error(transparent)]
    Pm(#[from] PmError),
    /// TCP.
    #[error("{address}: {error}")]
    Tcp {
        /// Where to.
        address: SocketAddr,
        /// Its message.
        error: io::Error,
    },
}

/// The address that this host reaches `target` from.
///
/// # Errors
/// It does not reach it.
pub async fn source_for(target: SocketAddr) -> io::Result<IpAddr> {
    let any: SocketAddr = if target.is_ipv4() { ([0; 4], 0).into() } else { ([0; 16], 0).into() };
    let socket = UdpSocket::bind(any).await?;
    socket.connect(target).await?;
    Ok(socket.local_addr()?.ip())
}

/// A TCP socket at `from`; port 0 picks a free one, which is then known before it is used.
///
/// # Errors
/// It cannot be bound.
pub fn socket_at(from: SocketAddr) -> io::Result<(TcpSocket, SocketAddr)> {
    let socket = if from.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() }?;
    socket.set_reuseaddr(true)?;
    socket.bind(from)?;
    let local = socket.local_addr()?;
    Ok((socket, local))
}

/// Asks the port mapper at `mapper` for `service`, and connects to the SDP Address from the port
/// that it announced. Denied, without an answer, or reset there: connects to `service` itself.
///
/// # Errors
/// See [`ConnectError`]; at the SDP Address all but a reset are errors of the connection.
pub async fn connect(client: &PmClient, mapper: SocketAddr, service: SocketAddr) -> Result<Mapped, ConnectError> {
    let tcp = |error| ConnectError::Tcp { address: service, error };
    let source = SocketAddr::new(source_for(service).await.map_err(tcp)?, 0);
    let (socket, connecting) = socket_at(source).map_err(tcp)?;
    let ask = Ask { mapper, service, connecting };
    let resolution = client.resolve(ask).await?.resolution;
    follow(client, ask, resolution, socket).await
}

/// Connects `socket` to what came of `ask`. A reset at the SDP Address is as good as a PMDeny:
/// another socket connects to the Conventional Address, and the answer is not kept any longer.
///
/// # Errors
/// See [`ConnectError`].
pub async fn follow(
    client: &PmClient,
    ask: Ask,
    resolution: Resolution,
    socket: TcpSocket,
) -> Result<Mapped, ConnectError> {
    let address = resolution.address();
    let tcp = |address| move |error| ConnectError::Tcp { address, error };
    let refused = match socket.connect(address).await {
        Ok(stream) => return Ok(Mapped { stream, resolution }),
        Err(error) => error,
    };
    if refused.kind() != io::ErrorKind::ConnectionRefused || !matches!(resolution, Resolution::Sdp { .. }) {
        return Err(tcp(address)(refused));
    }
    let resolution = client.reset(ask, address).await?;
    let address = resolution.address();
    let (socket, _) = socket_at(SocketAddr::new(ask.connecting.ip(), 0)).map_err(tcp(address))?;
    let stream = socket.connect(address).await.map_err(tcp(address))?;
    Ok(Mapped { stream, resolution })
}
