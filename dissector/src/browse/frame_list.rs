//! A list of frames, for example of the frames that pass a filter.

use crate::frame_number::FrameNumber;

/// Numbers of frames, in order and without duplicates.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct FrameList(Vec<FrameNumber>);

impl From<Vec<FrameNumber>> for FrameList {
    /// The list of frames from numbers in any order. Duplicates are removed.
    fn from(mut numbers: Vec<FrameNumber>) -> Self {
        numbers.sort_unstable();
        numbers.dedup();
        FrameList(numbers)
    }
}

impl FrameList {
    /// Adds a frame. Does nothing if the list already has the frame. Frames may be added in any
    /// order. If a unit of a frame is delivered only after later frames, a filter reports the frame
    /// after those frames, or a second time.
    pub fn add(&mut self, number: FrameNumber) {
        if let Err(at) = self.0.binary_search(&number) {
            self.0.insert(at, number);
        }
    }

    /// The numbers of the frames.
    #[must_use]
    pub fn numbers(&self) -> &[FrameNumber] {
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
    pub fn len_until(&self, last: FrameNumber) -> usize {
        self.0.partition_point(|number| *number <= last)
    }

    /// The frame number at index `at` of the list.
    #[must_use]
    pub fn get(&self, at: usize) -> Option<FrameNumber> {
        self.0.get(at).copied()
    }

    /// The index of frame `number` in the list.
    #[must_use]
    pub fn find(&self, number: FrameNumber) -> Option<usize> {
        self.0.binary_search(&number).ok()
    }

    /// Returns the index of the first frame whose number is at least `number`. If there is no such
    /// frame, returns the index of the last frame.
    #[must_use]
    pub fn near(&self, number: FrameNumber) -> usize {
        self.0.partition_point(|listed| *listed < number).min(self.0.len().saturating_sub(1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_late_frame_is_added_once_in_order() {
        let mut list = FrameList::default();
        let [five, seven, eight, nine] = [5, 7, 8, 9].map(FrameNumber::from);
        [five, nine, seven, nine].into_iter().for_each(|number| list.add(number));
        let unordered = FrameList::from(vec![nine, seven, five, nine]);
        assert_eq!((list.numbers(), &list), (&[five, seven, nine][..], &unordered));
        assert_eq!((list.find(seven), list.find(eight)), (Some(1), None));
        assert_eq!((list.near(eight), list.near(FrameNumber::MAX)), (2, 2));
        assert_eq!((list.len_until(seven), list.len_until(FrameNumber::MAX), list.get(2)), (2, 3, Some(nine)));
    }
}
