//! MPA, DDP and RDMAP on the connections of a case.
//!
//! | file | content |
//! | --- | --- |
//! | `expect`, `fpdu`, `terminate` | expectations |
//! | `initiator`, `responder` | start-up in either role |
//! | `exchange` | messages of the tester's own exchanges, after start-up |
//! | `next` | the next event, without a verdict |
//! | `plain`, `progress` | correct exchanges on an open connection; the state that they need |

mod exchange;
mod expect;
mod fpdu;
mod initiator;
mod next;
mod plain;
mod progress;
mod responder;
mod terminate;

pub(crate) use exchange::Exchange;
pub(in crate::stage) use exchange::unexpected;
pub(crate) use expect::{AllowedBeforeClose, Close, ReplyFields};
pub(in crate::stage) use fpdu::write_wanted;
pub(crate) use fpdu::{ExpectedOctets, FpduFields, HeaderFields, crc_is_right, ulpdu};
pub(crate) use next::NextEvent;
pub(in crate::stage) use progress::Progress;
pub(crate) use terminate::TerminateFields;

use super::{Connections, Recorder};
use crate::correct::Rtr;

/// The result of start-up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct StartUpResult {
    /// Whether CRCs are in use.
    pub(in crate::stage) crc: bool,
    /// Kind of the tester's ready-to-receive message.
    pub(in crate::stage) rtr: Option<Rtr>,
    /// IRD of an enhanced Reply, or of an initiator's Request.
    pub(in crate::stage) ird: Option<u16>,
}

/// The parameters of a connection in Full Operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Operation {
    /// MSN of the tester's next Send.
    pub(crate) msn: u32,
    /// A tagged buffer of the target: the sink of rping's Read.
    pub(crate) buffer: Option<TaggedBuffer>,
    /// IRD of the target's enhanced Reply or Request: the number of RDMA Reads that the target
    /// accepts at a time.
    pub(crate) ird: Option<u16>,
}

/// A range of the target's memory that a tagged segment can address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TaggedBuffer {
    pub(crate) stag: u32,
    /// TO of the first byte.
    pub(crate) tagged_offset: u64,
    /// Length in bytes, from the target file.
    pub(crate) length: u32,
}

/// Why an expected frame did not arrive.
pub(in crate::stage) enum NoFrame {
    Fin,
    Reset,
    TimedOut,
    /// Other bytes arrived.
    Other(String),
}

impl std::fmt::Display for NoFrame {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            NoFrame::Fin => f.write_str("closed the connection"),
            NoFrame::Reset => f.write_str("reset the connection"),
            NoFrame::TimedOut => f.write_str("did not answer"),
            NoFrame::Other(what) => write!(f, "sent {what}"),
        }
    }
}

/// The operations of the tester with MPA, DDP and RDMAP on one connection.
pub(crate) struct RdmaSide<'a> {
    pub(in crate::stage) connections: &'a mut Connections,
    pub(in crate::stage) number: u32,
}

impl RdmaSide<'_> {
    pub(in crate::stage) fn recorder(&mut self) -> Recorder<'_> {
        self.connections.recorder_of(self.number)
    }
}
