//! Rules of RFC 5040 (RDMAP) and RFC 7306 (RDMAP extensions).

mod atomic;
mod control;
mod flow;
mod message;
mod opcode;
mod read;
mod reported_segment;
mod size;
mod stag;
mod stream;
mod terminate;

pub(super) use terminate::has_swapped_bits;

use super::rule::Rule;

/// All rules of RFC 5040 and RFC 7306.
pub(super) static RULES: &[&Rule] = &[
    &atomic::FIELDS,
    &atomic::ALIGNMENT,
    &atomic::RESPONSE,
    &reported_segment::SEGMENT,
    &reported_segment::REPEATED_HEADER,
    &reported_segment::SYNTHETIC,
    &reported_segment::READ,
    &reported_segment::INVALIDATION,
    &control::FIXED_FIELDS,
    &flow::ANSWERED,
    &flow::DEPTH,
    &message::SAME,
    &message::ORDER,
    &opcode::QUEUES,
    &opcode::RESERVED,
    &read::RESPONSE,
    &read::ORDER,
    &read::SOURCE,
    &size::HEADERS,
    &stag::CHOICE,
    &stag::INVALIDATED,
    &stream::AFTER_TERMINATE,
    &stream::ERRORS,
    &terminate::NUMBERS,
    &terminate::CODES,
    &terminate::PARTS,
    &terminate::FIGURE_10,
];
