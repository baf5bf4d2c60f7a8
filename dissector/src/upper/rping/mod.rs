//! Recognises rping, the ping program of librdmacm. A Send has 16 bytes with the fields of a
//! buffer: `buf` (64 bits), `rkey` and `size` (32 bits each), in big-endian order.
//!
//! The client announces its source buffer, and the server reads from this buffer. Then the server
//! sends a signal to continue: a Send of 16 zero bytes. The client announces its sink buffer. The
//! server writes to this buffer, and sends the signal a second time.
//!
//! **Proof**: A Read proves the protocol if its Read Request has exactly the address, the `rkey`
//! and the size from a Send of the peer, and if its Response starts with `rdma-ping-`. If a later
//! Send does not have 16 bytes, it disproves the protocol.

use std::fmt;
use std::ops::Range;

use weft_core::wire::ddp::Segment;
use weft_core::wire::rdmap::ReadRequest;

use super::protocol::{self, Judgement, Len, Protocol, SendInfo, Verdict, only, word};
use crate::direction::Direction;
use crate::parse::SegmentView;

/// Length of a Send in bytes.
const LEN: u64 = 16;
/// The first bytes of the data of each ping.
const DATA: &[u8] = b"rdma-ping-";

/// A Send of rping.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Message {
    /// Address of the buffer.
    pub buf: u64,
    /// STag of the buffer.
    pub rkey: u32,
    /// Size of the buffer in bytes.
    pub size: u32,
}

impl Message {
    /// Returns whether all fields are zero. Such a message is the signal of the server to continue.
    fn is_empty(&self) -> bool {
        (self.buf, self.rkey, self.size) == (0, 0, 0)
    }
}

impl protocol::Message for Message {
    fn name(&self) -> &'static str {
        if self.is_empty() { "go on" } else { "buffer" }
    }

    fn details(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_empty() {
            return Ok(());
        }
        write!(f, " {:#x} rkey {:#010x} size {}", self.buf, self.rkey, self.size)
    }
}

/// The recognition state of a connection.
#[derive(Debug, Clone, Default)]
pub(crate) struct Connection {
    /// The last buffer that each direction announced.
    announced: [Option<Message>; 2],
    /// For each direction, the latest Read of the announced buffer. Stores the STag and the TO of
    /// the Data Sink of this Read.
    sink: [Option<(u32, u64)>; 2],
}

impl Protocol for Connection {
    const NAME: &'static str = "rping";
    const TITLE: &'static str = "rping";
    type Message = Message;

    fn read(bytes: &[u8], is_complete: bool) -> Verdict<Message> {
        let (Some(high), Some(low), Some(rkey), Some(size)) =
            (word(bytes, 0), word(bytes, 4), word(bytes, 8), word(bytes, 12))
        else {
            return if is_complete { Verdict::Not } else { Verdict::Open };
        };
        let parsed = Message { buf: u64::from(high) << 32 | u64::from(low), rkey, size };
        Verdict::Is { parsed, len: Len::Exactly(LEN), proves: false }
    }

    fn headers(bytes: &[u8], is_complete: bool) -> Vec<Range<usize>> {
        // A complete Send of another length is not a message of rping.
        let is_other = is_complete && bytes.len() as u64 != LEN;
        if is_other { Vec::new() } else { only(0..bytes.len().min(LEN as usize)) }
    }

    fn proof_len(data: &[u8]) -> usize {
        if data.starts_with(DATA) { DATA.len() } else { 0 }
    }

    fn message(&mut self, send: &SendInfo, message: &mut Message) -> Judgement {
        self.announced[send.direction] = Some(*message).filter(|buffer| !buffer.is_empty());
        Judgement::Open
    }

    /// Records a Read of `direction` for the buffer that the other direction announced.
    fn read_request(&mut self, direction: Direction, view: &SegmentView<'_>) {
        let (own, peer) = (direction, direction.peer());
        let Some(buffer) = self.announced[peer] else { return };
        let request = view.payload.get(0..28).and_then(|bytes| ReadRequest::parse(bytes).ok());
        self.sink[own] = request
            .filter(|read| (read.src_to, read.src_stag, read.rdmardsz) == (buffer.buf, buffer.rkey, buffer.size))
            .map(|read| (read.sink_stag, read.sink_to));
    }

    /// Returns whether this segment is the start of the Response to a recorded Read, and also
    /// contains the data of a ping.
    fn is_proved_by_response(&self, direction: Direction, view: &SegmentView<'_>) -> bool {
        let Segment::Tagged(header, _) = view.segment else { return false };
        let place = (header.stag.get(), header.tagged_offset.get());
        self.sink[direction.peer()] == Some(place) && view.payload.beginning().starts_with(DATA)
    }
}
