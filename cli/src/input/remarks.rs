//! What standard error says of a capture at the end: what was joined, given up, or not read.

use weft_dissector::Dissector;
use weft_dissector::contents::hidden;

use crate::exit::note;

/// Reports what `dissector` joined, gave up and did not read of the capture `name`.
pub(crate) fn remark(name: &str, dissector: &Dissector) {
    let joined = dissector.joined();
    if !joined.is_empty() {
        note(&format!("{name}: {joined}"));
    }
    let dropped = dissector.dropped();
    if !dropped.is_empty() {
        note(&format!("{name}: too many connections or waiting bytes at a time: {dropped}"));
    }
    if let Some(hidden) = hidden(&dissector.unread()) {
        note(&format!("{name}: not read: {hidden}"));
    }
}
