//! [`Dissector`]: reads frames of a capture and delivers units, findings and facts.

use weft_core::wire::portmap::RawMessage;
use zerocopy::FromBytes;

use crate::connections::Connections;
use crate::contents::hidden;
use crate::context::Context;
use crate::dropped::DroppedState;
use crate::follow::PortMappers;
use crate::follow::exchange::Exchanges;
use crate::follow::portmap::{PmDatagram, Transaction, Transactions};
use crate::frame_number::FrameNumber;
use crate::grammar::portmap::{MESSAGE_LEN, PORT};
use crate::ip::{Datagram, IpReader, Segment, Transport};
use crate::joined::JoinedConnections;
use crate::link::{SkipCounts, SkipReason};
use crate::packet::Packet;
use crate::parse::{self, Endpoints, Kind, Origin};
use crate::part::Part;
use crate::rules::{Findings, PendingFindings, PmView, UncertainMatch, check_datagram};
use crate::sink::Sink;
use crate::source::Frame;
use crate::unit::Unit;

/// Delivers a datagram from or to a port mapper as one unit, and checks the message in the
/// datagram.
fn port_mapper(datagram: &Datagram<'_>, exchanges: &mut Exchanges, checked: &mut CheckedMessages, sink: &mut dyn Sink) {
    let wire_len = datagram.wire_len as usize;
    let cut = datagram.octets.len() < wire_len;
    let (mut octets, mut known) = (Vec::new(), Vec::new());
    let part = if cut {
        octets.extend_from_slice(datagram.octets);
        octets.resize(wire_len, 0);
        known.resize(datagram.octets.len(), 1);
        known.resize(wire_len, 0);
        Part::with_known(&octets, &known)
    } else {
        Part::complete(datagram.octets)
    };
    let (exchange, forgotten) = exchanges.record_datagram(datagram);
    let context = exchange.map(|exchange| Context { exchange: Some(exchange.clone()), ..Context::default() });
    let ends = Endpoints::new(datagram.src, datagram.dst);
    let parsed = parse::Unit {
        stream: None,
        direction: u8::from(datagram.src.port() == PORT),
        ends: &ends,
        frame: datagram.frame,
        time: datagram.time,
        incomplete: cut || wire_len < MESSAGE_LEN,
        kind: Kind::PortMapper(part),
        origin: Origin::Frame { frame: datagram.frame, offset: datagram.offset, len: datagram.octets.len() as u64 },
        sender_error: None,
    };
    sink.unit(&Unit { parsed: &parsed, context: context.as_ref() });
    checked.message(datagram, part, &parsed, sink);
    if let Some(exchange) = forgotten {
        sink.exchange(&exchange, true);
    }
}

/// The state for the rules about port mapper messages.
#[derive(Default)]
struct CheckedMessages {
    transactions: Transactions,
    pending: PendingFindings,
    /// Whether an endpoint recorded the capture. In this case, no datagram is missing or out of
    /// order.
    is_complete: bool,
    /// Whether the checks are switched off.
    is_off: bool,
}

impl CheckedMessages {
    /// Checks a datagram, and records it for later checks.
    fn message(&mut self, datagram: &Datagram<'_>, part: Part<'_>, unit: &parse::Unit<'_>, sink: &mut dyn Sink) {
        if self.is_off {
            return;
        }
        let raw = part.get(0..MESSAGE_LEN).and_then(|octets| RawMessage::read_from_bytes(octets).ok());
        let Datagram { frame, time, src, dst, .. } = *datagram;
        let seen = raw.map(|raw| PmDatagram { raw, src, dst, frame, time });
        let transactions = &self.transactions;
        let transaction = seen.as_ref().and_then(|seen| transactions.find(seen));
        let conflict = seen.as_ref().and_then(|seen| transactions.find_conflict(seen));
        let check = |transaction: Option<&Transaction>, conflict| {
            let mut found = Vec::new();
            let newest = transaction.and_then(|transaction| transactions.newest_like(transaction, time));
            let view = PmView { datagram: seen.as_ref(), transaction, newest, conflict };
            check_datagram(&view, unit, &mut Findings::new(None, &mut found));
            found
        };
        let mut found = check(transaction, conflict);
        if let Some(seen) = &seen {
            let uncertain = UncertainMatch::find(seen, transactions).filter(|_| !self.is_complete);
            self.pending.record_message(seen, transactions);
            if let Some(uncertain) = uncertain.filter(|_| !found.is_empty()) {
                let certain = check(transaction.filter(|_| !uncertain.has_doubtful_transaction()), None);
                let waits = found.extract_if(.., |finding| !certain.contains(finding)).collect();
                self.pending.delay(seen, uncertain, waits);
            }
        }
        if let Some(seen) = seen {
            self.transactions.record(seen);
        }
        found.iter().for_each(|finding| sink.finding(finding));
    }

    /// Delivers the delayed findings that are due at `now`. The time `now` is in nanoseconds since
    /// 1970.
    fn due(&mut self, now: u64, sink: &mut dyn Sink) {
        self.pending.take_due(now).iter().for_each(|finding| sink.finding(finding));
    }

    fn finish(&mut self, sink: &mut dyn Sink) {
        self.pending.finish().iter().for_each(|finding| sink.finding(finding));
    }
}

/// If `segment` is the SYN of a connection that an exchange with a port mapper prepared, links this
/// connection with the exchange.
fn follow_exchange(
    segment: &Segment<'_>,
    exchanges: &mut Exchanges,
    connections: &mut Connections,
    sink: &mut dyn Sink,
) {
    let Some(number) = exchanges.number_for(segment) else { return };
    let Some((stream, monitor)) = connections.monitor_of(segment) else { return };
    if let Some(exchange) = exchanges.join(number, stream) {
        monitor.state.set_exchange(exchange);
        sink.exchange(exchange, false);
    }
}

/// Reads frames in capture order, and delivers units as soon as they are certain.
#[derive(Default)]
pub struct Dissector {
    ip: IpReader,
    unread: SkipCounts,
    /// The latest frame in which no TCP segment or UDP datagram was found, and the reason.
    latest_unread: Option<(FrameNumber, SkipReason)>,
    connections: Connections,
    port_mappers: PortMappers,
    exchanges: Exchanges,
    checked_messages: CheckedMessages,
}

impl Dissector {
    /// Creates a dissector without the monitor. Such a dissector needs half the time of a dissector
    /// with the monitor. It delivers units with their CRC results, but no findings, no facts and no
    /// context of units.
    #[must_use]
    pub fn units_only() -> Self {
        let checked_messages = CheckedMessages { is_off: true, ..CheckedMessages::default() };
        Dissector { connections: Connections::without_monitors(), checked_messages, ..Dissector::default() }
    }

    /// Switches the protocols above RDMAP off, except SDP: no connection gets a protocol, and no
    /// unit gets a message of a protocol. A benchmark measures with it what these protocols cost.
    #[must_use]
    pub fn without_ulps(mut self) -> Self {
        self.connections.ignore_ulps();
        self
    }

    /// Call this if an endpoint recorded the frames. In such a capture, no frame is missing or out
    /// of order, and every response of a port mapper belongs to a captured request.
    #[must_use]
    pub fn recorded_by_an_end(mut self) -> Self {
        self.checked_messages.is_complete = true;
        self
    }

    /// From now on, connections from or to TCP port `port` are read as SDP, even if the capture
    /// does not contain the start of the connection. The rules for SDP do not check connections
    /// without a captured start.
    pub fn decode_as_sdp(&mut self, port: u16) {
        self.connections.decode_as_sdp(port);
    }

    /// Returns whether the dissector has octets that it has not delivered in a unit yet. If the
    /// result is false, the frames so far will produce no further units.
    #[must_use]
    pub fn holds_back(&self) -> bool {
        self.connections.holds_back()
    }

    /// Approximate memory of the connections in bytes. The dissector needs most of its memory for
    /// connections.
    #[must_use]
    pub fn memory(&self) -> usize {
        self.connections.memory_of_all()
    }

    /// Reads one frame.
    pub fn frame(&mut self, frame: &Frame<'_>, sink: &mut dyn Sink) {
        self.checked_messages.due(frame.time, sink);
        // Match by reference, because the transport types are large.
        match &self.ip.read(frame) {
            Ok(Some(Transport::Tcp(segment))) => {
                self.connections.segment(segment, sink);
                if segment.syn {
                    follow_exchange(segment, &mut self.exchanges, &mut self.connections, sink);
                }
            }
            Ok(Some(Transport::Udp(datagram))) => {
                sink.packet(&Packet::of_datagram(datagram));
                if self.port_mappers.has_endpoint_of(datagram) {
                    port_mapper(datagram, &mut self.exchanges, &mut self.checked_messages, sink);
                }
            }
            // The frame has a fragment of an IP packet, and other fragments of that packet are
            // still missing.
            Ok(None) => sink.fragment(frame.number),
            Err(why) => {
                self.unread.add(*why);
                self.latest_unread = Some((frame.number, *why));
            }
        }
    }

    /// Call this at the end of a capture file that ends within the record of frame `partial`. If the
    /// file lacks a header of this frame, the frame no longer counts as unread, because the damage
    /// of the file explains it.
    pub fn ignore_partial_frame(&mut self, partial: FrameNumber) {
        if let Some((frame, why @ SkipReason::Truncated)) = self.latest_unread
            && frame == partial
        {
            self.unread.remove(why);
            self.latest_unread = None;
        }
    }

    /// For each reason, the number of frames in which no TCP segment or UDP datagram was found.
    /// While fragments of an IP packet are missing, each captured fragment of the packet counts as
    /// such a frame.
    #[must_use]
    pub fn unread(&self) -> Vec<(SkipReason, u64)> {
        self.unread.with(SkipReason::Fragment, self.ip.lost_fragments())
    }

    /// The state that was dropped because of the memory limits.
    #[must_use]
    pub fn dropped(&self) -> DroppedState {
        self.connections.dropped()
    }

    /// Connections that were captured in several VLANs, tunnels or interfaces.
    #[must_use]
    pub fn joined(&self) -> JoinedConnections {
        self.connections.joined()
    }

    /// Remarks about joined connections (see [`JoinedConnections`]), dropped state and unread
    /// frames. The remarks explain why a result is empty or short. A remark is a sentence without a
    /// capital letter at the start and without a period. Most captures have no remarks.
    #[must_use]
    pub fn remarks(&self) -> Vec<String> {
        let (joined, dropped) = (self.joined(), self.dropped());
        let joined = (!joined.is_empty()).then(|| joined.to_string());
        let too_many = "there were too many connections or waiting bytes at the same time, so weft dropped state";
        let dropped = (!dropped.is_empty()).then(|| format!("{too_many}: {dropped}"));
        let hidden = hidden(&self.unread()).map(|hidden| format!("weft did not read {hidden}"));
        [joined, dropped, hidden].into_iter().flatten().collect()
    }

    /// Delivers all remaining units, findings and exchanges. Call this when the capture ends.
    pub fn finish(&mut self, sink: &mut dyn Sink) {
        self.connections.finish(sink);
        self.checked_messages.finish(sink);
        self.exchanges.drain().for_each(|exchange| sink.exchange(&exchange, true));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fact::Fact;
    use crate::finding::Finding;
    use crate::parse::CrcStatus::{self, Bad, Good};
    use crate::stream_id::StreamId;
    use crate::testing::{Wire, fpdu, hex, send_of};

    /// Collects the frame and the CRC status of each FPDU, and counts findings and facts.
    #[derive(Default)]
    struct Collected {
        units: Vec<(FrameNumber, CrcStatus)>,
        findings: usize,
        facts: usize,
    }

    impl Sink for Collected {
        fn unit(&mut self, unit: &Unit<'_>) {
            if let Kind::Fpdu(fpdu) = &unit.kind {
                self.units.push((unit.frame, fpdu.crc_status));
            }
        }

        fn finding(&mut self, _: &Finding) {
            self.findings += 1;
        }

        fn fact(&mut self, _: StreamId, _: &Fact) {
            self.facts += 1;
        }
    }

    #[test]
    fn without_the_monitor_units_are_the_same() {
        let mut wire = Wire::started();
        wire.send(0, &fpdu(&send_of(1, 30)));
        let mut bad = fpdu(&send_of(2, 30));
        bad[24] ^= 1;
        wire.send(0, &bad);
        let (mut watched, mut unwatched) = (Collected::default(), Collected::default());
        wire.feed(&mut watched);
        wire.feed_to(Dissector::units_only(), &mut unwatched, |_| {});
        assert_eq!(watched.units, [(5.into(), Good), (6.into(), Bad)]);
        assert_eq!(unwatched.units, watched.units);
        assert!(watched.findings > 0 && watched.facts > 0);
        assert_eq!((unwatched.findings, unwatched.facts), (0, 0));
    }

    /// Counts the units of a connection with a recognised protocol.
    #[derive(Default)]
    struct Named(usize);

    impl Sink for Named {
        fn unit(&mut self, unit: &Unit<'_>) {
            self.0 += usize::from(unit.context.is_some_and(|context| context.ulp.is_some()));
        }
    }

    #[test]
    fn without_ulps_no_connection_gets_a_protocol() {
        let mut wire = Wire::started();
        // A Negotiate Request of SMB Direct.
        wire.send_ulpdu(0, "4143 00000000 00000000 00000001 00000000 00010001 0000 0a00 00040000 00200000 00000200");
        let (mut with, mut without) = (Named::default(), Named::default());
        wire.feed(&mut with);
        wire.feed_to(Dissector::default().without_ulps(), &mut without, |_| {});
        assert_eq!((with.0, without.0), (1, 0));
    }

    #[test]
    fn holds_back_octets_after_a_hole_and_incomplete_fpdus() {
        let mut wire = Wire::started();
        let octets = fpdu(&hex("c140 11223344 0000000000001000 01020304"));
        let (one, other) = octets.split_at(9);
        wire.swapped(|wire| wire.send(0, &octets), |wire| wire.send(0, one));
        wire.send(0, other);
        let mut held_back = Vec::new();
        wire.feed_to(Dissector::default(), &mut Collected::default(), |dissector| {
            held_back.push(dissector.holds_back());
        });
        // The first four frames are SYN, SYN-ACK, Request and Reply. The fifth frame has octets
        // after a gap. The sixth frame has the missing octets and half an FPDU. The last frame has
        // the other half of this FPDU.
        assert_eq!(held_back, [false, false, false, false, true, true, false]);
    }

    #[test]
    fn unanswered_requests_and_their_stags_count_as_memory() {
        let mut wire = Wire::started();
        for msn in 1..=500_u32 {
            let sink = format!("{msn:08x} 0000000000001000 00000008 00000200 0000000000002000");
            wire.send_ulpdu(0, &format!("4141 00000000 00000001 {msn:08x} 00000000 {sink}"));
        }
        let mut kept = Vec::new();
        wire.feed_to(Dissector::default(), &mut Collected::default(), |dissector| {
            kept.push(dissector.connections.memory());
        });
        // The state of a Read Request takes more memory than its 28 octets on the wire, and the
        // state of an STag takes more memory than its 4 octets.
        assert!(kept[503] > kept[3] + 500 * 32, "{} {}", kept[3], kept[503]);
    }
}
