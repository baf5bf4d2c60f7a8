//! Tests the workload `cat`, which transfers a stream of octets. A carrier is the RDMA operation
//! that transfers the data. The tests use each carrier in both directions.

use weft_peer::workload::WorkloadError;
use weft_peer::workload::bench::Carrier;
use weft_peer::workload::cat::{Cat, PART, Totals, TransferRequest};

use super::{device, listener, settings};

/// Sends `octets` in pieces of odd sizes.
async fn give(cat: &mut Cat, mut octets: &[u8]) -> Result<Totals, WorkloadError> {
    let mut piece = 0;
    cat.send_stream(&mut |room| {
        piece = piece % 70_001 + 7_001;
        let (now, rest) = octets.split_at(piece.min(room.len()).min(octets.len()));
        room[..now.len()].copy_from_slice(now);
        octets = rest;
        Ok(now.len())
    })
    .await
}

async fn take(cat: &mut Cat) -> (Vec<u8>, Result<Totals, WorkloadError>) {
    let mut taken = Vec::new();
    let totals = cat
        .receive_stream(&mut |octets| {
            taken.extend_from_slice(octets);
            Ok(())
        })
        .await;
    (taken, totals)
}

#[tokio::test]
async fn every_carrier_both_ways() {
    let (here, there) = (device(), device());
    let listener = listener(&there);
    for carrier in Carrier::ALL {
        for length in [0, 1, PART, 6 * PART + 1] {
            for pull in [false, true] {
                let octets: Vec<u8> = (0..length).map(|n| (n % 251) as u8).collect();
                let mut expected = Totals::default();
                expected.add(&octets);
                let initiator = async {
                    let ask = TransferRequest { carrier, pull };
                    let mut cat = Cat::connect(&here, listener.local_addr(), settings(), ask).await.unwrap();
                    let taken = if pull {
                        let (taken, totals) = take(&mut cat).await;
                        assert_eq!(totals.unwrap(), expected);
                        Some(taken)
                    } else {
                        assert_eq!(give(&mut cat, &octets).await.unwrap(), expected);
                        None
                    };
                    cat.disconnect().await.unwrap();
                    taken
                };
                let responder = async {
                    let (mut cat, ask) = Cat::accept(&there, listener.next().await.unwrap()).await.unwrap();
                    assert_eq!(ask, TransferRequest { carrier, pull });
                    let taken = if pull {
                        assert_eq!(give(&mut cat, &octets).await.unwrap(), expected);
                        None
                    } else {
                        let (taken, totals) = take(&mut cat).await;
                        assert_eq!(totals.unwrap(), expected);
                        Some(taken)
                    };
                    cat.ended().await.unwrap();
                    taken
                };
                let (at_initiator, at_responder) = tokio::join!(initiator, responder);
                assert_eq!(at_initiator.or(at_responder).unwrap(), octets, "{carrier:?} {length} {pull}");
            }
        }
    }
}

/// If the source cannot read its input, the connection ends. The data is then incomplete, so the
/// sink gets an error.
#[tokio::test]
async fn a_source_that_fails() {
    let (here, there) = (device(), device());
    let listener = listener(&there);
    let initiator = async {
        let ask = TransferRequest { carrier: Carrier::Send, pull: false };
        let mut cat = Cat::connect(&here, listener.local_addr(), settings(), ask).await.unwrap();
        cat.send_stream(&mut |_| Err("the disk is gone".to_owned())).await
    };
    let responder = async {
        let (mut cat, _) = Cat::accept(&there, listener.next().await.unwrap()).await.unwrap();
        take(&mut cat).await.1
    };
    let (given, taken) = tokio::join!(initiator, responder);
    assert_eq!(given.unwrap_err().to_string(), "the disk is gone");
    assert!(matches!(taken, Err(WorkloadError::Ended { .. })), "{taken:?}");
}
