//! Data of the hooks of the SDP port mapper.

use core::net::SocketAddr;

use weft_core::wire::portmap::{Message, MessageType, RawMessage};
use zerocopy::FromBytes;

/// The endpoint that receives a datagram.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PmSide {
    Client,
    Server,
}

/// A datagram that is about to be sent.
pub(crate) struct PmSent<'a> {
    /// The correct message in the datagram.
    pub(crate) message: &'a Message,
    /// The message that this datagram answers.
    pub(crate) answers: Option<&'a Message>,
    /// Number of times that the message was sent before this datagram.
    pub(crate) repeat: u32,
    pub(crate) octets: Vec<u8>,
    pub(crate) to: SocketAddr,
    /// True if the datagram is sent from another UDP port.
    pub(crate) from_other_port: bool,
    /// Number of times that the datagram is sent. 0 means that it is not sent.
    pub(crate) copies: usize,
}

impl PmSent<'_> {
    pub(in crate::hostile) fn is(&self, message_type: MessageType) -> bool {
        self.message.message_type == message_type
    }

    /// Changes the fields of a message of this type.
    pub(in crate::hostile) fn change(&mut self, message_type: MessageType, change: impl FnOnce(&mut RawMessage)) {
        if self.is(message_type)
            && let Ok((raw, _)) = RawMessage::mut_from_prefix(&mut self.octets)
        {
            change(raw);
        }
    }

    /// Sends a message of this type to another port.
    pub(in crate::hostile) fn change_port(&mut self, message_type: MessageType) {
        if self.is(message_type) {
            let port = self.to.port();
            self.to.set_port(if port == u16::MAX { port - 1 } else { port + 1 });
        }
    }
}

/// Flags that change the actions of a port mapper. [`crate::portmap`] reads each flag in one place.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[expect(clippy::struct_excessive_bools, reason = "the flags are separate violations and can be combined freely")]
pub(crate) struct PmConduct {
    /// Client: a repeated PMAccept is acknowledged again.
    pub(crate) acknowledges_again: bool,
    /// Client: a PMDeny is acknowledged.
    pub(crate) acknowledges_deny: bool,
    /// Client: after a PMDeny, the client uses SDP at the Conventional Address.
    pub(crate) connects_after_deny: bool,
    /// Client: a PMDeny with an ApPort is ignored.
    pub(crate) heeds_deny_port: bool,
    /// Client: a PMDeny is ignored.
    pub(crate) ignores_deny: bool,
    /// Client: after a reset by the SDP Address, the client continues to use this address.
    pub(crate) ignores_reset: bool,
    /// Client: the client connects to the requested address, even if the PMAccept has a different
    /// address.
    pub(crate) keeps_requested_address: bool,
    /// Client: a denied service is cached as a mapped service. The cache time is the PmTime of the
    /// PMDeny.
    pub(crate) keeps_denials: bool,
    /// Client: cached answers never expire.
    pub(crate) keeps_for_ever: bool,
    /// Client: every answer is cached for ever, including answers with PmTime 0.
    pub(crate) keeps_once: bool,
    /// Client: if no answer arrives, the user gets no result for its request.
    pub(crate) never_falls_back: bool,
    /// Client: no PMReq is repeated.
    pub(crate) never_repeats: bool,
    /// Client: a PMReq without answer is repeated for ever.
    pub(crate) never_stops: bool,
    /// Client: if a second reply arrives, it replaces the first reply.
    pub(crate) takes_later: bool,
    /// Client: an unsolicited PMAccept is acknowledged.
    pub(crate) takes_unrequested: bool,
    /// Server: a duplicate PMReq gets the first answer again, even if the service no longer exists.
    pub(crate) answers_as_before: bool,
    /// Server: a repeated PMReq is not answered after the server's state for this PMReq has
    /// expired.
    pub(crate) answers_once: bool,
    /// Server: a PMAck that belongs to no PMReq is answered.
    pub(crate) answers_unknown_ack: bool,
    /// Server: a duplicate PMReq gets another SDP Address.
    pub(crate) gives_anew: bool,
    /// Server: a duplicate PMReq gets no answer.
    pub(crate) ignores_duplicates: bool,
    /// Server: a new PMReq with a known four-tuple is treated as a duplicate of the known PMReq.
    pub(crate) keeps_old_handle: bool,
    /// Server: a duplicate PMReq does not restart the timer.
    pub(crate) keeps_time: bool,
    /// Server: an offer never expires.
    pub(crate) never_expires: bool,
    /// Server: while the server knows one PMReq, it answers no other PMReq.
    pub(crate) one_at_a_time: bool,
}
