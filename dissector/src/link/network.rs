//! Finds the network number in a header, for example the VLAN number.

use super::header::{Header, u16_at};
use crate::link_type;
use crate::path::Tag;

use super::{ether_type, gre};

/// The network number in the header at the start of `bytes`; `None` if the header has no network
/// number.
pub(crate) fn tag(header: Header, bytes: &[u8]) -> Option<Tag> {
    match header {
        Header::EtherType(ether_type) if ether_type::is_vlan(ether_type) => {
            // If the number is 0, the tag has only a priority, and no VLAN (IEEE 802.1Q, 9.6).
            let number = u16_at(bytes, 0).ok()? & 0x0fff;
            (number > 0).then_some(Tag::Vlan(number))
        }
        // A byte of flags precedes the service identifier (I-SID).
        Header::EtherType(ether_type::BACKBONE) => Some(Tag::Virtual(u24_at(bytes, 1)?)),
        Header::Vxlan | Header::VxlanGpe | Header::Geneve => Some(Tag::Virtual(u24_at(bytes, 4)?)),
        Header::Gre => Some(Tag::Virtual(u24_at(bytes, gre::vsid(bytes)?)?)),
        Header::Link(link_type::LINUX_SLL2) => {
            let index = bytes.get(4..8)?;
            Some(Tag::Interface(u32::from_be_bytes([index[0], index[1], index[2], index[3]])))
        }
        _ => None,
    }
}

fn u24_at(bytes: &[u8], at: usize) -> Option<u32> {
    let field = bytes.get(at..at + 3)?;
    Some(u32::from_be_bytes([0, field[0], field[1], field[2]]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::hex;

    #[test]
    fn each_header_names_its_network() {
        for (header, bytes, expected) in [
            (Header::EtherType(0x8100), "e064 0800", Some(Tag::Vlan(100))),
            (Header::EtherType(0x88a8), "0007 8100", Some(Tag::Vlan(7))),
            (Header::EtherType(0x8100), "e000 0800", None),
            (Header::EtherType(0x88e7), "00 000064", Some(Tag::Virtual(100))),
            (Header::EtherType(0x0806), "0001 0800", None),
            (Header::Vxlan, "08000000 00006400", Some(Tag::Virtual(100))),
            (Header::Geneve, "0000 6558 00006400", Some(Tag::Virtual(100))),
            (Header::Gre, "2000 6558 00006401", Some(Tag::Virtual(100))),
            // The first header below is NVGRE with a checksum before the key. The next two headers
            // are not NVGRE. The key of plain GRE is not a network number, because the two
            // directions of a connection can have different keys.
            (Header::Gre, "a000 6558 12340000 00006401", Some(Tag::Virtual(100))),
            (Header::Gre, "2000 0800 00006401", None),
            (Header::Gre, "0000 6558 00006401", None),
            (
                Header::Link(link_type::LINUX_SLL2),
                "0800 0000 00000003 0001 00 06 02aa000000010000",
                Some(Tag::Interface(3)),
            ),
            (Header::Vxlan, "08000000 0000", None),
        ] {
            assert_eq!(tag(header, &hex(bytes)), expected, "{header:?} {bytes}");
        }
    }
}
