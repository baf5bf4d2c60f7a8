//! rping, the ping of librdmacm: a Send has 16 bytes that name a buffer: `buf` (64 bits), `rkey`,
//! `size` (32 bits each), big-endian.
//!
//! The client announces its source, and the server reads it. The server then sends the same number
//! of bytes as a signal to continue. The client announces its sink, and the server writes it and
//! sends the signal again.
//!
//! **Proved by** a Read Request with exactly the buffer, key and size of a 16-byte Send of the
//! other end, whose Response begins with `rdma-ping-`. After that, every Send has 16 bytes.

use std::fmt;

use weft_core::wire::ddp::Segment;
use weft_core::wire::rdmap::ReadRequest;

use super::protocol::{self, Len, Protocol, Verdict, word};
use crate::direction::Direction;
use crate::parse::SegmentView;

/// Bytes of a Send.
const LEN: u64 = 16;
/// The beginning of the data of each ping.
const DATA: &[u8] = b"rdma-ping-";

/// A Send of rping.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Message {
    /// Address of the buffer.
    pub buf: u64,
    /// Its STag.
    pub rkey: u32,
    /// Its size in bytes.
    pub size: u32,
}

impl Message {
    /// The server leaves all fields zero when it signals the client to continue.
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

/// The progress of the proof on a connection.
#[derive(Debug, Clone, Default)]
pub(crate) struct Connection {
    /// The last buffer that each direction announced.
    announced: [Option<Message>; 2],
    /// The sink of the Read that named it: STag and TO.
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

    fn message(&mut self, direction: Direction, message: &Message) {
        self.announced[direction] = Some(*message).filter(|buffer| !buffer.is_empty());
    }

    /// Records whether `direction` reads the buffer that the other one announced.
    fn read_request(&mut self, direction: Direction, view: &SegmentView<'_>) {
        let (own, peer) = (direction, direction.peer());
        let Some(buffer) = self.announced[peer] else { return };
        let request = view.payload.get(0..28).and_then(|bytes| ReadRequest::parse(bytes).ok());
        self.sink[own] = request
            .filter(|read| (read.src_to, read.src_stag, read.rdmardsz) == (buffer.buf, buffer.rkey, buffer.size))
            .map(|read| (read.sink_stag, read.sink_to));
    }

    /// Does this segment belong to the Read Response of such a Read, with the data of a ping?
    fn is_proved_by_response(&self, direction: Direction, view: &SegmentView<'_>) -> bool {
        let Segment::Tagged(header, _) = view.segment else { return false };
        let place = (header.stag.get(), header.tagged_offset.get());
        self.sink[direction.peer()] == Some(place) && view.payload.beginning().starts_with(DATA)
    }
}
