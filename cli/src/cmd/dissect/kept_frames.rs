//! [`KeptFrames`] keeps the latest frames in memory, and [`Openings`] keeps the first frames of
//! each connection.
//!
//! **Memory.** Both have a limit in bytes. The bytes of all kept frames are in one buffer, so that
//! a frame needs no allocation of its own.

use std::collections::{BTreeMap, VecDeque};

use weft_dissector::source::Frame;
use weft_dissector::{FrameNumber, StreamId};

/// Number of frames of an opening: the SYNs and start-up frames, with their acknowledgements.
const OPENING_FRAMES: usize = 12;
/// Maximum memory of an opening, and of all openings, in bytes.
const MAX_OPENING: usize = 32 << 10;
const MAX_OPENINGS: usize = 16 << 20;
/// Estimated memory of an opening in addition to its frames, in bytes.
const OPENING_OVERHEAD: usize = 512;

/// The connection of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Owner {
    /// The TCP connection with this number.
    Connection(StreamId),
    /// The frame is a port mapper message or a fragment. It can be necessary for judging any
    /// connection.
    Any,
    /// The frame belongs to no connection.
    Nobody,
}

impl Owner {
    /// Returns whether the frame is necessary for judging the connection `stream`.
    pub(super) fn concerns(self, stream: Option<StreamId>) -> bool {
        match self {
            Owner::Connection(own) => stream == Some(own),
            Owner::Any => true,
            Owner::Nobody => false,
        }
    }
}

/// A kept frame without its bytes.
#[derive(Debug, Clone, Copy)]
struct KeptFrame {
    number: FrameNumber,
    time: u64,
    interface: u32,
    link_type: u16,
    len: usize,
    wire_len: u32,
    owner: Owner,
}

/// The latest frames, in their order.
#[derive(Debug)]
pub(super) struct KeptFrames {
    frames: VecDeque<KeptFrame>,
    /// The bytes of all frames.
    octets: VecDeque<u8>,
    /// A frame is dropped when it is older than this time, in nanoseconds.
    keep: u64,
    /// Maximum memory in bytes.
    most: usize,
}

impl KeptFrames {
    pub(super) fn new(keep: u64, most: usize) -> Self {
        KeptFrames { frames: VecDeque::new(), octets: VecDeque::new(), keep, most }
    }

    /// Approximate memory in bytes.
    fn memory(&self) -> usize {
        self.octets.len() + self.frames.len() * size_of::<KeptFrame>()
    }

    /// Returns whether a frame of `len` bytes fits without dropping another frame.
    pub(super) fn has_room(&self, len: usize) -> bool {
        self.memory().saturating_add(len).saturating_add(size_of::<KeptFrame>()) <= self.most
    }

    /// Adds a frame. Drops old frames, and the oldest frames until there is room.
    pub(super) fn push(&mut self, frame: &Frame<'_>, owner: Owner) {
        let keep = self.keep;
        let is_old = |first: &KeptFrame| frame.time.saturating_sub(first.time) > keep;
        while self.frames.front().is_some_and(is_old) {
            self.drop_first();
        }
        self.make_room(frame.octets.len());
        self.add(frame, owner);
    }

    /// Drops the oldest frames until there is room for a frame of `len` bytes.
    pub(super) fn make_room(&mut self, len: usize) {
        while !self.frames.is_empty() && !self.has_room(len) {
            self.drop_first();
        }
    }

    /// Maximum memory in bytes.
    pub(super) fn most(&self) -> usize {
        self.most
    }

    fn drop_first(&mut self) {
        if let Some(first) = self.frames.pop_front() {
            self.octets.drain(..first.len.min(self.octets.len()));
        }
    }

    /// Adds a frame, and drops nothing.
    pub(super) fn add(&mut self, frame: &Frame<'_>, owner: Owner) {
        let Frame { number, time, interface, link_type, octets, wire_len } = *frame;
        self.octets.extend(octets);
        self.frames.push_back(KeptFrame { number, time, interface, link_type, len: octets.len(), wire_len, owner });
    }

    /// Drops the frames that do not concern the connection `stream`.
    pub(super) fn retain(&mut self, stream: Option<StreamId>) {
        // The bytes move within the buffer, because a second buffer would double the memory.
        let all = self.octets.make_contiguous();
        let (mut from, mut to) = (0, 0);
        self.frames.retain(|kept| {
            let octets = from..from + kept.len;
            from = octets.end;
            let is_kept = kept.owner.concerns(stream);
            if is_kept {
                all.copy_within(octets, to);
                to += kept.len;
            }
            is_kept
        });
        self.octets.truncate(to);
    }

    /// Number of the first frame.
    pub(super) fn first(&self) -> FrameNumber {
        self.frames.front().map_or(FrameNumber::MAX, |first| first.number)
    }

    /// Passes each frame to `each`, in their order.
    pub(super) fn for_each(&mut self, mut each: impl FnMut(&Frame<'_>, Owner)) {
        let all: &[u8] = self.octets.make_contiguous();
        let mut start = 0;
        for kept in &self.frames {
            let KeptFrame { number, time, interface, link_type, len, wire_len, owner } = *kept;
            let octets = all.get(start..start + len).unwrap_or_default();
            each(&Frame { number, time, interface, link_type, octets, wire_len }, owner);
            start += len;
        }
    }
}

/// The first frames of each connection. They have the parameters of the connection, without which
/// its later frames cannot be judged.
#[derive(Debug, Default)]
pub(super) struct Openings {
    by_stream: BTreeMap<StreamId, KeptFrames>,
    /// All connections with smaller numbers have begun.
    next: StreamId,
    memory: usize,
}

impl Openings {
    /// Adds a frame of the connection `stream`, if it is one of the first frames. Drops the oldest
    /// openings until there is room.
    pub(super) fn push(&mut self, stream: StreamId, frame: &Frame<'_>) {
        let is_new = stream >= self.next;
        if is_new {
            // Connection numbers increase in the order of the first frames.
            self.next = stream.next();
            self.by_stream.insert(stream, KeptFrames::new(u64::MAX, MAX_OPENING));
            self.memory += OPENING_OVERHEAD;
        }
        let Some(opening) = self.by_stream.get_mut(&stream) else { return };
        if opening.frames.len() >= OPENING_FRAMES || !opening.has_room(frame.octets.len()) {
            return;
        }
        opening.add(frame, Owner::Connection(stream));
        self.memory += frame.octets.len() + size_of::<KeptFrame>();
        while self.memory > MAX_OPENINGS
            && let Some((_, oldest)) = self.by_stream.pop_first()
        {
            self.memory = self.memory.saturating_sub(oldest.memory() + OPENING_OVERHEAD);
        }
    }

    /// Removes the first frames of a connection.
    pub(super) fn take(&mut self, stream: StreamId) -> Option<KeptFrames> {
        self.by_stream.remove(&stream)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;

    /// A frame of `len` bytes. Its time is its number in seconds.
    fn frame(number: u64, octets: &[u8]) -> Frame<'_> {
        let wire_len = u32::try_from(octets.len()).unwrap();
        Frame { number: number.into(), time: number * SECOND, interface: 0, link_type: 1, octets, wire_len }
    }

    /// The numbers of the kept frames. Each byte of a frame must be its number.
    fn numbers(kept: &mut KeptFrames) -> Vec<u64> {
        let mut numbers = Vec::new();
        kept.for_each(|frame, _| {
            let number = u64::from(frame.number);
            assert!(frame.octets.iter().all(|octet| u64::from(*octet) == number), "{frame:?}");
            numbers.push(number);
        });
        numbers
    }

    #[test]
    fn drops_old_frames() {
        let mut kept = KeptFrames::new(3 * SECOND, 1 << 20);
        for number in 1..=10 {
            kept.push(&frame(number, &[u8::try_from(number).unwrap(); 100]), Owner::Nobody);
        }
        assert_eq!((numbers(&mut kept), kept.first()), (vec![7, 8, 9, 10], 7.into()));
    }

    #[test]
    fn drops_the_oldest_frames_if_there_is_no_room() {
        let most = 3 * (100 + size_of::<KeptFrame>());
        let mut kept = KeptFrames::new(u64::MAX, most);
        for number in 1..=10 {
            kept.push(&frame(number, &[u8::try_from(number).unwrap(); 100]), Owner::Nobody);
            assert!(kept.memory() <= most);
        }
        assert_eq!(numbers(&mut kept), [8, 9, 10]);
        assert!(!kept.has_room(1));
        kept.make_room(150);
        assert_eq!(numbers(&mut kept), [10]);
    }

    #[test]
    fn retains_the_frames_of_a_connection() {
        let mut kept = KeptFrames::new(u64::MAX, 1 << 20);
        let owners = [Owner::Connection(3.into()), Owner::Connection(4.into()), Owner::Any, Owner::Nobody];
        for (number, owner) in (1..).zip(owners) {
            kept.push(&frame(number, &[u8::try_from(number).unwrap(); 10]), owner);
        }
        kept.retain(Some(4.into()));
        assert_eq!(numbers(&mut kept), [2, 3]);
        kept.retain(None);
        assert_eq!(numbers(&mut kept), [3]);
    }

    #[test]
    fn the_first_frames_of_a_connection_remain() {
        let mut openings = Openings::default();
        for number in 1..=100 {
            openings.push(StreamId::from(u32::try_from(number % 2).unwrap()), &frame(number, &[]));
        }
        // Connection 1 begins before connection 0, which therefore does not count as new.
        assert!(openings.take(0.into()).is_none());
        let mut opening = openings.take(1.into()).unwrap();
        assert_eq!(numbers(&mut opening).len(), OPENING_FRAMES);
        assert!(openings.take(1.into()).is_none());
    }

    #[test]
    fn openings_have_a_limit() {
        let mut openings = Openings::default();
        let octets = [0; 16 << 10];
        for stream in 0..2000_u32 {
            openings.push(stream.into(), &frame(0, &octets));
        }
        assert!(openings.memory <= MAX_OPENINGS);
        assert!(openings.take(0.into()).is_none() && openings.take(1999.into()).is_some());
    }
}
