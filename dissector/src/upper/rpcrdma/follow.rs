//! [`Follower`]: follows the messages of one connection. It puts Sends together, keeps the calls
//! without a reply, and stores the RPC messages that chunks carry.
//!
//! **Memory.** For each direction, these data are stored at most: the first 16 KiB of one Send, the
//! 256 newest calls without a reply with 8192 segments, and 256 KiB of the bytes in their chunks
//! (68 KiB of each chunk). At most 256 Reads are followed.

use std::collections::VecDeque;

use weft_core::wire::ddp::{Msn, Segment};
use weft_core::wire::mpa::StartupKind;
use weft_core::wire::rdmap::{Opcode, ReadRequest};

use super::decoded::{Carrier, Decoded};
use super::header::{Header, Procedure};
use super::message::{Call, Reply, RpcMessage, is_call};
use super::outstanding::{Outstanding, OutstandingCall};
use super::placed::MAX_CHUNK_BYTES;
use super::private_data::{PrivateData, Settings};
use super::xdr::{Stop, Xdr};
use crate::direction::Direction;
use crate::frame_number::FrameNumber;
use crate::parse::SegmentView;
use crate::part::Part;
use crate::upper::startup::private_data;

/// Maximum number of bytes that are stored of a Send with several segments.
const MAX_SEND_BYTES: usize = 16 << 10;
/// Maximum number of Reads without a complete Response that are followed.
const MAX_READS: usize = 256;
/// Length of the fixed part of a header in bytes.
const FIXED_LEN: usize = 16;
/// Length of a Read Request in bytes.
const READ_REQUEST_LEN: usize = 28;

/// An incomplete Send.
#[derive(Debug, Clone)]
struct OpenSend {
    msn: Msn,
    /// The known bytes from the start of the Send.
    bytes: Vec<u8>,
    /// Number of bytes of the segments so far.
    len: u64,
}

/// A Read whose Response is not complete.
#[derive(Debug, Clone, Copy)]
struct OpenRead {
    /// The direction of the Read Request.
    reader: Direction,
    sink_stag: u32,
    sink_to: u64,
    len: u32,
    /// The call that advertised the Read chunk.
    xid: u32,
    /// The offset of the read bytes in the Position Zero Read chunk, if they are in it.
    at: Option<u64>,
}

/// The state of a connection that carries RPC-over-RDMA.
#[derive(Debug, Clone, Default)]
struct State {
    /// The settings that the sender of each direction announced.
    private: [Option<PrivateData>; 2],
    sends: [Option<OpenSend>; 2],
    /// The calls without a reply, by the direction of the caller.
    calls: [Outstanding; 2],
    reads: VecDeque<OpenRead>,
}

/// A unit that completes a message.
#[derive(Debug, Clone, Copy)]
struct Completion {
    direction: Direction,
    frame: FrameNumber,
    /// Capture time of the frame in nanoseconds since 1970.
    time: u64,
    /// Message Offset of the segment that completes a Send, in bytes.
    segment_at: u32,
    /// The direction of the client, if it is known.
    client: Option<Direction>,
}

impl Completion {
    /// Returns whether the call has the reverse direction (RFC 8167). The unit belongs to the call
    /// if `is_call` is set, and to the reply otherwise. `None` if the client is not known.
    fn is_reverse(&self, is_call: bool) -> Option<bool> {
        self.client.map(|client| (self.direction == client) != is_call)
    }
}

/// Follows the messages of a connection.
#[derive(Debug, Clone, Default)]
pub(crate) struct Follower {
    /// The direction of the endpoint that sent the MPA Request: the client (RFC 8166 section
    /// 2.2.2).
    client: Option<Direction>,
    /// The state is created when a start-up frame or a Send looks like RPC-over-RDMA.
    state: Option<Box<State>>,
}

impl Follower {
    /// Records a start-up frame.
    pub(crate) fn record_startup(&mut self, direction: Direction, kind: StartupKind, frame: Part<'_>) {
        self.client = Some(if kind == StartupKind::Request { direction } else { direction.peer() });
        if let Some(found) = private_data(frame).and_then(|(private, _)| PrivateData::find(private)) {
            self.state.get_or_insert_default().private[direction] = Some(found);
        }
    }

    /// Records a segment. `is_recognised` is set if the connection carries RPC-over-RDMA: only then
    /// messages are decoded. Returns the message that the segment completes.
    pub(crate) fn record_segment(
        &mut self,
        direction: Direction,
        view: &SegmentView<'_>,
        (frame, time): (FrameNumber, u64),
        is_recognised: bool,
    ) -> Option<Box<Decoded>> {
        if self.state.is_none() && !begins_like_header(view) {
            return None;
        }
        let completion = Completion { direction, frame, time, segment_at: 0, client: self.client };
        let state = self.state.get_or_insert_default();
        state.record_segment(view, completion, is_recognised)
    }

    /// Allocated memory in bytes.
    pub(crate) fn memory(&self) -> usize {
        self.state.as_ref().map_or(0, |state| {
            let sends: usize = state.sends.iter().flatten().map(|send| send.bytes.capacity()).sum();
            let calls: usize = state.calls.iter().map(Outstanding::memory).sum();
            size_of::<State>() + sends + calls + state.reads.len() * size_of::<OpenRead>()
        })
    }
}

/// Returns whether a segment is the start of a Send that looks like RPC-over-RDMA version 1.
fn begins_like_header(view: &SegmentView<'_>) -> bool {
    let Segment::Untagged(header, _) = view.segment else { return false };
    view.opcode().is_send() && header.mo.get() == 0 && looks_like_header(view.payload)
}

fn looks_like_header(payload: Part<'_>) -> bool {
    let fixed: Option<&[u8; FIXED_LEN]> = payload.get(0..FIXED_LEN).and_then(|bytes| bytes.first_chunk());
    fixed.is_some_and(|fixed| fixed[4..8] == [0, 0, 0, 1] && fixed[12..15] == [0; 3] && fixed[15] <= 4)
}

impl State {
    fn record_segment(
        &mut self,
        view: &SegmentView<'_>,
        completion: Completion,
        is_recognised: bool,
    ) -> Option<Box<Decoded>> {
        let (direction, opcode) = (completion.direction, view.opcode());
        match view.segment {
            Segment::Tagged(header, _) => {
                let place = (header.stag.get(), header.tagged_offset.get());
                match opcode {
                    Opcode::WRITE => {
                        self.calls[direction.peer()].record_write(place.0, place.1, view.payload);
                        None
                    }
                    Opcode::READ_RESPONSE => self.record_response(place, view, completion),
                    _ => None,
                }
            }
            Segment::Untagged(..) if opcode == Opcode::READ_REQUEST => {
                self.record_read(direction, view);
                None
            }
            Segment::Untagged(header, _) if opcode.is_send() => {
                let completion = Completion { segment_at: header.mo.get(), ..completion };
                self.record_send(header.msn(), view, completion, is_recognised)
            }
            Segment::Untagged(..) => None,
        }
    }

    fn record_send(
        &mut self,
        msn: Msn,
        view: &SegmentView<'_>,
        completion: Completion,
        is_recognised: bool,
    ) -> Option<Box<Decoded>> {
        let (direction, mo) = (completion.direction, u64::from(completion.segment_at));
        if mo == 0 && view.last() {
            // Most Sends have one segment. Their bytes need not be stored.
            self.sends[direction] = None;
            let (bytes, len) = (view.payload.beginning(), u64::from(view.payload_len));
            return if is_recognised { self.message(bytes, len, completion) } else { None };
        }
        let mut send = self.sends[direction].take();
        if mo == 0 {
            send = looks_like_header(view.payload).then(|| OpenSend { msn, bytes: Vec::new(), len: 0 });
        }
        let mut send = send.filter(|send| send.msn == msn && send.len == mo)?;
        // Bytes after a missing byte are not stored.
        if send.bytes.len() as u64 == send.len {
            let room = MAX_SEND_BYTES - send.bytes.len();
            send.bytes.extend_from_slice(view.payload.up_to(room).beginning());
        }
        send.len += u64::from(view.payload_len);
        if !view.last() {
            self.sends[direction] = Some(send);
            return None;
        }
        if is_recognised { self.message(&send.bytes, send.len, completion) } else { None }
    }

    fn record_read(&mut self, reader: Direction, view: &SegmentView<'_>) {
        let bytes = view.payload.get(0..READ_REQUEST_LEN);
        let Some(read) = bytes.and_then(|bytes| ReadRequest::parse(bytes).ok()) else { return };
        let Some((xid, at)) = self.calls[reader.peer()].find_read(read.src_stag, read.src_to) else { return };
        if self.reads.len() >= MAX_READS {
            self.reads.pop_front();
        }
        let ReadRequest { sink_stag, sink_to, rdmardsz: len, .. } = read;
        self.reads.push_back(OpenRead { reader, sink_stag, sink_to, len, xid, at });
    }

    /// Records a segment of a Read Response. If the segment completes a Position Zero Read chunk,
    /// returns the call in the chunk.
    fn record_response(
        &mut self,
        (stag, to): (u32, u64),
        view: &SegmentView<'_>,
        completion: Completion,
    ) -> Option<Box<Decoded>> {
        let reader = completion.direction.peer();
        let distance = |read: &OpenRead| to.checked_sub(read.sink_to).filter(|far| *far <= u64::from(read.len));
        let is_here = |read: &OpenRead| read.reader == reader && read.sink_stag == stag && distance(read).is_some();
        let index = self.reads.iter().position(is_here)?;
        let read = *self.reads.get(index)?;
        if view.last() {
            self.reads.remove(index);
        }
        let at = read.at.and_then(|at| distance(&read).map(|far| at + far));
        self.calls[completion.direction].record_response(read.xid, at, view.payload);
        at?;
        self.argument(read.xid, completion)
    }

    /// Decodes the call in the Position Zero Read chunk of the call `xid`, if all of its bytes have
    /// arrived or the stored part is full.
    fn argument(&mut self, xid: u32, completion: Completion) -> Option<Box<Decoded>> {
        let is_reverse = completion.is_reverse(true);
        let settings = Settings::new(&self.private);
        let call = self.calls[completion.direction].get_mut(xid).filter(|call| !call.is_argument_read)?;
        let (bytes, len) = (call.argument.beginning(), call.lists.position_zero_len());
        let is_full = bytes.len() >= MAX_CHUNK_BYTES;
        if (bytes.len() as u64) < len && !is_full {
            return None;
        }
        call.is_argument_read = true;
        let bytes = &bytes[..bytes.len().min(usize::try_from(len).unwrap_or(usize::MAX))];
        let xdr = Xdr::new(bytes, bytes.len() as u64 == len);
        let (message, stop) = match Call::read(xdr, &call.lists.reads, is_reverse == Some(true)) {
            Ok((read, stop)) if read.xid == xid => {
                (call.target, call.is_protected) = (Some(read.target), read.is_protected());
                (Some(RpcMessage::Call(read)), stop)
            }
            Ok(_) => (None, Some(Stop::Malformed)),
            Err(stop) => (None, Some(stop)),
        };
        Some(Box::new(Decoded {
            header: None,
            message,
            stop,
            carrier: Carrier::ReadChunk,
            is_reverse,
            settings,
            inline_threshold: settings.inline_thresholds[completion.direction],
            len,
            segment_at: 0,
            call: Some(call.reference()),
        }))
    }

    /// Decodes the message in a complete Send. `bytes` are the first bytes of the Send, and `len`
    /// is its length in bytes.
    fn message(&mut self, bytes: &[u8], len: u64, completion: Completion) -> Option<Box<Decoded>> {
        let is_complete = bytes.len() as u64 == len;
        let mut xdr = Xdr::new(bytes, is_complete);
        let settings = Settings::new(&self.private);
        let mut decoded = Decoded {
            header: None,
            message: None,
            stop: None,
            carrier: Carrier::Send,
            is_reverse: None,
            settings,
            inline_threshold: settings.inline_thresholds[completion.direction],
            len,
            segment_at: completion.segment_at,
            call: None,
        };
        let header = match Header::read(&mut xdr) {
            Ok(header) => header,
            Err(stop) => {
                decoded.stop = Some(stop);
                return Some(Box::new(decoded));
            }
        };
        let rest = Xdr::new(xdr.rest(), is_complete);
        match header.procedure {
            Procedure::Msg | Procedure::Msgp => match is_call(rest.rest()) {
                Some(true) => self.call(&header, rest, completion, &mut decoded),
                Some(false) => self.reply(&header, rest, completion, &mut decoded),
                None => decoded.stop = Some(if is_complete { Stop::Malformed } else { Stop::Missing }),
            },
            // Only a call has a read list (RFC 8166 section 4.3.1).
            Procedure::NoMsg if !header.lists.reads.is_empty() => {
                let seen = (completion.frame, completion.time);
                let call = OutstandingCall::new(header.xid, seen, header.lists.clone());
                self.calls[completion.direction].add(call);
                decoded.is_reverse = completion.is_reverse(true);
            }
            Procedure::NoMsg => self.reply_in_chunk(&header, completion, &mut decoded),
            Procedure::Error => {
                let call = self.calls[completion.direction.peer()].remove(header.xid);
                decoded.call = call.as_ref().map(OutstandingCall::reference);
                decoded.is_reverse = completion.is_reverse(false);
            }
            Procedure::Done => {}
        }
        decoded.header = Some(header);
        Some(Box::new(decoded))
    }

    fn call(&mut self, header: &Header, xdr: Xdr<'_>, completion: Completion, decoded: &mut Decoded) {
        decoded.is_reverse = completion.is_reverse(true);
        let seen = (completion.frame, completion.time);
        let mut outstanding = OutstandingCall::new(header.xid, seen, header.lists.clone());
        match Call::read(xdr, &header.lists.reads, decoded.is_reverse == Some(true)) {
            Ok((call, stop)) => {
                (outstanding.target, outstanding.is_protected) = (Some(call.target), call.is_protected());
                (decoded.message, decoded.stop) = (Some(RpcMessage::Call(call)), stop);
            }
            Err(stop) => decoded.stop = Some(stop),
        }
        self.calls[completion.direction].add(outstanding);
    }

    fn reply(&mut self, header: &Header, xdr: Xdr<'_>, completion: Completion, decoded: &mut Decoded) {
        decoded.is_reverse = completion.is_reverse(false);
        let call = self.calls[completion.direction.peer()].remove(header.xid);
        read_reply(header, xdr, call.as_ref(), decoded);
    }

    /// Decodes a reply whose RPC message is in the Reply chunk.
    fn reply_in_chunk(&mut self, header: &Header, completion: Completion, decoded: &mut Decoded) {
        decoded.is_reverse = completion.is_reverse(false);
        decoded.carrier = Carrier::ReplyChunk;
        let Some(chunk) = &header.lists.reply else {
            decoded.stop = Some(Stop::Malformed);
            return;
        };
        // The segments of the reply have the lengths that the responder wrote.
        let len = chunk.length();
        let call = self.calls[completion.direction.peer()].remove(header.xid);
        let bytes = call.as_ref().map(|call| call.reply.beginning()).unwrap_or_default();
        let bytes = &bytes[..bytes.len().min(usize::try_from(len).unwrap_or(usize::MAX))];
        let xdr = Xdr::new(bytes, bytes.len() as u64 == len);
        read_reply(header, xdr, call.as_ref(), decoded);
    }
}

/// Decodes a reply. `call` is the call, if it was captured.
fn read_reply(header: &Header, xdr: Xdr<'_>, call: Option<&OutstandingCall>, decoded: &mut Decoded) {
    decoded.call = call.map(OutstandingCall::reference);
    let target = call.and_then(|call| call.target);
    let is_protected = call.is_some_and(|call| call.is_protected);
    match Reply::read(xdr, &header.lists.writes, target, is_protected) {
        Ok((reply, stop)) if reply.xid == header.xid => {
            (decoded.message, decoded.stop) = (Some(RpcMessage::Reply(reply)), stop);
        }
        Ok(_) => decoded.stop = Some(Stop::Malformed),
        Err(stop) => decoded.stop = Some(stop),
    }
}
