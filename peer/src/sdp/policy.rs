//! Rules that select the Data Transfer Mechanism. The draft leaves these rules to the "policy" of
//! an implementation (sections 9 and 11 of the SDP draft).

use core::time::Duration;

/// Policy of one side. It can change at any time.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Policy {
    /// Data Source Bcopy Threshold in bytes. If the rest of a send has at most this number of
    /// bytes, Bcopy transfers the rest. Otherwise Zcopy transfers the rest. If the threshold is
    /// `u64::MAX`, only Bcopy is used. Default 16384.
    pub source_threshold: u64,
    /// Data Sink Bcopy Threshold in bytes. A receive of at most this length is not advertised. The
    /// threshold is never less than the size of the receive Private Buffers (section 10). Default
    /// 16384.
    pub sink_threshold: u64,
    /// Maximum number of bytes that one SrcAvail advertises, 1 to 2^31. Default 2^30.
    pub max_src_avail: u32,
    /// Maximum number of open SrcAvails in Pipelined Mode. Default 4.
    pub src_avails: usize,
    /// Maximum number of open SinkAvails. If it is 0, this side never sends a SinkAvail. Default 4.
    pub sink_avails: usize,
    /// Number of payload bytes in a SrcAvail in Combined Mode, at least 1. If the message has no
    /// space for this number of bytes, payload fills the message. With the default `u32::MAX`,
    /// payload always fills the message.
    pub src_avail_payload: u32,
    /// How this side answers a SrcAvail. Default: RDMA Read.
    pub answer: SrcAvailAnswer,
    /// Maximum number of bytes that one RDMA Read fetches, at least 1. Default 2^30.
    pub max_read: u32,
    /// This side sends an RdmaRdCompl each time it has read at least this number of bytes. The peer
    /// then gets its buffer back in parts. With the default `u32::MAX`, this side sends an
    /// RdmaRdCompl only when the receive is full, or when it has read all bytes of the SrcAvail.
    pub read_batch: u32,
    /// This side combines Data and SinkAvail into one message if both are due (section 9.4).
    /// Default true.
    pub transactions: bool,
    /// This side sets REQ_PIPE in completion messages, which shows that it prefers Pipelined Mode.
    /// Default false.
    pub wants_pipelined: bool,
    /// This side changes the sending half-connection to Pipelined Mode when the peer sets REQ_PIPE.
    /// Default false.
    pub follows_hints: bool,
    /// This side sends the data that waits before a ModeChange, a ChRcvBuf or the cancellation of
    /// an advertisement. So the data and this message can arrive at the peer together. Answers
    /// still precede the data. Default false.
    pub data_first: bool,
    /// Time after which this side resolves a deadlock. In the deadlock, each side has sent a
    /// SrcAvail and waits until the other side reads the advertised bytes. This side has no receive
    /// posted. To resolve the deadlock, this side requests the peer's data with SendSm (section
    /// 9.2). Default 100 ms.
    pub deadlock_wait: Duration,
}

/// How a Data Sink answers a SrcAvail if a receive is posted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum SrcAvailAnswer {
    /// RDMA Read.
    #[default]
    Read,
    /// SendSm.
    SendSm,
    /// One RDMA Read, and then SendSm for the rest of the SrcAvail.
    ReadThenSendSm,
}

impl Default for Policy {
    fn default() -> Self {
        Policy {
            source_threshold: 16384,
            sink_threshold: 16384,
            max_src_avail: 1 << 30,
            src_avails: 4,
            sink_avails: 4,
            src_avail_payload: u32::MAX,
            answer: SrcAvailAnswer::Read,
            max_read: 1 << 30,
            read_batch: u32::MAX,
            transactions: true,
            wants_pipelined: false,
            follows_hints: false,
            data_first: false,
            deadlock_wait: Duration::from_millis(100),
        }
    }
}
