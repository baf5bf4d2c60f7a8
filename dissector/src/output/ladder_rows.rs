//! [`Rows`]: collects the rows of a sequence diagram, either all rows or only the rows near certain
//! frames.
//!
//! **Memory.** At most `most` rows are stored, and at most [`Focus::context`] rows wait.

use std::collections::VecDeque;

use crate::format::counted;
use crate::frame_number::FrameNumber;

use super::ladder::{Row, RowKind, Tone};

/// The rows of a diagram, in the order in which they were added.
#[derive(Debug)]
pub(super) struct Rows {
    most: usize,
    stored: Vec<Row>,
    /// Number of rows after the last stored row that are neither stored nor waiting.
    omitted: u64,
    /// Selects the rows. `None` selects all rows.
    focus: Option<Focus>,
}

/// Selects rows near certain frames.
#[derive(Debug)]
struct Focus {
    frames: Vec<FrameNumber>,
    /// Number of rows before and after a row of one of the frames that are selected, too. The same
    /// number of rows is selected at the start.
    context: usize,
    /// Number of following rows that are selected.
    following: usize,
    /// The latest rows that are not selected.
    waiting: VecDeque<Row>,
}

impl Rows {
    /// Collects the first `most` rows.
    pub(super) fn new(most: usize) -> Self {
        Rows { most, stored: Vec::new(), omitted: 0, focus: None }
    }

    /// From now on, collects only rows of `frames`, and `context` rows before and after each of
    /// them.
    pub(super) fn focus(&mut self, frames: Vec<FrameNumber>, context: usize) {
        self.focus = Some(Focus { frames, context, following: context, waiting: VecDeque::new() });
    }

    pub(super) fn push(&mut self, row: Row) {
        let Some(focus) = &mut self.focus else { return self.store(row) };
        if row.frame.is_some_and(|frame| focus.frames.contains(&frame)) {
            focus.following = focus.context;
            let waiting = std::mem::take(&mut focus.waiting);
            let next = waiting.front().unwrap_or(&row).time;
            self.note_omitted(next);
            waiting.into_iter().for_each(|row| self.store(row));
            self.store(row);
        } else if focus.following > 0 {
            focus.following -= 1;
            self.store(row);
        } else {
            focus.waiting.push_back(row);
            if focus.waiting.len() > focus.context {
                focus.waiting.pop_front();
                self.omitted += 1;
            }
        }
    }

    fn store(&mut self, row: Row) {
        if self.stored.len() < self.most {
            self.stored.push(row);
        } else {
            self.omitted += 1;
        }
    }

    /// Adds a note about the omitted rows before a row with this time. After `most` rows, the
    /// diagram reports the omitted rows at its end.
    fn note_omitted(&mut self, time: u64) {
        if self.omitted > 0 && self.stored.len() < self.most {
            let label = format!("{} not shown", counted(self.omitted, "row"));
            self.stored.push(Row { time, frame: None, kind: RowKind::Note, label, tone: Tone::Faint });
            self.omitted = 0;
        }
    }

    /// The row that was added last, unless it was omitted.
    pub(super) fn last(&self) -> Option<&Row> {
        let waiting = self.focus.as_ref().and_then(|focus| focus.waiting.back());
        waiting.or(self.stored.last())
    }

    /// Removes the row that [`Rows::last`] returns.
    pub(super) fn pop(&mut self) {
        let waiting = self.focus.as_mut().and_then(|focus| focus.waiting.pop_back());
        if waiting.is_none() {
            self.stored.pop();
        }
    }

    /// The stored rows, the latest first.
    pub(super) fn latest(&self) -> impl Iterator<Item = &Row> {
        self.stored.iter().rev()
    }

    /// The stored rows, and the number of omitted rows after them.
    pub(super) fn into_stored(self) -> (Vec<Row>, u64) {
        let waiting = self.focus.map_or(0, |focus| focus.waiting.len() as u64);
        (self.stored, self.omitted + waiting)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(frame: u64) -> Row {
        let kind = RowKind::Arrow { from: 0, dashed: false };
        Row { time: frame, frame: Some(frame.into()), kind, label: frame.to_string(), tone: Tone::Plain }
    }

    fn labels(rows: Rows) -> (Vec<String>, u64) {
        let (stored, omitted) = rows.into_stored();
        (stored.into_iter().map(|row| row.label).collect(), omitted)
    }

    #[test]
    fn without_a_focus_the_first_rows_are_stored() {
        let mut rows = Rows::new(3);
        (1..=5).for_each(|frame| rows.push(row(frame)));
        assert_eq!(labels(rows), (vec!["1".into(), "2".into(), "3".into()], 2));
    }

    #[test]
    fn a_focus_selects_rows_before_and_after() {
        let mut rows = Rows::new(100);
        rows.focus(vec![10.into()], 2);
        (1..=20).for_each(|frame| rows.push(row(frame)));
        let wanted = ["1", "2", "5 rows not shown", "8", "9", "10", "11", "12"].map(str::to_owned);
        assert_eq!(labels(rows), (wanted.to_vec(), 8));
    }

    #[test]
    fn the_last_row_can_be_removed_while_it_waits() {
        let mut rows = Rows::new(100);
        rows.focus(vec![4.into()], 1);
        (1..=3).for_each(|frame| rows.push(row(frame)));
        assert_eq!(rows.last(), Some(&row(3)));
        rows.pop();
        rows.push(row(4));
        let wanted = ["1", "1 row not shown", "4"].map(str::to_owned);
        assert_eq!(labels(rows), (wanted.to_vec(), 0));
    }
}
