//! Tests a graceful close over a slow link, on which data is still in flight when both sides have
//! closed (draft-pinkerton-iwarp-sdp-01 section 8.2.1).

use std::net::SocketAddr;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt, copy};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use weft_core::wire::sdp::FieldOrder;
use weft_peer::driver::sdp::{SdpListener, SdpSettings, SdpStream};
use weft_peer::sdp::{Half, Policy, Profile};

use crate::sdp_socket::{device, settings};

/// Number of octets that the test writes. They fill the receive window of the peer. So the peer
/// owes an update while these octets and the DisConn are still in flight.
const LEN: u32 = 110_000;
/// The slow link moves `PIECE` octets at a time, and waits for `PACE` before each piece.
const PIECE: usize = 2048;
const PACE: Duration = Duration::from_millis(1);

/// Creates a link to the address `to`. The link delays the octets that the side at `to` sends, so
/// they wait in the TCP of this side. Returns the address of the link.
async fn slow_from(to: SocketAddr) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let at = listener.local_addr().unwrap();
    tokio::spawn(async move {
        let (mut near, _) = listener.accept().await.unwrap();
        let socket = TcpSocket::new_v4().unwrap();
        socket.set_recv_buffer_size(u32::try_from(PIECE).unwrap()).unwrap();
        let mut far = socket.connect(to).await.unwrap();
        let ((mut near_in, mut near_out), (mut far_in, mut far_out)) = (near.split(), far.split());
        let there = async {
            copy(&mut near_in, &mut far_out).await?;
            far_out.shutdown().await
        };
        let back = async {
            let mut piece = vec![0; PIECE];
            loop {
                let read = far_in.read(&mut piece).await?;
                if read == 0 {
                    return near_out.shutdown().await;
                }
                tokio::time::sleep(PACE).await;
                near_out.write_all(&piece[..read]).await?;
            }
        };
        // If one of the two TCP connections is reset, the link resets the other.
        if tokio::try_join!(there, back).is_err() {
            reset(&near);
            reset(&far);
        }
    });
    at
}

fn reset(tcp: &TcpStream) {
    tcp.set_zero_linger().unwrap();
}

/// The side that closes last writes data and its DisConn, and then waits only until TCP has
/// accepted them. The updates of the side that closed first are still in flight. All the data
/// arrives nevertheless.
#[tokio::test]
async fn data_of_the_last_side_to_close_arrives_over_a_slow_link() {
    let policy = Policy { source_threshold: u64::MAX, ..Policy::default() };
    let mut plain = settings(Profile::Swapped, FieldOrder::Figure);
    plain.sdp.policy = policy;
    let (here, there) = (device(), device());
    let listener = SdpListener::bind(&there, SocketAddr::from(([127, 0, 0, 1], 0)), plain).unwrap();
    let at = slow_from(listener.local_addr().unwrap()).await;
    let settings = SdpSettings { receive: 8000, ..plain };
    let (here, there) = tokio::join!(SdpStream::connect(&here, at, settings), listener.accept());
    let (here, mut there) = (here.unwrap(), there.unwrap());
    here.shut_down(Half::Out);
    assert_eq!(there.read(&mut [0]).await.unwrap(), 0);
    let octets: Vec<u8> = (0..LEN).map(|n| (n ^ n >> 8 ^ n >> 16) as u8).collect();
    let sent = octets.clone();
    let writing = tokio::spawn(async move {
        there.write_all(&sent).await.unwrap();
        there.shutdown().await.unwrap();
        there.closed().await;
    });
    let mut got = Vec::new();
    let end = (&mut &here).read_to_end(&mut got).await;
    assert_eq!((end.map_err(|error| error.kind()), got.len()), (Ok(octets.len()), octets.len()));
    assert!(got == octets);
    writing.await.unwrap();
    here.closed().await;
}
