//! Errors of workloads.

use crate::driver::cm::CmError;
use crate::memory::{BufferError, MemoryError};
use crate::verbs::{CompletedOperation, CompletionStatus, CqError, PostError, QpError, TerminateRecord};

/// Why a workload failed.
#[derive(Debug, thiserror::Error)]
pub enum WorkloadError {
    /// Access to the endpoint's memory failed.
    #[error(transparent)]
    Buffer(#[from] BufferError),
    /// The connection could not be opened, or cannot be used.
    #[error(transparent)]
    Cm(#[from] CmError),
    /// A verb call for a completion queue failed.
    #[error(transparent)]
    Cq(#[from] CqError),
    /// The received data differs from the sent data.
    #[error("the data differs: {0}")]
    Differs(String),
    /// The connection ended before the workload was complete.
    #[error("the connection ended during the {operation:?}{}", reported(*.terminate))]
    Ended {
        /// The operation that was flushed.
        operation: CompletedOperation,
        /// The Terminate that ended the connection, if there was one.
        terminate: Option<TerminateRecord>,
    },
    /// A Work Request failed.
    #[error("the {operation:?} failed: {status}{}", reported(*.terminate))]
    Failed {
        /// The operation of the Work Request.
        operation: CompletedOperation,
        /// The status of its completion.
        status: CompletionStatus,
        /// The Terminate that this side sent or received because of the failure, if there was one.
        terminate: Option<TerminateRecord>,
    },
    /// This side could not read or store the data, or it cannot perform an operation.
    #[error("{0}")]
    Local(String),
    /// Memory could not be registered.
    #[error(transparent)]
    Memory(#[from] MemoryError),
    /// The received data of a round differs from the sent data.
    #[error("data mismatch in round {round}: byte {offset} is {found:#04x}, expected {expected:#04x}")]
    Mismatch {
        /// Number of the round, from 0.
        round: u64,
        /// Position of the first byte that differs, from 0.
        offset: usize,
        /// The byte that was sent.
        expected: u8,
        /// The byte that was received.
        found: u8,
    },
    /// A Work Request could not be posted.
    #[error(transparent)]
    Post(#[from] PostError),
    /// The peer violated the workload's protocol.
    #[error("the peer does not follow this workload's protocol: {0}")]
    Protocol(String),
    /// A verb call for a Queue Pair failed.
    #[error(transparent)]
    Qp(#[from] QpError),
    /// The peer did not do in time what this side waited for.
    #[error("{0}")]
    TimedOut(String),
}

fn reported(terminate: Option<TerminateRecord>) -> String {
    let Some(TerminateRecord { terminate, local }) = terminate else { return String::new() };
    let who = if local { "this side" } else { "the peer" };
    format!("; {who} sent a Terminate: {}", terminate.error)
}
