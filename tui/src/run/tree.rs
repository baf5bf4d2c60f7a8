//! The tree of planned cases. The levels are the parts of the id of a case, separated by `/`, and
//! then the parameters of the case.

use weft_suites::model::CaseKey;

use super::progress::PlannedCase;
use crate::outline::{Outline, TreeLine};

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

impl TreeLine for Node {
    fn depth(&self) -> usize {
        self.depth
    }

    fn key(&self) -> &str {
        &self.path
    }

    fn is_branch(&self) -> bool {
        matches!(self.kind, Kind::Branch { .. })
    }
}

/// The tree panel.
pub(crate) type Tree = Outline<Node>;

impl Tree {
    /// Builds the tree of the planned cases. Keeps the order of the plan.
    pub(crate) fn build(&mut self, planned: &[PlannedCase]) {
        self.lines.clear();
        let mut open: Vec<usize> = Vec::new();
        for (place, case) in planned.iter().enumerate() {
            let (branches, leaf) = parts(&case.key);
            let mut path = String::new();
            let mut same = true;
            for (depth, label) in branches.iter().enumerate() {
                path.push('/');
                path.push_str(label);
                same = same && open.get(depth).is_some_and(|at| self.lines[*at].path == path);
                if !same {
                    open.truncate(depth);
                    open.push(self.lines.len());
                    let kind = Kind::Branch { first: place, end: place };
                    self.lines.push(Node { depth, path: path.clone(), label: label.clone(), kind });
                }
            }
            open.truncate(branches.len());
            for at in &open {
                if let Kind::Branch { end, .. } = &mut self.lines[*at].kind {
                    *end = place + 1;
                }
            }
            let (depth, path) = (branches.len(), case.key.to_string());
            self.lines.push(Node { depth, path, label: leaf, kind: Kind::Case(place) });
        }
        self.arrange();
    }

    /// Selects the line with this path, if it is visible.
    pub(crate) fn select_path(&mut self, path: &str) {
        if let Some(at) = self.visible.iter().position(|at| self.lines[*at].path == path) {
            self.list.selected = at;
        }
    }

    /// Selects the case at index `place`, and opens the branches that contain it.
    pub(crate) fn select(&mut self, place: usize) {
        let Some(target) = self.lines.iter().position(|node| node.kind == Kind::Case(place)) else { return };
        for node in &self.lines {
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
