//! Tests the workload `probe`, which runs single operations from a list. The tests check the effect
//! of each operation on both sides, and the answer to each wrong operation.

use weft_core::wire::rdmap::TerminateError;
use weft_peer::driver::cm::{CmError, CmSettings};
use weft_peer::mpa::PrivateData;
use weft_peer::workload::probe::{Arrived, Done, Ended, Op, Probe, ProbeSettings};

use super::{device, listener, settings};

/// The data that both sides observed about a connection.
struct Seen {
    done: Vec<Done>,
    client: Ended,
    received: Vec<Arrived>,
    server: Ended,
}

async fn play(client: ProbeSettings, server: ProbeSettings, mpa: CmSettings, ops: &[&str]) -> Seen {
    let (here, there) = (device(), device());
    let listener = listener(&there);
    let asking = async {
        let mut probe = Probe::new(&here, client).unwrap();
        probe.connect(listener.local_addr(), mpa).await.unwrap();
        let mut done = Vec::new();
        for op in ops {
            // If the peer rejects a Read or an Atomic Operation, the operation fails. The test
            // ignores this error and checks how the connection ends.
            done.push(probe.run(Op::parse(op).unwrap()).await.unwrap_or_default());
        }
        (done, probe.finish().await.unwrap())
    };
    let serving = async {
        let mut probe = Probe::new(&there, server).unwrap();
        probe.accept(listener.next().await.unwrap()).unwrap();
        let mut received = Vec::new();
        while let Some(arrived) = probe.next().await.unwrap() {
            received.push(arrived);
        }
        (received, probe.finish().await.unwrap())
    };
    let ((done, client), (received, server)) = tokio::join!(asking, serving);
    Seen { done, client, received, server }
}

/// The hash FNV-1a of 64 bits, as draft-eastlake-fnv defines it.
fn fnv(octets: impl IntoIterator<Item = u8>) -> u64 {
    octets
        .into_iter()
        .fold(0xcbf2_9ce4_8422_2325, |hash, octet| (hash ^ u64::from(octet)).wrapping_mul(0x0100_0000_01b3))
}

/// The contents of Sends and Writes, and the initial contents of regions.
fn source(length: usize) -> Vec<u8> {
    (0..length).map(|n| (n * 13 + 5) as u8).collect()
}

fn region() -> Vec<u8> {
    (0..1 << 20).map(|n: usize| (n * 7 + 3) as u8).collect()
}

#[tokio::test]
async fn every_operation_leaves_the_pattern_in_memory() {
    let ops = [
        "send:0",
        "send:1",
        "sendse:65536",
        "write:0",
        "write:5:7",
        "write:65536:65539",
        "read:0",
        "read:100:3",
        "immediate",
        "fetchadd:8",
        "burst:write:3000:100",
        "burst:read:3000:100",
        "sendinv:9",
    ];
    let seen = play(ProbeSettings::default(), ProbeSettings::default(), settings(), &ops).await;
    let received: Vec<_> =
        seen.received.iter().map(|a| (a.octets, a.hash, a.solicited, a.invalidated.is_some())).collect();
    let expected = [
        (0, fnv([]), false, false),
        (1, fnv(source(1)), false, false),
        (65_536, fnv(source(65_536)), true, false),
        (8, fnv(*b"immedia."), false, false),
        (9, fnv(source(9)), false, true),
    ];
    assert_eq!(received, expected);
    assert!(seen.received[3].immediate.is_some());
    let mut left = region();
    left[7..12].copy_from_slice(&source(5));
    left[65_539..131_075].copy_from_slice(&source(65_536));
    assert_eq!((seen.done[6].hash, seen.done[7].hash), (Some(fnv([])), Some(fnv(left[3..103].to_vec()))));
    let old: [u8; 8] = left[8..16].try_into().unwrap();
    assert_eq!(seen.done[9].original_value, Some(u64::from_ne_bytes(old)));
    left[8..16].copy_from_slice(&(u64::from_ne_bytes(old) + 1).to_ne_bytes());
    left[..3000].copy_from_slice(&source(3000));
    assert_eq!(seen.server, Ended { graceful: true, terminate: None, hash: fnv(left) });
    assert_eq!(seen.client, Ended { graceful: true, terminate: None, hash: fnv(region()) });
}

/// Checks the Terminate for each wrong operation (RFC 5041 sections 7.1 and 7.2, RFC 5040 section
/// 7.2 and Figure 9).
#[tokio::test]
async fn wrong_operations_are_answered_by_their_terminate() {
    let normal = ProbeSettings::default;
    let rights = |readable, writable| ProbeSettings { readable, writable, ..normal() };
    let none = ProbeSettings { receives: 0, ..normal() };
    for (op, server, error) in [
        ("writebadkey:100", normal(), TerminateError::DDP_TAGGED_INVALID_STAG),
        ("write:100:0:1", normal(), TerminateError::DDP_TAGGED_INVALID_STAG),
        ("writeoob:100", normal(), TerminateError::DDP_TAGGED_BASE_OR_BOUNDS),
        ("writewrap:100", normal(), TerminateError::DDP_TAGGED_TO_WRAP),
        ("write:100", rights(true, false), TerminateError::DDP_TAGGED_STAG_NOT_ASSOCIATED),
        ("readbadkey:64", normal(), TerminateError::RDMAP_INVALID_STAG),
        ("readoob:64", normal(), TerminateError::RDMAP_BASE_OR_BOUNDS),
        ("readwrap:64", normal(), TerminateError::RDMAP_TO_WRAP),
        ("read:64", rights(false, true), TerminateError::RDMAP_ACCESS_RIGHTS),
        ("send:65537", normal(), TerminateError::DDP_UNTAGGED_TOO_LONG),
        ("send:1", none, TerminateError::DDP_UNTAGGED_NO_BUFFER),
        ("sendinvz:1", normal(), TerminateError::RDMAP_INVALID_STAG),
    ] {
        let seen = play(normal(), server, settings(), &[op, "end"]).await;
        let at_server = seen.server.terminate.map(|record| (record.terminate.error, record.local));
        assert_eq!(at_server, Some((error, true)), "{op}");
        let at_client = seen.client.terminate.map(|record| (record.terminate.error, record.local));
        assert_eq!(at_client, Some((error, false)), "{op}");
        assert_eq!((seen.server.hash, seen.received.len()), (fnv(region()), 0), "{op}");
    }
}

/// An echo returns each message unchanged. The echo posts each receive again, so there can be more
/// messages than receives.
#[tokio::test]
async fn echoes_come_back() {
    let ops: Vec<&str> = ["send:70", "recv"].into_iter().cycle().take(20).collect();
    let server = ProbeSettings { echo: true, receives: 2, room: 70, ..ProbeSettings::default() };
    let seen = play(ProbeSettings::default(), server, settings(), &ops).await;
    assert_eq!(seen.received.len(), 10);
    let back: Vec<_> = seen.done.iter().filter_map(|done| done.received).map(|arrived| arrived.hash).collect();
    assert_eq!(back, [fnv(source(70)); 10]);
}

/// RFC 5040 section 5.1: a Tagged message without payload refers to no memory, so its STag is not
/// checked.
#[tokio::test]
async fn an_empty_tagged_message_names_no_memory() {
    let ops = ["write:0:0:0xabcd00", "read:0:0:0xabcd00"];
    let seen = play(ProbeSettings::default(), ProbeSettings::default(), settings(), &ops).await;
    assert!(seen.client.graceful && seen.server.graceful, "{:?}", seen.server);
}

/// If the client resets the connection, the server does not report a graceful end.
#[tokio::test]
async fn an_abort_is_no_graceful_end() {
    let seen = play(ProbeSettings::default(), ProbeSettings::default(), settings(), &["send:1", "abort"]).await;
    assert!(!seen.server.graceful && seen.server.terminate.is_none(), "{:?}", seen.server);
}

/// The client itself rejects lengths that exceed its region, before it sends anything.
#[tokio::test]
async fn rejects_lengths_beyond_the_region() {
    let (here, there) = (device(), device());
    let listener = listener(&there);
    let mut probe = Probe::new(&here, ProbeSettings { region: 100, ..ProbeSettings::default() }).unwrap();
    let rejecting = async {
        let reason = PrivateData::new(&b"no"[..]).unwrap();
        listener.next().await.unwrap().reject(&reason).await.unwrap();
    };
    assert!(probe.run(Op::parse("send:101").unwrap()).await.is_err());
    assert!(probe.run(Op::parse("write:1").unwrap()).await.is_err(), "nothing is advertised yet");
    let (connected, ()) = tokio::join!(probe.connect(listener.local_addr(), settings()), rejecting);
    let Err(CmError::Rejected(peer)) = connected else { panic!("{connected:?}") };
    assert_eq!(peer.private_data.as_octets(), b"no");
}
