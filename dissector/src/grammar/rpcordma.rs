//! Defines the fields of RPC-over-RDMA version 1: the transport header (RFC 8166 section 4) and the
//! settings in private data (RFC 8797 section 4).

use std::ops::Range;

use super::field::{Base, Field, Group, Value, Visitor, fields, nth_name};
use crate::part::Part;
use crate::upper::rpcrdma::Decoded;
use crate::upper::rpcrdma::header::{Header, Segment, TransportError};
use crate::upper::rpcrdma::private_data::{self, PrivateData};

/// Settings in private data.
pub static PRIVATE_DATA: Group =
    Group { name: "rpcordma.cm", label: "RPC-over-RDMA CM Private Data", section: "RFC 8797 4" };
/// A transport header.
pub static HEADER: Group = Group { name: "rpcordma", label: "RPC-over-RDMA", section: "RFC 8166 4.2" };
/// A segment of the read list.
pub static READ_SEGMENT: Group =
    Group { name: "rpcordma.read_segment", label: "Read segment", section: "RFC 8166 4.3.1" };
/// A Write chunk.
pub static WRITE_CHUNK: Group = Group { name: "rpcordma.write_chunk", label: "Write chunk", section: "RFC 8166 4.3.2" };
/// The Reply chunk.
pub static REPLY_CHUNK: Group = Group { name: "rpcordma.reply_chunk", label: "Reply chunk", section: "RFC 8166 4.3.3" };

fields! { 16:
    XID: "rpcordma.xid", "XID", Base::Hex(8), "RFC 8166 4.2.1";
    VERSION: "rpcordma.version", "Version", Base::Dec, "RFC 8166 4.2.2";
    FLOW_CONTROL: "rpcordma.flow_control", "Credits", Base::Dec, "RFC 8166 4.2.3";
    MSG_TYPE: "rpcordma.msg_type", "Procedure", Base::Dec, "RFC 8166 4.2.4", names procedure_name;
    RDMA_ALIGN: "rpcordma.rdma_align", "Alignment", Base::Dec, "RFC 8166 4.1.2";
    RDMA_THRESH: "rpcordma.rdma_thresh", "Threshold", Base::Dec, "RFC 8166 4.1.2";
    READS_COUNT: "rpcordma.reads_count", "Segments in the read list", Base::Dec, "RFC 8166 4.3.1";
    WRITES_COUNT: "rpcordma.writes_count", "Chunks in the write list", Base::Dec, "RFC 8166 4.3.2";
    REPLY_COUNT: "rpcordma.reply_count", "Reply chunks", Base::Dec, "RFC 8166 4.3.3";
    POSITION: "rpcordma.position", "Position in the RPC message", Base::Dec, "RFC 8166 4.3.1";
    SEGMENT_COUNT: "rpcordma.segment_count", "Segments of the chunk", Base::Dec, "RFC 8166 4.3.2";
    RDMA_HANDLE: "rpcordma.rdma_handle", "Handle", Base::Hex(8), "RFC 8166 3.4.3";
    RDMA_LENGTH: "rpcordma.rdma_length", "Length", Base::Dec, "RFC 8166 3.4.3";
    RDMA_OFFSET: "rpcordma.rdma_offset", "Offset", Base::Hex(16), "RFC 8166 3.4.3";
    ERRCODE: "rpcordma.errcode", "Error code", Base::Dec, "RFC 8166 4.5", names error_name;
    VERS_LOW: "rpcordma.vers_low", "Lowest version", Base::Dec, "RFC 8166 4.5.1";
    VERS_HIGH: "rpcordma.vers_high", "Highest version", Base::Dec, "RFC 8166 4.5.1";
    INLINE_THRESHOLD: "rpcordma.inline_threshold", "Inline threshold of the sender", Base::Dec, "RFC 8166 3.3.2";
    REVERSE: "rpcordma.reverse", "Reverse direction (the server calls the client)", Base::Flag, "RFC 8167 2.2";
    CM_IDENTIFIER: "rpcordma.cm.identifier", "Format Identifier", Base::Hex(8), "RFC 8797 4";
    CM_VERSION: "rpcordma.cm.version", "Version", Base::Dec, "RFC 8797 4";
    CM_RESERVED: "rpcordma.cm.reserved", "Reserved", Base::Hex(2), "RFC 8797 4", mask 0xfe;
    CM_REMOTE_INVALIDATION: "rpcordma.cm.remote_invalidation", "R (remote invalidation)", Base::Flag, "RFC 8797 4.1", mask 0x01;
    CM_SEND_SIZE: "rpcordma.cm.send_size", "Send Size in bytes", Base::Dec, "RFC 8797 4.2";
    CM_RECEIVE_SIZE: "rpcordma.cm.receive_size", "Receive Size in bytes", Base::Dec, "RFC 8797 4.2";
}

/// The fields that a header can have several times.
static REPEATED: [&Field; 5] = [&POSITION, &SEGMENT_COUNT, &RDMA_HANDLE, &RDMA_LENGTH, &RDMA_OFFSET];

/// Whether a header can have the field several times.
pub(super) fn is_list(field: &Field) -> bool {
    field.bit.0 == XID.bit.0 && REPEATED.iter().any(|repeated| std::ptr::eq(*repeated, field))
}

fn procedure_name(procedure: u64) -> Option<&'static str> {
    nth_name(&["RDMA_MSG", "RDMA_NOMSG", "RDMA_MSGP", "RDMA_DONE", "RDMA_ERROR"], procedure)
}

fn error_name(code: u64) -> Option<&'static str> {
    TransportError::name(u32::try_from(code).ok()?)
}

/// Offset of the payload of an untagged segment in the unit of its FPDU, in octets.
const PAYLOAD_AT: u32 = 2 + 18;

/// Converts offsets in a message to offsets in the FPDU that completes the message.
#[derive(Clone, Copy)]
pub(super) struct Locator {
    /// Message Offset of the segment in the FPDU; `None` if the message is not in a Send.
    segment_at: Option<u32>,
    /// Number of octets before the part of the message in the Send.
    base: u32,
    /// Offset of the end of the FPDU.
    end: usize,
}

impl Locator {
    /// A locator for the transport header.
    pub(super) fn of_header(decoded: &Decoded, end: usize) -> Self {
        Locator { segment_at: Some(decoded.segment_at), base: 0, end }
    }

    /// A locator for the RPC message.
    pub(super) fn of_rpc(decoded: &Decoded, end: usize) -> Self {
        let at = decoded.rpc_at();
        Locator { segment_at: at.map(|_| decoded.segment_at), base: at.unwrap_or(0), end }
    }

    /// The range of `len` octets at offset `at` of the message. The range is empty if not all of
    /// these octets are in the FPDU.
    pub(super) fn locate(&self, at: u32, len: u32) -> Range<usize> {
        let located = self.segment_at.and_then(|segment_at| {
            let start = self.base.checked_add(at)?.checked_sub(segment_at)?.checked_add(PAYLOAD_AT)?;
            let range = usize::try_from(start).ok()?..usize::try_from(start.checked_add(len)?).ok()?;
            (range.end <= self.end).then_some(range)
        });
        located.unwrap_or(self.end..self.end)
    }
}

/// Visits the settings in the private data of a start-up frame, if there are any.
pub(super) fn visit_startup<V: Visitor>(frame: Part<'_>, visitor: &mut V) {
    let Some((private, private_at)) = crate::upper::private_data(frame) else { return };
    let Some(found) = PrivateData::find(private) else { return };
    let at = private_at + found.at;
    visitor.enter(&PRIVATE_DATA, at..at + private_data::LEN);
    let mut uint = |field: &'static Field, value: u32, range: Range<usize>| {
        visitor.field(field, Value::Uint(value.into()), at + range.start..at + range.end);
    };
    uint(&CM_IDENTIFIER, private_data::FORMAT_IDENTIFIER, 0..4);
    uint(&CM_VERSION, found.version.into(), 4..5);
    uint(&CM_RESERVED, u32::from(found.flags) >> 1, 5..6);
    uint(&CM_REMOTE_INVALIDATION, found.has_remote_invalidation().into(), 5..6);
    uint(&CM_SEND_SIZE, found.send_size(), 6..7);
    uint(&CM_RECEIVE_SIZE, found.receive_size(), 7..8);
    visitor.leave();
}

/// Visits the transport header of a message. `end` is the offset of the end of the FPDU.
pub(super) fn visit<V: Visitor>(decoded: &Decoded, end: usize, visitor: &mut V) {
    let Some(header) = &decoded.header else { return };
    let mut fields = Fields { locator: Locator::of_header(decoded, end), visitor };
    fields.header(header, decoded);
}

/// Passes fields with their ranges to a visitor.
pub(super) struct Fields<'v, V> {
    pub(super) locator: Locator,
    pub(super) visitor: &'v mut V,
}

impl<V: Visitor> Fields<'_, V> {
    pub(super) fn enter(&mut self, group: &'static Group, at: u32, len: u32) {
        self.visitor.enter(group, self.locator.locate(at, len));
    }

    pub(super) fn leave(&mut self) {
        self.visitor.leave();
    }

    /// Visits a number of `len` octets at offset `at` of the message.
    pub(super) fn uint(&mut self, field: &'static Field, value: impl Into<u64>, at: u32, len: u32) {
        self.visitor.field(field, Value::Uint(value.into()), self.locator.locate(at, len));
    }

    /// Visits a value without octets.
    pub(super) fn derived(&mut self, field: &'static Field, value: Value<'_>) {
        let end = self.locator.end;
        self.visitor.field(field, value, end..end);
    }

    fn header(&mut self, header: &Header, decoded: &Decoded) {
        self.enter(&HEADER, 0, header.len);
        self.uint(&XID, header.xid, 0, 4);
        self.uint(&VERSION, header.version, 4, 4);
        self.uint(&FLOW_CONTROL, header.credits, 8, 4);
        self.uint(&MSG_TYPE, header.procedure as u32, 12, 4);
        if let Some((align, threshold)) = header.alignment {
            self.uint(&RDMA_ALIGN, align, 16, 4);
            self.uint(&RDMA_THRESH, threshold, 20, 4);
        }
        if let Some(error) = header.error {
            self.uint(&ERRCODE, error.code(), 16, 4);
            if let TransportError::Version { low, high } = error {
                self.uint(&VERS_LOW, low, 20, 4);
                self.uint(&VERS_HIGH, high, 24, 4);
            }
        }
        let lists = &header.lists;
        if header.has_lists() {
            self.derived(&READS_COUNT, Value::Uint(lists.reads.len() as u64));
            self.derived(&WRITES_COUNT, Value::Uint(lists.writes.len() as u64));
            self.derived(&REPLY_COUNT, Value::Uint(u64::from(lists.reply.is_some())));
        }
        self.derived(&INLINE_THRESHOLD, Value::Uint(decoded.inline_threshold.into()));
        if let Some(is_reverse) = decoded.is_reverse {
            self.derived(&REVERSE, Value::Uint(is_reverse.into()));
        }
        for read in &lists.reads {
            let at = read.segment.at.saturating_sub(4);
            self.enter(&READ_SEGMENT, at, 20);
            self.uint(&POSITION, read.position, at, 4);
            self.segment(&read.segment);
            self.leave();
        }
        let chunks = lists.writes.iter().map(|chunk| (&WRITE_CHUNK, chunk));
        for (group, chunk) in chunks.chain(lists.reply.iter().map(|chunk| (&REPLY_CHUNK, chunk))) {
            self.enter(group, chunk.at, chunk.count.saturating_mul(16).saturating_add(4));
            self.uint(&SEGMENT_COUNT, chunk.count, chunk.at, 4);
            for segment in &chunk.segments {
                self.segment(segment);
            }
            self.leave();
        }
        self.leave();
    }

    fn segment(&mut self, segment: &Segment) {
        self.uint(&RDMA_HANDLE, segment.handle, segment.at, 4);
        self.uint(&RDMA_LENGTH, segment.length, segment.at.saturating_add(4), 4);
        self.uint(&RDMA_OFFSET, segment.offset, segment.at.saturating_add(8), 8);
    }
}
