//! Finds the file of a frame, if several captures are read as one capture.
//!
//! Such a frame has two numbers: a number over all files, and a number in its own file.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use weft_dissector::FrameNumber;

use crate::lock::locked;

/// Maximum number of [`FrameRun`]s. If there are more, weft drops the oldest run.
const MAX_RUNS: usize = 1 << 16;

/// A run of consecutive frames of one file.
struct FrameRun {
    /// The two numbers of the first frame: over all files, and in its file.
    first: (FrameNumber, FrameNumber),
    file: Arc<str>,
}

/// The table of the latest frames and their files. Clones share the data.
#[derive(Clone, Default)]
pub(crate) struct FrameFiles(Arc<Mutex<VecDeque<FrameRun>>>);

impl FrameFiles {
    /// Records that the frame with the number `number` over all files has the number `own` in
    /// `file`.
    pub(super) fn note(&self, number: FrameNumber, own: FrameNumber, file: &Arc<str>) {
        let mut runs = locked(&self.0);
        let follows = |run: &FrameRun| {
            let later = number.frames_since(run.first.0);
            Arc::ptr_eq(&run.file, file) && later.is_some() && own.frames_since(run.first.1) == later
        };
        if !runs.back().is_some_and(follows) {
            runs.push_back(FrameRun { first: (number, own), file: file.clone() });
            if runs.len() > MAX_RUNS {
                runs.pop_front();
            }
        }
    }

    /// Returns the file of a frame, and the frame's number in that file. `number` is the frame's
    /// number over all files. Returns `None` if weft has dropped the run of this frame.
    pub(crate) fn of(&self, number: FrameNumber) -> Option<(Arc<str>, FrameNumber)> {
        let runs = locked(&self.0);
        let index = runs.partition_point(|run| run.first.0 <= number).checked_sub(1)?;
        let FrameRun { first, file } = runs.get(index)?;
        Some((file.clone(), first.1.later(number.frames_since(first.0)?)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_the_file_and_the_number_in_it() {
        let (frame_files, [a, b]) = (FrameFiles::default(), ["a", "b"].map(Arc::from));
        for (number, own, file) in [(1, 1, &a), (2, 2, &a), (3, 1, &b), (4, 3, &a), (5, 2, &b), (6, 3, &b)] {
            frame_files.note(number.into(), own.into(), file);
        }
        let of = |number: u64| frame_files.of(number.into()).map(|(file, own)| (file.to_string(), u64::from(own)));
        assert_eq!(of(0), None);
        assert_eq!(
            [2, 4, 6].map(|number| of(number).unwrap()),
            [("a", 2), ("a", 3), ("b", 3)].map(|(f, n)| (f.to_owned(), n))
        );
    }

    #[test]
    fn forgets_the_oldest() {
        let (frame_files, files) = (FrameFiles::default(), ["a", "b"].map(Arc::from));
        for at in 0..=MAX_RUNS as u64 {
            frame_files.note((at + 1).into(), (at / 2 + 1).into(), &files[(at % 2) as usize]);
        }
        let own = |number: u64| frame_files.of(number.into()).map(|(_, own)| own);
        assert_eq!((own(1), own(2)), (None, Some(FrameNumber::FIRST)));
    }
}
