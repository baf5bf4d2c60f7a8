//! The number of a TCP connection in a capture, and sets of such numbers.

use std::fmt;
use std::num::ParseIntError;
use std::str::FromStr;

use serde::Serialize;

/// The number of a TCP connection in a capture. As in tshark's `tcp.stream`, the first connection
/// has number 0, and the second connection has number 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize)]
pub struct StreamId(u32);

impl StreamId {
    /// The first connection of a capture.
    pub const FIRST: StreamId = StreamId(0);

    /// The number of the next connection.
    #[must_use]
    #[inline]
    pub fn next(self) -> Self {
        StreamId(self.0.saturating_add(1))
    }

    /// The number as an index into a list with one element per connection.
    #[must_use]
    #[inline]
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

impl From<u32> for StreamId {
    #[inline]
    fn from(number: u32) -> Self {
        StreamId(number)
    }
}

impl From<StreamId> for u32 {
    #[inline]
    fn from(stream: StreamId) -> u32 {
        stream.0
    }
}

impl From<StreamId> for u64 {
    #[inline]
    fn from(stream: StreamId) -> u64 {
        stream.0.into()
    }
}

impl FromStr for StreamId {
    type Err = ParseIntError;

    fn from_str(text: &str) -> Result<Self, ParseIntError> {
        text.parse().map(StreamId)
    }
}

impl fmt::Display for StreamId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(formatter)
    }
}

/// A set of TCP connections of a capture. The set uses one bit for each number up to the largest
/// member.
#[derive(Debug, Clone, Default)]
pub struct StreamSet(Vec<u64>);

impl StreamSet {
    /// Adds a connection. Returns true if the connection was not in the set before.
    pub fn insert(&mut self, stream: StreamId) -> bool {
        let (word, bit) = Self::word_and_bit(stream);
        if self.0.len() <= word {
            self.0.resize(word + 1, 0);
        }
        let is_new = self.0[word] & bit == 0;
        self.0[word] |= bit;
        is_new
    }

    /// Removes a connection.
    pub(crate) fn remove(&mut self, stream: StreamId) {
        let (word, bit) = Self::word_and_bit(stream);
        if let Some(bits) = self.0.get_mut(word) {
            *bits &= !bit;
        }
    }

    /// Returns whether the connection is in the set.
    #[must_use]
    pub fn contains(&self, stream: StreamId) -> bool {
        let (word, bit) = Self::word_and_bit(stream);
        self.0.get(word).is_some_and(|bits| bits & bit != 0)
    }

    /// Number of connections in the set.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.0.iter().map(|bits| u64::from(bits.count_ones())).sum()
    }

    /// Used memory in bytes.
    #[must_use]
    pub fn memory(&self) -> usize {
        self.0.capacity() * size_of::<u64>()
    }

    fn word_and_bit(StreamId(number): StreamId) -> (usize, u64) {
        ((number / u64::BITS) as usize, 1 << (number % u64::BITS))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_set_has_each_connection_once() {
        let mut set = StreamSet::default();
        let is_new = [3, 64, 3, 1_000_000].map(|number| set.insert(StreamId(number)));
        assert_eq!((is_new, set.count()), ([true, true, false, true], 3));
        assert!([3, 64, 1_000_000].into_iter().all(|number| set.contains(StreamId(number))));
        assert!(![0, 63, 65, 1_000_001, u32::MAX].into_iter().any(|number| set.contains(StreamId(number))));
        [64, 65, u32::MAX].into_iter().for_each(|number| set.remove(StreamId(number)));
        assert!(!set.contains(StreamId(64)) && set.contains(StreamId(3)) && set.count() == 2);
    }
}
