//! A port mapper message as rules receive it, and the message type that its sender intended.

use weft_core::RequirementId;
use weft_core::requirement;
use weft_core::wire::portmap::MessageType;

use crate::follow::portmap::{Clash, PmSeen, Side, Transaction};

/// A datagram, and the state of its transaction before the datagram.
pub(crate) struct PmView<'a> {
    /// The message; `None` if the datagram is too short or was cut by the capture.
    pub(crate) seen: Option<&'a PmSeen>,
    /// The transaction that the datagram's fields identify.
    pub(crate) transaction: Option<&'a Transaction>,
    /// For a PMReq: the conflict with an earlier PMReq, if any.
    pub(crate) clash: Option<(Clash, &'a PmSeen)>,
}

/// The message type that the sender intended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Meant {
    Request,
    Accept,
    Ack,
    Deny,
}

impl PmView<'_> {
    /// Returns the type of MT if the sender's role may send that type. Otherwise the transaction
    /// and ApPort decide. `None` if the sender's role is unknown, or if nothing decides.
    pub(super) fn meant(&self) -> Option<Meant> {
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
                let requested = self.transaction?.request.raw.ap_port;
                match seen.raw.ap_port.get() {
                    0 => Some(Meant::Deny),
                    port => (port != requested.get()).then_some(Meant::Accept),
                }
            }
        }
    }
}

impl Meant {
    /// Returns the requirement of section 7.4 that all fields of this type are set as listed.
    pub(super) fn all_fields(self) -> RequirementId {
        match self {
            Meant::Request => requirement!("PM-7.4-4"),
            Meant::Accept => requirement!("PM-7.4-18"),
            Meant::Ack => requirement!("PM-7.4-32"),
            Meant::Deny => requirement!("PM-7.4-51"),
        }
    }
}
