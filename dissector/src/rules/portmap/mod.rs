//! Rules of the SDP port mapper (draft-pinkerton-iwarp-sdp-01 section 7).
//!
//! | file | what it judges |
//! | --- | --- |
//! | [`message`] | one datagram by itself |
//! | [`kind`] | MT against who sent it |
//! | [`request`] | a PMReq against earlier ones |
//! | [`answer`] | PMAccept and PMDeny against their PMReq |
//! | [`ack`] | a PMAck against its PMAccept |
//! | [`connection`] | what passes on TCP |
//! | [`pending`] | which findings wait, because another PMReq may explain them |
//!
//! Who sent a datagram is told by its ports: port mappers answer from 3935. Where both ports are that one, nothing that depends
//! on it is judged.

mod ack;
mod answer;
mod connection;
mod kind;
mod message;
#[cfg(test)]
mod odd;
mod pending;
mod request;
#[cfg(test)]
mod testing;

use weft_core::RequirementId;
use weft_core::requirement;
use weft_core::wire::portmap::MessageType;

pub(crate) use pending::{PendingFindings, Uncertain};

use super::Rule;
use crate::follow::portmap::{Clash, PmSeen, Side, Transaction};

/// Every rule of the port mapper.
pub(super) static RULES: &[&Rule] = &[
    &message::LENGTH,
    &message::VERSION,
    &message::IP_VERSION,
    &message::ADDRESSES,
    &message::PADDING,
    &message::RESERVED,
    &message::TIME,
    &kind::KIND,
    &request::CLASH,
    &answer::ACCEPT,
    &answer::DENY,
    &ack::ACK,
    &connection::IN_IWARP_MODE,
    &connection::IN_UDP,
];

/// A datagram, and what is known of its transaction before it.
pub(crate) struct PmView<'a> {
    /// The message; `None` when it is too short for one, or was cut by the capture.
    pub(crate) seen: Option<&'a PmSeen>,
    /// Its transaction, by what it says.
    pub(crate) transaction: Option<&'a Transaction>,
    /// How it goes against an earlier PMReq.
    pub(crate) clash: Option<(Clash, &'a PmSeen)>,
}

/// What a datagram was meant to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Meant {
    Request,
    Accept,
    Ack,
    Deny,
}

impl PmView<'_> {
    /// By its MT where its side sends such; else by what is due in its transaction.
    fn meant(&self) -> Option<Meant> {
        let seen = self.seen?;
        match (seen.side()?, seen.raw.mt()) {
            (Side::Client, MessageType::PM_REQ) => Some(Meant::Request),
            (Side::Client, MessageType::PM_ACK) => Some(Meant::Ack),
            (Side::Server, MessageType::PM_ACCEPT) => Some(Meant::Accept),
            (Side::Server, MessageType::PM_DENY) => Some(Meant::Deny),
            (Side::Client, _) => match self.transaction {
                Some(transaction) if !transaction.accepts.is_empty() => Some(Meant::Ack),
                Some(_) => None,
                None => Some(Meant::Request),
            },
            (Side::Server, _) => {
                let asked = self.transaction?.request.raw.ap_port;
                match seen.raw.ap_port.get() {
                    0 => Some(Meant::Deny),
                    port => (port != asked.get()).then_some(Meant::Accept),
                }
            }
        }
    }
}

impl Meant {
    /// "All fields are set as listed": the sum of its rows in section 7.4.
    fn all_fields(self) -> RequirementId {
        match self {
            Meant::Request => requirement!("PM-7.4-4"),
            Meant::Accept => requirement!("PM-7.4-18"),
            Meant::Ack => requirement!("PM-7.4-32"),
            Meant::Deny => requirement!("PM-7.4-51"),
        }
    }
}
