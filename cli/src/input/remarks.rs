//! What standard error says of a capture at the end: what was joined, given up, or not read.

use weft_dissector::Dissector;

use crate::exit::note;

/// Reports what `dissector` joined, gave up and did not read of the capture `name`.
pub(crate) fn remark(name: &str, dissector: &Dissector) {
    for remark in dissector.remarks() {
        note(&format!("{name}: {remark}"));
    }
}
