//! Converts a capsule to a PDU of NVMe/TCP, for `weft export`.
//!
//! Wireshark decodes a capsule of NVMe over RDMA only with InfiniBand headers. NVMe/TCP has the
//! same capsules, each after a header of 8 bytes: PDU-Type, FLAGS, HLEN, PDO and PLEN (NVM Express
//! TCP Transport Specification, section "Common Header"). HLEN is the length of this header and of
//! the queue entry. PDO is the offset of the data in the PDU, or 0 without data. PLEN is the length
//! of the PDU. It is the only field with several bytes, and it is little-endian. The flags are for
//! digests, which NVMe over RDMA does not have.

use std::borrow::Cow;

use super::command::COMMAND_LEN;
use super::completion::COMPLETION_LEN;
use crate::upper::pdu::{DissectorName, PduPart};

const DISSECTOR: DissectorName = DissectorName::Registered("nvme-tcp");
/// PDU-Type of `CapsuleCmd`, and its HLEN.
const COMMAND: u8 = 0x04;
const COMMAND_HEADER_LEN: u8 = HEADER_LEN + COMMAND_LEN as u8;
/// PDU-Type of `CapsuleResp`, and its HLEN.
const RESPONSE: u8 = 0x05;
const RESPONSE_HEADER_LEN: u8 = HEADER_LEN + COMPLETION_LEN as u8;
/// Length of the header in bytes.
const HEADER_LEN: u8 = 8;
const REMARK: &str =
    "re-framed as a PDU of NVMe/TCP: weft added the first 8 bytes, because this connection uses NVMe over RDMA";

/// Converts a capsule of `len` bytes. `octets` has its first bytes. Returns `None` if a capsule
/// cannot have this length.
pub(super) fn pdu(octets: &[u8], len: u64) -> Option<PduPart<'static>> {
    let (kind, header_len) = if len == COMPLETION_LEN as u64 {
        (RESPONSE, RESPONSE_HEADER_LEN)
    } else if len >= COMMAND_LEN as u64 {
        (COMMAND, COMMAND_HEADER_LEN)
    } else {
        return None;
    };
    let pdu_len = len.saturating_add(u64::from(HEADER_LEN));
    let data_at = if pdu_len > u64::from(header_len) { header_len } else { 0 };
    let mut pdu = vec![kind, 0, header_len, data_at];
    pdu.extend_from_slice(&u32::try_from(pdu_len).unwrap_or(u32::MAX).to_le_bytes());
    pdu.extend_from_slice(octets);
    let part = PduPart::new(DISSECTOR, &[], pdu_len);
    Some(PduPart { octets: Cow::Owned(pdu), remark: Some(REMARK.to_owned()), ..part })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::hex;

    fn header(octets: &[u8], len: u64) -> (Vec<u8>, u64) {
        let part = pdu(octets, len).unwrap();
        assert_eq!(part.octets[8..], *octets);
        (part.octets[..8].to_vec(), part.len)
    }

    #[test]
    fn a_capsule_gets_the_header_of_its_type() {
        assert_eq!(header(&[7; 64], 64), (hex("04 00 48 00 48000000"), 72));
        assert_eq!(header(&[7; 64 + 4096], 64 + 4096), (hex("04 00 48 48 48100000"), 72 + 4096));
        assert_eq!(header(&[7; 16], 16), (hex("05 00 18 00 18000000"), 24));
        // Only 20 bytes of the capsule were captured.
        assert_eq!(header(&[7; 20], 64 + 4096), (hex("04 00 48 48 48100000"), 72 + 4096));
        assert_eq!(header(&[7; 20], u64::MAX).1, u64::MAX);
    }

    #[test]
    fn other_lengths_are_no_capsule() {
        for len in [0, 15, 17, 63] {
            assert_eq!(pdu(&[], len), None, "{len}");
        }
    }
}
