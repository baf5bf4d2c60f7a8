//! The fields of the headers before iWARP: Ethernet, VLAN tags, IPv4, IPv6 and TCP. The names are
//! Wireshark's.
//!
//! Fields of Ethernet and of VLAN tags can occur several times in a frame. The other fields are
//! those of the innermost header, as for the addresses and ports.

use super::field_type::{Kind, Show};

/// A header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Layer {
    Ethernet,
    /// A VLAN tag. It starts at the tag control information, after the EtherType of the tag.
    Vlan,
    Ipv4,
    Ipv6,
    Tcp,
}

/// A number in a header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Bits {
    /// Offset in the header in octets.
    at: usize,
    /// Number of octets, at most 4.
    len: usize,
    /// The bits of these octets that the number has.
    mask: u32,
    /// The value of the field is the number times this factor.
    factor: u64,
}

impl Bits {
    /// The value in `header`; `None` if octets of the field were not captured.
    pub(super) fn of(&self, header: &[u8]) -> Option<u64> {
        let octets = header.get(self.at..self.at + self.len)?;
        let word = octets.iter().fold(0_u32, |word, octet| word << 8 | u32::from(*octet));
        Some(u64::from((word & self.mask) >> self.mask.trailing_zeros()) * self.factor)
    }
}

/// A field of TCP whose value depends on earlier segments of the connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TcpField {
    Seq,
    NextSeq,
    Ack,
    /// The window field with scaling.
    WindowSize,
    /// Any of the fields below.
    Flags,
    Retransmission,
    OutOfOrder,
    LostSegment,
    AckLostSegment,
    KeepAlive,
    KeepAliveAck,
    ZeroWindow,
    WindowUpdate,
    DuplicateAck,
    DuplicateAckNumber,
    DuplicateAckFrame,
}

/// How the value of a field is found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum HeaderField {
    /// The header itself.
    Layer(Layer),
    /// A number in the header.
    Bits(Layer, Bits),
    /// MAC addresses at these offsets in the Ethernet header.
    Mac(&'static [usize]),
    /// The EtherType of an Ethernet header, if it is not a length.
    EtherType,
    /// The length in an Ethernet header of IEEE 802.3.
    EtherLength,
    Tcp(TcpField),
}

/// Name, label, type, format and source of a field.
type Row = (&'static str, &'static str, Kind, Show, HeaderField);

/// The number in the bits `mask` of the `len` octets at offset `at`.
const fn bits(layer: Layer, at: usize, len: usize, mask: u32) -> HeaderField {
    times(layer, at, len, mask, 1)
}

const fn times(layer: Layer, at: usize, len: usize, mask: u32, factor: u64) -> HeaderField {
    HeaderField::Bits(layer, Bits { at, len, mask, factor })
}

const fn number(name: &'static str, label: &'static str, show: Show, field: HeaderField) -> Row {
    (name, label, Kind::Number, show, field)
}

const fn mac(name: &'static str, label: &'static str, at: &'static [usize]) -> Row {
    (name, label, Kind::Octets, Show::Mac, HeaderField::Mac(at))
}

/// A field that is present or absent. If it is present, its value is printed as 1, as in tshark.
const fn present(name: &'static str, label: &'static str, field: TcpField) -> Row {
    (name, label, Kind::Presence, Show::Dec, HeaderField::Tcp(field))
}

const fn tcp(name: &'static str, label: &'static str, field: TcpField) -> Row {
    number(name, label, Show::Dec, HeaderField::Tcp(field))
}

const fn tcp_flag(name: &'static str, label: &'static str, mask: u32) -> Row {
    number(name, label, Show::Dec, bits(Layer::Tcp, 12, 2, mask))
}

/// All bits of a field of one, two or four octets.
const OCTET: u32 = 0xff;
const HALF: u32 = 0xffff;
const WORD: u32 = 0xffff_ffff;

pub(super) static HEADER_FIELDS: &[Row] = &[
    ("eth", "Ethernet", Kind::Presence, Show::Plain, HeaderField::Layer(Layer::Ethernet)),
    ("vlan", "VLAN tag", Kind::Presence, Show::Plain, HeaderField::Layer(Layer::Vlan)),
    mac("eth.dst", "Destination MAC address", &[0]),
    mac("eth.src", "Source MAC address", &[6]),
    mac("eth.addr", "Source or destination MAC address", &[0, 6]),
    number("eth.type", "EtherType", Show::Hex(4), HeaderField::EtherType),
    number("eth.len", "Length of IEEE 802.3", Show::Dec, HeaderField::EtherLength),
    number("vlan.priority", "Priority", Show::Dec, bits(Layer::Vlan, 0, 2, 0xe000)),
    number("vlan.dei", "Drop eligible", Show::Dec, bits(Layer::Vlan, 0, 2, 0x1000)),
    number("vlan.id", "VLAN number", Show::Dec, bits(Layer::Vlan, 0, 2, 0x0fff)),
    number("vlan.etype", "EtherType after the VLAN tag", Show::Hex(4), bits(Layer::Vlan, 2, 2, HALF)),
    number("ip.version", "Version", Show::Dec, bits(Layer::Ipv4, 0, 1, 0xf0)),
    number("ip.hdr_len", "Header length in bytes", Show::Dec, times(Layer::Ipv4, 0, 1, 0x0f, 4)),
    number("ip.dsfield", "Differentiated Services", Show::Hex(2), bits(Layer::Ipv4, 1, 1, OCTET)),
    number("ip.dsfield.dscp", "DSCP", Show::Dec, bits(Layer::Ipv4, 1, 1, 0xfc)),
    number("ip.dsfield.ecn", "ECN", Show::Dec, bits(Layer::Ipv4, 1, 1, 0x03)),
    number("ip.len", "Total length in bytes", Show::Dec, bits(Layer::Ipv4, 2, 2, HALF)),
    number("ip.id", "Identification", Show::Hex(4), bits(Layer::Ipv4, 4, 2, HALF)),
    number("ip.flags", "Flags", Show::Hex(2), bits(Layer::Ipv4, 6, 1, 0xe0)),
    number("ip.flags.rb", "Reserved bit", Show::Dec, bits(Layer::Ipv4, 6, 1, 0x80)),
    number("ip.flags.df", "Don't Fragment", Show::Dec, bits(Layer::Ipv4, 6, 1, 0x40)),
    number("ip.flags.mf", "More Fragments", Show::Dec, bits(Layer::Ipv4, 6, 1, 0x20)),
    number("ip.frag_offset", "Fragment offset in bytes", Show::Dec, times(Layer::Ipv4, 6, 2, 0x1fff, 8)),
    number("ip.ttl", "Time to live", Show::Dec, bits(Layer::Ipv4, 8, 1, OCTET)),
    number("ip.proto", "Protocol", Show::Dec, bits(Layer::Ipv4, 9, 1, OCTET)),
    number("ip.checksum", "Header checksum", Show::Hex(4), bits(Layer::Ipv4, 10, 2, HALF)),
    number("ipv6.version", "Version", Show::Dec, bits(Layer::Ipv6, 0, 1, 0xf0)),
    number("ipv6.tclass", "Traffic class", Show::Hex(8), bits(Layer::Ipv6, 0, 4, 0x0ff0_0000)),
    number("ipv6.tclass.dscp", "DSCP", Show::Dec, bits(Layer::Ipv6, 0, 4, 0x0fc0_0000)),
    number("ipv6.tclass.ecn", "ECN", Show::Dec, bits(Layer::Ipv6, 0, 4, 0x0030_0000)),
    number("ipv6.flow", "Flow label", Show::Hex(6), bits(Layer::Ipv6, 0, 4, 0x000f_ffff)),
    number("ipv6.plen", "Payload length in bytes", Show::Dec, bits(Layer::Ipv6, 4, 2, HALF)),
    number("ipv6.nxt", "Next header", Show::Dec, bits(Layer::Ipv6, 6, 1, OCTET)),
    number("ipv6.hlim", "Hop limit", Show::Dec, bits(Layer::Ipv6, 7, 1, OCTET)),
    tcp("tcp.seq", "Sequence number, counted from the SYN", TcpField::Seq),
    tcp("tcp.nxtseq", "Sequence number after the segment, counted from the SYN", TcpField::NextSeq),
    tcp("tcp.ack", "Acknowledgement number, counted from the peer's SYN", TcpField::Ack),
    number("tcp.ack_raw", "Acknowledgement number", Show::Dec, bits(Layer::Tcp, 8, 4, WORD)),
    number("tcp.hdr_len", "Header length in bytes", Show::Dec, times(Layer::Tcp, 12, 1, 0xf0, 4)),
    number("tcp.flags", "Flags", Show::Hex(4), bits(Layer::Tcp, 12, 2, 0x0fff)),
    tcp_flag("tcp.flags.res", "Reserved bits", 0x0e00),
    tcp_flag("tcp.flags.ae", "AE (in older versions of Wireshark: NS)", 0x0100),
    tcp_flag("tcp.flags.ns", "NS (in newer versions of Wireshark: AE)", 0x0100),
    tcp_flag("tcp.flags.cwr", "CWR", 0x0080),
    tcp_flag("tcp.flags.ece", "ECE", 0x0040),
    tcp_flag("tcp.flags.urg", "URG", 0x0020),
    tcp_flag("tcp.flags.push", "PSH", 0x0008),
    number("tcp.window_size_value", "Window field", Show::Dec, bits(Layer::Tcp, 14, 2, HALF)),
    tcp("tcp.window_size", "Window in bytes, scaled if both SYNs were captured", TcpField::WindowSize),
    number("tcp.checksum", "Checksum", Show::Hex(4), bits(Layer::Tcp, 16, 2, HALF)),
    number("tcp.urgent_pointer", "Urgent pointer", Show::Dec, bits(Layer::Tcp, 18, 2, HALF)),
    present("tcp.analysis.flags", "Any other field of tcp.analysis", TcpField::Flags),
    present(
        "tcp.analysis.retransmission",
        "The bytes, or the SYN, were captured before, or fill an old gap",
        TcpField::Retransmission,
    ),
    present("tcp.analysis.out_of_order", "The bytes fill a gap of less than 3 ms", TcpField::OutOfOrder),
    present("tcp.analysis.lost_segment", "Bytes before this segment were not captured", TcpField::LostSegment),
    present(
        "tcp.analysis.ack_lost_segment",
        "Acknowledges bytes that were not captured so far",
        TcpField::AckLostSegment,
    ),
    present("tcp.analysis.keep_alive", "Keep-alive or window probe", TcpField::KeepAlive),
    present("tcp.analysis.keep_alive_ack", "Answer to a keep-alive or window probe", TcpField::KeepAliveAck),
    present("tcp.analysis.zero_window", "The window is closed", TcpField::ZeroWindow),
    present("tcp.analysis.window_update", "Only the window changes", TcpField::WindowUpdate),
    present("tcp.analysis.duplicate_ack", "Duplicate acknowledgement (RFC 5681 section 2)", TcpField::DuplicateAck),
    tcp(
        "tcp.analysis.duplicate_ack_num",
        "Number of the duplicate acknowledgement; the first has 1",
        TcpField::DuplicateAckNumber,
    ),
    tcp(
        "tcp.analysis.duplicate_ack_frame",
        "Frame of the acknowledgement that is repeated",
        TcpField::DuplicateAckFrame,
    ),
];

#[cfg(test)]
mod tests {
    use super::*;

    /// The value of the field `name` in `header`.
    fn value(name: &str, header: &[u8]) -> Option<u64> {
        let (.., field) = HEADER_FIELDS.iter().find(|(known, ..)| *known == name).unwrap();
        match field {
            HeaderField::Bits(_, bits) => bits.of(header),
            _ => None,
        }
    }

    /// The example has the layout of RFC 791 section 3.1: DSCP 46, ECN 1, Don't Fragment.
    #[test]
    fn reads_bits_of_a_header() {
        let header = crate::testing::hex("45 b9 05dc a1b2 4000 40 06 1234 0a000001 0a000002");
        for (name, expected) in [
            ("ip.version", 4),
            ("ip.hdr_len", 20),
            ("ip.dsfield", 0xb9),
            ("ip.dsfield.dscp", 46),
            ("ip.dsfield.ecn", 1),
            ("ip.len", 1500),
            ("ip.id", 0xa1b2),
            ("ip.flags", 2),
            ("ip.flags.df", 1),
            ("ip.flags.mf", 0),
            ("ip.frag_offset", 0),
            ("ip.ttl", 64),
            ("ip.proto", 6),
            ("ip.checksum", 0x1234),
        ] {
            assert_eq!(value(name, &header), Some(expected), "{name}");
        }
        assert_eq!(value("ip.checksum", &header[..11]), None);
        let fragment = crate::testing::hex("45 00 0000 0000 20b9");
        assert_eq!(value("ip.frag_offset", &fragment), Some(0xb9 * 8));
        assert_eq!(value("ip.flags.mf", &fragment), Some(1));
    }
}
