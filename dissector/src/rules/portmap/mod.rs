//! Rules of the SDP port mapper (draft-pinkerton-iwarp-sdp-01 section 7).
//!
//! | file | subject |
//! | --- | --- |
//! | [`message`] | the fields of a single datagram |
//! | [`kind`] | MT (message type), compared with the sender of the datagram |
//! | [`request`] | a PMReq, compared with earlier PMReqs |
//! | [`answer`] | PMAccept and PMDeny, compared with their PMReq |
//! | [`ack`] | a PMAck, compared with its PMAccept |
//! | [`connection`] | PMReqs over TCP, and the data on a mapped SDP connection |
//! | [`pending`] | findings that wait, because a later PMReq can explain the datagram |
//! | [`view`] | what a rule reads of a datagram |
//!
//! The ports show the sender of a datagram: port mappers answer from port 3935. If both ports are
//! 3935, rules that depend on the sender are skipped.

mod ack;
mod answer;
mod connection;
mod kind;
mod message;
mod pending;
mod request;
#[cfg(test)]
mod testing;
#[cfg(test)]
mod unusual;
pub(super) mod view;

pub(crate) use pending::{PendingFindings, UncertainMatch};
pub(crate) use view::PmView;

use super::rule::Rule;

/// All rules of the port mapper.
pub(super) static RULES: &[&Rule] = &[
    &message::LENGTH,
    &message::VERSION,
    &message::IP_VERSION,
    &message::ADDRESSES,
    &message::PADDING,
    &message::RESERVED,
    &message::TIME,
    &kind::KIND,
    &request::CONFLICT,
    &answer::ACCEPT,
    &answer::DENY,
    &ack::ACK,
    &connection::IN_IWARP_MODE,
    &connection::IN_UDP,
];
