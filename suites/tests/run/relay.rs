//! Starts weft's own responders over TCP, and a relay that changes the bytes that the responders
//! send.

use std::io;
use std::net::SocketAddr;

use tokio::io::{AsyncReadExt, AsyncWriteExt, copy};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use weft_core::crc::{CRC_LEN, crc32c, to_octets};
use weft_core::wire::mpa::fpdu::{LENGTH_LEN, pad_len};
use weft_core::wire::mpa::startup::HEADER_LEN;
use weft_peer::Settings;
use weft_peer::driver::Device;
use weft_peer::driver::cm::{CmError, CmSettings, ConnectRequest, Listener};
use weft_peer::driver::serve::{Server, ServerSettings};
use weft_peer::service::RpingServer;
use weft_peer::verbs::{Node, RnicSettings};
use weft_peer::workload::{WorkloadError, ping};

/// An address with which the system selects a free port.
pub const LOOPBACK: &str = "127.0.0.1:0";

/// Starts an echo service, and returns its address. It ends with the runtime of the test.
pub fn echo(connection: Settings) -> SocketAddr {
    let settings = ServerSettings { connection, ..ServerSettings::default() };
    let server = Server::bind(LOOPBACK.parse().unwrap(), settings).unwrap();
    let address = server.local_addr();
    tokio::spawn(server.run());
    address
}

/// Starts a server of rping, and returns its address. It ends with the runtime of the test.
pub fn rping() -> SocketAddr {
    let (rnic, _) = Node::new(["weft0"]).open("weft0", RnicSettings::default()).unwrap();
    let device = Device::new(rnic);
    let listener = Listener::bind(&device, LOOPBACK.parse().unwrap(), CmSettings::default()).unwrap();
    let address = listener.local_addr();
    tokio::spawn(async move {
        loop {
            let request = listener.next().await;
            let device = device.clone();
            // An error shows only that the tester has ended its connection.
            tokio::spawn(async move { drop(serve_rping(&device, request).await) });
        }
    });
    address
}

async fn serve_rping(device: &Device, request: Result<ConnectRequest, CmError>) -> Result<(), WorkloadError> {
    let request = request?;
    let mut server = ping::Server::new(device, RpingServer::SIZE)?;
    server.accept(request)?;
    while server.round().await?.is_some() {}
    server.disconnect().await
}

/// Starts a relay to `target`, and returns its address. The relay applies `change` to each ULPDU of
/// the target. It expects CRCs and no markers. It ends with the runtime of the test.
pub async fn relay(target: SocketAddr, change: impl Fn(&mut Vec<u8>) + Clone + Send + 'static) -> SocketAddr {
    let listener = TcpListener::bind(LOOPBACK).await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((tester, _)) = listener.accept().await {
            if let Ok(target) = TcpStream::connect(target).await {
                tokio::spawn(relay_connection(tester, target, change.clone()));
            }
        }
    });
    address
}

async fn relay_connection(tester: TcpStream, target: TcpStream, change: impl Fn(&mut Vec<u8>)) {
    tester.set_nodelay(true).unwrap();
    target.set_nodelay(true).unwrap();
    let (mut from_tester, mut to_tester) = tester.into_split();
    let (mut from_target, mut to_target) = target.into_split();
    // An error shows only that one side has ended its connection.
    let there = async {
        let _ = copy(&mut from_tester, &mut to_target).await;
        let _ = to_target.shutdown().await;
    };
    let back = async {
        let _ = relay_answers(&mut from_target, &mut to_tester, change).await;
        let _ = to_tester.shutdown().await;
    };
    tokio::join!(there, back);
}

/// Relays a start-up frame, and then FPDUs, from the target to the tester.
async fn relay_answers(
    from: &mut OwnedReadHalf,
    to: &mut OwnedWriteHalf,
    change: impl Fn(&mut Vec<u8>),
) -> io::Result<()> {
    let mut frame = vec![0; HEADER_LEN];
    from.read_exact(&mut frame).await?;
    let private_data = u16::from_be_bytes([frame[HEADER_LEN - 2], frame[HEADER_LEN - 1]]);
    frame.resize(HEADER_LEN + usize::from(private_data), 0);
    from.read_exact(&mut frame[HEADER_LEN..]).await?;
    to.write_all(&frame).await?;
    loop {
        let length = from.read_u16().await?;
        let mut ulpdu = vec![0; usize::from(length)];
        from.read_exact(&mut ulpdu).await?;
        from.read_exact(&mut vec![0; pad_len(length) + CRC_LEN]).await?;
        change(&mut ulpdu);
        to.write_all(&fpdu(&ulpdu)).await?;
    }
}

fn fpdu(ulpdu: &[u8]) -> Vec<u8> {
    let length = u16::try_from(ulpdu.len()).unwrap();
    let mut octets = Vec::with_capacity(LENGTH_LEN + ulpdu.len());
    octets.extend_from_slice(&length.to_be_bytes());
    octets.extend_from_slice(ulpdu);
    octets.resize(octets.len() + pad_len(length), 0);
    let crc = to_octets(crc32c(&octets));
    octets.extend_from_slice(&crc);
    octets
}
