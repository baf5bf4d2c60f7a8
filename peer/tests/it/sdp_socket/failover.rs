//! Tests socket duplication and managed failover of SDP sockets (draft-pinkerton-iwarp-sdp-01
//! section 13). The socket continues on another TCP connection.

use std::net::SocketAddr;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use weft_core::wire::sdp::{FieldOrder, Mode};
use weft_peer::driver::sdp::{SdpListener, SdpStream};
use weft_peer::sdp::{Half, Profile};

use crate::sdp_socket::{device, echo, pair, settings};

fn listener(profile: Profile) -> SdpListener {
    let any = SocketAddr::from(([127, 0, 0, 1], 0));
    SdpListener::bind(&device(), any, settings(profile, FieldOrder::Figure)).unwrap()
}

fn octets(len: u32) -> Vec<u8> {
    (0..len).map(|n| (n ^ n >> 8 ^ n >> 16) as u8).collect()
}

/// Writes all octets to an echo and returns the octets that come back.
async fn round(stream: &SdpStream, octets: &[u8]) -> Vec<u8> {
    let (mut reader, mut writer, mut got) = (stream, stream, vec![0; octets.len()]);
    let (written, read) = tokio::join!(writer.write_all(octets), reader.read_exact(&mut got));
    written.unwrap();
    read.unwrap();
    got
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_connection_continues_at_another_listener() {
    let octets = octets(100_000);
    for profile in [Profile::Swapped, Profile::Natural, Profile::PrivateData] {
        for mode in [Mode::Combined, Mode::Pipelined, Mode::Buffered] {
            // In turn, the connecting side and the accepting side move the connection.
            for swap in [false, true] {
                let (here, there) = pair(settings(profile, FieldOrder::Figure)).await;
                let (here, there) = if swap { (there, here) } else { (here, there) };
                if mode != Mode::Combined {
                    here.set_mode(Half::Out, mode).unwrap();
                    there.set_mode(Half::Out, mode).unwrap();
                }
                let echo = tokio::spawn(echo(there));
                assert!(round(&here, &octets).await == octets, "{profile:?} {mode}");
                // The connection moves twice while octets are in flight in both directions.
                for _ in 0..2 {
                    let other = listener(profile);
                    let (moved, got) = tokio::join!(here.fail_over(&other), round(&here, &octets));
                    moved.unwrap();
                    assert!(got == octets, "{profile:?} {mode}");
                }
                here.shut_down(Half::Out);
                assert_eq!((&mut &here).read(&mut [0; 1]).await.unwrap(), 0);
                here.closed().await;
                echo.await.unwrap();
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn both_ends_may_move_at_the_same_time() {
    let (here, there) = pair(settings(Profile::Swapped, FieldOrder::Figure)).await;
    let (mine, theirs) = (listener(Profile::Swapped), listener(Profile::Swapped));
    let (first, second) = tokio::join!(here.fail_over(&mine), there.fail_over(&theirs));
    first.unwrap();
    second.unwrap();
    (&mut &here).write_all(b"still").await.unwrap();
    let mut got = [0; 5];
    (&mut &there).read_exact(&mut got).await.unwrap();
    assert_eq!(&got, b"still");
}

/// Unread data from before the failover is kept. Another client connects to the new listener first.
/// The socket does not mistake this client for its peer.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn data_from_before_the_failover_is_read_after_it() {
    let (here, there) = pair(settings(Profile::Swapped, FieldOrder::Figure)).await;
    let sent = octets(30_000);
    (&mut &here).write_all(&sent).await.unwrap();
    let mut got = vec![0; 30_000];
    assert!(there.peek(&mut got).await.unwrap() > 0);
    let other = listener(Profile::Swapped);
    let other_client = tokio::net::TcpStream::connect(other.local_addr().unwrap()).await.unwrap();
    there.fail_over(&other).await.unwrap();
    drop(other_client);
    (&mut &there).read_exact(&mut got).await.unwrap();
    assert!(got == sent);
    there.shut_down(Half::Out);
    assert!(there.fail_over(&other).await.is_err(), "the socket is shut down");
}
