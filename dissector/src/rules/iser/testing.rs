//! iSER messages for the tests of the rules.

use crate::testing::Wire;

/// The iSER header of a PDU without buffers.
pub(super) const NO_BUFFERS: &str = "10000000 00000000 0000000000000000 00000000 0000000000000000";
/// The iSER header of a PDU with a Read STag.
pub(super) const READ_BUFFER: &str = "14000000 00000000 0000000000000000 df379007 ffff88800a570000";
/// The iSER header of a PDU with a Write STag.
pub(super) const WRITE_BUFFER: &str = "18000000 0000beef 0000000000001000 00000000 0000000000000000";
/// DDP and RDMAP control octets of a Send, and the STag of no invalidation.
pub(super) const PLAIN: &str = "4143 00000000";

/// The BHS of a NOP-Out without a task tag.
pub(super) const NOP_OUT: &str = "40800000 00000000 0000000000000000 ffffffff ffffffff 00000002 00000002
    00000000000000000000000000000000";
/// The BHS of a response to the task 0x07000000.
pub(super) const RESPONSE: &str = "21820000 00000000 0000000000000000 07000000 00000000 00000002 00000002
    00000046 00000000 00000000 00000018";

/// The BHS of an INQUIRY with the task tag 0x07000000. `first` is its first word, and `len` the
/// Expected Data Transfer Length in octets.
pub(super) fn command(first: &str, len: u32) -> String {
    format!("{first} 00000000 0000000000000000 07000000 {len:08x} 00000006 00000002 12010000240000000000000000000000")
}

/// A message: an iSER header, and a PDU.
pub(super) fn pdu(header: &str, bhs: &str) -> String {
    format!("{header} {bhs}")
}

/// A connection with a login in both directions, and then these messages in this order. Each
/// message has its direction, its control octets with the STag to invalidate, and its content.
pub(super) fn after_login(messages: &[(usize, &str, &str)]) -> Wire {
    let text = "4865616465724469676573743d4e6f6e65000000";
    let words = format!("00000000 00000000 00000001 00000000 {}", "00".repeat(16));
    let request = format!("{NO_BUFFERS} 43870000 00000012 0002 3d00 0001 0000 {words} {text}");
    let response = format!("{NO_BUFFERS} 23870000 00000012 0002 3d00 0001 0001 {words} {text}");
    let mut wire = Wire::started();
    let mut sent = [0_u32; 2];
    for (direction, control, octets) in
        [(0, PLAIN, request.as_str()), (1, PLAIN, response.as_str())].iter().chain(messages)
    {
        sent[*direction] += 1;
        wire.send_ulpdu(*direction, &format!("{control} 00000000 {:08x} 00000000 {octets}", sent[*direction]));
    }
    wire
}

/// Checks that the connection has no finding of iSER.
pub(super) fn is_clean(wire: &Wire) {
    let of_iser = |id: weft_core::RequirementId| id.as_str().starts_with("ISER-");
    let found: Vec<_> = wire.findings().into_iter().filter(|finding| of_iser(finding.requirement)).collect();
    assert!(found.is_empty(), "{found:#?}");
}
