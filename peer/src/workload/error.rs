//! Why a workload did not come to its end.

use crate::driver::cm::CmError;
use crate::memory::{BufferError, MemoryError};
use crate::verbs::{CompletedOperation, CompletionStatus, CqError, PostError, QpError, TerminateRecord};

/// Why a workload did not come to its end.
#[derive(Debug, thiserror::Error)]
pub enum WorkloadError {
    /// Memory of the endpoint.
    #[error(transparent)]
    Buffer(#[from] BufferError),
    /// No connection came about, or it cannot be used.
    #[error(transparent)]
    Cm(#[from] CmError),
    /// A completion queue.
    #[error(transparent)]
    Cq(#[from] CqError),
    /// What came is not what went.
    #[error("the data differs: {0}")]
    Differs(String),
    /// The connection ended before the work was done.
    #[error("the connection ended during the {operation:?}{}", reported(*.terminate))]
    Ended {
        /// The work that was flushed.
        operation: CompletedOperation,
        /// The Terminate that ended it, if one did.
        terminate: Option<TerminateRecord>,
    },
    /// A work request failed.
    #[error("{operation:?}: {status}{}", reported(*.terminate))]
    Failed {
        /// The operation.
        operation: CompletedOperation,
        /// How.
        status: CompletionStatus,
        /// The Terminate that this side sent because of it.
        terminate: Option<TerminateRecord>,
    },
    /// The local source or destination of the data failed.
    #[error("{0}")]
    Local(String),
    /// Memory could not be had.
    #[error(transparent)]
    Memory(#[from] MemoryError),
    /// The data that came is not the data that went.
    #[error("data mismatch in round {round}: byte {offset} is {found:#04x}, expected {expected:#04x}")]
    Mismatch {
        /// The round, from 0.
        round: u64,
        /// The first octet that differs.
        offset: usize,
        /// What was sent.
        expected: u8,
        /// The received byte.
        found: u8,
    },
    /// Work could not be posted.
    #[error(transparent)]
    Post(#[from] PostError),
    /// The peer does not keep the workload's protocol.
    #[error("the peer does not speak this workload's protocol: {0}")]
    Protocol(String),
    /// A Queue Pair.
    #[error(transparent)]
    Qp(#[from] QpError),
}

fn reported(terminate: Option<TerminateRecord>) -> String {
    let Some(TerminateRecord { terminate, local }) = terminate else { return String::new() };
    let who = if local { "this side" } else { "the peer" };
    format!("; {who} sent a Terminate: {}", terminate.error)
}
