//! [`PrivateData`]: the private data with which SMB Direct opens a connection over iWARP. Peers
//! without the words of RFC 6581 agree on IRD and ORD with it.
//!
//! The private data has two words of 32 bits: IRD and ORD. They are big-endian. Some clients send
//! them in the byte order of their host, which is usually little-endian.

/// Length of the private data in bytes.
const LEN: usize = 8;
/// The largest IRD and ORD that weft expects. No value but zero is this small in both byte orders.
const MAX: u32 = 0xffff;

/// The byte order of the private data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ByteOrder {
    /// Big-endian.
    Big,
    /// Little-endian.
    Little,
}

impl ByteOrder {
    /// The name in JSON.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            ByteOrder::Big => "big-endian",
            ByteOrder::Little => "little-endian",
        }
    }
}

/// The private data of a start-up frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PrivateData {
    /// IRD of the sender.
    pub ird: u32,
    /// ORD of the sender.
    pub ord: u32,
    /// Byte order of both words.
    pub order: ByteOrder,
}

impl PrivateData {
    /// Reads the private data without the words of RFC 6581. Returns `None` if it does not have 8
    /// bytes, or if both words are below 65536 in neither byte order.
    #[must_use]
    pub fn parse(private: &[u8]) -> Option<PrivateData> {
        let octets: [u8; LEN] = private.try_into().ok()?;
        let [a, b, c, d, e, f, g, h] = octets;
        let (ird, ord) = ([a, b, c, d], [e, f, g, h]);
        let big = PrivateData { ird: u32::from_be_bytes(ird), ord: u32::from_be_bytes(ord), order: ByteOrder::Big };
        let little =
            PrivateData { ird: u32::from_le_bytes(ird), ord: u32::from_le_bytes(ord), order: ByteOrder::Little };
        [big, little].into_iter().find(|words| words.ird <= MAX && words.ord <= MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::hex;

    fn parse(octets: &str) -> Option<PrivateData> {
        PrivateData::parse(&hex(octets))
    }

    /// The Request and the Reply of `smb-ops.pcap`. Their words of RFC 6581 have IRD 32 and ORD 0,
    /// and IRD 1 and ORD 8.
    #[test]
    fn both_byte_orders_are_read() {
        let request = PrivateData { ird: 32, ord: 1, order: ByteOrder::Little };
        let reply = PrivateData { ird: 1, ord: 8, order: ByteOrder::Big };
        assert_eq!((parse("20000000 01000000"), parse("00000001 00000008")), (Some(request), Some(reply)));
        // One word decides if the other word is zero.
        assert_eq!(parse("00000000 08000000").map(|words| words.order), Some(ByteOrder::Little));
    }

    #[test]
    fn other_private_data_is_rejected() {
        for other in ["", "00000001 000000", "00000001 00000008 00", "20000000 00000001", "01020304 05060708"] {
            assert_eq!(parse(other), None, "{other}");
        }
    }
}
