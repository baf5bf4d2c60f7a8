//! Exports the messages of protocols above RDMAP as PDUs that Wireshark's dissectors decode without
//! iWARP.
//!
//! [`UpperPdus`] is a sink. It reassembles Sends, and `Ulp::pdu` converts each Send to a PDU or a
//! part of a PDU. The sink joins the parts, and inserts the data that RDMA Writes and Read
//! Responses transferred. A PDU ends before its first missing octet, as a frame does in a capture
//! with a snap length. Its remarks explain what is missing.
//!
//! **Memory.** Sends, waiting PDUs and data have limits. If a limit is reached, the oldest waiting
//! PDU is exported without its data, and the oldest data is dropped.

mod chunks;
mod octets;
mod placed;
mod tags;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, VecDeque};
use std::net::SocketAddr;

use weft_core::wire::ddp::{Msn, Segment};
use weft_core::wire::rdmap::{Opcode, ReadRequest};

use self::octets::{Beginning, MAX_OCTETS};
use self::placed::PlacedOctets;
use crate::context::Context;
use crate::direction::Direction;
use crate::format::counted;
use crate::frame_number::FrameNumber;
use crate::parse::SegmentView;
use crate::sink::Sink;
use crate::stream_id::StreamId;
use crate::unit::Unit;
pub use crate::upper::DissectorName;
use crate::upper::UlpMessage;
use crate::upper::pdu::{Chunk, PduPart};

/// Maximum number of connections with stored state. The connection with the smallest number is
/// dropped first.
const MAX_CONNECTIONS: usize = 1024;
/// Maximum number of PDUs that wait for data, in all connections.
const MAX_WAITING: usize = 512;
/// Maximum number of stored Read Requests of a direction.
const MAX_READS: usize = 1024;

/// A PDU of a protocol above RDMAP.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UpperPdu {
    /// The sender.
    pub src: SocketAddr,
    /// The receiver.
    pub dst: SocketAddr,
    /// The last frame of the PDU, including the data that was transferred separately.
    pub frame: FrameNumber,
    /// Capture time of `frame` in nanoseconds since 1970.
    pub time: u64,
    /// Wireshark's dissector for the PDU.
    pub dissector: DissectorName,
    /// The first octets of the PDU. They end before the first octet that was not captured, and fit
    /// into a packet that Wireshark reads.
    pub octets: Vec<u8>,
    /// Length of the PDU in octets.
    pub len: u64,
    /// Remarks about missing octets, and about octets that were not in a Send.
    pub remarks: Vec<String>,
}

impl UpperPdu {
    /// The captured octets of a packet with the link type
    /// [`WIRESHARK_UPPER_PDU`](crate::link_type::WIRESHARK_UPPER_PDU): tags with the dissector, the
    /// addresses, the ports and the frame number, and then the PDU.
    #[must_use]
    pub fn packet(&self) -> Vec<u8> {
        let mut packet = tags::tags(self.dissector, self.src, self.dst, self.frame);
        packet.extend_from_slice(&self.octets);
        packet
    }

    /// Length of a packet with these captured octets, if all octets of the PDU were known.
    #[must_use]
    pub fn wire_len(&self, packet: &[u8]) -> u32 {
        let missing = self.len.saturating_sub(self.octets.len() as u64);
        u32::try_from(packet.len() as u64 + missing).unwrap_or(u32::MAX)
    }
}

/// The connection and the direction of a PDU.
type Owner = (StreamId, Direction);

/// A Send that is not complete.
#[derive(Debug)]
struct OpenSend {
    msn: Msn,
    octets: Beginning,
}

/// State of a connection.
#[derive(Debug, Default)]
struct Connection {
    /// The incomplete Send of each direction.
    sends: [Option<OpenSend>; 2],
    /// The PDU of each direction that later Sends continue.
    joins: [Option<Pdu>; 2],
    /// The Read Requests of each direction whose Responses are not complete.
    reads: [VecDeque<ReadRequest>; 2],
    /// Whether PDUs of the connection can have chunks.
    has_chunks: bool,
}

impl Connection {
    /// Returns where the data of a segment of a Read Response comes from: STag and offset of the
    /// Data Source. `direction` is the direction of the Response, and `stag` and `offset` are its
    /// location in the Data Sink. The last segment ends the Read.
    fn source(&mut self, direction: Direction, (stag, offset): (u32, u64), is_last: bool) -> Option<(u32, u64)> {
        let reads = &mut self.reads[direction.peer()];
        let is_in = |read: &ReadRequest| {
            let before = offset.checked_sub(read.sink_to).filter(|_| read.sink_stag == stag);
            before.is_some_and(|before| before < u64::from(read.rdmardsz.max(1)))
        };
        let at = reads.iter().position(is_in)?;
        let read = *reads.get(at)?;
        if is_last {
            reads.remove(at);
        }
        Some((read.src_stag, read.src_to.wrapping_add(offset - read.sink_to)))
    }
}

/// A PDU before its chunks are inserted.
#[derive(Debug)]
struct Pdu {
    owner: Owner,
    ends: (SocketAddr, SocketAddr),
    frame: FrameNumber,
    time: u64,
    dissector: DissectorName,
    /// The octets in Sends.
    octets: Beginning,
    /// Number of octets in further Sends.
    remaining: u64,
    id: Option<u64>,
    chunks: Vec<Chunk>,
    remarks: Vec<String>,
}

impl Pdu {
    /// Returns whether all data of the chunks was transferred.
    fn has_data(&self, placed: &PlacedOctets) -> bool {
        let mut segments = self.chunks.iter().flat_map(|chunk| &chunk.segments);
        segments.all(|segment| placed.has(self.owner, *segment))
    }
}

/// A sink that calls `each` with every PDU. The PDUs of one direction are in the order of their
/// last frames, except PDUs whose data was not captured.
#[derive(Debug)]
pub struct UpperPdus<F> {
    each: F,
    connections: BTreeMap<StreamId, Connection>,
    /// The PDUs whose chunks the peer still reads, the oldest first.
    waiting: VecDeque<Pdu>,
    placed: PlacedOctets,
}

impl<F: FnMut(&UpperPdu)> UpperPdus<F> {
    /// Makes a sink that calls `each` with every PDU.
    pub fn new(each: F) -> Self {
        let (connections, waiting) = (BTreeMap::new(), VecDeque::new());
        UpperPdus { each, connections, waiting, placed: PlacedOctets::default() }
    }

    /// Exports the PDUs that are not complete. Call this method at the end of the capture.
    pub fn finish(&mut self) {
        let streams: Vec<StreamId> = self.connections.keys().copied().collect();
        streams.into_iter().for_each(|stream| self.end_stream(stream));
        self.export_waiting(None, |_, _| true);
    }

    /// The state of a connection.
    fn connection(&mut self, stream: StreamId) -> &mut Connection {
        if !self.connections.contains_key(&stream)
            && self.connections.len() >= MAX_CONNECTIONS
            && let Some((&oldest, _)) = self.connections.first_key_value()
        {
            self.end_stream(oldest);
        }
        self.connections.entry(stream).or_default()
    }

    fn end_stream(&mut self, stream: StreamId) {
        self.export_waiting(None, |pdu, _| pdu.owner.0 == stream);
        if let Some(connection) = self.connections.remove(&stream) {
            connection.joins.into_iter().flatten().for_each(|pdu| self.export(pdu));
        }
        self.placed.drop_stream(stream);
    }

    /// Processes a segment of a Send.
    fn send(&mut self, unit: &Unit<'_>, owner: Owner, view: &SegmentView<'_>, (msn, mo): (Msn, u32)) {
        let open = &mut self.connection(owner.0).sends[owner.1];
        if mo == 0 {
            *open = Some(OpenSend { msn, octets: Beginning::default() });
        }
        let Some(send) = open.as_mut().filter(|send| send.msn == msn) else { return };
        // The octets before this segment, if the capture lacks earlier segments.
        let missing = u64::from(mo).saturating_sub(send.octets.len());
        send.octets.push(&[], missing);
        send.octets.push(view.payload.beginning(), u64::from(view.payload_len));
        if !view.last() {
            return;
        }
        let Some(OpenSend { octets, .. }) = open.take() else { return };
        let message = unit.context.and_then(|context| context.ulp_message.as_ref());
        let part = message.map(UlpMessage::ulp).and_then(|ulp| ulp.pdu(octets.octets(), octets.len()));
        if let Some(part) = part {
            self.part(unit, owner, part);
        }
    }

    /// Processes the content of a Send.
    fn part(&mut self, unit: &Unit<'_>, owner: Owner, part: PduPart<'_>) {
        let (stream, direction) = owner;
        let PduPart { dissector, octets, len, remaining, id, chunks, is_read_later, remark } = part;
        if id.is_some() {
            // An answer shows that the peer has read the data.
            self.export_waiting(None, |pdu, _| pdu.owner == (stream, direction.peer()) && pdu.id == id);
        }
        let connection = self.connection(stream);
        connection.has_chunks |= id.is_some();
        let (mut pdu, cut) = match connection.joins[direction].take() {
            Some(open) if open.remaining == len.saturating_add(remaining) => (open, None),
            cut => {
                let pdu = Pdu {
                    owner,
                    ends: (unit.ends.src, unit.ends.dst),
                    frame: unit.frame,
                    time: unit.time,
                    dissector,
                    octets: Beginning::default(),
                    remaining,
                    id,
                    chunks: Vec::new(),
                    remarks: Vec::new(),
                };
                (pdu, cut)
            }
        };
        pdu.octets.push(&octets, len);
        (pdu.frame, pdu.time, pdu.remaining) = (unit.frame, unit.time, remaining);
        pdu.chunks.extend(chunks);
        pdu.remarks.extend(remark);
        if let Some(cut) = cut {
            self.export(cut);
        }
        if pdu.remaining > 0 {
            self.connection(stream).joins[direction] = Some(pdu);
        } else if is_read_later && !pdu.has_data(&self.placed) {
            self.wait(pdu);
        } else {
            self.export(pdu);
        }
    }

    fn wait(&mut self, pdu: Pdu) {
        if self.waiting.len() >= MAX_WAITING
            && let Some(oldest) = self.waiting.pop_front()
        {
            self.export(oldest);
        }
        self.waiting.push_back(pdu);
    }

    fn read_request(&mut self, owner: Owner, view: &SegmentView<'_>) {
        let octets = view.payload.get(0..28);
        let Some(request) = octets.and_then(|octets| ReadRequest::parse(octets).ok()) else { return };
        let reads = &mut self.connection(owner.0).reads[owner.1];
        if reads.len() >= MAX_READS {
            reads.pop_front();
        }
        reads.push_back(request);
    }

    /// Processes a segment of a Write or of a Read Response.
    fn tagged(&mut self, unit: &Unit<'_>, owner: Owner, view: &SegmentView<'_>, location: (u32, u64)) {
        let Some(connection) = self.connections.get_mut(&owner.0) else { return };
        let is_response = view.opcode() == Opcode::READ_RESPONSE;
        let location = match view.opcode() {
            Opcode::READ_RESPONSE => connection.source(owner.1, location, view.last()),
            Opcode::WRITE => Some(location),
            _ => None,
        };
        let Some(location) = location.filter(|_| connection.has_chunks) else { return };
        self.placed.add(owner, location, view.payload, view.last());
        if is_response && view.last() {
            self.export_waiting(Some(unit), |pdu, placed| pdu.owner == owner && pdu.has_data(placed));
        }
    }

    /// Exports the chosen PDUs of those that wait for data. `last` is the unit that completed them.
    fn export_waiting(&mut self, last: Option<&Unit<'_>>, is_chosen: impl Fn(&Pdu, &PlacedOctets) -> bool) {
        let mut at = 0;
        while let Some(pdu) = self.waiting.get(at) {
            if !is_chosen(pdu, &self.placed) {
                at += 1;
                continue;
            }
            let Some(mut pdu) = self.waiting.remove(at) else { break };
            if let Some(unit) = last {
                (pdu.frame, pdu.time) = (unit.frame, unit.time);
            }
            self.export(pdu);
        }
    }

    /// Inserts the chunks of a PDU, and passes it to the caller.
    fn export(&mut self, pdu: Pdu) {
        let Pdu { owner, ends: (src, dst), frame, time, dissector, octets, remaining, chunks, mut remarks, .. } = pdu;
        let mut octets = chunks::insert(&self.placed, owner, octets, &chunks, &mut remarks);
        for segment in chunks.iter().flat_map(|chunk| &chunk.segments) {
            self.placed.drop_segment(owner, *segment);
        }
        octets.push(&[], remaining);
        remarks.extend(cut_remark(&octets));
        let len = octets.len();
        (self.each)(&UpperPdu { src, dst, frame, time, dissector, octets: octets.into_octets(), len, remarks });
    }
}

/// Explains why a packet does not have all octets of its PDU.
fn cut_remark(octets: &Beginning) -> Option<String> {
    if octets.is_complete() {
        return None;
    }
    let stored = octets.octets().len();
    let why =
        if stored == MAX_OCTETS { "Wireshark reads no longer packets" } else { "the next bytes were not captured" };
    Some(format!("this packet has only the first {stored} of {}, because {why}", counted(octets.len(), "byte")))
}

impl<F: FnMut(&UpperPdu)> Sink for UpperPdus<F> {
    fn unit(&mut self, unit: &Unit<'_>) {
        let (Some(stream), Some(view)) = (unit.stream, SegmentView::of(unit.parsed)) else { return };
        if unit.context.is_some_and(|context| context.sdp.is_some()) {
            return;
        }
        let owner = (stream, Direction::from(unit.direction));
        match view.segment {
            Segment::Tagged(header, _) => {
                self.tagged(unit, owner, &view, (header.stag.get(), header.tagged_offset.get()));
            }
            Segment::Untagged(header, _) if view.opcode().is_send() => {
                self.send(unit, owner, &view, (header.msn(), header.mo.get()));
            }
            Segment::Untagged(..) if view.opcode() == Opcode::READ_REQUEST => self.read_request(owner, &view),
            Segment::Untagged(..) => {}
        }
    }

    fn ended(&mut self, stream: StreamId, _: &Context) {
        self.end_stream(stream);
    }
}
