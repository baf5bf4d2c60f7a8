//! The tags before a PDU in a packet with the link type `LINKTYPE_WIRESHARK_UPPER_PDU`.
//!
//! A tag consists of a type, a length (two octets each), and a value with this length. All numbers
//! are big-endian. The last tag has type 0 and length 0, and the PDU follows.

use std::net::{IpAddr, SocketAddr};

use crate::frame_number::FrameNumber;
use crate::upper::DissectorName;

const END: u16 = 0;
const DISSECTOR_NAME: u16 = 12;
const HEURISTIC_DISSECTOR_NAME: u16 = 13;
const IPV4_SRC: u16 = 20;
const IPV4_DST: u16 = 21;
const IPV6_SRC: u16 = 22;
const IPV6_DST: u16 = 23;
const PORT_TYPE: u16 = 24;
const SRC_PORT: u16 = 25;
const DST_PORT: u16 = 26;
const ORIGINAL_FRAME: u16 = 30;

/// The value of [`PORT_TYPE`] for TCP.
const TCP: u32 = 2;

/// Returns the tags of a PDU that ended in the frame `frame` of the original capture.
pub(super) fn tags(dissector: DissectorName, src: SocketAddr, dst: SocketAddr, frame: FrameNumber) -> Vec<u8> {
    let mut out = Vec::with_capacity(128);
    let (name_type, name) = match dissector {
        DissectorName::Registered(name) => (DISSECTOR_NAME, name),
        DissectorName::Heuristic(name) => (HEURISTIC_DISSECTOR_NAME, name),
    };
    // Wireshark fills the name with zeros, and includes them in the length.
    let mut name = name.as_bytes().to_vec();
    name.resize(name.len().next_multiple_of(4), 0);
    tag(name_type, &name, &mut out);
    for (address, v4, v6) in [(src, IPV4_SRC, IPV6_SRC), (dst, IPV4_DST, IPV6_DST)] {
        match address.ip() {
            IpAddr::V4(ip) => tag(v4, &ip.octets(), &mut out),
            IpAddr::V6(ip) => tag(v6, &ip.octets(), &mut out),
        }
    }
    tag(PORT_TYPE, &TCP.to_be_bytes(), &mut out);
    tag(SRC_PORT, &u32::from(src.port()).to_be_bytes(), &mut out);
    tag(DST_PORT, &u32::from(dst.port()).to_be_bytes(), &mut out);
    if let Ok(frame) = u32::try_from(u64::from(frame)) {
        tag(ORIGINAL_FRAME, &frame.to_be_bytes(), &mut out);
    }
    tag(END, &[], &mut out);
    out
}

fn tag(kind: u16, value: &[u8], out: &mut Vec<u8>) {
    out.extend(kind.to_be_bytes());
    out.extend(u16::try_from(value.len()).unwrap_or(u16::MAX).to_be_bytes());
    out.extend(value);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::hex;

    /// The types and lengths are those of Wireshark's `exported_pdu_tlvs.h`.
    #[test]
    fn tags_of_both_versions_of_ip() {
        let [src, dst] = ["10.0.0.2:49152", "10.0.0.1:20049"].map(|address| address.parse().unwrap());
        let expected = "000c 0004 72706300
            0014 0004 0a000002  0015 0004 0a000001
            0018 0004 00000002  0019 0004 0000c000  001a 0004 00004e51
            001e 0004 00000007  0000 0000";
        assert_eq!(tags(DissectorName::Registered("rpc"), src, dst, 7.into()), hex(expected));
        let [src, dst] = ["[fd00::2]:49152", "[fd00::1]:445"].map(|address| address.parse().unwrap());
        let expected = "000d 0010 736d62325f736d625f64697265637400
            0016 0010 fd000000000000000000000000000002  0017 0010 fd000000000000000000000000000001
            0018 0004 00000002  0019 0004 0000c000  001a 0004 000001bd
            001e 0004 00000008  0000 0000";
        assert_eq!(tags(DissectorName::Heuristic("smb2_smb_direct"), src, dst, 8.into()), hex(expected));
    }

    #[test]
    fn tags_leave_room_for_the_pdu() {
        let address = "[fd00::1]:445".parse().unwrap();
        let name = DissectorName::Heuristic("smb2_smb_direct");
        assert!(tags(name, address, address, FrameNumber::FIRST).len() <= 256);
    }
}
