//! These tests run random work between two RNICs, and compare the result with a plain model of both
//! memories.

use proptest::prelude::*;
use weft_core::wire::mpa::Framing;
use weft_peer::verbs::{CompletionStatus, Operation, Payload, QpState, SendWr};

use crate::verbs::peers::Peers;

/// One work request of side `a`. The offsets refer to regions of 4096 octets.
#[derive(Debug, Clone)]
enum Work {
    Send { from: u64, cut: u32, length: u32, to: u64 },
    Write { from: u64, length: u32, to: u64 },
    Read { from: u64, length: u32, to: u64 },
}

fn work() -> impl Strategy<Value = Work> {
    prop_oneof![
        (0u64..2048, 0u32..2049, 0u32..2048, 0u64..2048)
            .prop_map(|(from, cut, length, to)| { Work::Send { from, cut: cut.min(length), length, to } }),
        (0u64..2048, 0u32..2049, 0u64..2048).prop_map(|(from, length, to)| Work::Write { from, length, to }),
        (0u64..2048, 0u32..2049, 0u64..2048).prop_map(|(from, length, to)| Work::Read { from, length, to }),
    ]
}

fn copy(from: &[u8], at: u64, length: u32, to: &mut [u8], place: u64) {
    let octets = from[at as usize..at as usize + length as usize].to_vec();
    to[place as usize..place as usize + length as usize].copy_from_slice(&octets);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    /// Both memories equal the result of sequential execution. It makes no difference how TCP
    /// splits and accepts the octets. Receives complete in the order of the Sends, and work
    /// requests complete in the order in which they were posted.
    #[test]
    fn memory_and_order_are_the_models(
        list in proptest::collection::vec(work(), 1..12), segment in 1usize..3000, take in 1usize..5000,
        emss in 128u32..4000, markers: bool, crc: bool,
    ) {
        let mut peers = Peers::with(Framing { markers, crc }, emss, |_| ());
        (peers.segment, peers.take) = (segment, take);
        let start = |seed: usize| (0..4096).map(|n| (n * 13 + seed) as u8).collect::<Vec<u8>>();
        let (mut a, mut b) = (start(1), start(7));
        peers.a.octets()[..4096].copy_from_slice(&a);
        peers.b.octets()[..4096].copy_from_slice(&b);
        let mut sends = Vec::new();
        for (n, work) in list.iter().enumerate() {
            let wr_id = n as u64;
            // Each request waits for the previous one, as in the model.
            let operation = match *work {
                Work::Send { from, cut, length, to } => {
                    peers.b.post_receive(100 + wr_id, to, 2048);
                    sends.push((100 + wr_id, length));
                    copy(&a, from, length, &mut b, to);
                    let gather = vec![peers.a.sge(from, cut), peers.a.sge(from + u64::from(cut), length - cut)];
                    Operation::Send { payload: Payload::Gather(gather), solicited: false, invalidate: None }
                }
                Work::Write { from, length, to } => {
                    copy(&a, from, length, &mut b, to);
                    let payload = Payload::Gather(vec![peers.a.sge(from, length)]);
                    Operation::Write { payload, remote: peers.b.remote(to) }
                }
                Work::Read { from, length, to } => {
                    copy(&b, from, length, &mut a, to);
                    let (local, remote) = (peers.a.sge(to, length), peers.b.remote(from));
                    Operation::Read { local, remote, invalidate_local: false }
                }
            };
            peers.a.post(SendWr::new(wr_id, operation));
            if matches!(work, Work::Read { .. }) {
                peers.run();
            }
        }
        peers.run();
        let done: Vec<_> = peers.a.statuses();
        let expected: Vec<_> = (0..list.len() as u64).map(|n| (n, CompletionStatus::Success)).collect();
        prop_assert_eq!(done, expected);
        let received: Vec<_> = peers.b.poll().iter().map(|done| (done.wr_id, done.octets)).collect();
        prop_assert_eq!(received, sends);
        prop_assert_eq!(&peers.a.octets()[..4096], &a[..]);
        prop_assert_eq!(&peers.b.octets()[..4096], &b[..]);
        prop_assert!(peers.a.octets()[4096..].iter().all(|octet| *octet == 0));
        prop_assert!(peers.b.octets()[4096..].iter().all(|octet| *octet == 0));
        prop_assert_eq!((peers.a.state(), peers.b.state()), (QpState::Rts, QpState::Rts));
    }

    /// Arbitrary octets, with correct framing or without it, neither panic nor change memory that
    /// is not registered for peers.
    #[test]
    fn arbitrary_octets_do_no_harm(ulpdus: Vec<Vec<u8>>, raw: Vec<u8>) {
        let mut bench = crate::verbs::peers::Bench::new();
        for ulpdu in &ulpdus {
            bench.hand_in(ulpdu);
        }
        let (llp, now) = (bench.side.llp, weft_peer::Instant::ORIGIN);
        bench.side.rnic.handle_octets(now, llp, &raw);
        bench.side.transmit(now, 1000);
        prop_assert!(bench.side.octets().iter().all(|octet| *octet == 0));
    }
}
