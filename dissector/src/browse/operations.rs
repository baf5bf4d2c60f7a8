//! [`Operations`] lists the Reads and atomic operations of a capture.

use super::pass::Collector;
use crate::Sink;
use crate::fact::{Fact, Operation};
use crate::stream_id::StreamId;
use crate::unit::Unit;

/// Maximum number of listed operations. Further operations are only counted.
pub const MAX_OPERATIONS: usize = 100_000;

/// The Reads and atomic operations, in the order of their responses.
#[derive(Debug, Default)]
pub struct Operations {
    list: Vec<(StreamId, Operation)>,
    omitted: u64,
}

impl Operations {
    /// The operations with the numbers of their connections, at most [`MAX_OPERATIONS`].
    #[must_use]
    pub fn list(&self) -> &[(StreamId, Operation)] {
        &self.list
    }

    /// Number of further operations that are not listed.
    #[must_use]
    pub fn omitted(&self) -> u64 {
        self.omitted
    }
}

impl Sink for Operations {
    fn unit(&mut self, _: &Unit<'_>) {}

    fn fact(&mut self, stream: StreamId, fact: &Fact) {
        let Fact::Operation(operation) = fact else { return };
        if self.list.len() < MAX_OPERATIONS {
            self.list.push((stream, *operation));
        } else {
            self.omitted += 1;
        }
    }
}

impl Collector for Operations {
    fn memory(&self) -> usize {
        self.list.capacity() * size_of::<(StreamId, Operation)>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_operations_beyond_the_list() {
        let frames = (1.into(), 2.into(), 2.into());
        let operation = Operation { direction: 0, atomic: false, len: 8, outstanding: Some(1), frames, latency: 1000 };
        let mut operations = Operations::default();
        (0..MAX_OPERATIONS + 3).for_each(|_| operations.fact(7.into(), &Fact::Operation(operation)));
        assert_eq!((operations.list().len(), operations.omitted()), (MAX_OPERATIONS, 3));
        assert_eq!(operations.list()[0], (7.into(), operation));
    }
}
