//! Rules of RFC 5044 (MPA).
//!
//! | file | subject |
//! | --- | --- |
//! | [`startup`], [`frame`], [`rdmac`] | start-up frames: keys, fields, RDMA Consortium variant |
//! | [`order`], [`switch`] | the order of messages, and the end of streaming mode |
//! | [`fpdu`], [`layout`], [`crc`] | FPDUs |
//! | [`marker_place`], [`marker_value`] | markers |
//! | [`size`], [`segments`] | FPDUs in TCP segments |
//! | [`version`], [`terminate`] | versions of DDP and RDMAP, and MPA errors in Terminates |

mod crc;
mod fpdu;
mod frame;
mod layout;
mod marker_place;
mod marker_value;
mod order;
mod rdmac;
mod segments;
mod size;
mod startup;
mod switch;
mod terminate;
mod version;

pub(super) use switch::continues_frame;

use super::rule::Rule;

/// All rules of RFC 5044.
pub(super) static RULES: &[&Rule] = &[
    &fpdu::PAD_IS_ZERO,
    &fpdu::ONE_ULPDU,
    &fpdu::HAS_CRC_FIELD,
    &layout::FRAMING_IS_INTACT,
    &crc::CRC_IS_RIGHT,
    &marker_place::WHERE_DUE,
    &marker_place::ARE_SENT,
    &marker_place::NOT_REQUESTED,
    &marker_value::POINTS_TO_HEADER,
    &size::FITS_SEGMENT,
    &size::FILLS_SEGMENT,
    &version::AS_NEGOTIATED,
    &version::SAME_BOTH_WAYS,
    &startup::WRONG_KEY_IS_CLOSED,
    &startup::KEY_IS_RIGHT,
    &startup::REQUEST_IS_ANSWERED_BY_A_REPLY,
    &frame::FIELDS,
    &frame::CRC_BY_DEFAULT,
    &frame::REVISION_FITS_VERSION,
    &rdmac::CONSORTIUM_FRAMES,
    &rdmac::CONSORTIUM_ANSWERS,
    &order::REQUEST_COMES_FIRST,
    &order::NO_FPDU_BEFORE_BOTH,
    &order::INITIATOR_BEGINS,
    &order::REQUEST_IS_ANSWERED,
    &order::NOTHING_AFTER_REJECTION,
    &switch::FRAME_ENDS_STREAMING,
    &switch::FRAME_IS_PLAIN,
    &switch::FRAME_IS_NO_LONGER,
    &switch::FRAME_IS_COMPLETE,
    &terminate::ERROR_IS_KNOWN,
    &terminate::ENDS_CONNECTION,
    &terminate::MARKERS_AS_DECLARED,
    &segments::COMPLETE_FPDUS,
    &segments::DIRECTION_ENDS_WITH_FPDU,
    &segments::TCP_RULES,
];
