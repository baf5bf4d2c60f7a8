//! Rules of the Sockets Direct Protocol (draft-pinkerton-iwarp-sdp-01), in both field orders.
//!
//! | file | what it judges |
//! | --- | --- |
//! | [`length`] | MID and Len of one message (6.1.1, 6.1.4) |
//! | [`flags`] | its Flags (6.1.2) |
//! | [`number`] | Bufs, MSeq and MSeqAck (6.1.3, 6.1.5, 6.1.6) |
//! | [`hello`] | Hello and HelloAck (6.2.1, 6.2.2), and who refuses them (8.1.1) |
//! | [`solicited`] | the opcode of the Send that carries a message (section 14.2) |
//!
//! A message is judged by what its sender knew ([`crate::follow::sdp::Before`]): it had received what it acknowledges, and no more
//! is told of it. What one message alone says ([`SdpView`]) is judged wherever it is seen. What the order of the frames cannot tell
//! ([`crate::follow::sdp::Strays`]) is judged at the end.

mod flags;
mod hello;
mod length;
mod number;
mod solicited;
#[cfg(test)]
mod testing;
mod view;

pub(crate) use view::SdpView;

use super::Rule;

/// Every rule of SDP.
pub(super) static RULES: &[&Rule] = &[
    &flags::FLAGS,
    &hello::HELLO,
    &hello::HELLO_ACK,
    &hello::REFUSED,
    &length::BEGINS_WITH_BSDH,
    &length::HEADER,
    &length::LENGTHS,
    &number::NUMBERS,
    &number::AT_THE_END,
    &solicited::OPCODE,
];
