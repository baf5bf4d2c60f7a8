//! The tree of planned cases. The levels are the parts of the id of a case, separated by `/`, and
//! then the parameters of the case.

use std::collections::HashSet;

use weft_suites::model::CaseKey;

use super::progress::PlannedCase;
use crate::list::List;

/// One line of the tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Node {
    pub(crate) depth: usize,
    /// Identifies the node: the first parts of an id for a branch, the complete key for a case.
    pub(crate) path: String,
    pub(crate) label: String,
    pub(crate) kind: Kind,
}

/// The kind of a node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A branch with the cases from index `first` up to, but not including, index `end`.
    Branch { first: usize, end: usize },
    /// A case. Contains the index of the case in the plan.
    Case(usize),
}

/// The tree panel.
#[derive(Debug, Default)]
pub(crate) struct Tree {
    nodes: Vec<Node>,
    closed: HashSet<String>,
    visible: Vec<usize>,
    pub(crate) list: List,
}

impl Tree {
    /// Builds the tree of the planned cases. Keeps the order of the plan.
    pub(crate) fn build(&mut self, planned: &[PlannedCase]) {
        self.nodes.clear();
        let mut open: Vec<usize> = Vec::new();
        for (place, case) in planned.iter().enumerate() {
            let (branches, leaf) = parts(&case.key);
            let mut path = String::new();
            let mut same = true;
            for (depth, label) in branches.iter().enumerate() {
                path.push('/');
                path.push_str(label);
                same = same && open.get(depth).is_some_and(|at| self.nodes[*at].path == path);
                if !same {
                    open.truncate(depth);
                    open.push(self.nodes.len());
                    let kind = Kind::Branch { first: place, end: place };
                    self.nodes.push(Node { depth, path: path.clone(), label: label.clone(), kind });
                }
            }
            open.truncate(branches.len());
            for at in &open {
                if let Kind::Branch { end, .. } = &mut self.nodes[*at].kind {
                    *end = place + 1;
                }
            }
            let (depth, path) = (branches.len(), case.key.to_string());
            self.nodes.push(Node { depth, path, label: leaf, kind: Kind::Case(place) });
        }
        self.arrange();
    }

    fn arrange(&mut self) {
        self.visible.clear();
        let mut hidden_below = usize::MAX;
        for (at, node) in self.nodes.iter().enumerate() {
            if node.depth > hidden_below {
                continue;
            }
            self.visible.push(at);
            hidden_below = if self.closed.contains(&node.path) { node.depth } else { usize::MAX };
        }
    }

    /// Returns the visible lines.
    pub(crate) fn shown(&self) -> impl ExactSizeIterator<Item = &Node> {
        self.visible.iter().map(|at| &self.nodes[*at])
    }

    /// Returns the selected line.
    pub(crate) fn selected(&self) -> Option<&Node> {
        self.visible.get(self.list.selected).map(|at| &self.nodes[*at])
    }

    /// Returns whether the branch is open.
    pub(crate) fn is_open(&self, node: &Node) -> bool {
        !self.closed.contains(&node.path)
    }

    /// Opens (`Some(true)`), closes (`Some(false)`) or toggles the selected branch.
    pub(crate) fn turn(&mut self, open: Option<bool>) {
        let Some(node) = self.selected().filter(|node| matches!(node.kind, Kind::Branch { .. })) else { return };
        let path = node.path.clone();
        if open.unwrap_or(self.closed.contains(&path)) {
            self.closed.remove(&path);
        } else {
            self.closed.insert(path);
        }
        self.arrange();
    }

    /// Closes the selected branch. If the branch is already closed, or if a case is selected,
    /// selects the parent.
    pub(crate) fn close_branch(&mut self) {
        let Some(node) = self.selected() else { return };
        if matches!(node.kind, Kind::Branch { .. }) && self.is_open(node) {
            return self.turn(Some(false));
        }
        let depth = node.depth;
        let parent = (0..self.list.selected).rev().find(|at| self.nodes[self.visible[*at]].depth < depth);
        if let Some(parent) = parent {
            self.list.selected = parent;
        }
    }

    /// Selects the case at index `place`, and opens the branches that contain it.
    pub(crate) fn select(&mut self, place: usize) {
        let Some(target) = self.nodes.iter().position(|node| node.kind == Kind::Case(place)) else { return };
        for node in &self.nodes {
            if matches!(node.kind, Kind::Branch { first, end } if (first..end).contains(&place)) {
                self.closed.remove(&node.path);
            }
        }
        self.arrange();
        self.list.selected = self.visible.iter().position(|at| *at == target).unwrap_or(0);
    }
}

/// Returns the labels of the branches that contain a case, and the label of the case. Each part of
/// the id before the last part is a branch. If the case has parameters, the last part is also a
/// branch, and the parameters are the label.
fn parts(key: &CaseKey) -> (Vec<String>, String) {
    let mut branches: Vec<String> = key.case.split('/').map(str::to_owned).collect();
    if key.parameters.is_empty() {
        let leaf = branches.pop().unwrap_or_default();
        return (branches, leaf);
    }
    let parameters: Vec<String> = key.parameters.iter().map(|(name, value)| format!("{name}={value}")).collect();
    (branches, parameters.join(", "))
}

#[cfg(test)]
mod tests {
    use weft_suites::model::Counts;

    use super::*;
    use crate::run::progress::State;

    fn tree_of(keys: &[&str]) -> Tree {
        let planned: Vec<PlannedCase> = keys
            .iter()
            .map(|key| PlannedCase { key: key.parse().unwrap(), state: State::Waiting, runs: Counts::default() })
            .collect();
        let mut tree = Tree::default();
        tree.build(&planned);
        tree
    }

    fn outline(tree: &Tree) -> Vec<String> {
        tree.shown().map(|node| format!("{}{}", " ".repeat(node.depth), node.label)).collect()
    }

    #[test]
    fn has_folders_cases_and_parameters() {
        let mut tree = tree_of(&["mpa/key/wrong[octet=0]", "mpa/key/wrong[octet=1]", "mpa/rev/zero", "ddp/qn/bad"]);
        let all = ["mpa", " key", "  wrong", "   octet=0", "   octet=1", " rev", "  zero", "ddp", " qn", "  bad"];
        assert_eq!(outline(&tree), all);
        let ranges = tree.shown().filter_map(|node| match node.kind {
            Kind::Branch { first, end } => Some((node.label.as_str(), first, end)),
            Kind::Case(_) => None,
        });
        let ranges = ranges.collect::<Vec<_>>();
        assert_eq!(ranges[0], ("mpa", 0, 3));
        assert_eq!(ranges[4], ("ddp", 3, 4));
        tree.turn(Some(false));
        assert_eq!(outline(&tree), ["mpa", "ddp", " qn", "  bad"]);
        tree.select(1);
        assert_eq!(outline(&tree), all);
        assert_eq!(tree.selected().unwrap().label, "octet=1");
        tree.close_branch();
        assert_eq!(tree.selected().unwrap().label, "wrong");
    }

    #[test]
    fn a_folder_that_occurs_again_is_another_branch() {
        let tree = tree_of(&["a/x/1", "b/x/1", "a/x/2"]);
        assert_eq!(outline(&tree), ["a", " x", "  1", "b", " x", "  1", "a", " x", "  2"]);
    }
}
