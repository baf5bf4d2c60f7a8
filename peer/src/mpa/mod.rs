//! Marker PDU Aligned framing (RFC 5044) and the enhanced connection set-up of RFC 6581, as state
//! machines without I/O.
//!
//! Each state of the start-up is a struct. A transition consumes the struct and returns the next
//! state:
//!
//! ```text
//! Initiator:  WaitReply --accepting Reply, R=0--> Negotiated
//!                |    \----rejecting Reply, R=1--> TCP without MPA
//!                malformed Reply --> StartupError: close
//!
//! Responder:  WaitRequest --valid Request--> WaitDecision --accept--> Negotiated
//!                |                                   \------reject--> TCP without MPA
//!                malformed Request --> StartupError: close
//! ```
//!
//! [`MpaSettings`] configures one endpoint: MPA revision, CRCs, markers, enhanced set-up.
//! [`Negotiated`] has the result of start-up. Values that can differ between the two directions
//! have one field for each direction. After start-up (RFC 5044: "Full Operation"), a [`Deframer`]
//! reads the FPDUs that arrive, and an [`FpduSender`] builds the FPDUs to send. If the Responder's
//! ULP may send first, the Initiator sends an [`Rtr`] (ready-to-receive message) as its first FPDU.
//!
//! This module does not handle time-outs, FIN, RST, or the bytes of streaming mode before start-up.
//! It also does not make the Responder wait for the first FPDU. The module [`crate::connection`]
//! does all of this.

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

/// Moves bytes from `input` into `buffer` until the buffer holds `wanted` bytes or `input` is
/// empty.
fn fill(buffer: &mut Vec<u8>, input: &mut &[u8], wanted: usize) {
    let missing = wanted.saturating_sub(buffer.len());
    let (taken, rest) = input.split_at(missing.min(input.len()));
    buffer.extend_from_slice(taken);
    *input = rest;
}
