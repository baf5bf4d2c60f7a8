//! The software RNIC: the verbs of draft-hilland-rddp-verbs-00 as methods of one state machine
//! without I/O.
//!
//! A [`Node`] has named RNICs, and [`Node::open`] opens one of them as an [`Rnic`]. The RNIC
//! creates all other objects and returns a handle for each object. A handle is small and can be
//! copied. A verb for an object that no longer exists returns an Immediate Error. Queues and memory
//! belong to the RNIC. The verbs for PDs and for memory are functions of
//! [`Memory`](crate::memory::Memory), which [`Rnic::memory_mut`] returns. This module does not
//! wait, read a clock or use a socket.
//!
//! For each [stream](LlpSettings), a driver passes the inputs: [`Rnic::handle_octets`] (while
//! [`Rnic::wants_octets`] is true), [`Rnic::handle_fin`], [`Rnic::handle_reset`],
//! [`Rnic::handle_lost`] and [`Rnic::handle_timeout`]. [`Rnic::poll_transmit`] provides the bytes
//! to send, and [`Rnic::poll_timeout`] returns the time of the next time-out.
//! [`Rnic::poll_notification`] reports which event handlers to call.
//!
//! Each kind of object has its own file: `rnic`, `cq`, `srq`, `qp` (with the state machine's
//! [table](qp::table)), Work Requests, completions, events. Enums list the errors of the draft's
//! Figures 28 to 37. [`Failure`] makes a part of the RNIC fail, so that a test can observe the
//! consequences.
//!
//! Different processes cannot share the memory of an RNIC. Such sharing needs the help of a kernel,
//! and the draft has no verb for it.

mod async_event;
mod attributes;
mod batch;
mod completion;
mod cq;
mod error;
mod failure;
mod in_use;
mod llp;
mod llp_settings;
pub mod qp;
mod queue_pairs;
mod queues;
mod read_pool;
mod rnic;
mod shared;
mod slab;
mod srq;
mod streams;
mod work_request;

pub use async_event::{AsyncEvent, EventId, Resource, terminate_code};
pub use attributes::{DequeueModel, RnicAttributes, RnicSettings};
pub use completion::{CompletedOperation, CompletionStatus, WorkCompletion};
pub use cq::{CqAttributes, NotifyKind};
pub use error::{CqError, EventError, PostError, PostStatus, QpError, RnicError, SrqError};
pub use failure::Failure;
pub use in_use::InUse;
pub use llp::TransmitResult;
pub use llp_settings::LlpSettings;
pub use qp::table::{QpEvent, QpState};
pub use qp::{LateSegment, QpAllocated, QpAttributes, QpInit, QpModify, ReceiveOverflow, TerminateRecord};
pub use rnic::{HandlerOperation, Node, NodeLimits, Privileged, Rnic};
pub use srq::{SrqAttributes, SrqInit, SrqModify};
pub use work_request::{Fence, Operation, Payload, ReceiveWr, RemoteAddress, SendWr, Sge};

use slab::Key;

/// Identifies an RNIC from its opening until it is closed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
struct RnicId(u64);

macro_rules! handles {
    ($($(#[$doc:meta])* $name:ident,)+) => {
        $(
            $(#[$doc])*
            #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
            pub struct $name {
                rnic: RnicId,
                key: Key,
            }
        )+
    };
}

handles! {
    /// A Completion Queue of one RNIC.
    CqHandle,
    /// A Shared Receive Queue of one RNIC.
    SrqHandle,
    /// A Queue Pair of one RNIC.
    QpHandle,
    /// A stream of one RNIC: the LLP Stream Handle.
    LlpHandle,
}

/// Identifies a Completion Event Handler of one RNIC. The number is never 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct CompletionHandlerId(u32);

/// Identifies an event handler. The Consumer chooses the number. Each [`Notification`] contains
/// this number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct HandlerAddress(pub u64);

/// A call that the driver has to make to an event handler.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Notification {
    /// The CQ was armed, and a completion of the requested kind was added.
    Completion {
        /// The handler to call.
        handler: HandlerAddress,
        /// The CQ.
        cq: CqHandle,
    },
    /// An Asynchronous Event.
    Asynchronous {
        /// The handler to call.
        handler: HandlerAddress,
        /// The event.
        event: AsyncEvent,
    },
}
