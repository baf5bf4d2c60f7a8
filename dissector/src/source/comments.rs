//! [`Comments`]: the comments of frames in a pcapng capture.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

/// Maximum memory of comments in octets. Comments of the earliest frames are dropped first.
const MOST_OCTETS: usize = 1 << 20;

/// Memory of a comment in addition to its octets.
const WEIGHT: usize = 64;

/// The comments of the latest frames of a capture. Clones share the comments.
#[derive(Debug, Clone, Default)]
pub struct Comments(Arc<Mutex<Kept>>);

#[derive(Debug, Default)]
struct Kept {
    /// Comments by frame number.
    frames: BTreeMap<u64, Vec<String>>,
    octets: usize,
}

fn weight(comments: &[String]) -> usize {
    comments.iter().map(|comment| comment.len() + WEIGHT).sum()
}

impl Comments {
    /// Stores the comments of frame `number`.
    pub fn note(&self, number: u64, comments: Vec<String>) {
        if comments.is_empty() {
            return;
        }
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        kept.octets += weight(&comments);
        if let Some(before) = kept.frames.insert(number, comments) {
            kept.octets -= weight(&before);
        }
        while kept.octets > MOST_OCTETS
            && let Some((_, earliest)) = kept.frames.pop_first()
        {
            kept.octets -= weight(&earliest);
        }
    }

    /// The comments of frame `number`, in the order of the capture. Empty if the frame has no
    /// comments, or if its comments were dropped.
    #[must_use]
    pub fn of(&self, number: u64) -> Vec<String> {
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
        for number in 1..=3 {
            comments.note(number, vec!["x".repeat(MOST_OCTETS / 2 - WEIGHT)]);
        }
        assert_eq!([1, 2, 3].map(|number| comments.of(number).len()), [0, 1, 1]);
    }
}
