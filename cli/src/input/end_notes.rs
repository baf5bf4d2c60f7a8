//! Prints notes on standard error at the end of a capture: which connections the dissector joined,
//! what it dropped to save memory, and what it could not read.

use weft_dissector::Dissector;

use crate::exit::note;

/// Prints the notes of `dissector` about the capture `name`.
pub(crate) fn remark(name: &str, dissector: &Dissector) {
    for remark in dissector.remarks() {
        note(&format!("{name}: {remark}"));
    }
}
