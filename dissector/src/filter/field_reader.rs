//! [`FieldReader`]: collects the requested fields that need the octets of a frame, or the state of
//! earlier frames.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::collect::WantedFields;
use super::column::OtherFrame;
use super::frame_facts::FrameFacts;
use super::header_field::{HeaderField, Layer};
use super::sends::Sends;
use super::tcp_fields::{TcpConnections, TcpHeader};
use super::values::{FieldValue, Values};
use crate::frame_number::FrameNumber;
use crate::ip::{HeaderSink, IpReader, Transport};
use crate::link::{self, Header};
use crate::packet::{Packet, TransportKind};
use crate::source::Frame;
use crate::unit::Unit;

/// The smallest EtherType. A smaller value in the same field is a length (IEEE 802.3, 3.2.6).
const SMALLEST_ETHER_TYPE: u64 = 0x0600;

/// Collects the fields of headers, `tcp.analysis.*` and `iwarp_rdma.send.*`.
///
/// Call [`FieldReader::frame`] for each frame before the dissector reads the frame,
/// [`FieldReader::packet`] for the packet of the frame, and [`FieldReader::unit`] for each unit. If
/// [`WantedFields::needs_reader`] is false, no call is necessary, and no call does anything.
#[derive(Default)]
pub struct FieldReader {
    ip: IpReader,
    /// The TCP header of the current frame.
    tcp: Option<TcpHeader>,
    connections: TcpConnections,
    sends: Sends,
}

impl FieldReader {
    /// Reads the headers of a frame, and adds the values of their fields. If the frame has no
    /// readable TCP segment and no UDP datagram, and columns are requested, returns the frame's
    /// addresses and protocol.
    pub fn frame(&mut self, wanted: &WantedFields, frame: &Frame<'_>, values: &mut Values) -> Option<OtherFrame> {
        if wanted.headers.is_empty() && !wanted.columns() {
            return None;
        }
        let mut headers = HeaderValues { wanted, values, ip: None, mac: None };
        let read = self.ip.read_headers(frame, &mut headers);
        self.tcp = match &read {
            Ok(Some(Transport::Tcp(segment))) => TcpHeader::of(segment),
            _ => None,
        };
        let protocol = match read {
            Ok(Some(_)) => None,
            _ if !wanted.columns() => None,
            Ok(None) => Some("IP fragment".to_owned()),
            Err(why) => Some(why.to_string()),
        };
        headers.finish();
        protocol.map(|protocol| OtherFrame { ends: headers.ends(), protocol })
    }

    /// Adds the values of the TCP header of the current frame. `packet` is the frame's packet.
    pub fn packet(&mut self, wanted: &WantedFields, packet: &Packet, values: &mut Values) {
        let (Some(header), TransportKind::Tcp { stream, .. }) = (self.tcp.take(), packet.transport) else { return };
        add_numbers(wanted, Layer::Tcp, &header.fixed, values);
        if !wanted.headers.iter().any(|(field, _)| matches!(field, HeaderField::Tcp(_))) {
            return;
        }
        self.connections.is_absolute = wanted.has_absolute_sequence_numbers;
        let segment = self.connections.record(stream, &header);
        for (field, slot) in &wanted.headers {
            if let HeaderField::Tcp(field) = field
                && let Some(value) = segment.value(*field)
            {
                values.add(*slot, value);
            }
        }
    }

    /// Adds the values of the Send that the unit completes. Returns the frames of the earlier
    /// segments of this Send.
    pub fn unit(&mut self, wanted: &WantedFields, unit: &Unit<'_>, values: &mut Values) -> Vec<FrameNumber> {
        if wanted.sends.is_empty() {
            return Vec::new();
        }
        self.sends.unit(unit, &wanted.sends, values)
    }

    /// Returns whether a Send waits for its last segment.
    #[must_use]
    pub fn has_open_send(&self) -> bool {
        self.sends.has_open()
    }

    /// Adds the values of all columns of a unit that is judged alone, and of the Send that it
    /// completes. `facts` are the facts about its frame, if they are known, and the time of the
    /// first frame. `summary` returns the summary of the unit.
    pub fn unit_alone(
        &mut self,
        wanted: &WantedFields,
        unit: &Unit<'_>,
        facts: (Option<&FrameFacts>, u64),
        summary: impl FnOnce() -> String,
        values: &mut Values,
    ) {
        self.unit(wanted, unit, values);
        wanted.columns_of_unit(unit, facts, summary, values);
    }
}

/// Adds the numbers in a header, and the presence of the header.
fn add_numbers(wanted: &WantedFields, layer: Layer, header: &[u8], values: &mut Values) {
    for (field, slot) in &wanted.headers {
        match field {
            HeaderField::Layer(of) if *of == layer => values.add(*slot, FieldValue::Present),
            HeaderField::Bits(of, bits) if *of == layer => {
                if let Some(value) = bits.of(header) {
                    values.add(*slot, FieldValue::Number(value));
                }
            }
            _ => {}
        }
    }
}

/// The fixed part of an IP header.
enum IpHeader {
    V4([u8; 20]),
    V6([u8; 40]),
}

/// Adds the values of the headers of a frame.
struct HeaderValues<'w> {
    wanted: &'w WantedFields,
    values: &'w mut Values,
    /// The innermost IP header so far.
    ip: Option<IpHeader>,
    /// Destination and source of the innermost Ethernet header so far.
    mac: Option<[u8; 12]>,
}

impl HeaderSink for HeaderValues<'_> {
    fn link(&mut self, header: Header, octets: &[u8]) {
        if link::is_ethernet(header) {
            add_numbers(self.wanted, Layer::Ethernet, octets, self.values);
            self.ethernet(octets);
        } else if link::is_vlan(header) {
            add_numbers(self.wanted, Layer::Vlan, octets, self.values);
        }
    }

    fn ip(&mut self, octets: &[u8]) {
        self.ip = match octets.first().map(|first| first >> 4) {
            Some(4) => octets.first_chunk().map(|header| IpHeader::V4(*header)),
            _ => octets.first_chunk().map(|header| IpHeader::V6(*header)),
        };
    }
}

impl HeaderValues<'_> {
    fn ethernet(&mut self, octets: &[u8]) {
        self.mac = octets.first_chunk().copied();
        let kind = octets.get(12..14).map(|field| u64::from(field[0]) << 8 | u64::from(field[1]));
        for (field, slot) in &self.wanted.headers {
            match field {
                HeaderField::Mac(offsets) => {
                    for address in offsets.iter().filter_map(|at| octets.get(*at..*at + 6)) {
                        self.values.add_octets(*slot, address);
                    }
                }
                HeaderField::EtherType | HeaderField::EtherLength => {
                    let is_type = *field == HeaderField::EtherType;
                    if let Some(kind) = kind.filter(|kind| (*kind >= SMALLEST_ETHER_TYPE) == is_type) {
                        self.values.add(*slot, FieldValue::Number(kind));
                    }
                }
                HeaderField::Layer(_) | HeaderField::Bits(..) | HeaderField::Tcp(_) => {}
            }
        }
    }

    /// Adds the values of the innermost IP header.
    fn finish(&mut self) {
        match &self.ip {
            Some(IpHeader::V4(header)) => add_numbers(self.wanted, Layer::Ipv4, header, self.values),
            Some(IpHeader::V6(header)) => add_numbers(self.wanted, Layer::Ipv6, header, self.values),
            None => {}
        }
    }

    /// The addresses of sender and receiver: of the innermost IP header, or else of Ethernet.
    fn ends(&self) -> [String; 2] {
        let named = |address: IpAddr| self.wanted.names.address(address);
        let mac = |octets: &[u8]| octets.iter().map(|octet| format!("{octet:02x}")).collect::<Vec<_>>().join(":");
        match (&self.ip, &self.mac) {
            (Some(IpHeader::V4(header)), _) => [12, 16].map(|at| named(ipv4(header, at).into())),
            (Some(IpHeader::V6(header)), _) => [8, 24].map(|at| named(ipv6(header, at).into())),
            (None, Some(ends)) => [mac(&ends[6..]), mac(&ends[..6])],
            (None, None) => <[String; 2]>::default(),
        }
    }
}

/// The address at offset `at` of an IPv4 header.
fn ipv4(header: &[u8; 20], at: usize) -> Ipv4Addr {
    header.get(at..).and_then(<[u8]>::first_chunk).map_or(Ipv4Addr::UNSPECIFIED, |octets: &[u8; 4]| (*octets).into())
}

/// The address at offset `at` of an IPv6 header.
fn ipv6(header: &[u8; 40], at: usize) -> Ipv6Addr {
    header.get(at..).and_then(<[u8]>::first_chunk).map_or(Ipv6Addr::UNSPECIFIED, |octets: &[u8; 16]| (*octets).into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::filter::known;
    use crate::testing::{self, Wire, fpdu, hex, send_of};
    use crate::{Dissector, Finding, Sink};

    /// Collects the values of one field for each frame, and for each unit that is judged alone.
    struct Collected<'w> {
        wanted: &'w WantedFields,
        reader: FieldReader,
        values: Values,
    }

    impl Sink for Collected<'_> {
        fn unit(&mut self, unit: &Unit<'_>) {
            self.reader.unit(self.wanted, unit, &mut self.values);
            self.wanted.unit(unit, &mut self.values);
        }

        fn finding(&mut self, _: &Finding) {}

        fn packet(&mut self, packet: &Packet) {
            self.reader.packet(self.wanted, packet, &mut self.values);
        }
    }

    /// Returns the values of a field in each frame, as `-T fields` prints them.
    fn field(wire: &Wire, name: &str) -> Vec<String> {
        let mut wanted = WantedFields::default();
        let known = known(name).unwrap();
        let slot = wanted.add(known);
        assert!(wanted.needs_reader() || name.starts_with("iwarp_"), "{name}");
        let (reader, values) = (FieldReader::default(), Values::default());
        let mut collected = Collected { wanted: &wanted, reader, values };
        let mut dissector = Dissector::default();
        let mut printed = Vec::new();
        wire.each(|frame| {
            collected.values.clear();
            collected.reader.frame(&wanted, frame, &mut collected.values);
            dissector.frame(frame, &mut collected);
            let mut text = Vec::new();
            collected.values.write(slot, known, &mut text, |text| text.push(b','));
            printed.push(String::from_utf8(text).unwrap());
        });
        printed
    }

    #[test]
    fn reads_link_headers_with_all_vlan_tags() {
        let wire = Wire::connected().over(&hex("88a8 6007 8100 0064"));
        assert_eq!(field(&wire, "vlan.id"), ["7,100", "7,100"]);
        assert_eq!(field(&wire, "vlan")[0], "vlan,vlan");
        assert_eq!(field(&Wire::connected(), "vlan")[0], "");
        assert_eq!(field(&wire, "vlan.priority")[0], "3,0");
        assert_eq!(field(&wire, "vlan.etype")[0], "0x8100,0x0800");
        assert_eq!(field(&wire, "eth.type")[0], "0x88a8");
        assert_eq!(field(&wire, "eth.src")[0], "02:02:02:02:02:02");
        assert_eq!(field(&wire, "eth.addr")[0], "04:04:04:04:04:04,02:02:02:02:02:02");
        assert_eq!(field(&wire, "eth.len")[0], "");
    }

    #[test]
    fn reads_ip_and_tcp_headers() {
        let wire = Wire::started();
        assert_eq!(field(&wire, "ip.ttl"), ["64"; 4]);
        assert_eq!(field(&wire, "ip.flags")[0], "0x02");
        assert_eq!(field(&wire, "ipv6.hlim"), [""; 4]);
        assert_eq!(field(&wire, "tcp.flags"), ["0x0002", "0x0012", "0x0010", "0x0010"]);
        assert_eq!(field(&wire, "tcp.seq"), ["0", "0", "1", "1"]);
        assert_eq!(field(&wire, "tcp.window_size_value"), ["65535"; 4]);
        assert_eq!(field(&wire, "tcp.hdr_len"), ["20"; 4]);
    }

    #[test]
    fn reads_the_header_of_ipv6() {
        let wire = Wire::started().over_ipv6();
        assert_eq!(field(&wire, "ipv6.version"), ["6"; 4]);
        assert_eq!(field(&wire, "ipv6.nxt"), ["6"; 4]);
        assert_eq!(field(&wire, "ip.ttl"), [""; 4]);
        assert_eq!(field(&wire, "tcp.seq"), ["0", "0", "1", "1"]);
    }

    /// The Request is frame 3, and the Reply is frame 4.
    #[test]
    fn remarks_on_start_up_frames_are_those_of_wireshark() {
        let remarks = |request: &[u8], reply: &[u8]| {
            let wire = Wire::started_as(request, reply);
            ["res.not_set0", "rev.not_set1", "reject_bit_responder", "bad_length"]
                .map(|name| field(&wire, &format!("iwarp_mpa.{name}"))[2..4].join(" "))
        };
        let reply = testing::reply_frame(0x60, 1, &[]);
        assert_eq!(remarks(&testing::startup_frame(0x41, 2, &[]), &reply), ["1 ", "1 ", " 1", " "]);
        assert_eq!(remarks(&testing::request(), &testing::reply()), [" "; 4]);
    }

    #[test]
    fn headers_without_a_value_are_present() {
        let mut wire = Wire::started();
        wire.send(0, &fpdu(&send_of(1, 30)));
        for (name, expected) in [
            ("iwarp_ddp.control_field", "1"),
            ("iwarp_rdma.control_field", "1"),
            ("iwarp_ddp.rsvdulp", "4300000000"),
            ("iwarp_rdma.term_ctrl", ""),
        ] {
            assert_eq!(field(&wire, name)[4], expected, "{name}");
        }
        wire.send_ulpdu(1, "4147 00000000 00000002 00000001 00000000 11000000");
        for name in ["iwarp_rdma.term_ctrl", "iwarp_rdma.term_hdrct"] {
            assert_eq!(field(&wire, name)[5], "1", "{name}");
        }
    }

    #[test]
    fn puts_sends_of_several_segments_together() {
        let mut wire = Wire::started();
        wire.send_ulpdu(0, "0143 00000000 00000000 00000001 00000000 01020304");
        wire.send_ulpdu(0, "4143 00000000 00000000 00000001 00000004 0506");
        wire.send_ulpdu(0, "4143 00000000 00000000 00000002 00000000 07");
        for (name, expected) in [
            ("fragments", "1"),
            ("fragment", "5,6"),
            ("fragment.count", "2"),
            ("reassembled.length", "6"),
            ("reassembled.data", "010203040506"),
            ("fragment.error", ""),
            ("fragment.overlap", ""),
        ] {
            let values = field(&wire, &format!("iwarp_rdma.send.{name}"));
            assert_eq!(values[4..], ["", expected, ""], "{name}");
        }
    }

    #[test]
    fn names_segments_that_repeat_octets_or_follow_the_end() {
        let mut wire = Wire::started();
        wire.send_ulpdu(0, "0143 00000000 00000000 00000001 00000000 01020304");
        wire.send_ulpdu(0, "4143 00000000 00000000 00000001 00000002 03ff 0506");
        wire.send_ulpdu(0, "4143 00000000 00000000 00000001 00000004 05060708");
        for (name, expected) in [
            ("fragment", ["5", ""]),
            ("fragment.error", ["6", "7"]),
            ("fragment.overlap", ["1", ""]),
            ("fragment.overlap.conflict", ["1", ""]),
            ("fragment.multipletails", ["", "1"]),
            ("fragment.toolongfragment", ["", "1"]),
            ("reassembled.length", ["6", ""]),
        ] {
            assert_eq!(field(&wire, &format!("iwarp_rdma.send.{name}"))[5..], expected, "{name}");
        }
    }
}
