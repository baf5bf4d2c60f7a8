//! Marker PDU Aligned framing (RFC 5044), with the enhanced set-up of RFC 6581, as sans-IO
//! machines.
//!
//! Start-up is one struct a state, consumed by the transition to the next:
//!
//! ```text
//! Initiator:  WaitReply ----good Reply, R=0----> Negotiated        Responder:  WaitRequest --good Request--> WaitDecision
//!                |  \-----good Reply, R=1------> (MPA is left)                    |               accept / reject
//!                malformed: StartupError: close                                   malformed: close   |         |
//!                                                                                             Negotiated   (MPA is left)
//! ```
//!
//! [`MpaSettings`] has what this side wants: revision 0, 1 or 2, CRCs, markers, the enhanced
//! set-up. [`Negotiated`] has what both sides' frames made of it, each direction for itself. Full
//! Operation is a [`Deframer`] and an [`FpduSender`], each of one direction; an Initiator that
//! speaks first for its peer's sake begins with an [`Rtr`].
//!
//! Time-outs, FIN and RST, streaming mode before start-up, and the Responder's silence before the
//! first FPDU belong to [`crate::connection`].

mod deframer;
mod enhanced;
mod error;
mod frame;
mod initiator;
mod negotiated;
mod peer_frame;
mod responder;
mod rtr;
mod sender;
mod settings;

pub use deframer::Deframer;
pub use enhanced::{Agreed, SetupError};
pub use error::{FpduError, StartupError};
pub use initiator::{AfterReply, WaitReply};
pub use negotiated::{Negotiated, Role};
pub use peer_frame::{PeerFrame, PrivateData, PrivateDataTooLong};
pub use responder::{AfterRequest, WaitDecision, WaitRequest, plain_reply};
pub use rtr::{ArrivedRtr, Rtr, RtrKinds, is_read_response, read_response};
pub use sender::FpduSender;
pub use settings::{Depth, EnhancedSettings, EnhancedUse, Model, MpaSettings, Rnic};
