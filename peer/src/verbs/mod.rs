//! The software RNIC: the verbs of draft-hilland-rddp-verbs-00 as methods of one sans-IO object.
//!
//! A [`Node`] has RNICs by name; [`Node::open`] gives an [`Rnic`]. Everything else is made from it
//! and has a handle, which is small and can be copied. A verb for an object that is gone returns its
//! Immediate Error. Memory belongs to the RNIC
//! ([`crate::memory`]), and so do the queues; nothing here waits, reads a clock or touches a
//! socket.
//!
//! What a driver does for each [stream](LlpSettings): hand in what arrives
//! ([`Rnic::handle_octets`], as long as it [wants some](Rnic::wants_octets), [`Rnic::handle_fin`],
//! [`Rnic::handle_reset`], [`Rnic::handle_lost`], [`Rnic::handle_timeout`]), and ask what to send
//! ([`Rnic::poll_transmit`]) and when to come again ([`Rnic::poll_timeout`]).
//! [`Rnic::poll_notification`] reports which event handlers to call.
//!
//! One file an object: `rnic`, `cq`, `srq`, `qp` (with the state machine's [table](qp::table)),
//! work requests, completions, events. Errors are the draft's figures 28 to 37, one enum each.
//! [`Failure`] breaks a part, for tests of what happens then.
//!
//! What is absent on purpose: sharing memory between processes, which only a kernel can do; there
//! is no verb for it.

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
mod memory;
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
pub use llp::Sent;
pub use llp_settings::LlpSettings;
pub use qp::table::{QpEvent, QpState};
pub use qp::{LateSegment, QpAllocated, QpAttributes, QpInit, QpModify, ReceiveOverflow, TerminateRecord};
pub use rnic::{HandlerOperation, Node, NodeLimits, Privileged, Rnic};
pub use srq::{SrqAttributes, SrqInit, SrqModify};
pub use work_request::{Fence, Operation, Payload, ReceiveWr, RemoteAddress, SendWr, Sge};

use slab::Key;

/// One opening of one RNIC.
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

/// Identifies a Completion Event Handler of one RNIC; never 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct CompletionHandlerId(u32);

/// Whom to call: a number that means something to the Consumer, who gets it back with each
/// [`Notification`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct HandlerAddress(pub u64);

/// A call of an event handler that is due.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Notification {
    /// The completion that a CQ was armed for is there.
    Completion {
        /// Whom to call.
        handler: HandlerAddress,
        /// The CQ.
        cq: CqHandle,
    },
    /// An Asynchronous Event.
    Asynchronous {
        /// Whom to call.
        handler: HandlerAddress,
        /// The event.
        event: AsyncEvent,
    },
}
