//! Negotiation of RFC 6581 sections 9.1 and 9.2: computes IRD, ORD and the kind of ready-to-receive
//! message from the enhanced data of the Request and of the Reply. The enhanced data is the first 4
//! bytes of private data: flags A to D, IRD and ORD.

use weft_core::wire::mpa::Enhanced;
use weft_core::wire::mpa::startup::NOT_NEGOTIATED;

use super::settings::{EnhancedSettings, Model};
use super::{Rtr, RtrKinds};

/// The negotiated values, from the view of this endpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Agreed {
    /// Number of the peer's RDMA Read Requests that this endpoint can store at a time.
    pub ird: u16,
    /// Number of RDMA Read Requests that this endpoint may have outstanding.
    pub ord: u16,
    /// The model is peer-to-peer, because A=1 in both frames.
    pub peer_to_peer: bool,
}

/// Reason why an Initiator cannot continue after an accepting enhanced Reply. The Initiator sends
/// the reason to the peer in a Terminate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, thiserror::Error)]
pub enum SetupError {
    /// MPA error 6: the ORD of the Reply is above the greatest IRD of this endpoint.
    #[error("the Responder's ORD is {wanted}, but the IRD of this endpoint can be at most {most}")]
    InsufficientIrd {
        /// ORD of the Reply.
        wanted: u16,
        /// Greatest IRD that this endpoint can offer.
        most: u16,
    },
    /// MPA error 5: a local error that has no code of its own.
    #[error("local catastrophic error")]
    LocalCatastrophic,
    /// MPA error 7: the Reply allows only ready-to-receive messages that this endpoint cannot send.
    #[error("the Reply offers no ready-to-receive message that this endpoint can send")]
    NoMatchingRtr,
}

/// A Responder's answer to an enhanced Request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Answer {
    /// Enhanced data of the Reply.
    pub enhanced: Enhanced,
    pub agreed: Agreed,
    /// The IRD of the Request is lower than this endpoint's `min_ord`.
    pub insufficient: bool,
}

/// Enhanced data of a Request.
pub(super) fn request(own: &EnhancedSettings) -> Enhanced {
    let offered = |depth: super::Depth| if depth.negotiated { depth.value() } else { NOT_NEGOTIATED };
    let (ird, ord) = (offered(own.ird), offered(own.ord));
    match own.model {
        Model::ClientServer => enhanced_data(false, RtrKinds::NONE, ird, ord),
        Model::PeerToPeer => enhanced_data(true, own.rtr, ird, ord),
    }
}

/// Computes a Responder's answer. The ORD is at most the IRD of the Request. If `max_ird` allows
/// it, the IRD is at least the ORD of the Request.
pub(super) fn answer(request: &Enhanced, own: &EnhancedSettings) -> Answer {
    let own_rtr = if own.rtr.is_empty() { RtrKinds::only(Rtr::Write) } else { own.rtr };
    let rtr = match (request.peer_to_peer, RtrKinds::of(request).and(own_rtr)) {
        (false, _) => RtrKinds::NONE,
        (true, common) if common.is_empty() => own_rtr,
        (true, common) => common,
    };
    let least_ird = u16::from(rtr.read);
    let max_ird = own.max_ird.max(own.ird.value()).max(least_ird).min(super::Depth::MAX);
    let (sent_ird, ird) = match request.ord {
        NOT_NEGOTIATED => (NOT_NEGOTIATED, own.ird.value()),
        wanted => {
            let ird = own.ird.value().max(wanted).max(least_ird).min(max_ird);
            (ird, ird)
        }
    };
    let (sent_ord, ord) = match request.ird {
        NOT_NEGOTIATED => (NOT_NEGOTIATED, own.ord.value()),
        limit => {
            let ord = own.ord.value().min(limit);
            (ord, ord)
        }
    };
    Answer {
        enhanced: enhanced_data(request.peer_to_peer, rtr, sent_ird, sent_ord),
        agreed: Agreed { ird, ord, peer_to_peer: request.peer_to_peer },
        insufficient: request.ird != NOT_NEGOTIATED && request.ird < own.min_ord,
    }
}

/// Enhanced data of a rejecting Reply. If the IRD of the Request is too low, the ORD of the Reply
/// is the ORD that the ULP needs (P2P-9.1-21).
pub(super) fn rejection(answer: &Answer, own: &EnhancedSettings) -> Enhanced {
    let ord = if answer.insufficient { own.min_ord.min(super::Depth::MAX) } else { answer.enhanced.ord };
    Enhanced { ord, ..answer.enhanced }
}

/// Computes an Initiator's result after an accepting Reply: the negotiated values and the kind of
/// ready-to-receive message that the Initiator has to send.
pub(super) fn conclude(reply: &Enhanced, own: &EnhancedSettings) -> Result<(Agreed, Option<Rtr>), SetupError> {
    let ord = match reply.ird {
        NOT_NEGOTIATED => own.ord.value(),
        limit => own.ord.value().min(limit),
    };
    let most = own.max_ird.max(own.ird.value()).min(super::Depth::MAX);
    let ird = match reply.ord {
        NOT_NEGOTIATED => own.ird.value(),
        wanted if wanted > most => return Err(SetupError::InsufficientIrd { wanted, most }),
        wanted => own.ird.value().max(wanted),
    };
    let rtr = if reply.peer_to_peer { Some(choose(reply, own).ok_or(SetupError::NoMatchingRtr)?) } else { None };
    Ok((Agreed { ird, ord, peer_to_peer: reply.peer_to_peer }, rtr))
}

/// Chooses the kind of ready-to-receive message. A Read is possible only if the Responder's IRD is
/// above 0.
fn choose(reply: &Enhanced, own: &EnhancedSettings) -> Option<Rtr> {
    let mut usable = RtrKinds::of(reply).and(own.rtr);
    usable.read &= reply.ird > 0;
    let preferred = Some(own.preferred_rtr).filter(|kind| usable.contains(*kind));
    preferred.or_else(|| [Rtr::Write, Rtr::Read, Rtr::Send].into_iter().find(|kind| usable.contains(*kind)))
}

fn enhanced_data(peer_to_peer: bool, rtr: RtrKinds, ird: u16, ord: u16) -> Enhanced {
    Enhanced { peer_to_peer, rtr_send: rtr.send, ird, rtr_write: rtr.write, rtr_read: rtr.read, ord }
}
