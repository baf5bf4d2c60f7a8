//! The notes on standard error at the end of a capture: what was joined, dropped, or not read.

use weft_dissector::Dissector;

use crate::exit::note;

/// Reports what `dissector` joined, dropped and did not read of the capture `name`.
pub(crate) fn remark(name: &str, dissector: &Dissector) {
    for remark in dissector.remarks() {
        note(&format!("{name}: {remark}"));
    }
}
