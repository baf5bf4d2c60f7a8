//! Lists of lines in the upper part of the HTML report. Each list shows its first lines. The other
//! lines are folded.

use crate::model::Summary;

/// Maximum number of lines that are not folded.
const SHOWN: usize = 5;

/// Lines about the run as a list.
pub(super) struct LineList {
    pub(super) title: &'static str,
    /// CSS class of the lines.
    pub(super) class: &'static str,
    pub(super) shown: Vec<String>,
    pub(super) folded: Vec<String>,
}

/// Returns the lists of lines. Empty lists are left out.
pub(super) fn lines(summary: &Summary) -> Vec<LineList> {
    let boundaries: Vec<String> = summary.boundaries.iter().map(ToString::to_string).collect();
    let lost: Vec<String> = summary.lost_capabilities.iter().map(ToString::to_string).collect();
    let lists = [
        ("Capabilities that the target lost since an earlier run", "fail", lost),
        ("Stale entries of the baseline", "fail", summary.stale.clone()),
        ("Results that the baseline does not expect", "", summary.unmatched.clone()),
        ("Differences between the target file and the device", "", summary.declared_otherwise.clone()),
        ("Boundaries", "", boundaries),
    ];
    let list = |(title, class, mut lines): (&'static str, &'static str, Vec<String>)| {
        let folded = lines.split_off(SHOWN.min(lines.len()));
        LineList { title, class, shown: lines, folded }
    };
    lists.into_iter().map(list).filter(|list| !list.shown.is_empty()).collect()
}
