//! Rules of the Sockets Direct Protocol (draft-pinkerton-iwarp-sdp-01), in both field orders.
//!
//! | file | what it judges |
//! | --- | --- |
//! | [`length`] | MID and Len of one message (6.1.1, 6.1.4) |
//! | [`flags`] | its Flags (6.1.2) |
//! | [`number`] | Bufs, MSeq and MSeqAck (6.1.3, 6.1.5, 6.1.6) |
//! | [`hello`] | Hello and HelloAck (6.2.1, 6.2.2), and who refuses them (8.1.1) |
//! | [`setup`] | what comes first, and what carries it (5, 6.2, 8.1.1) |
//! | [`mode_change`] | the ModeChange message (6.3.8) |
//! | [`advert`] | SrcAH and SinkAH (6.3.2, 6.3.3) |
//! | [`moved`] | RdmaWrCompl and RdmaRdCompl against RDMA (6.3.4, 6.3.6, 6.3.7) |
//! | [`resize`] | ChRcvBuf and ChRcvBufAck (6.4) |
//! | [`close`] | DisConn, AbortConn, and the end of TCP (6.2.3, 6.2.4, 8.2) |
//! | [`suspend`] | SuspComm and SuspCommAck (6.5, 13) |
//! | [`solicited`] | the opcode of the Send that carries a message (section 14.2) |
//!
//! A message is judged by what its sender knew ([`crate::follow::sdp::Before`]): it had received what it acknowledges, and no more
//! is told of it. What one message alone says ([`SdpView`]) is judged wherever it is seen. What the order of the frames cannot tell
//! ([`crate::follow::sdp::Strays`]) is judged at the end.

mod advert;
mod close;
mod flags;
mod hello;
mod length;
mod mode_change;
mod moved;
mod number;
mod resize;
mod setup;
mod solicited;
mod suspend;
#[cfg(test)]
mod testing;
mod view;

pub(crate) use view::SdpView;

use super::Rule;

/// Every rule of SDP.
pub(super) static RULES: &[&Rule] = &[
    &advert::FIELDS,
    &advert::STRAY,
    &advert::REFUSED_BY_ITS_OWNER,
    &close::BEHIND_DIS_CONN,
    &close::ABORT_CONN,
    &close::END_OF_TCP,
    &flags::FLAGS,
    &hello::HELLO,
    &hello::HELLO_ACK,
    &hello::REFUSED,
    &length::BEGINS_WITH_BSDH,
    &length::HEADER,
    &length::LENGTHS,
    &mode_change::FIELDS,
    &mode_change::MASTER,
    &moved::WRITTEN,
    &moved::READ,
    &number::NUMBERS,
    &number::AT_THE_END,
    &resize::SIZES,
    &setup::ORDER,
    &setup::TOO_EARLY,
    &setup::FRAMED,
    &setup::COMBINED_FIRST,
    &setup::DEPTH,
    &solicited::OPCODE,
    &suspend::FIELDS,
    &suspend::SILENT,
    &suspend::NO_RDMA,
    &suspend::AT_REST,
];
