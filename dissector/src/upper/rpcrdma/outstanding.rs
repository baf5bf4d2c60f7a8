//! [`Outstanding`]: the calls of one direction that have no reply yet.

use std::collections::VecDeque;

use super::decoded::CallReference;
use super::header::Lists;
use super::message::Target;
use super::placed::PlacedBytes;
use crate::frame_number::FrameNumber;
use crate::part::Part;

/// Maximum number of calls of one direction that wait for a reply. If an endpoint sends more calls,
/// the oldest call is dropped. Real endpoints have at most 128 credits.
const MAX_CALLS: usize = 256;
/// Maximum number of segments that are stored of all calls of one direction. If it is exceeded, the
/// oldest call is dropped.
const MAX_STORED_SEGMENTS: usize = 8192;
/// Maximum number of bytes that are stored of the chunks of all calls of one direction.
const MAX_PLACED_BYTES: usize = 256 << 10;

/// A call without a reply.
#[derive(Debug, Clone)]
pub(super) struct OutstandingCall {
    pub(super) xid: u32,
    pub(super) frame: FrameNumber,
    pub(super) time: u64,
    /// The procedure; `None` if the RPC message of the call was not read.
    pub(super) target: Option<Target>,
    /// Whether the arguments and results are encrypted or have a checksum.
    pub(super) is_protected: bool,
    pub(super) lists: Lists,
    /// The bytes of the Position Zero Read chunk.
    pub(super) argument: PlacedBytes,
    /// Whether the RPC message in these bytes was read.
    pub(super) is_argument_read: bool,
    /// The bytes of the Reply chunk.
    pub(super) reply: PlacedBytes,
    pub(super) read_bytes: u64,
    pub(super) written_bytes: u64,
}

impl OutstandingCall {
    /// A call whose Send was completed in frame `frame` at the time `time`, in nanoseconds since
    /// 1970.
    pub(super) fn new(xid: u32, (frame, time): (FrameNumber, u64), lists: Lists) -> Self {
        OutstandingCall {
            xid,
            frame,
            time,
            target: None,
            is_protected: false,
            lists,
            argument: PlacedBytes::default(),
            is_argument_read: false,
            reply: PlacedBytes::default(),
            read_bytes: 0,
            written_bytes: 0,
        }
    }

    /// The facts that a reply reports about the call.
    pub(super) fn reference(&self) -> CallReference {
        let OutstandingCall { frame, time, read_bytes, written_bytes, .. } = *self;
        CallReference { frame, time, lists: self.lists.clone(), read_bytes, written_bytes }
    }

    fn segments(&self) -> usize {
        let Lists { reads, writes, reply } = &self.lists;
        reads.len() + writes.iter().chain(reply).map(|chunk| chunk.segments.len() + 1).sum::<usize>()
    }

    fn placed(&self) -> usize {
        self.argument.len() + self.reply.len()
    }
}

/// The calls of one direction.
#[derive(Debug, Clone, Default)]
pub(super) struct Outstanding {
    calls: VecDeque<OutstandingCall>,
    segments: usize,
    placed: usize,
}

impl Outstanding {
    /// Adds a call. A call with the same XID is dropped, because the new call repeats it.
    pub(super) fn add(&mut self, call: OutstandingCall) {
        self.remove(call.xid);
        self.segments += call.segments();
        self.calls.push_back(call);
        while self.calls.len() > MAX_CALLS || self.segments > MAX_STORED_SEGMENTS && self.calls.len() > 1 {
            let Some(oldest) = self.calls.front().map(|call| call.xid) else { return };
            self.remove(oldest);
        }
    }

    /// Removes and returns the call with the XID `xid`.
    pub(super) fn remove(&mut self, xid: u32) -> Option<OutstandingCall> {
        let at = self.calls.iter().position(|call| call.xid == xid)?;
        let call = self.calls.remove(at)?;
        self.segments -= call.segments();
        self.placed -= call.placed();
        Some(call)
    }

    /// The call with the XID `xid`.
    pub(super) fn get_mut(&mut self, xid: u32) -> Option<&mut OutstandingCall> {
        self.calls.iter_mut().find(|call| call.xid == xid)
    }

    /// Records an RDMA Write to the tagged offset `to` of the STag `stag`. The bytes of a Reply
    /// chunk are stored.
    pub(super) fn record_write(&mut self, stag: u32, to: u64, part: Part<'_>) {
        let room = MAX_PLACED_BYTES.saturating_sub(self.placed);
        // The newest call first: its STags are the most recent registrations.
        for call in self.calls.iter_mut().rev() {
            if let Some(at) = call.lists.reply.as_ref().and_then(|chunk| chunk.distance(stag, to)) {
                call.written_bytes += part.len() as u64;
                let before = call.reply.len();
                call.reply.place(at, part, room);
                self.placed += call.reply.len() - before;
                return;
            }
            if call.lists.writes.iter().any(|chunk| chunk.distance(stag, to).is_some()) {
                call.written_bytes += part.len() as u64;
                return;
            }
        }
    }

    /// Finds the Read chunk that contains the tagged offset `to` of the STag `stag`. Returns the
    /// XID of its call. If it is a Position Zero Read chunk, also returns the offset in the chunk.
    pub(super) fn find_read(&self, stag: u32, to: u64) -> Option<(u32, Option<u64>)> {
        self.calls.iter().rev().find_map(|call| {
            let mut zero = 0;
            for read in &call.lists.reads {
                if let Some(distance) = read.segment.distance(stag, to) {
                    return Some((call.xid, (read.position == 0).then_some(zero + distance)));
                }
                if read.position == 0 {
                    zero += u64::from(read.segment.length);
                }
            }
            None
        })
    }

    /// Records bytes of a Read Response for the call `xid`. `at` is their offset in the Position
    /// Zero Read chunk, if they belong to it.
    pub(super) fn record_response(&mut self, xid: u32, at: Option<u64>, part: Part<'_>) {
        let room = MAX_PLACED_BYTES.saturating_sub(self.placed);
        let Some(call) = self.get_mut(xid) else { return };
        call.read_bytes += part.len() as u64;
        if let Some(at) = at {
            let before = call.argument.len();
            call.argument.place(at, part, room);
            let added = call.argument.len() - before;
            self.placed += added;
        }
    }

    /// Allocated memory in bytes.
    pub(super) fn memory(&self) -> usize {
        let lists: usize = self.calls.iter().map(|call| call.lists.memory()).sum();
        self.calls.len() * size_of::<OutstandingCall>() + lists + 2 * self.placed
    }
}

#[cfg(test)]
mod tests {
    use super::super::header::{Chunk, Segment};
    use super::*;

    fn call(xid: u32, length: u32) -> OutstandingCall {
        let segment = Segment { handle: xid, length, offset: 0x1000, at: 0 };
        let reply = Some(Chunk { segments: vec![segment], count: 1, at: 0 });
        OutstandingCall::new(xid, (1.into(), 0), Lists { reply, ..Lists::default() })
    }

    #[test]
    fn the_oldest_call_is_dropped() {
        let mut calls = Outstanding::default();
        (0..=MAX_CALLS as u32).for_each(|xid| calls.add(call(xid, 16)));
        assert!(calls.remove(0).is_none() && calls.remove(1).is_some());
        assert_eq!(calls.calls.len(), MAX_CALLS - 1);
        // A call that is repeated replaces the earlier call.
        calls.add(call(2, 32));
        assert_eq!(calls.calls.len(), MAX_CALLS - 1);
        assert_eq!(calls.remove(2).unwrap().lists.reply.unwrap().length(), 32);
    }

    #[test]
    fn placed_bytes_have_a_limit() {
        let mut calls = Outstanding::default();
        (0..40).for_each(|xid| calls.add(call(xid, u32::MAX)));
        let bytes = vec![7; 1 << 16];
        (0..40).for_each(|xid| calls.record_write(xid, 0x1000, Part::complete(&bytes)));
        assert_eq!(calls.placed, MAX_PLACED_BYTES);
        assert!(calls.memory() < 3 * MAX_PLACED_BYTES);
        let first = calls.remove(0).unwrap();
        assert_eq!((first.reply.beginning().len(), first.written_bytes), (1 << 16, 1 << 16));
        (1..40).for_each(|xid| drop(calls.remove(xid)));
        assert_eq!((calls.placed, calls.segments, calls.memory()), (0, 0, 0));
    }
}
