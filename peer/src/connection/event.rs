//! What a connection emits: octets for the wire, and events for its user.

use bytes::Bytes;
use weft_core::wire::rdmap::TerminateError;
use weft_core::{RequirementId, requirement};

use crate::mpa::{FpduError, Negotiated, PeerFrame, StartupError};
use crate::rdmap::{SendId, StreamError};

/// The commands to a driver, in the order in which it carries them out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Transmit {
    /// Send these octets: one start-up frame, or one FPDU.
    Octets(Bytes),
    /// Close the sending half gracefully; nothing follows but perhaps `Reset`.
    Fin,
    /// Abort the connection; nothing follows.
    Reset,
}

/// The events of a connection, in the order in which they happened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// A good Request is here: [`accept`](super::Connection::accept) or
    /// [`reject`](super::Connection::reject).
    Request(PeerFrame),
    /// Start-up succeeded; Full Operation begins. A Responder's Sends wait for the first valid
    /// FPDU.
    Established {
        /// What was agreed.
        negotiated: Negotiated,
        /// The peer's frame.
        peer: PeerFrame,
    },
    /// The Responder rejected: MPA is left, TCP is open and the user's to close (MPA-7.1.2-15).
    Rejected(PeerFrame),
    /// A Send arrived and used up the oldest posted receive.
    Received {
        /// Its payload.
        octets: Bytes,
        /// It asks for a solicited event.
        solicited: bool,
    },
    /// Octets of streaming mode, as TCP gave them.
    Streamed(Bytes),
    /// An accepting Reply that this endpoint cannot accept, for the ULP to see (P2P-9.1-25).
    /// [`Event::TerminateSent`] has the reason.
    Unusable(PeerFrame),
    /// The last octets of this Send were given to the driver.
    SendCompleted(SendId),
    /// The peer closed its half gracefully: nothing more arrives. Sends still go out (DDP-6.2.1-6)
    /// until the user closes.
    HalfClosed,
    /// A Terminate is queued for the peer, with the error that the peer made. The connection then
    /// closes.
    TerminateSent(StreamError),
    /// The peer's Terminate arrived. The connection then closes.
    TerminateReceived(TerminateError),
    /// The connection is over: both halves closed, or reset. Always the last event. Sends and
    /// receives without an event of their own until now have failed.
    Closed(Closed),
}

/// The end of a connection: the side that ended it, and the first cause.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Closed {
    /// Who.
    pub by: By,
    /// Why.
    pub why: Why,
}

/// The side that ended it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum By {
    /// The peer closed, reset or terminated.
    Peer,
    /// This endpoint, for what the peer did or did not do: closed locally with an error.
    Library,
    /// This endpoint's user.
    User,
}

/// Why a connection ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Why {
    /// The user requested it.
    #[error("requested")]
    Requested,
    /// The peer closed its half in the middle of an FPDU or of a message.
    #[error("the peer closed in the middle of a message")]
    CutShort,
    /// The peer broke the stream; a Terminate reported it.
    #[error("terminated: {0}")]
    Fault(StreamError),
    /// The peer closed its half gracefully.
    #[error("FIN")]
    Fin,
    /// The first FPDU that a Responder got is invalid, so it may send none, not even a Terminate.
    #[error("first FPDU: {0}")]
    FirstFpdu(FpduError),
    /// No FPDU arrived after an accepting Reply.
    #[error("no FPDU arrived in time")]
    FirstFpduTimeout,
    /// No octet of a Request arrived: the peer has nothing to send, or is a Responder, too
    /// ("passive/passive").
    #[error("no Request came in time; the peer may be a Responder, too")]
    NoRequest,
    /// The Request's IRD is lower than the ORD that this endpoint's ULP needs; a rejecting Reply
    /// names it.
    #[error("the Request's IRD is too low for this endpoint's ULP")]
    PeerIrd,
    /// The peer, or the network, reset the connection.
    #[error("reset")]
    Reset,
    /// The peer's start-up frame is no good.
    #[error(transparent)]
    Startup(StartupError),
    /// The peer's start-up frame was not complete in time.
    #[error("the start-up frame was not complete in time")]
    StartupTimeout,
    /// The peer sent a Terminate.
    #[error("terminated by the peer: {0}")]
    TerminateReceived(TerminateError),
}

impl Why {
    /// The requirement that the peer broke or that makes this endpoint close, where there is one.
    #[must_use]
    pub fn requirement(&self) -> Option<RequirementId> {
        match self {
            Why::Requested | Why::CutShort | Why::Fin | Why::TerminateReceived(_) => None,
            Why::Fault(error) => error.requirement(),
            Why::FirstFpdu(error) => Some(error.requirement()),
            Why::FirstFpduTimeout => Some(requirement!("MPA-7.1.2-29")),
            Why::NoRequest => Some(requirement!("MPA-7.1.2-23")),
            Why::PeerIrd => Some(requirement!("P2P-9.1-21")),
            Why::Reset => Some(requirement!("MPA-8-1")),
            Why::Startup(error) => Some(error.requirement()),
            Why::StartupTimeout => Some(requirement!("MPA-7.1.2-28")),
        }
    }
}

impl std::fmt::Display for Closed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let by = match self.by {
            By::Peer => "peer",
            By::Library => "endpoint",
            By::User => "user",
        };
        let why = self.why.to_string();
        write!(f, "closed by the {by}: {why}")?;
        match self.why.requirement().map(|id| format!(" ({id})")) {
            // The words of some errors end with it.
            Some(id) if !why.ends_with(&id) => f.write_str(&id),
            _ => Ok(()),
        }
    }
}
