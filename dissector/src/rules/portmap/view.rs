//! A message of the port mapper as rules judge it, and the type that its sender intended.

use weft_core::RequirementId;
use weft_core::requirement;
use weft_core::wire::portmap::MessageType;

use crate::follow::portmap::{Clash, PmSeen, Side, Transaction};

/// A datagram, and the state of its transaction before it.
pub(crate) struct PmView<'a> {
    /// The message; `None` if it is too short, or if the capture cut it.
    pub(crate) seen: Option<&'a PmSeen>,
    /// The transaction that its fields identify.
    pub(crate) transaction: Option<&'a Transaction>,
    /// The conflict with an earlier PMReq, if there is one.
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
    /// Taken from MT if its side sends that type; otherwise from the state of its transaction.
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
    /// "All fields are set as listed": the sum of the type's requirements in section 7.4.
    pub(super) fn all_fields(self) -> RequirementId {
        match self {
            Meant::Request => requirement!("PM-7.4-4"),
            Meant::Accept => requirement!("PM-7.4-18"),
            Meant::Ack => requirement!("PM-7.4-32"),
            Meant::Deny => requirement!("PM-7.4-51"),
        }
    }
}
