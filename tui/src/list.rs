//! The selected line of a list. The list can be longer than its panel.

use std::ops::Range;

use ratatui::layout::{Position, Rect};

use crate::motion::Motion;

/// The selected line, and the line at the top of the panel.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(crate) struct List {
    pub(crate) selected: usize,
    top: usize,
    /// The height of the panel, in lines, when the list was last drawn. The keys for one page move
    /// the selection by this height minus one line.
    height: usize,
    /// The area of the lines on the screen.
    area: Rect,
}

impl List {
    /// Stores the area of the lines, for the mouse.
    pub(crate) fn place(&mut self, area: Rect) {
        self.area = area;
    }

    /// Returns whether a position on the screen is in the area of the lines.
    pub(crate) fn contains(&self, at: Position) -> bool {
        self.area.contains(at)
    }

    /// Returns the index of the line at a position on the screen, and the column in the line.
    /// Returns `None` if the position is outside the area, or if the list of `len` lines has no
    /// line there.
    pub(crate) fn hit(&self, at: Position, len: usize) -> Option<(usize, usize)> {
        let line = self.top + usize::from(at.y.checked_sub(self.area.y)?);
        (self.contains(at) && line < len).then(|| (line, usize::from(at.x - self.area.x)))
    }

    /// Returns the row of the area at a position on the screen, counted from the top of the area.
    pub(crate) fn row_at(&self, at: Position) -> Option<usize> {
        self.contains(at).then(|| usize::from(at.y - self.area.y))
    }

    /// Moves the selection in a list of `len` lines.
    pub(crate) fn go(&mut self, motion: Motion, len: usize) {
        let page = self.height.saturating_sub(1).max(1);
        let wanted = match motion {
            Motion::Up => self.selected.saturating_sub(1),
            Motion::Down => self.selected.saturating_add(1),
            Motion::PageUp => self.selected.saturating_sub(page),
            Motion::PageDown => self.selected.saturating_add(page),
            Motion::First => 0,
            Motion::Last => usize::MAX,
        };
        self.selected = wanted.min(len.saturating_sub(1));
    }

    /// Returns the indexes of the lines to show in a panel of `height` lines. The selected line is
    /// one of them.
    pub(crate) fn window(&mut self, len: usize, height: usize) -> Range<usize> {
        self.height = height;
        self.selected = self.selected.min(len.saturating_sub(1));
        if height == 0 {
            return 0..0;
        }
        self.top = self.top.min(len.saturating_sub(height)).min(self.selected);
        if self.selected >= self.top + height {
            self.top = self.selected + 1 - height;
        }
        self.top..len.min(self.top + height)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn always_shows_the_selected_line() {
        let mut list = List::default();
        assert_eq!(list.window(100, 10), 0..10);
        list.go(Motion::PageDown, 100);
        list.go(Motion::Down, 100);
        assert_eq!((list.selected, list.window(100, 10)), (10, 1..11));
        list.go(Motion::Last, 100);
        assert_eq!((list.selected, list.window(100, 10)), (99, 90..100));
        list.go(Motion::Up, 100);
        assert_eq!(list.window(100, 10), 90..100);
        list.go(Motion::First, 100);
        assert_eq!(list.window(100, 10), 0..10);
    }

    #[test]
    fn maps_positions_to_lines() {
        let mut list = List::default();
        list.place(Rect::new(2, 5, 10, 4));
        list.go(Motion::Last, 100);
        assert_eq!(list.window(100, 4), 96..100);
        assert_eq!(list.hit(Position::new(4, 6), 100), Some((97, 2)));
        assert_eq!([(1, 6), (12, 6), (4, 4), (4, 9)].map(|(x, y)| list.hit(Position::new(x, y), 100)), [None; 4]);
        assert_eq!(list.hit(Position::new(4, 8), 98), None);
        assert_eq!([(4, 6), (4, 9)].map(|(x, y)| list.row_at(Position::new(x, y))), [Some(1), None]);
    }

    #[test]
    fn handles_shrinking_lists_and_empty_panels() {
        let mut list = List::default();
        list.go(Motion::Last, 50);
        assert_eq!(list.window(3, 10), 0..3);
        assert_eq!(list.selected, 2);
        assert_eq!(list.window(3, 0), 0..0);
        assert_eq!(list.window(0, 5), 0..0);
        list.go(Motion::Down, 0);
        assert_eq!(list.selected, 0);
    }
}
