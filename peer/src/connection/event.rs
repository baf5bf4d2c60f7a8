//! Outputs of a connection: bytes for TCP, and events for the user.

use bytes::Bytes;
use weft_core::wire::rdmap::TerminateError;
use weft_core::{RequirementId, requirement};

use crate::mpa::{FpduError, Negotiated, PeerFrame, StartupError};
use crate::rdmap::{SendId, StreamError};

/// Commands to the driver. The driver executes the commands in order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Transmit {
    /// Send these bytes: one start-up frame, one FPDU, or data of streaming mode (before MPA).
    Octets(Bytes),
    /// Close this endpoint's direction gracefully. After this command, only `Reset` can follow.
    Fin,
    /// Abort the connection. No command follows.
    Reset,
}

/// Events of a connection, in the order in which they happened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// A valid Request arrived. The user has to call [`accept`](super::Connection::accept) or
    /// [`reject`](super::Connection::reject).
    Request(PeerFrame),
    /// Start-up succeeded. A Responder's Sends wait until the first valid FPDU arrives.
    Established {
        /// The negotiated values.
        negotiated: Negotiated,
        /// The peer's start-up frame.
        peer: PeerFrame,
    },
    /// The Responder rejected the Request. The connection does not use MPA. TCP is still open, and
    /// the user has to close the connection (MPA-7.1.2-15).
    Rejected(PeerFrame),
    /// A Send arrived and has used the oldest posted receive.
    Received {
        /// Payload of the Send.
        octets: Bytes,
        /// The Send requests a solicited event.
        solicited: bool,
    },
    /// Received bytes of streaming mode, in the pieces in which TCP delivered them.
    Streamed(Bytes),
    /// An accepting Reply arrived, but this endpoint cannot work with the values of the Reply. The
    /// event reports the Reply to the ULP (P2P-9.1-25). [`Event::TerminateSent`] has the reason.
    Unusable(PeerFrame),
    /// `poll_transmit` has returned the last bytes of this Send to the driver.
    SendCompleted(SendId),
    /// The peer closed its direction gracefully, so no more data arrives. Until the user closes the
    /// connection, the user can still post Sends (DDP-6.2.1-6).
    HalfClosed,
    /// This endpoint has queued a Terminate for the peer. The error is a violation by the peer, or
    /// an error of this endpoint. After this event, the connection closes.
    TerminateSent(StreamError),
    /// The peer's Terminate arrived. After this event, the connection closes.
    TerminateReceived(TerminateError),
    /// The connection is closed in both directions, or was reset. This is always the last event. If
    /// no event has reported the end of a Send or receive, this Send or receive has failed.
    Closed(Closed),
}

/// The end of a connection: the side that ended it, and the first cause.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Closed {
    /// Side that ended the connection.
    pub by: ClosedBy,
    /// First cause.
    pub why: CloseCause,
}

/// The side that ended a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ClosedBy {
    /// The peer closed or reset the connection, or sent a Terminate.
    Peer,
    /// This endpoint closed the connection because of an error or a time-out.
    Library,
    /// The user of this endpoint closed or aborted the connection.
    User,
}

/// Cause of the end of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum CloseCause {
    /// The user closed or aborted the connection.
    #[error("requested")]
    Requested,
    /// The peer closed its direction of the connection in the middle of an FPDU or of a message.
    #[error("the peer closed the connection in the middle of a message")]
    CutShort,
    /// The peer violated the protocol, or a local error occurred. If this endpoint could still send
    /// an FPDU, a Terminate reported the error.
    #[error("this endpoint sent a Terminate: {0}")]
    Fault(StreamError),
    /// The peer closed its direction of the connection gracefully.
    #[error("FIN")]
    Fin,
    /// The first FPDU that a Responder received is invalid. The Responder must not send any FPDU
    /// before a valid FPDU has arrived, not even a Terminate.
    #[error("the first FPDU is invalid: {0}")]
    FirstFpdu(FpduError),
    /// No FPDU arrived in time after an accepting Reply.
    #[error("no FPDU arrived before the timeout")]
    FirstFpduTimeout,
    /// No byte of a Request arrived in time. Either the peer has nothing to send, or the peer is
    /// also a Responder ("passive/passive").
    #[error("no Request arrived before the timeout; perhaps the peer is also a Responder and waits for a Request")]
    NoRequest,
    /// The Request's IRD is lower than the ORD that this endpoint's ULP needs. The rejecting Reply
    /// has the required ORD.
    #[error("the Request's IRD is lower than the ORD that the ULP of this endpoint needs")]
    PeerIrd,
    /// The peer, or the network, reset the connection.
    #[error("reset")]
    Reset,
    /// The peer's start-up frame is invalid.
    #[error(transparent)]
    Startup(StartupError),
    /// The peer's start-up frame was not complete in time.
    #[error("the peer did not send a complete start-up frame before the timeout")]
    StartupTimeout,
    /// The peer sent a Terminate.
    #[error("the peer sent a Terminate: {0}")]
    TerminateReceived(TerminateError),
}

impl CloseCause {
    /// The requirement that the peer violated, or that made this endpoint close the connection.
    /// `None` if no requirement applies.
    #[must_use]
    pub fn requirement(&self) -> Option<RequirementId> {
        match self {
            CloseCause::Requested | CloseCause::CutShort | CloseCause::Fin | CloseCause::TerminateReceived(_) => None,
            CloseCause::Fault(error) => error.requirement(),
            CloseCause::FirstFpdu(error) => Some(error.requirement()),
            CloseCause::FirstFpduTimeout => Some(requirement!("MPA-7.1.2-29")),
            CloseCause::NoRequest => Some(requirement!("MPA-7.1.2-23")),
            CloseCause::PeerIrd => Some(requirement!("P2P-9.1-21")),
            CloseCause::Reset => Some(requirement!("MPA-8-1")),
            CloseCause::Startup(error) => Some(error.requirement()),
            CloseCause::StartupTimeout => Some(requirement!("MPA-7.1.2-28")),
        }
    }
}

impl std::fmt::Display for Closed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let by = match self.by {
            ClosedBy::Peer => "peer",
            ClosedBy::Library => "endpoint",
            ClosedBy::User => "user",
        };
        let why = self.why.to_string();
        write!(f, "closed by the {by}: {why}")?;
        match self.why.requirement().map(|id| format!(" ({id})")) {
            // The texts of some errors already end with the ID of the requirement.
            Some(id) if !why.ends_with(&id) => f.write_str(&id),
            _ => Ok(()),
        }
    }
}
