//! Unusual but legal exchanges must not cause errors, even if the capture has defects. Each test
//! removes at most one datagram. If both a repeated PMReq and its answer were missing, a correct
//! PMAck would look like a wrong PMAck.

use crate::rules::portmap::testing::{ACCEPT, ACK, DENY, Datagrams, REQ, datagram};

/// The sender and the octets of each message. Sender 0 is the client, and sender 3 is the client
/// with its earlier port. Senders 1 and 2 are the same server: sender 1 sends to the client's port,
/// and sender 2 sends to the client's earlier port.
type Scenario = Vec<(usize, Vec<u8>)>;

fn with(first: u8, ap_port: u16, cp_port: u16, handle: u8) -> Vec<u8> {
    datagram(first, |octets| {
        octets[4..6].copy_from_slice(&ap_port.to_be_bytes());
        octets[6..8].copy_from_slice(&cp_port.to_be_bytes());
        octets[15] = handle;
    })
    .octets()
}

fn scenarios() -> Vec<Scenario> {
    vec![
        // The client sends a PMReq twice, and the server answers each PMReq with a different port.
        // The later answer reaches the client first, so the client acknowledges the later answer.
        vec![
            (0, with(REQ, 5001, 1, 1)),
            (0, with(REQ, 5001, 1, 1)),
            (1, with(ACCEPT, 7001, 1, 1)),
            (1, with(ACCEPT, 7002, 1, 1)),
            (0, with(ACK, 7002, 1, 1)),
        ],
        // The service stops while the first answer is in flight. The client uses that answer.
        vec![
            (0, with(REQ, 5001, 1, 1)),
            (1, with(ACCEPT, 7001, 1, 1)),
            (0, with(REQ, 5001, 1, 1)),
            (1, with(DENY, 0, 1, 1)),
            (0, with(ACK, 7001, 1, 1)),
        ],
        // The client's host restarts, and requests the same connection with another AssocHandle.
        vec![
            (3, with(REQ, 5001, 1, 1)),
            (0, with(REQ, 5001, 1, 9)),
            (2, with(ACCEPT, 7001, 1, 1)),
            (1, with(ACCEPT, 7001, 1, 9)),
            (0, with(ACK, 7001, 1, 9)),
        ],
        // Three transactions at the same time. The server answers in another order.
        vec![
            (0, with(REQ, 5001, 1, 1)),
            (0, with(REQ, 5002, 2, 2)),
            (0, with(REQ, 5003, 3, 3)),
            (1, with(DENY, 5003, 3, 3)),
            (1, with(ACCEPT, 7002, 2, 2)),
            (0, with(ACK, 7002, 2, 2)),
            (1, with(ACCEPT, 7001, 1, 1)),
            (0, with(ACK, 7001, 1, 1)),
        ],
    ]
}

fn errors(scenario: &Scenario) -> Vec<String> {
    let mut wire = Datagrams::default();
    for (from, octets) in scenario {
        let older = "10.0.0.2:40009".parse().unwrap();
        let server = Datagrams::ENDPOINTS[1].parse().unwrap();
        match from {
            2 => wire.put_between(server, older, octets),
            3 => wire.put_between(older, server, octets),
            _ => wire.put(*from, octets),
        }
    }
    wire.errors().iter().map(|finding| format!("{} in frame {}", finding.requirement, finding.frame)).collect()
}

#[test]
fn reports_no_error_for_legal_exchanges() {
    let mut count = 0;
    for (number, scenario) in scenarios().iter().enumerate() {
        let mut mangled = vec![scenario.clone()];
        for at in 0..scenario.len() {
            let mut missed = scenario.clone();
            missed.remove(at);
            let mut twice = scenario.clone();
            twice.insert(at, scenario[at].clone());
            let mut late = scenario.clone();
            let datagram = late.remove(at);
            late.push(datagram);
            mangled.extend([missed, twice, late]);
            for other in 0..at {
                let mut swapped = scenario.clone();
                swapped.swap(at, other);
                mangled.push(swapped);
            }
        }
        for (way, mangled) in mangled.iter().enumerate() {
            assert_eq!(errors(mangled), [""; 0], "scenario {number}, way {way}: {mangled:02x?}");
            count += 1;
        }
    }
    println!("{count} captures without errors");
}
