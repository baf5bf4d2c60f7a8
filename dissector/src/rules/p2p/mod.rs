//! Rules of RFC 6581 (enhanced connection establishment), and of the e-mail of 2007 that came before it (`mail`: notes).
//!
//! | file | what it judges |
//! | --- | --- |
//! | [`frame`] | one enhanced frame by itself |
//! | [`reply`] | the Reply against the Request |
//! | [`rtr`] | the ready-to-receive message |
//! | [`terminate`] | errors of establishment |
//! | [`reads`] | Read Requests against IRD and ORD |

mod frame;
mod reads;
mod reply;
mod rtr;
mod terminate;

use super::Rule;

/// Every rule of RFC 6581.
pub(super) static RULES: &[&Rule] = &[
    &frame::FIELDS,
    &frame::WORDS,
    &reply::SAME_MANNER,
    &reply::DEPTHS,
    &reply::MODEL,
    &rtr::FIRST_FPDU,
    &rtr::ONLY_ONE,
    &rtr::IS_SENT,
    &rtr::IS_ANSWERED,
    &terminate::ESTABLISHMENT_ERROR,
    &terminate::RIGHT_CODE,
    &reads::HELD,
    &reads::WITHIN_DEPTHS,
];
