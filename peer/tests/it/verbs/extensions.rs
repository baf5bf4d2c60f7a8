//! Tests Atomic Operations and Immediate Data (RFC 7306) between two RNICs.

use weft_core::coverage::{Coverage, CoverageKind};
use weft_core::wire::rdmap::{AtomicOperation, Immediate};
use weft_peer::verbs::{Operation, SendWr};

use crate::verbs::peers::{Peers, shows};

#[test]
fn atomics_change_memory_and_return_the_original_value() {
    let mut proof = Coverage::new(CoverageKind::Test);
    let mut peers = Peers::new();
    peers.b.octets()[64..72].copy_from_slice(&100u64.to_ne_bytes());
    let remote = peers.b.remote(64);
    let operations = [
        AtomicOperation::FetchAdd { add_data: 5, add_mask: 0 },
        AtomicOperation::CmpSwap { swap_data: 7, swap_mask: u64::MAX, compare_data: 105, compare_mask: u64::MAX },
        AtomicOperation::CmpSwap { swap_data: 9, swap_mask: u64::MAX, compare_data: 1, compare_mask: u64::MAX },
        AtomicOperation::FetchAdd { add_data: 0, add_mask: 0 },
    ];
    for (n, operation) in operations.into_iter().enumerate() {
        peers.a.post(SendWr::new(n as u64, Operation::Atomic { remote, operation }));
    }
    peers.run();
    let found: Vec<Option<u64>> = peers.a.poll().iter().map(|completion| completion.original_value).collect();
    shows! { proof:
        "RDMAP-7306.5.1.1-1" => found[0] == Some(100) && found[1] == Some(105);
        "RDMAP-7306.5.1.2-3" => found[2] == Some(7);
        "RDMAP-7306.5.1.2-2" => found[3] == Some(7);
        "RDMAP-7306.1.1-4" => peers.b.octets()[64..72] == 7u64.to_ne_bytes();
        "RDMAP-7306.5.2.1-16" => peers.b.poll().is_empty();
        "RDMAP-7306.5.2.1-20" => found == [Some(100), Some(105), Some(7), Some(7)];
    }
}

#[test]
fn immediate_data_takes_a_receive() {
    let mut proof = Coverage::new(CoverageKind::Test);
    let mut peers = Peers::new();
    peers.b.post_receive(1, 0, 0);
    peers.b.post_receive(2, 0, 100);
    let data = Immediate { data: *b"eight oc" };
    peers.a.post(SendWr::new(1, Operation::Immediate { data, solicited: true }));
    let wr = peers.a.send_of(2, 0, 3);
    peers.a.post(wr);
    peers.run();
    let received = peers.b.poll();
    shows! { proof:
        "RDMAP-7306.6.1-1" => received[0].immediate == Some(data) && received[0].solicited;
        "RDMAP-7306.6.3-2" => received[0].wr_id == 1 && received[1].wr_id == 2;
        "RDMAP-7306.7-1" => received[1].octets == 3;
    }
}
