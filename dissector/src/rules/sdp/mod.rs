//! Rules of the Sockets Direct Protocol (draft-pinkerton-iwarp-sdp-01), in both orders of the
//! fields in a 32-bit word ([`FieldOrder`](weft_core::wire::sdp::FieldOrder)). The numbers in
//! parentheses are sections of the draft.
//!
//! | file | what it checks |
//! | --- | --- |
//! | [`length`] | MID and Len of one message (6.1.1, 6.1.4) |
//! | [`flags`] | the Flags of one message (6.1.2) |
//! | [`number`] | Bufs, MSeq and MSeqAck (6.1.3, 6.1.5, 6.1.6) |
//! | [`hello`] | Hello and HelloAck (6.2.1, 6.2.2), and their rejection (8.1.1) |
//! | [`setup`] | the order of the first messages, and what carries them (5, 6.2, 8.1.1) |
//! | [`mode_change`] | the ModeChange message (6.3.8) |
//! | [`advert`] | SrcAH and SinkAH (6.3.2, 6.3.3) |
//! | [`transferred_len`] | lengths that RdmaWrCompl and RdmaRdCompl report (6.3.4, 6.3.6, 6.3.7) |
//! | [`resize`] | ChRcvBuf and ChRcvBufAck (6.4) |
//! | [`close`] | DisConn, AbortConn, and the end of TCP (6.2.3, 6.2.4, 8.2) |
//! | [`suspend`] | SuspComm and SuspCommAck (6.5, 13) |
//! | [`solicited`] | the opcode of the Send that carries a message (section 14.2) |
//! | [`src_avail`] | SrcAvails: Mode, payload, count (9.2, 11) |
//! | [`payload`] | payload after a SrcAvail, Data for a SendSm (9.2, 11.2, 11.3) |
//! | [`rd_compl`] | whether RdmaRdCompl and SendSm fit their SrcAvail (9.2, 9.5.4) |
//! | [`sink_avail`] | SinkAvails: Mode, size, count, MaxAdverts (9.3 to 9.5, 11) |
//! | [`wr_compl`] | whether RdmaWrCompl fits its SinkAvail (9.3, 9.5.1) |
//! | [`rdma`] | whether advertisements allow RDMA Writes and Reads (9, 11, 12.4) |
//! | [`cancel`] | the answers to SrcAvailCancel and SinkAvailCancel (9.5.4, 9.5.5) |
//! | [`oob`] | Out-Of-Band octets (9.5.3) |
//! | [`buffers`] | Private Buffers: number and size (10, 10.3) |
//! | [`credits`] | send credit (10.1 to 10.5) |
//! | [`sizes`] | message sizes, ChRcvBuf and its answer (10.6) |
//! | [`transition`] | the transitions between Modes (12) |
//!
//! Two files have no rules: [`view`] is what a rule reads of a message, and [`figure`] has the
//! requirements of Figure 25.
//!
//! A rule compares a message with the state that its sender knew
//! ([`crate::follow::sdp::SenderState`]). The rule assumes that the sender had received only the
//! messages that MSeqAck acknowledges.
//!
//! Most rules run at each message ([`SdpView`]). If the order of frames does not show which event
//! was first, the rule runs at the end of the capture
//! ([`crate::follow::sdp::SdpState::unexplained`]).

mod advert;
mod buffers;
mod cancel;
mod close;
mod credits;
mod figure;
mod flags;
mod hello;
mod length;
mod mode_change;
mod number;
mod oob;
mod payload;
mod rd_compl;
mod rdma;
mod resize;
#[cfg(test)]
mod sdp_script;
mod setup;
mod sink_avail;
mod sizes;
mod solicited;
mod src_avail;
mod suspend;
#[cfg(test)]
mod testing;
mod transferred_len;
mod transition;
#[cfg(test)]
pub(super) mod unusual;
#[cfg(test)]
pub(super) mod unusual_transfer;
pub(super) mod view;
mod wr_compl;

pub(crate) use view::SdpView;

use super::rule::Rule;

/// All rules of SDP.
pub(super) static RULES: &[&Rule] = &[
    &advert::FIELDS,
    &advert::NOT_ADVERTISED,
    &advert::REFUSED_BY_ITS_OWNER,
    &close::AFTER_DIS_CONN,
    &close::DIS_CONN,
    &close::AFTER_ABORT_CONN,
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
    &transferred_len::WRITTEN,
    &transferred_len::READ,
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
    &suspend::NO_MESSAGES,
    &suspend::NO_RDMA,
    &suspend::RDMA_REPORTED,
    &buffers::NUMBER,
    &buffers::SIZE,
    &cancel::ACKNOWLEDGED,
    &cancel::SINK_CANCEL_ACK,
    &credits::ORDER,
    &credits::REPORTED,
    &credits::USE,
    &transition::TIMING,
    &transition::TRANSITION,
    &oob::ANNOUNCED,
    &oob::POSITION,
    &payload::AFTER_SRC_AVAIL,
    &payload::LEN,
    &payload::OWED,
    &rd_compl::AMOUNT,
    &rd_compl::AWAITED,
    &rd_compl::INVALIDATE,
    &rd_compl::WITHOUT_SRC_AVAIL,
    &rdma::ALLOWED,
    &rdma::CANCELED,
    &rdma::AT_THE_END,
    &rdma::IN_MODE,
    &sizes::ANSWER,
    &sizes::LIMIT,
    &sizes::REQUEST,
    &sink_avail::IN_MODE,
    &sink_avail::MAX_ADVERTS,
    &sink_avail::TIMING,
    &sink_avail::SIZE,
    &src_avail::IN_MODE,
    &src_avail::OPEN,
    &wr_compl::AMOUNT,
    &wr_compl::IN_MODE,
    &wr_compl::WITHOUT_SINK_AVAIL,
];
