//! Messages of RPC-over-RDMA for the tests of the rules.

use crate::testing::{Wire, hex, reply_frame, startup_frame};

/// A NULL call of NFS version 3 with the XID 77a394ae, without credential.
const CALL: &str = "77a394ae 00000000 00000002 000186a3 00000003 00000000 00000000 00000000 00000000 00000000";
/// Its reply.
const REPLY: &str = "77a394ae 00000001 00000000 00000000 00000000 00000000";

/// A call with these chunk lists. `words` are the version, and the procedure of the header.
pub(super) fn call_with(words: &str, lists: &str) -> String {
    let (version, procedure) = words.split_once(' ').expect("two words");
    format!("77a394ae {version} 00000080 {procedure} {lists} {CALL}")
}

/// A reply with these chunk lists.
pub(super) fn reply_with(lists: &str) -> String {
    format!("77a394ae 00000001 00000080 00000000 {lists} {REPLY}")
}

/// Sends these messages. Each message has its direction, its control octets with the STag to
/// invalidate, and its content.
fn send(mut wire: Wire, messages: &[(usize, &str, &str)]) -> Wire {
    let mut sent = [0_u32; 2];
    for (direction, control, octets) in messages {
        sent[*direction] += 1;
        wire.send_ulpdu(*direction, &format!("{control} 00000000 {:08x} 00000000 {octets}", sent[*direction]));
    }
    wire
}

/// A connection with these messages.
pub(super) fn connection(messages: &[(usize, &str, &str)]) -> Wire {
    send(Wire::started(), messages)
}

/// A connection with a call without chunks, and then these messages.
pub(super) fn after_a_call(messages: &[(usize, &str, &str)]) -> Wire {
    let call = call_with("00000001 00000000", "00000000 00000000 00000000");
    connection(&[&[(0, "4143 00000000", call.as_str())][..], messages].concat())
}

/// A connection with these settings of client and server, without the format identifier, and then
/// these messages.
pub(super) fn with_settings([client, server]: [&str; 2], messages: &[(usize, &str, &str)]) -> Wire {
    let request = startup_frame(0x50, 2, &hex(&format!("00800000 f6ab0e18 {client}")));
    let reply = reply_frame(0x50, 2, &hex(&format!("00000080 f6ab0e18 {server}")));
    send(Wire::started_as(&request, &reply), messages)
}

/// Checks that the connection has no finding of RPC-over-RDMA.
pub(super) fn is_clean(wire: &Wire) {
    let is_of_rpc = |id: weft_core::RequirementId| id.as_str().starts_with("RPCRDMA-");
    let found: Vec<_> = wire.findings().into_iter().filter(|finding| is_of_rpc(finding.requirement)).collect();
    assert!(found.is_empty(), "{found:#?}");
}
