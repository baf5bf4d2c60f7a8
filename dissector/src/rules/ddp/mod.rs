//! Rules of RFC 5041 (DDP).

mod digest;
mod header;
mod length;
mod message;
mod stream;
mod terminate;
mod window;

use super::rule::Rule;

/// All rules of RFC 5041.
pub(super) static RULES: &[&Rule] = &[
    &digest::DIGEST,
    &header::FIXED_FIELDS,
    &header::VERSION,
    &length::HEADER,
    &length::MULPDU,
    &message::OFFSETS,
    &message::LAST,
    &message::NUMBERS,
    &message::UNEXPLAINED,
    &message::CONSTANT,
    &message::RESPONSE,
    &stream::NOT_AN_FPDU,
    &stream::TEARDOWN,
    &stream::UNFINISHED,
    &stream::ERRORS,
    &terminate::REPORT,
    &terminate::STAG,
    &terminate::LATE_STAG,
    &terminate::ONE_MORE,
    &window::RIGHT_EDGE,
];
