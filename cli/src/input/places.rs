//! Maps the frames of several captures that are read as one to their files.
//!
//! A frame has two numbers: one over all files, and one in its own file.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

/// Maximum number of rows. If there are more, the oldest row is dropped.
const MOST_ROWS: usize = 1 << 16;

/// A row of the table: consecutive frames of one file.
struct Row {
    /// The two numbers of the first frame: over all files, and in its file.
    first: (u64, u64),
    file: Arc<str>,
}

/// The table of the latest frames and their files. Clones share the data.
#[derive(Clone, Default)]
pub(crate) struct Places(Arc<Mutex<VecDeque<Row>>>);

impl Places {
    /// Records that frame `number` over all files is frame `own` of `file`.
    pub(super) fn note(&self, number: u64, own: u64, file: &Arc<str>) {
        let mut rows = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let follows =
            |row: &Row| Arc::ptr_eq(&row.file, file) && own.checked_sub(row.first.1) == Some(number - row.first.0);
        if !rows.back().is_some_and(follows) {
            rows.push_back(Row { first: (number, own), file: file.clone() });
            if rows.len() > MOST_ROWS {
                rows.pop_front();
            }
        }
    }

    /// Returns the file of frame `number` over all files, and the frame's number in that file.
    /// Returns `None` if the row was dropped.
    pub(crate) fn of(&self, number: u64) -> Option<(Arc<str>, u64)> {
        let rows = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let index = rows.partition_point(|row| row.first.0 <= number).checked_sub(1)?;
        let Row { first, file } = rows.get(index)?;
        Some((file.clone(), first.1 + (number - first.0)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_the_file_and_the_number_in_it() {
        let (places, [a, b]) = (Places::default(), ["a", "b"].map(Arc::from));
        for (number, own, file) in [(1, 1, &a), (2, 2, &a), (3, 1, &b), (4, 3, &a), (5, 2, &b), (6, 3, &b)] {
            places.note(number, own, file);
        }
        let of = |number| places.of(number).map(|(file, own)| (file.to_string(), own));
        assert_eq!(of(0), None);
        assert_eq!(
            [2, 4, 6].map(|number| of(number).unwrap()),
            [("a", 2), ("a", 3), ("b", 3)].map(|(f, n)| (f.to_owned(), n))
        );
    }

    #[test]
    fn forgets_the_oldest() {
        let (places, files) = (Places::default(), ["a", "b"].map(Arc::from));
        (0..=MOST_ROWS as u64).for_each(|at| places.note(at + 1, at / 2 + 1, &files[(at % 2) as usize]));
        assert_eq!((places.of(1), places.of(2).map(|(_, own)| own)), (None, Some(1)));
    }
}
