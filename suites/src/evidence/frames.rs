//! Makes Ethernet frames for the events of a connection: its handshake, its segments, FIN and
//! reset. Sequence numbers and checksums are correct.
//!
//! Headers are synthetic. Only the payload bytes, their order and their times are real.

use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr};

use etherparse::{IpHeaders, PacketBuilder, PacketBuilderStep, TcpHeader, ip_number};
use weft_peer::driver::{Direction, DroppedOctets, EventContent, TrafficEvent};

use super::{Frames, Source};

/// Maximum payload of one frame in bytes.
const MSS: usize = 1460;
/// Locally administered MAC addresses of the two ends.
const TESTER_MAC: [u8; 6] = [0x02, 0, 0, 0, 0, 0x01];
const TARGET_MAC: [u8; 6] = [0x02, 0, 0, 0, 0, 0x02];
const WINDOW: u16 = 0xffff;

/// One frame.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Frame {
    /// Nanoseconds since the clock of the traffic log began.
    pub at_ns: u64,
    /// Whether the tester sent the frame.
    pub from_tester: bool,
    /// The frame, from the Ethernet header on.
    pub octets: Vec<u8>,
    /// Index, in the traffic log, of the event that the frame shows. If several frames show one
    /// event, they have the same index and are in order.
    pub event: usize,
}

/// One end of a connection.
#[derive(Debug, Clone, Copy)]
struct Endpoint {
    address: SocketAddr,
    /// Sequence number of the next byte from this end.
    next: u32,
}

#[derive(Debug)]
struct Flow {
    tester: Endpoint,
    target: Endpoint,
}

/// The TCP flags of a frame. Every frame except the first SYN also has ACK.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Flag {
    Syn,
    SynAck,
    Ack,
    Push,
    Fin,
    Reset,
}

/// Returns the frames of a traffic log, in the order of the traffic log.
pub(crate) fn synthesize_frames(traffic: &[TrafficEvent]) -> Frames {
    let mut framer = Framer::default();
    let mut list: Vec<Frame> = Vec::new();
    let places = traffic.iter().map(|event| {
        let first = list.len();
        framer.event(event, |frame| list.push(frame));
        let anchor = (list.len() > first).then_some(first);
        let has_octets = matches!(event.content, EventContent::Octets(_));
        (anchor, anchor.map(|first| if has_octets { list.len() - 1 } else { first }))
    });
    let (anchors, ends) = places.unzip();
    Frames { list, anchors, ends, source: Source::Endpoint }
}

/// Makes the frames of a traffic log, one event after the other.
#[derive(Debug, Default)]
pub struct Framer {
    /// Flows by the number of the connection in the traffic log.
    flows: HashMap<u32, Flow>,
    /// How many connections there have been between a tester's address and a target's address.
    pairs: HashMap<(SocketAddr, SocketAddr), u32>,
    events: usize,
}

impl Framer {
    /// Passes the frames of the next event to `put`.
    pub fn event(&mut self, event: &TrafficEvent, mut put: impl FnMut(Frame)) {
        let index = self.events;
        self.events += 1;
        if let EventContent::Connected { tester, target } = event.content {
            let canonical = |end: SocketAddr| SocketAddr::new(end.ip().to_canonical(), end.port());
            let (here, there) = (canonical(tester), canonical(target));
            // The traffic log already has the other end of this connection, with the same bytes. So
            // this end gets no frames.
            if here != there && self.pairs.contains_key(&(there, here)) {
                return;
            }
            let earlier = self.pairs.entry((here, there)).or_default();
            let opens = event.direction == Direction::ToTarget;
            let (opener, other) = if opens { (here, there) } else { (there, here) };
            let [opener, other] = first_numbers(opener, other, *earlier);
            *earlier = earlier.wrapping_add(1);
            let (first, second) = if opens { (opener, other) } else { (other, opener) };
            let tester = Endpoint { address: tester, next: first };
            let target = Endpoint { address: target, next: second };
            self.flows.insert(event.connection, Flow { tester, target });
        }
        if let EventContent::Datagram { tester, target, octets } = &event.content {
            let from_tester = event.direction == Direction::ToTarget;
            let octets = datagram(from_tester, *tester, *target, octets);
            return put(Frame { at_ns: event.at.as_nanos(), from_tester, octets, event: index });
        }
        let Some(flow) = self.flows.get_mut(&event.connection) else { return };
        let from_tester = event.direction == Direction::ToTarget;
        if let EventContent::Dropped(dropped) = &event.content {
            return flow.skip(from_tester, dropped);
        }
        let mut put = |from_tester: bool, flag: Flag, payload: &[u8]| {
            let octets = flow.frame(from_tester, flag, payload);
            put(Frame { at_ns: event.at.as_nanos(), from_tester, octets, event: index });
        };
        match &event.content {
            EventContent::Datagram { .. } | EventContent::Dropped(_) => {}
            EventContent::Connected { .. } => {
                put(from_tester, Flag::Syn, &[]);
                put(!from_tester, Flag::SynAck, &[]);
                put(from_tester, Flag::Ack, &[]);
            }
            EventContent::Octets(octets) => octets.chunks(MSS).for_each(|chunk| put(from_tester, Flag::Push, chunk)),
            EventContent::Fin => {
                put(from_tester, Flag::Fin, &[]);
                put(!from_tester, Flag::Ack, &[]);
            }
            EventContent::Reset => put(from_tester, Flag::Reset, &[]),
        }
    }
}

/// Returns the sequence numbers of the SYNs of `opener` and `other`. `earlier` is the number of
/// earlier connections between these addresses. The result is the same for the traffic logs of both
/// ends, so that captures made from both logs can be read together.
fn first_numbers(opener: SocketAddr, other: SocketAddr, earlier: u32) -> [u32; 2] {
    let ports = u32::from(opener.port()).wrapping_mul(31).wrapping_add(other.port().into());
    let first = 0x1000_0000_u32.wrapping_add((ports & 0x0fff) << 16).wrapping_add(earlier.wrapping_mul(0x0101_0000));
    [first, first.wrapping_add(0x4000_0000)]
}

/// Begins a frame with its Ethernet and IP headers.
fn ip_step(from_tester: bool, from: IpAddr, to: IpAddr) -> PacketBuilderStep<IpHeaders> {
    let (from_mac, to_mac) = if from_tester { (TESTER_MAC, TARGET_MAC) } else { (TARGET_MAC, TESTER_MAC) };
    let ethernet = PacketBuilder::ethernet2(from_mac, to_mac);
    match (from, to) {
        (IpAddr::V4(from), IpAddr::V4(to)) => ethernet.ipv4(from.octets(), to.octets(), 64),
        (from, to) => ethernet.ipv6(v6(from), v6(to), 64),
    }
}

/// Returns the frame of one datagram.
fn datagram(from_tester: bool, tester: SocketAddr, target: SocketAddr, payload: &[u8]) -> Vec<u8> {
    let (from, to) = if from_tester { (tester, target) } else { (target, tester) };
    let step = ip_step(from_tester, from.ip(), to.ip()).udp(from.port(), to.port());
    let mut octets = Vec::with_capacity(step.size(payload.len()));
    // Writing to a `Vec` does not fail, and a payload that UDP carried fits into a frame.
    let _ = step.write(&mut octets, payload);
    octets
}

impl Flow {
    /// Continues after bytes that the traffic log dropped. They get no frame, as if the capture had
    /// lost their frames.
    fn skip(&mut self, from_tester: bool, dropped: &DroppedOctets) {
        // Datagrams have no sequence numbers.
        if !dropped.datagrams {
            let from = if from_tester { &mut self.tester } else { &mut self.target };
            from.next = from.next.wrapping_add(u32::try_from(dropped.octets % (1 << 32)).unwrap_or(0));
        }
    }

    fn frame(&mut self, from_tester: bool, flag: Flag, payload: &[u8]) -> Vec<u8> {
        let (from, to) = if from_tester { (&mut self.tester, self.target) } else { (&mut self.target, self.tester) };
        let mut tcp = TcpHeader::new(from.address.port(), to.address.port(), from.next, WINDOW);
        tcp.syn = matches!(flag, Flag::Syn | Flag::SynAck);
        tcp.ack = flag != Flag::Syn;
        tcp.acknowledgment_number = if tcp.ack { to.next } else { 0 };
        tcp.psh = flag == Flag::Push;
        tcp.fin = flag == Flag::Fin;
        tcp.rst = flag == Flag::Reset;
        let counted = u32::from(tcp.syn) + u32::from(tcp.fin);
        let len = u32::try_from(payload.len()).unwrap_or(0);
        from.next = from.next.wrapping_add(counted).wrapping_add(len);
        let step = ip_step(from_tester, from.address.ip(), to.address.ip()).tcp_header(tcp);
        let mut octets = Vec::with_capacity(step.size(payload.len()));
        // The payload has at most `MSS` bytes, so each length field can express its length. And
        // writing to memory does not fail.
        match step.write(&mut octets, payload) {
            Ok(()) => octets,
            Err(error) => {
                tracing::error!(%error, protocol = ip_number::TCP.0, "a frame was not built");
                Vec::new()
            }
        }
    }
}

fn v6(address: IpAddr) -> [u8; 16] {
    match address {
        IpAddr::V4(address) => address.to_ipv6_mapped().octets(),
        IpAddr::V6(address) => address.octets(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use etherparse::{SlicedPacket, TransportSlice};
    use weft_peer::Instant;

    fn event(connection: u32, direction: Direction, content: EventContent) -> TrafficEvent {
        TrafficEvent { at: Instant::from_nanos(5), connection, direction, content }
    }

    fn connected(connection: u32) -> TrafficEvent {
        let content = EventContent::Connected {
            tester: SocketAddr::from(([192, 0, 2, 2], 50_000 + u16::try_from(connection).unwrap())),
            target: SocketAddr::from(([192, 0, 2, 1], 4420)),
        };
        event(connection, Direction::ToTarget, content)
    }

    /// Checks the checksums of each frame, and returns (from tester, flags, seq, ack, payload
    /// length) of each frame.
    fn read(frames: &[Frame]) -> Vec<(bool, &'static str, u32, u32, usize)> {
        frames
            .iter()
            .map(|frame| {
                let packet = SlicedPacket::from_ethernet(&frame.octets).unwrap();
                let Some(TransportSlice::Tcp(tcp)) = &packet.transport else { panic!("no TCP") };
                let Some(etherparse::NetSlice::Ipv4(ip)) = &packet.net else { panic!("no IPv4") };
                assert_eq!(ip.header().header_checksum(), ip.header().to_header().calc_header_checksum());
                let (from, to) = (ip.header().source(), ip.header().destination());
                assert_eq!(tcp.checksum(), tcp.calc_checksum_ipv4(from, to).unwrap());
                let name = match (tcp.syn(), tcp.ack(), tcp.psh(), tcp.fin(), tcp.rst()) {
                    (true, false, ..) => "SYN",
                    (true, true, ..) => "SYN-ACK",
                    (_, true, true, false, false) => "PSH",
                    (_, true, false, true, false) => "FIN",
                    (_, true, false, false, true) => "RST",
                    (_, true, false, false, false) => "ACK",
                    _ => "?",
                };
                (
                    frame.from_tester,
                    name,
                    tcp.sequence_number() & 0xffff,
                    tcp.acknowledgment_number() & 0xffff,
                    tcp.payload().len(),
                )
            })
            .collect()
    }

    #[test]
    fn a_connection_has_right_numbers() {
        let octets = |len: usize| EventContent::Octets(vec![7; len].into());
        let traffic = [
            connected(0),
            event(0, Direction::ToTarget, octets(20)),
            event(0, Direction::FromTarget, octets(1500)),
            event(0, Direction::FromTarget, EventContent::Fin),
            event(0, Direction::ToTarget, EventContent::Reset),
        ];
        assert_eq!(
            read(&synthesize_frames(&traffic).list),
            [
                (true, "SYN", 0, 0, 0),
                (false, "SYN-ACK", 0, 1, 0),
                (true, "ACK", 1, 1, 0),
                (true, "PSH", 1, 1, 20),
                (false, "PSH", 1, 21, 1460),
                (false, "PSH", 1461, 21, 40),
                (false, "FIN", 1501, 21, 0),
                (true, "ACK", 21, 1502, 0),
                (true, "RST", 21, 1502, 0),
            ]
        );
    }

    /// A reader of the capture sees that bytes are missing, and how many.
    #[test]
    fn dropped_bytes_have_sequence_numbers_but_no_frame() {
        let octets = |len: usize| EventContent::Octets(vec![7; len].into());
        let until = Instant::from_nanos(5);
        let dropped =
            |datagrams| EventContent::Dropped(DroppedOctets { datagrams, events: 3, octets: 1000, crc: 0, until });
        let traffic = [
            connected(0),
            event(0, Direction::FromTarget, octets(20)),
            event(0, Direction::FromTarget, dropped(false)),
            event(0, Direction::FromTarget, dropped(true)),
            event(0, Direction::FromTarget, octets(30)),
            event(0, Direction::ToTarget, octets(40)),
        ];
        let frames = synthesize_frames(&traffic);
        assert_eq!(
            read(&frames.list)[3..],
            [(false, "PSH", 1, 1, 20), (false, "PSH", 1021, 1, 30), (true, "PSH", 1, 1051, 40)]
        );
        assert_eq!(frames.anchors, [Some(0), Some(3), None, None, Some(4), Some(5)]);
        assert_eq!(frames.ends, frames.anchors);
    }

    #[test]
    fn connections_do_not_mix() {
        let octets = |len: usize| EventContent::Octets(vec![7; len].into());
        let traffic = [
            connected(0),
            connected(1),
            event(0, Direction::ToTarget, octets(20)),
            event(1, Direction::ToTarget, octets(30)),
            event(2, Direction::ToTarget, octets(1)),
        ];
        let frames = synthesize_frames(&traffic).list;
        let read = read(&frames);
        assert_eq!(read[6..], [(true, "PSH", 1, 1, 20), (true, "PSH", 1, 1, 30)]);
        assert_eq!(frames[7].event, 3);
    }

    /// The two ends of one connection on loopback, as `weft sdp agent --write` records them if it
    /// serves both ends.
    fn both_ends() -> [TrafficEvent; 2] {
        let [client, server] = [50_000, 5301].map(|port| SocketAddr::from(([127, 0, 0, 1], port)));
        let end = |connection, direction, tester, target| {
            event(connection, direction, EventContent::Connected { tester, target })
        };
        [end(0, Direction::ToTarget, client, server), end(1, Direction::FromTarget, server, client)]
    }

    #[test]
    fn a_connection_whose_two_ends_are_logged_is_written_once() {
        let octets = || EventContent::Octets(vec![7; 20].into());
        let [client, server] = both_ends();
        let traffic = [
            server,
            client,
            event(0, Direction::ToTarget, octets()),
            event(1, Direction::FromTarget, octets()),
            event(0, Direction::ToTarget, EventContent::Fin),
            event(1, Direction::FromTarget, EventContent::Fin),
        ];
        let [tester, target] = [true, false];
        assert_eq!(
            read(&synthesize_frames(&traffic).list),
            [
                (target, "SYN", 0, 0, 0),
                (tester, "SYN-ACK", 0, 1, 0),
                (target, "ACK", 1, 1, 0),
                (target, "PSH", 1, 1, 20),
                (target, "FIN", 21, 1, 0),
                (tester, "ACK", 1, 22, 0),
            ]
        );
    }

    /// Two captures may show the same connection, recorded at different ends. Readers can combine
    /// these captures only if the sequence numbers are the same.
    #[test]
    fn logs_of_both_ends_have_the_same_numbers() {
        let numbers = |events: &[TrafficEvent]| -> Vec<(u32, u32)> {
            let frames = synthesize_frames(events).list;
            let tcp = |frame: &Frame| match SlicedPacket::from_ethernet(&frame.octets).unwrap().transport {
                Some(TransportSlice::Tcp(tcp)) => (tcp.sequence_number(), tcp.acknowledgment_number()),
                _ => panic!("no TCP"),
            };
            frames.iter().map(tcp).collect()
        };
        let [client, server] = both_ends();
        // The events have two connections between the same ports.
        let client = numbers(&[client.clone(), client]);
        let server = numbers(&[connected(0), server.clone(), server]);
        assert_eq!(client, server[3..]);
        assert_ne!(client[..3], client[3..]);
    }
}
