//! [`Comments`]: the comments of frames in a pcapng capture.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use crate::frame_number::FrameNumber;

/// Maximum memory of comments in octets. Comments of the earliest frames are dropped first.
const MAX_MEMORY: usize = 1 << 20;

/// Maximum number of comments about the capture that are kept.
const MAX_OF_CAPTURE: usize = 8;
/// Memory of a comment in addition to its octets.
const COMMENT_MEMORY: usize = 64;

/// The comments of the latest frames of a capture. Clones share the comments.
#[derive(Debug, Clone, Default)]
pub struct Comments(Arc<Mutex<StoredComments>>);

#[derive(Debug, Default)]
struct StoredComments {
    /// Comments by frame number.
    frames: BTreeMap<FrameNumber, Vec<String>>,
    octets: usize,
    /// The comments about the capture.
    capture: Vec<String>,
}

fn weight(comments: &[String]) -> usize {
    comments.iter().map(|comment| comment.len() + COMMENT_MEMORY).sum()
}

impl Comments {
    /// Stores the comments of frame `number`.
    pub fn note(&self, number: FrameNumber, comments: Vec<String>) {
        if comments.is_empty() {
            return;
        }
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        kept.octets += weight(&comments);
        if let Some(before) = kept.frames.insert(number, comments) {
            kept.octets -= weight(&before);
        }
        while kept.octets > MAX_MEMORY
            && let Some((_, earliest)) = kept.frames.pop_first()
        {
            kept.octets -= weight(&earliest);
        }
    }

    /// Stores the first comments about the capture.
    pub(super) fn note_capture(&self, comments: Vec<String>) {
        if comments.is_empty() {
            return;
        }
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let free = MAX_OF_CAPTURE.saturating_sub(kept.capture.len());
        kept.capture.extend(comments.into_iter().take(free));
    }

    /// The first comments about the capture, at most eight, in the order of the file. Only pcapng
    /// captures have such comments.
    #[must_use]
    pub fn of_capture(&self) -> Vec<String> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).capture.clone()
    }

    /// The comments of frame `number`, in the order of the capture. The list is empty if the frame
    /// has no comments, or if its comments were dropped.
    #[must_use]
    pub fn of(&self, number: FrameNumber) -> Vec<String> {
        let kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        kept.frames.get(&number).cloned().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forgets_the_earliest() {
        let comments = Comments::default();
        for number in [1, 2, 3].map(FrameNumber::from) {
            comments.note(number, vec!["x".repeat(MAX_MEMORY / 2 - COMMENT_MEMORY)]);
        }
        assert_eq!([1, 2, 3].map(|number| comments.of(FrameNumber::from(number)).len()), [0, 1, 1]);
    }
}
