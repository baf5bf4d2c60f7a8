//! The data of the hooks of the SDP port mapper.

use core::net::SocketAddr;

use weft_core::wire::portmap::{Message, MessageType, RawMessage};
use zerocopy::FromBytes;

/// The receiver of a datagram.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PmSide {
    Client,
    Server,
}

/// A datagram on its way out.
pub(crate) struct PmSent<'a> {
    /// Its content.
    pub(crate) message: &'a Message,
    /// What it answers.
    pub(crate) answers: Option<&'a Message>,
    /// How often it was sent before.
    pub(crate) repeat: u32,
    pub(crate) octets: Vec<u8>,
    pub(crate) to: SocketAddr,
    /// From another port.
    pub(crate) aside: bool,
    /// How often it is sent.
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
    pub(in crate::hostile) fn mislead(&mut self, message_type: MessageType) {
        if self.is(message_type) {
            let port = self.to.port();
            self.to.set_port(if port == u16::MAX { port - 1 } else { port + 1 });
        }
    }
}

/// What a port mapper does and leaves out; each flag is looked at in one place of
/// [`crate::portmap`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[expect(clippy::struct_excessive_bools, reason = "each is a violation of its own, and they can be combined freely")]
pub(crate) struct PmConduct {
    /// Client: a PMAccept that comes again is acknowledged again.
    pub(crate) acknowledges_again: bool,
    /// Client: a PMDeny is acknowledged.
    pub(crate) acknowledges_deny: bool,
    /// Client: SDP is spoken at the Conventional Address after a PMDeny.
    pub(crate) connects_after_deny: bool,
    /// Client: a PMDeny with an ApPort is overlooked.
    pub(crate) heeds_deny_port: bool,
    /// Client: a PMDeny is overlooked.
    pub(crate) ignores_deny: bool,
    /// Client: a reset of the SDP Address changes nothing.
    pub(crate) ignores_reset: bool,
    /// Client: the connection goes to the requested address, whatever address the PMAccept has.
    pub(crate) keeps_requested_address: bool,
    /// Client: a denied service is taken for mapped for the PmTime of its PMDeny.
    pub(crate) keeps_denials: bool,
    /// Client: no answer is flushed.
    pub(crate) keeps_for_ever: bool,
    /// Client: every answer is kept, that of PmTime 0, too.
    pub(crate) keeps_once: bool,
    /// Client: nothing comes of a question without answer.
    pub(crate) never_falls_back: bool,
    /// Client: nothing is repeated.
    pub(crate) never_repeats: bool,
    /// Client: repetitions do not end.
    pub(crate) never_stops: bool,
    /// Client: a later reply takes the place of the first.
    pub(crate) takes_later: bool,
    /// Client: an unsolicited PMAccept is acknowledged.
    pub(crate) takes_unasked: bool,
    /// Server: a duplicate gets what the first one got, whatever became of the service.
    pub(crate) answers_as_before: bool,
    /// Server: a repeated request is not answered once its state is gone.
    pub(crate) answers_once: bool,
    /// Server: a PMAck that belongs to nothing is answered.
    pub(crate) answers_unknown_ack: bool,
    /// Server: a duplicate gets another mapping.
    pub(crate) gives_anew: bool,
    /// Server: a duplicate gets no answer.
    pub(crate) ignores_duplicates: bool,
    /// Server: a newer Request with the same four-tuple is taken for the older one.
    pub(crate) keeps_old_handle: bool,
    /// Server: a duplicate does not begin the timer anew.
    pub(crate) keeps_time: bool,
    /// Server: nothing that was offered is taken back.
    pub(crate) never_expires: bool,
    /// Server: while a Request is known, no other gets an answer.
    pub(crate) one_at_a_time: bool,
}
