//! Sockets Direct Protocol over iWARP: draft-pinkerton-iwarp-sdp-01, section 6.
//!
//! An SDP message starts with a base header, the [BSDH](RawBsdh). The message identifier (MID) in
//! the BSDH determines whether an extended header follows. Three message types can also carry
//! payload. [`Message`] combines the parts, and each extended header has its own file. A
//! [`FieldOrder`] selects the layout of a header: as in the figures of the draft, or mirrored.
//!
//! A message is sent before the MPA start-up, or in one Send. This module does not know how a
//! message was sent, and it does not know the state of a connection.

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

/// Minimum size of a Private Buffer in octets. A message with the BSDH, the largest extended header
/// and one octet of payload has this size (section 10).
pub const MIN_PRIVATE_BUFFER: u32 = 37;
/// Minimum number of Private Buffers that Hello and HelloAck may announce (section 10.3).
pub const MIN_INITIAL_BUFS: u16 = 3;
