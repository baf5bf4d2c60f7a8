//! A tree with branches that open and close, as a list of lines.

use std::collections::HashSet;

use ratatui::layout::Position;

use crate::list::List;

/// A line of a tree.
pub(crate) trait TreeLine {
    fn depth(&self) -> usize;
    /// Identifies the line, also after the tree has changed.
    fn key(&self) -> &str;
    fn is_branch(&self) -> bool;
}

/// A tree panel. The lines of a branch follow the branch.
#[derive(Debug)]
pub(crate) struct Outline<T> {
    pub(crate) lines: Vec<T>,
    /// Keys of closed branches. These branches stay closed when the tree changes.
    pub(crate) closed: HashSet<String>,
    /// Indexes of the visible lines.
    pub(crate) visible: Vec<usize>,
    pub(crate) list: List,
    /// For each row of the panel, the index of the visible line that the row shows. Only if lines
    /// can take several rows.
    pub(crate) rows: Vec<usize>,
    /// Key of the line that the user chose last. If the panel later shows another tree, it selects
    /// the line with this key again.
    pub(crate) chosen: Option<String>,
}

impl<T> Default for Outline<T> {
    fn default() -> Self {
        Outline {
            lines: Vec::new(),
            closed: HashSet::new(),
            visible: Vec::new(),
            list: List::default(),
            rows: Vec::new(),
            chosen: None,
        }
    }
}

impl<T: TreeLine> Outline<T> {
    /// Finds the visible lines.
    pub(crate) fn arrange(&mut self) {
        self.visible.clear();
        let mut hidden_below = usize::MAX;
        for (at, line) in self.lines.iter().enumerate() {
            if line.depth() > hidden_below {
                continue;
            }
            self.visible.push(at);
            hidden_below = if self.closed.contains(line.key()) { line.depth() } else { usize::MAX };
        }
    }

    /// Returns the visible lines.
    pub(crate) fn shown(&self) -> impl ExactSizeIterator<Item = &T> {
        self.visible.iter().map(|at| &self.lines[*at])
    }

    /// Returns whether the branch of `line` is open.
    pub(crate) fn is_open(&self, line: &T) -> bool {
        !self.closed.contains(line.key())
    }

    /// Returns the index of the visible line at a position on the screen, according to
    /// [`rows`](Self::rows).
    pub(crate) fn hit(&self, at: Position) -> Option<usize> {
        let line = *self.rows.get(self.list.row_at(at)?)?;
        (line < self.visible.len()).then_some(line)
    }

    /// Returns the selected line.
    pub(crate) fn selected(&self) -> Option<&T> {
        self.visible.get(self.list.selected).map(|at| &self.lines[*at])
    }

    /// Opens (`Some(true)`), closes (`Some(false)`) or toggles the selected branch.
    pub(crate) fn turn(&mut self, open: Option<bool>) {
        let Some(line) = self.selected().filter(|line| line.is_branch()) else { return };
        let key = line.key().to_owned();
        if open.unwrap_or(self.closed.contains(&key)) {
            self.closed.remove(&key);
        } else {
            self.closed.insert(key);
        }
        self.arrange();
    }

    /// Closes the selected branch. If the branch is already closed, or if the selected line is no
    /// branch, selects the parent.
    pub(crate) fn close_branch(&mut self) {
        let Some(line) = self.selected() else { return };
        if line.is_branch() && self.is_open(line) {
            return self.turn(Some(false));
        }
        let depth = line.depth();
        let parent = (0..self.list.selected).rev().find(|at| self.lines[self.visible[*at]].depth() < depth);
        if let Some(parent) = parent {
            self.list.selected = parent;
        }
    }
}
