//! When which Data Transfer Mechanism is used: what the draft leaves to "policy" (sections 9 and
//! 11).

use core::time::Duration;

/// The choices of one side. They can be changed at any time.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Policy {
    /// Data Source Bcopy Threshold, in bytes: the rest of a send is sent by Bcopy up to this size,
    /// and by Zcopy above it. Default 16384; with `u64::MAX`, only Bcopy is used.
    pub source_threshold: u64,
    /// Data Sink Bcopy Threshold, in octets: receives up to this are not advertised. Never less than the size of the receive
    /// Private Buffers (section 10), whatever this setting is. Default 16384.
    pub sink_threshold: u64,
    /// Octets that one SrcAvail advertises at most, 1 to 2^31. Default 2^30.
    pub max_src_avail: u32,
    /// SrcAvails that are outstanding at a time in Pipelined Mode. Default 4.
    pub src_avails: usize,
    /// SinkAvails that are outstanding at a time; 0: none is ever sent. Default 4.
    pub sink_avails: usize,
    /// Octets of payload that a SrcAvail carries in Combined Mode, at least 1; cut to what fits.
    /// Default: all that fits.
    pub src_avail_payload: u32,
    /// How SrcAvails are answered. Default by RDMA Read.
    pub answer: SrcAvailAnswer,
    /// Octets that one RDMA Read fetches at most, at least 1. Default 2^30.
    pub max_read: u32,
    /// RdmaRdCompl is sent each time that N octets were read, so that the peer has its buffer back
    /// in parts. Default `u32::MAX`: when the receive or the SrcAvail is at its end.
    pub read_batch: u32,
    /// Data and SinkAvail are joined where both are due (section 9.4). Default true.
    pub transactions: bool,
    /// REQ_PIPE is set in completion messages: this side would like Pipelined Mode. Default false.
    pub wants_pipelined: bool,
    /// The Mode of the half that sends follows the peer's hints: REQ_PIPE leads to Pipelined Mode.
    /// Default false.
    pub follows_hints: bool,
    /// Both sides wait for each other's reads, and neither posts a receive. After this time a
    /// message requests that the peer send its data (section 9.2). Default 100 ms.
    pub deadlock_wait: Duration,
}

/// How a Data Sink answers a SrcAvail for which a receive is posted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum SrcAvailAnswer {
    /// RDMA Read.
    #[default]
    Read,
    /// SendSm.
    SendSm,
    /// One RDMA Read, and SendSm for what is left.
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
            deadlock_wait: Duration::from_millis(100),
        }
    }
}
