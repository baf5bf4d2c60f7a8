//! Sockets Direct Protocol over iWARP: draft-pinkerton-iwarp-sdp-01, section 6.
//!
//! An SDP message is a [BSDH](RawBsdh), by its MID an extended header, and for three types payload.
//! [`Message`] joins them; the extended headers have a file each. Every header is read and written
//! in a [`FieldOrder`]: as the draft's figures show it, or mirrored.
//!
//! The carrier of a message (octets before MPA, or one Send) and its effect on a connection are not
//! known here.

mod bsdh;
mod ch_rcv_buf;
mod ch_rcv_buf_ack;
mod check;
mod hello;
mod hello_ack;
mod message;
mod mid;
mod mode_change;
mod order;
mod rdma_rd_compl;
mod rdma_wr_compl;
mod sink_avail;
mod src_avail;
mod susp_comm;
mod word;

pub use bsdh::{FLAG_OOB_PEND, FLAG_OOB_PRES, FLAG_REQ_PIPE, Flags, RawBsdh};
pub use ch_rcv_buf::{ChRcvBuf, RawChRcvBuf};
pub use ch_rcv_buf_ack::{ChRcvBufAck, RawChRcvBufAck};
pub use hello::{Hello, RawAdverts, RawHello, RawVersion};
pub use hello_ack::{HelloAck, RawHelloAck};
pub use message::{Body, Message};
pub use mid::Mid;
pub use mode_change::{Mode, ModeChange, RawModeChange};
pub use order::{FieldOrder, RawHeader};
pub use rdma_rd_compl::{RawRdmaRdCompl, RdmaRdCompl};
pub use rdma_wr_compl::{RawRdmaWrCompl, RdmaWrCompl};
pub use sink_avail::{RawSinkAvail, SinkAvail};
pub use src_avail::{RawSrcAvail, SrcAvail};
pub use susp_comm::{RawSuspComm, SuspComm};

/// Fewest octets of a Private Buffer: BSDH, the largest extended header, and one octet (section
/// 10).
pub const MIN_PRIVATE_BUFFER: u32 = 37;
/// Fewest Private Buffers that Hello and HelloAck may offer (section 10.3).
pub const MIN_INITIAL_BUFS: u16 = 3;
