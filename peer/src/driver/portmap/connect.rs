//! Resolves a service's TCP address with a port mapper. Then connects by SDP or by plain TCP
//! (section 7 of the SDP draft).

use std::io;
use std::net::{IpAddr, SocketAddr};

use tokio::net::{TcpSocket, TcpStream, UdpSocket};

use super::client::{PmClient, PmError};
use crate::driver::tcp::bound_socket;
use crate::portmap::{Query, Resolution};

/// A connection, and the result of its query.
#[derive(Debug)]
pub struct Mapped {
    /// The connection. Nothing was sent on it yet.
    pub stream: TcpStream,
    /// The result of the query. For `Sdp`, this side has to send an SDP Hello first. For
    /// `Conventional`, the connection uses plain TCP.
    pub resolution: Resolution,
}

/// Why there is no connection.
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    /// The query failed.
    #[error(transparent)]
    Pm(#[from] PmError),
    /// TCP could not connect.
    #[error("cannot connect to {address}: {error}")]
    Tcp {
        /// The address that TCP could not connect to.
        address: SocketAddr,
        /// The error of TCP.
        error: io::Error,
    },
}

/// Returns the local address from which this host reaches `target`.
///
/// # Errors
/// The host has no route to `target`, or no socket can be opened.
pub async fn source_for(target: SocketAddr) -> io::Result<IpAddr> {
    let any: SocketAddr = if target.is_ipv4() { ([0; 4], 0).into() } else { ([0; 16], 0).into() };
    let socket = UdpSocket::bind(any).await?;
    socket.connect(target).await?;
    Ok(socket.local_addr()?.ip())
}

/// Creates a TCP socket that is bound to `from`. Also returns the address of the socket. Port 0
/// picks a free port. The returned address shows this port before the socket connects.
///
/// # Errors
/// The address cannot be bound.
pub fn socket_at(from: SocketAddr) -> io::Result<(TcpSocket, SocketAddr)> {
    let socket = bound_socket(from)?;
    let local = socket.local_addr()?;
    Ok((socket, local))
}

/// Queries the port mapper at `mapper` for `service`. Then connects from the port that the query
/// announced to the SDP Address in the answer. If the port mapper answers with a PMDeny or does not
/// answer, connects to `service` itself. If the connection to the SDP Address is reset, also
/// connects to `service`.
///
/// # Errors
/// See [`ConnectError`]. If the connection to the SDP Address fails without a reset, this function
/// returns the error and does not connect to `service`.
pub async fn connect(client: &PmClient, mapper: SocketAddr, service: SocketAddr) -> Result<Mapped, ConnectError> {
    let tcp = |error| ConnectError::Tcp { address: service, error };
    let source = SocketAddr::new(source_for(service).await.map_err(tcp)?, 0);
    let (socket, connecting) = socket_at(source).map_err(tcp)?;
    let query = Query { mapper, service, connecting };
    let resolution = client.resolve(query).await?.resolution;
    follow(client, query, resolution, socket).await
}

/// Connects `socket` to the address that `query` was resolved to. A reset at the SDP Address counts
/// as a PMDeny: another socket connects to the Conventional Address, and the answer is removed from
/// the cache.
///
/// # Errors
/// See [`ConnectError`].
pub async fn follow(
    client: &PmClient,
    query: Query,
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
    let resolution = client.reset(query, address).await?;
    let address = resolution.address();
    let (socket, _) = socket_at(SocketAddr::new(query.connecting.ip(), 0)).map_err(tcp(address))?;
    let stream = socket.connect(address).await.map_err(tcp(address))?;
    Ok(Mapped { stream, resolution })
}
