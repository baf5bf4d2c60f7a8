//! Rules of the Sockets Direct Protocol (draft-pinkerton-iwarp-sdp-01), in both field orders.
//!
//! | file | what it judges |
//! | --- | --- |
//! | [`solicited`] | the opcode of the Send that carries a message (section 14.2) |
//!
//! A message is judged by what its sender knew ([`crate::follow::sdp::Before`]): it had received what it acknowledges, and no more
//! is told of it. What one message alone says ([`SdpView`]) is judged wherever it is seen. What the order of the frames cannot tell
//! ([`crate::follow::sdp::Strays`]) is judged at the end.

mod solicited;
#[cfg(test)]
mod testing;
mod view;

pub(crate) use view::SdpView;

use super::Rule;

/// Every rule of SDP.
pub(super) static RULES: &[&Rule] = &[&solicited::OPCODE];
