//! rping, the ping of librdmacm: a Send has 16 octets that name a buffer: `buf` (64 bits), `rkey`,
//! `size` (32 bits each), big-endian.
//!
//! The client announces its source, and the server reads it. The server then sends the same number
//! of octets as a signal to continue. The client announces its sink, and the server writes it and
//! sends the signal again.
//!
//! **Proved by** a Read Request with exactly the buffer, key and size of a 16-octet Send of the
//! other end, whose Response begins with `rdma-ping-`. After that, every Send has 16 octets.

use std::fmt;

use weft_core::wire::ddp::Segment;
use weft_core::wire::rdmap::ReadRequest;

use super::verdict::{Len, Verdict, beginning, word};
use crate::direction::Direction;
use crate::parse::SegmentView;

/// Octets of a Send.
const LEN: u64 = 16;
/// The beginning of the data of each ping.
const DATA: &[u8] = b"rdma-ping-";

/// A Send of rping.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rping {
    /// Address of the buffer.
    pub buf: u64,
    /// Its STag.
    pub rkey: u32,
    /// Its octets.
    pub size: u32,
}

impl Rping {
    /// The server leaves all fields zero when it signals the client to continue.
    fn is_empty(&self) -> bool {
        (self.buf, self.rkey, self.size) == (0, 0, 0)
    }

    pub(super) fn message(&self) -> &'static str {
        if self.is_empty() { "go on" } else { "buffer" }
    }

    pub(super) fn details(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_empty() {
            return Ok(());
        }
        write!(f, " {:#x} rkey {:#010x} size {}", self.buf, self.rkey, self.size)
    }
}

/// The progress of the proof.
#[derive(Debug, Clone, Default)]
pub(super) struct Search {
    /// The last buffer that each direction announced.
    announced: [Option<Rping>; 2],
    /// The sink of the Read that named it: STag and TO.
    sink: [Option<(u32, u64)>; 2],
}

impl Search {
    pub(super) fn send(octets: &[u8], is_complete: bool) -> Verdict<Rping> {
        let (Some(high), Some(low), Some(rkey), Some(size)) =
            (word(octets, 0), word(octets, 4), word(octets, 8), word(octets, 12))
        else {
            return if is_complete { Verdict::Not } else { Verdict::Open };
        };
        let parsed = Rping { buf: u64::from(high) << 32 | u64::from(low), rkey, size };
        Verdict::Is { parsed, len: Len::Exactly(LEN), proves: false }
    }

    /// `direction` announced a buffer.
    pub(super) fn announced(&mut self, direction: Direction, info: Rping) {
        self.announced[direction] = Some(info).filter(|info| !info.is_empty());
    }

    /// `direction` reads. Records whether it reads the buffer that the other one announced.
    pub(super) fn read_request(&mut self, direction: Direction, view: &SegmentView<'_>) {
        let (own, peer) = (direction, direction.peer());
        let Some(info) = self.announced[peer] else { return };
        let request = view.payload.get(0..28).and_then(|octets| ReadRequest::parse(octets).ok());
        self.sink[own] = request
            .filter(|read| (read.src_to, read.src_stag, read.rdmardsz) == (info.buf, info.rkey, info.size))
            .map(|read| (read.sink_stag, read.sink_to));
    }

    /// Does this segment belong to the Read Response of such a Read, with the data of a ping?
    pub(super) fn is_proved_by(&self, direction: Direction, view: &SegmentView<'_>) -> bool {
        let Segment::Tagged(header, _) = view.segment else { return false };
        let place = (header.stag.get(), header.tagged_offset.get());
        self.sink[direction.peer()] == Some(place) && beginning(view).starts_with(DATA)
    }
}
