//! Rules of RFC 6581 (enhanced connection establishment), and of the e-mail of 2007 that preceded
//! the RFC. Findings with `mail` in their requirement id are about that e-mail, and are notes.
//!
//! | file | subject |
//! | --- | --- |
//! | [`frame`] | the fields of one enhanced frame |
//! | [`reply`] | the Reply, compared with the Request |
//! | [`rtr`] | the ready-to-receive message |
//! | [`terminate`] | Terminates that report an error of connection establishment |
//! | [`reads`] | the number of unanswered Read Requests, compared with IRD and ORD |

mod frame;
mod reads;
mod reply;
mod rtr;
mod terminate;

use super::rule::Rule;

/// All rules of RFC 6581.
pub(super) static RULES: &[&Rule] = &[
    &frame::FIELDS,
    &frame::WORDS,
    &reply::SAME_VARIANT,
    &reply::DEPTHS,
    &reply::MODEL,
    &rtr::FIRST_FPDU,
    &rtr::ONLY_ONE,
    &rtr::IS_SENT,
    &rtr::IS_ANSWERED,
    &terminate::ESTABLISHMENT_ERROR,
    &terminate::RIGHT_CODE,
    &reads::ACCEPTED,
    &reads::WITHIN_DEPTHS,
];
