//! Exports the messages of protocols above RDMAP as PDUs that Wireshark's dissectors decode without
//! iWARP.
//!
//! [`UpperPdus`] is a sink. It reassembles Sends, and `Ulp::pdu` converts each Send to a PDU or a
//! part of a PDU. The sink joins the parts, and inserts the data that RDMA Writes and Read
//! Responses transferred. A PDU ends before its first missing octet, as a frame does in a capture
//! with a snap length. Its remarks explain what is missing.
//!
//! A PDU needs its first part. If the capture lacks the first part, the parts that continue the PDU
//! are not exported.
//!
//! **Memory.** All connections together have one limit for incomplete Sends, PDUs and Read
//! Requests, and one limit for data. At the first limit, the oldest waiting PDU is exported without
//! its data, or the connection with the largest state loses this state. So a connection with little
//! state does not suffer from the others. At the second limit, the oldest data is dropped.
//! [`UpperPdus::omitted`] counts what was dropped.

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
use crate::parse::{Kind, SegmentView};
use crate::sink::Sink;
use crate::stream_id::StreamId;
use crate::unit::Unit;
pub use crate::upper::DissectorName;
use crate::upper::UlpMessage;
use crate::upper::pdu::{Chunk, ChunkSegment, PduPart};

/// Maximum number of connections with stored state. The connection with the smallest number is
/// dropped first.
const MAX_CONNECTIONS: usize = 1024;
/// Maximum number of PDUs that wait for data, in all connections.
const MAX_WAITING: usize = 512;
/// Maximum number of stored Read Requests of a direction.
const MAX_READS: usize = 1024;
/// Maximum memory of incomplete Sends, PDUs and Read Requests of all connections, in octets.
const MAX_MEMORY: usize = 64 << 20;

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

/// What [`UpperPdus`] did not export so far.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Omitted {
    /// Number of parts that continue a PDU whose start was not captured, or was dropped.
    pub parts: u64,
    /// Number of incomplete Sends that were dropped at a limit.
    pub sends: u64,
    /// Number of PDUs that were exported at a limit, before their octets were complete.
    pub cut: u64,
    /// Number of Read Requests that were dropped at a limit. The data of their Responses is not
    /// exported.
    pub reads: u64,
    /// Number of octets that RDMA transferred and that were dropped at a limit.
    pub data: u64,
}

impl Omitted {
    /// Returns whether a limit was reached.
    #[must_use]
    pub fn has_reached_limit(&self) -> bool {
        *self != Omitted { parts: self.parts, ..Omitted::default() }
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
    /// The part of [`UpperPdus::memory`] that belongs to the connection.
    memory: usize,
}

impl Connection {
    /// Allocated memory in octets.
    fn allocated(&self) -> usize {
        let sends: usize = self.sends.iter().flatten().map(|send| send.octets.memory()).sum();
        let joins: usize = self.joins.iter().flatten().map(Pdu::memory).sum();
        let reads: usize = self.reads.iter().map(VecDeque::capacity).sum();
        sends + joins + reads * size_of::<ReadRequest>()
    }

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
    /// Whether the PDU is exported early, because a limit is reached.
    is_at_limit: bool,
}

impl Pdu {
    /// Allocated memory in octets.
    fn memory(&self) -> usize {
        let segments: usize = self.chunks.iter().map(|chunk| chunk.segments.capacity()).sum();
        let remarks: usize = self.remarks.iter().map(String::capacity).sum();
        let chunks = self.chunks.capacity() * size_of::<Chunk>() + segments * size_of::<ChunkSegment>();
        size_of::<Pdu>() + self.octets.memory() + chunks + remarks
    }

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
    /// Memory of the state of connections, and of the waiting PDUs, in octets.
    memory: usize,
    waiting_memory: usize,
    /// Maximum of the sum of both, in octets.
    max_memory: usize,
    omitted: Omitted,
}

impl<F: FnMut(&UpperPdu)> UpperPdus<F> {
    /// Makes a sink that calls `each` with every PDU.
    pub fn new(each: F) -> Self {
        UpperPdus {
            each,
            connections: BTreeMap::new(),
            waiting: VecDeque::new(),
            placed: PlacedOctets::default(),
            memory: 0,
            waiting_memory: 0,
            max_memory: MAX_MEMORY,
            omitted: Omitted::default(),
        }
    }

    /// What was not exported so far.
    #[must_use]
    pub fn omitted(&self) -> Omitted {
        Omitted { data: self.placed.dropped(), ..self.omitted }
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
            && let Some((&oldest, connection)) = self.connections.first_key_value()
        {
            self.omitted.sends += connection.sends.iter().flatten().count() as u64;
            self.end_stream(oldest);
        }
        self.connections.entry(stream).or_default()
    }

    fn end_stream(&mut self, stream: StreamId) {
        self.export_waiting(None, |pdu, _| pdu.owner.0 == stream);
        if let Some(connection) = self.connections.remove(&stream) {
            self.memory = self.memory.saturating_sub(connection.memory);
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
        let PduPart { dissector, octets, len, is_start, remaining, id, chunks, is_read_later, remark } = part;
        if id.is_some() {
            // An answer shows that the peer has read the data.
            self.export_waiting(None, |pdu, _| pdu.owner == (stream, direction.peer()) && pdu.id == id);
        }
        let connection = self.connection(stream);
        connection.has_chunks |= id.is_some();
        let (mut pdu, cut) = match connection.joins[direction].take() {
            Some(open) if open.remaining == len.saturating_add(remaining) => (open, None),
            cut if !is_start => {
                self.omitted.parts += 1;
                if let Some(cut) = cut {
                    self.export(cut);
                }
                return;
            }
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
                    is_at_limit: false,
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
        if self.waiting.len() >= MAX_WAITING {
            self.export_oldest();
        }
        self.waiting_memory += pdu.memory();
        self.waiting.push_back(pdu);
    }

    /// Exports the oldest waiting PDU, because a limit is reached.
    fn export_oldest(&mut self) {
        if let Some(oldest) = self.take_waiting(0) {
            self.export_at_limit(oldest);
        }
    }

    fn export_at_limit(&mut self, pdu: Pdu) {
        self.omitted.cut += 1;
        self.export(Pdu { is_at_limit: true, ..pdu });
    }

    fn take_waiting(&mut self, at: usize) -> Option<Pdu> {
        let pdu = self.waiting.remove(at)?;
        self.waiting_memory = self.waiting_memory.saturating_sub(pdu.memory());
        Some(pdu)
    }

    /// Counts the memory of a connection that has changed, and keeps to the limit.
    fn limit_memory(&mut self, stream: StreamId) {
        if let Some(connection) = self.connections.get_mut(&stream) {
            let allocated = connection.allocated();
            self.memory = (self.memory + allocated).saturating_sub(connection.memory);
            connection.memory = allocated;
        }
        while self.memory + self.waiting_memory > self.max_memory {
            if self.waiting_memory > self.max_memory / 2 {
                self.export_oldest();
            } else if !self.drop_largest() {
                break;
            }
        }
    }

    /// Drops the state of the connection with the most memory. Returns whether this frees memory.
    fn drop_largest(&mut self) -> bool {
        let Some(connection) = self.connections.values_mut().max_by_key(|connection| connection.memory) else {
            return false;
        };
        let freed = std::mem::take(&mut connection.memory);
        self.memory = self.memory.saturating_sub(freed);
        let (sends, joins) = (std::mem::take(&mut connection.sends), std::mem::take(&mut connection.joins));
        let reads = std::mem::take(&mut connection.reads);
        self.omitted.sends += sends.iter().flatten().count() as u64;
        self.omitted.reads += reads.iter().map(VecDeque::len).sum::<usize>() as u64;
        joins.into_iter().flatten().for_each(|pdu| self.export_at_limit(pdu));
        freed > 0
    }

    /// Exports the PDU that later Sends of this direction continue, because octets of the direction
    /// are missing.
    fn record_missing(&mut self, (stream, direction): Owner) {
        let join = self.connections.get_mut(&stream).and_then(|connection| connection.joins[direction].take());
        if let Some(cut) = join {
            self.export(cut);
            self.limit_memory(stream);
        }
    }

    fn read_request(&mut self, owner: Owner, view: &SegmentView<'_>) {
        let octets = view.payload.get(0..28);
        let Some(request) = octets.and_then(|octets| ReadRequest::parse(octets).ok()) else { return };
        let reads = &mut self.connection(owner.0).reads[owner.1];
        let is_full = reads.len() >= MAX_READS;
        if is_full {
            reads.pop_front();
        }
        reads.push_back(request);
        self.omitted.reads += u64::from(is_full);
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
            let Some(mut pdu) = self.take_waiting(at) else { break };
            if let Some(unit) = last {
                (pdu.frame, pdu.time) = (unit.frame, unit.time);
            }
            self.export(pdu);
        }
    }

    /// Inserts the chunks of a PDU, and passes it to the caller.
    fn export(&mut self, pdu: Pdu) {
        let Pdu { owner, ends: (src, dst), frame, time, dissector, octets, remaining, is_at_limit, .. } = pdu;
        let (chunks, mut remarks) = (pdu.chunks, pdu.remarks);
        let mut octets = chunks::insert(&self.placed, owner, octets, &chunks, &mut remarks);
        for segment in chunks.iter().flat_map(|chunk| &chunk.segments) {
            self.placed.drop_segment(owner, *segment);
        }
        octets.push(&[], remaining);
        remarks.extend(cut_remark(&octets, is_at_limit));
        let len = octets.len();
        (self.each)(&UpperPdu { src, dst, frame, time, dissector, octets: octets.into_octets(), len, remarks });
    }
}

/// Explains why a packet does not have all octets of its PDU. `is_at_limit` is set if a limit was
/// reached.
fn cut_remark(octets: &Beginning, is_at_limit: bool) -> Option<String> {
    if octets.is_complete() {
        return None;
    }
    let stored = octets.octets().len();
    let why = if stored == MAX_OCTETS {
        "Wireshark reads no longer packets"
    } else if is_at_limit {
        "weft reached its memory limit"
    } else {
        "the next bytes were not captured"
    };
    Some(format!("this packet has only the first {stored} of {}, because {why}", counted(octets.len(), "byte")))
}

impl<F: FnMut(&UpperPdu)> Sink for UpperPdus<F> {
    fn unit(&mut self, unit: &Unit<'_>) {
        let Some(stream) = unit.stream else { return };
        let owner = (stream, Direction::from(unit.direction));
        if matches!(unit.kind, Kind::Gap { .. } | Kind::Unparsed { .. }) {
            return self.record_missing(owner);
        }
        let Some(view) = SegmentView::of(unit.parsed) else { return };
        if unit.context.is_some_and(|context| context.sdp.is_some()) {
            return;
        }
        match view.segment {
            Segment::Tagged(header, _) => {
                self.tagged(unit, owner, &view, (header.stag.get(), header.tagged_offset.get()));
            }
            Segment::Untagged(header, _) if view.opcode().is_send() => {
                self.send(unit, owner, &view, (header.msn(), header.mo.get()));
                self.limit_memory(stream);
            }
            Segment::Untagged(..) if view.opcode() == Opcode::READ_REQUEST => {
                self.read_request(owner, &view);
                self.limit_memory(stream);
            }
            Segment::Untagged(..) => {}
        }
    }

    fn ended(&mut self, stream: StreamId, _: &Context) {
        self.end_stream(stream);
    }
}
