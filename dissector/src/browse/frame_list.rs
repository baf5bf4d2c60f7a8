//! A list of frames, for example of the frames that pass a filter.

/// Numbers of frames, in order and without duplicates.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct FrameList(Vec<u64>);

impl From<Vec<u64>> for FrameList {
    /// The list of frames from numbers in any order. Duplicates are removed.
    fn from(mut numbers: Vec<u64>) -> Self {
        numbers.sort_unstable();
        numbers.dedup();
        FrameList(numbers)
    }
}

impl FrameList {
    /// Adds a frame, in any order. Does nothing if the list already has the frame. A filter may
    /// report a frame late or repeatedly, if a unit is completed after later frames.
    pub fn add(&mut self, number: u64) {
        if let Err(at) = self.0.binary_search(&number) {
            self.0.insert(at, number);
        }
    }

    /// The numbers of the frames.
    #[must_use]
    pub fn numbers(&self) -> &[u64] {
        &self.0
    }

    /// The number of frames.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Returns whether the list is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Number of frames up to frame `last`.
    #[must_use]
    pub fn len_until(&self, last: u64) -> usize {
        self.0.partition_point(|number| *number <= last)
    }

    /// The frame number at index `at` of the list.
    #[must_use]
    pub fn get(&self, at: usize) -> Option<u64> {
        self.0.get(at).copied()
    }

    /// The index of frame `number` in the list.
    #[must_use]
    pub fn find(&self, number: u64) -> Option<usize> {
        self.0.binary_search(&number).ok()
    }

    /// The index of the first frame from `number` on. If there is no such frame, the index of the
    /// last frame.
    #[must_use]
    pub fn near(&self, number: u64) -> usize {
        self.0.partition_point(|listed| *listed < number).min(self.0.len().saturating_sub(1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_late_frame_is_added_once_in_order() {
        let mut list = FrameList::default();
        [5, 9, 7, 9].into_iter().for_each(|number| list.add(number));
        assert_eq!((list.numbers(), &list), (&[5, 7, 9][..], &FrameList::from(vec![9, 7, 5, 9])));
        assert_eq!((list.find(7), list.find(8), list.near(8), list.near(10)), (Some(1), None, 2, 2));
        assert_eq!((list.len_until(7), list.len_until(100), list.get(2)), (2, 3, Some(9)));
    }
}
