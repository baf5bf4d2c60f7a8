//! Defines `PmView`, the input of the port mapper rules: a port mapper message and its transaction.
//! Also finds the message type that the sender intended.

use weft_core::RequirementId;
use weft_core::requirement;
use weft_core::wire::portmap::MessageType;

use crate::follow::portmap::{PmDatagram, RequestConflict, Role, Transaction};

/// A datagram, and the state of its transaction before the datagram.
pub(crate) struct PmView<'a> {
    /// The message; `None` if the datagram is too short, or if the snap length cut the datagram.
    pub(crate) datagram: Option<&'a PmDatagram>,
    /// The transaction that the datagram's fields identify.
    pub(crate) transaction: Option<&'a Transaction>,
    /// The newest transaction whose PMReq has the four-tuple of the PMReq in `transaction`.
    pub(crate) newest: Option<&'a Transaction>,
    /// For a PMReq: the conflict with an earlier PMReq, if any.
    pub(crate) conflict: Option<(RequestConflict, &'a PmDatagram)>,
}

/// The message type that the sender intended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum IntendedType {
    Request,
    Accept,
    Ack,
    Deny,
}

impl PmView<'_> {
    /// Returns the type in the field MT (message type) if the sender's role is allowed to send that
    /// type. Otherwise the result depends on the transaction and on ApPort. Returns `None` if the
    /// sender's role is unknown, or if transaction and ApPort do not show the type.
    pub(super) fn intended_type(&self) -> Option<IntendedType> {
        let seen = self.datagram?;
        match (seen.role()?, seen.raw.mt()) {
            (Role::Client, MessageType::PM_REQ) => Some(IntendedType::Request),
            (Role::Client, MessageType::PM_ACK) => Some(IntendedType::Ack),
            (Role::Server, MessageType::PM_ACCEPT) => Some(IntendedType::Accept),
            (Role::Server, MessageType::PM_DENY) => Some(IntendedType::Deny),
            (Role::Client, _) => match self.transaction {
                Some(transaction) if !transaction.accepts.is_empty() => Some(IntendedType::Ack),
                Some(_) => None,
                None => Some(IntendedType::Request),
            },
            (Role::Server, _) => {
                let requested = self.transaction?.request.raw.ap_port;
                match seen.raw.ap_port.get() {
                    0 => Some(IntendedType::Deny),
                    port => (port != requested.get()).then_some(IntendedType::Accept),
                }
            }
        }
    }
}

impl IntendedType {
    /// Section 7.4 of the SDP draft lists the values of all fields for each type of message.
    /// Returns the id of this requirement for a message of this type.
    pub(super) fn all_fields(self) -> RequirementId {
        match self {
            IntendedType::Request => requirement!("PM-7.4-4"),
            IntendedType::Accept => requirement!("PM-7.4-18"),
            IntendedType::Ack => requirement!("PM-7.4-32"),
            IntendedType::Deny => requirement!("PM-7.4-51"),
        }
    }
}
