//! Tests the workload `ping`, which has the same messages as the program rping.

use bytes::Bytes;
use weft_peer::driver::Device;
use weft_peer::driver::cm::Listener;
use weft_peer::mpa::PrivateData;
use weft_peer::verbs::QpState;
use weft_peer::workload::ping::{Client, SIZES, Server, text};
use weft_peer::workload::{Endpoint, EndpointSettings, WorkloadError};

use super::{device, listener, settings};

/// Serves one client until the client ends. Returns the number of rounds.
async fn serve(device: &Device, listener: &Listener, size: u32) -> Result<u64, WorkloadError> {
    let mut server = Server::new(device, size)?;
    server.accept(listener.next().await?)?;
    let mut rounds = 0;
    while let Some(data) = server.round().await? {
        assert_eq!(data, text(rounds, u32::try_from(data.len()).unwrap()));
        rounds += 1;
    }
    server.disconnect().await?;
    Ok(rounds)
}

async fn ping(size: u32, rounds: u64) {
    let (here, there) = (device(), device());
    let listener = listener(&there);
    let mut client = Client::new(&here, size, true).unwrap();
    let pinging = async {
        client.connect(listener.local_addr(), settings()).await.unwrap();
        for round in 0..rounds {
            assert_eq!(client.round().await.unwrap(), text(round, size));
        }
        client.disconnect().await.unwrap();
    };
    let ((), served) = tokio::join!(pinging, serve(&there, &listener, *SIZES.end()));
    assert_eq!(served.unwrap(), rounds);
}

#[tokio::test]
async fn every_kind_of_size() {
    for size in [*SIZES.start(), 24, 1000, 4096, *SIZES.end()] {
        ping(size, 3).await;
    }
}

/// The data of each round begins with the next letter. This exchange has more rounds than there are
/// letters, and more rounds than a queue has entries.
#[tokio::test]
async fn many_rounds() {
    ping(64, 300).await;
}

/// The client's size exceeds the limit of the server. The server rejects the client, and the client
/// gets the reason.
#[tokio::test]
async fn rejects_a_client_over_the_limits() {
    let (here, there) = (device(), device());
    let listener = listener(&there);
    let mut client = Client::new(&here, 101, true).unwrap();
    let pinging = async {
        client.connect(listener.local_addr(), settings()).await.unwrap();
        client.round().await
    };
    let (pinged, served) = tokio::join!(pinging, serve(&there, &listener, 100));
    assert!(matches!(served, Err(WorkloadError::Protocol(_))), "{served:?}");
    assert!(matches!(pinged, Err(WorkloadError::Ended { .. })), "{pinged:?}");
}

/// Several peers connect and send nothing. The listener serves another peer at the same time.
#[tokio::test]
async fn silent_peers_do_not_block_others() {
    let (here, there) = (device(), device());
    let listener = listener(&there);
    let address = listener.local_addr();
    let mut silent = Vec::new();
    for _ in 0..20 {
        silent.push(tokio::net::TcpStream::connect(address).await.unwrap());
    }
    let mut client = Client::new(&here, 64, true).unwrap();
    let pinging = async {
        client.connect(address, settings()).await.unwrap();
        client.round().await.unwrap();
        client.disconnect().await.unwrap();
    };
    let ((), served) = tokio::join!(pinging, serve(&there, &listener, 64));
    assert_eq!(served.unwrap(), 1);
}

/// If the peer sends a Send that rping does not use, the error reports this.
#[tokio::test]
async fn a_peer_with_another_protocol() {
    let (here, there) = (device(), device());
    let listener = listener(&there);
    let peer = Endpoint::new(&here, EndpointSettings::default()).unwrap();
    let speaking = async {
        peer.connect(listener.local_addr(), settings(), &PrivateData::default()).await.unwrap();
        peer.send(Bytes::from_static(b"hello")).unwrap();
        assert_eq!(peer.ended().await.unwrap(), QpState::Error);
    };
    let ((), served) = tokio::join!(speaking, serve(&there, &listener, 64));
    assert!(matches!(served, Err(WorkloadError::Protocol(_))), "{served:?}");
}
