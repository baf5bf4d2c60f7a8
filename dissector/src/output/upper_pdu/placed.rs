//! [`PlacedOctets`]: the data of RDMA Writes and Read Responses, by buffer.
//!
//! The data of a Write has the STag and offset of the Data Sink. The data of a Read Response has
//! the STag and offset of the Data Source, because protocols announce this buffer.

use std::collections::BTreeMap;

use super::octets::Beginning;
use crate::direction::Direction;
use crate::part::Part;
use crate::stream_id::StreamId;
use crate::upper::pdu::ChunkSegment;

/// Maximum memory of the stored data in octets. The oldest data is dropped first.
const MAX_MEMORY: usize = 64 << 20;
/// Estimated memory of an entry in addition to its data, in octets.
const ENTRY_OVERHEAD: usize = 128;

/// A location in a buffer: the connection, the direction of the data, the STag and the offset.
type Key = (StreamId, Direction, u32, u64);

/// The data of one DDP message, or of the rest of a DDP message after missing segments.
#[derive(Debug)]
struct Entry {
    data: Beginning,
    /// Whether the next segment of the message can follow.
    is_open: bool,
    /// The key of the entry in [`PlacedOctets::by_age`].
    age: u64,
}

/// The data of all connections that no PDU has used so far.
#[derive(Debug, Default)]
pub(super) struct PlacedOctets {
    entries: BTreeMap<Key, Entry>,
    /// The keys of the entries, the oldest first.
    by_age: BTreeMap<u64, Key>,
    next_age: u64,
    memory: usize,
    /// Number of octets that were dropped at the limit.
    dropped: u64,
}

impl PlacedOctets {
    /// Stores the data of a segment. `stag` and `offset` are its location, and `is_last` is set for
    /// the last segment of a message.
    pub(super) fn add(
        &mut self,
        (stream, direction): (StreamId, Direction),
        (stag, offset): (u32, u64),
        data: Part<'_>,
        is_last: bool,
    ) {
        let key = (stream, direction, stag, offset);
        let first = (stream, direction, stag, 0);
        if let Some((start, entry)) = self.entries.range_mut(first..=key).next_back()
            && entry.is_open
            && start.3.checked_add(entry.data.len()) == Some(offset)
        {
            let before = entry.data.octets().len();
            entry.data.push_part(data);
            entry.is_open = !is_last;
            self.memory += entry.data.octets().len() - before;
        } else {
            self.remove(key);
            let mut stored = Beginning::default();
            stored.push_part(data);
            self.memory += stored.octets().len() + ENTRY_OVERHEAD;
            self.by_age.insert(self.next_age, key);
            self.entries.insert(key, Entry { data: stored, is_open: !is_last, age: self.next_age });
            self.next_age += 1;
        }
        while self.memory > MAX_MEMORY
            && let Some((_, &oldest)) = self.by_age.first_key_value()
        {
            let len = self.entries.get(&oldest).map_or(0, |entry| entry.data.len());
            self.dropped = self.dropped.saturating_add(len);
            self.remove(oldest);
        }
    }

    /// Number of octets that were dropped at the limit.
    pub(super) fn dropped(&self) -> u64 {
        self.dropped
    }

    /// Passes the data of a buffer to `each`: the data of a message, and the offsets in it. Stops
    /// at the first octet that was not transferred. Returns the number of transferred octets.
    pub(super) fn read(
        &self,
        (stream, direction): (StreamId, Direction),
        segment: ChunkSegment,
        mut each: impl FnMut(&Beginning, u64, u64),
    ) -> u64 {
        let ChunkSegment { stag, offset, len } = segment;
        let end = offset.saturating_add(u64::from(len));
        let mut at = offset;
        while at < end {
            let before = self.entries.range((stream, direction, stag, 0)..=(stream, direction, stag, at)).next_back();
            let Some((start, entry)) = before else { break };
            let entry_end = start.3.saturating_add(entry.data.len());
            if entry_end <= at {
                break;
            }
            let stop = entry_end.min(end);
            each(&entry.data, at - start.3, stop - start.3);
            at = stop;
        }
        at - offset
    }

    /// Returns whether all data of a buffer was transferred.
    pub(super) fn has(&self, owner: (StreamId, Direction), segment: ChunkSegment) -> bool {
        self.read(owner, segment, |_, _, _| {}) == u64::from(segment.len)
    }

    /// Drops the data of a buffer.
    pub(super) fn drop_segment(&mut self, (stream, direction): (StreamId, Direction), segment: ChunkSegment) {
        let ChunkSegment { stag, offset, len } = segment;
        let end = offset.saturating_add(u64::from(len));
        self.remove_all((stream, direction, stag, offset), (stream, direction, stag, end));
    }

    /// Drops the data of a connection.
    pub(super) fn drop_stream(&mut self, stream: StreamId) {
        self.remove_all((stream, Direction::Forward, 0, 0), (stream, Direction::Reverse, u32::MAX, u64::MAX));
    }

    /// Removes the entries from `first` to `end`, without `end`.
    fn remove_all(&mut self, first: Key, end: Key) {
        if first >= end {
            return;
        }
        let keys: Vec<Key> = self.entries.range(first..end).map(|(key, _)| *key).collect();
        keys.into_iter().for_each(|key| self.remove(key));
    }

    fn remove(&mut self, key: Key) {
        if let Some(entry) = self.entries.remove(&key) {
            self.by_age.remove(&entry.age);
            self.memory = self.memory.saturating_sub(entry.data.octets().len() + ENTRY_OVERHEAD);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OWNER: (StreamId, Direction) = (StreamId::FIRST, Direction::Forward);

    fn segment(offset: u64, len: u32) -> ChunkSegment {
        ChunkSegment { stag: 7, offset, len }
    }

    fn read(placed: &PlacedOctets, segment: ChunkSegment) -> (Vec<u8>, u64) {
        let mut out = Beginning::default();
        let found = placed.read(OWNER, segment, |data, start, end| out.copy(data, start, end));
        (out.into_octets(), found)
    }

    #[test]
    fn reads_across_segments_and_messages() {
        let mut placed = PlacedOctets::default();
        placed.add(OWNER, (7, 100), Part::complete(b"abcd"), false);
        placed.add(OWNER, (7, 104), Part::complete(b"ef"), true);
        placed.add(OWNER, (7, 106), Part::complete(b"gh"), true);
        assert_eq!((placed.entries.len(), placed.by_age.len()), (2, 2));
        assert_eq!(read(&placed, segment(101, 6)), (b"bcdefg".to_vec(), 6));
        assert_eq!(read(&placed, segment(106, 3)), (b"gh".to_vec(), 2));
        assert_eq!(read(&placed, segment(99, 3)), (Vec::new(), 0));
        assert!(placed.has(OWNER, segment(100, 8)) && !placed.has(OWNER, segment(100, 9)));
        assert!(!placed.has((StreamId::FIRST, Direction::Reverse), segment(100, 8)));
        placed.drop_segment(OWNER, segment(100, 8));
        assert_eq!((placed.entries.len(), placed.by_age.len(), placed.memory), (0, 0, 0));
    }

    #[test]
    fn later_data_replaces_earlier_data() {
        let mut placed = PlacedOctets::default();
        placed.add(OWNER, (7, 0), Part::complete(b"old"), true);
        placed.add(OWNER, (7, 0), Part::complete(b"new!"), true);
        assert_eq!(read(&placed, segment(0, 4)), (b"new!".to_vec(), 4));
        placed.drop_stream(StreamId::FIRST);
        assert_eq!((placed.entries.len(), placed.memory), (0, 0));
    }

    #[test]
    fn memory_is_bounded() {
        let mut placed = PlacedOctets::default();
        let data = vec![1; 1 << 16];
        for number in 0..2000 {
            placed.add(OWNER, (7, number << 16), Part::complete(&data), true);
        }
        assert!(placed.memory <= MAX_MEMORY && placed.entries.len() == placed.by_age.len());
        assert!(!placed.has(OWNER, segment(0, 1)) && placed.has(OWNER, segment(1999 << 16, 1)));
    }
}
