//! The Queue Pair's states as a table: draft Figures 4 and 5 (attributes) and 7 to 11 (events).
//! Figure 6, which is lost, is the projection of these on state and next state.
//!
//! The machine executes its cell and nothing else; an event without a cell is an Immediate Error,
//! or cannot happen.
//!
//! ```text
//!            Modify            Modify              LLP closed
//!   +----+  to RTS   +-----+  to Closing  +---------+   cleanly
//!   |Idle|---------->| RTS |------------->| Closing |------------> Idle
//!   +----+           +-----+              +---------+
//!     |  ^ Modify     |   | error, Terminate,  | Bad Close,
//!     |  | to Idle    |   | Modify             | connection lost
//!     v  |            |   v                    v
//!   +-------+ abort   |  +-----------+  LLP closed, reset
//!   | Error |<--------+  | Terminate |------------------> Error
//!   +-------+            +-----------+
//! ```

use std::fmt;

/// The states (draft section 6.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum QpState {
    /// No stream; work can be posted and waits.
    Idle,
    /// Ready to send: work is done.
    Rts,
    /// A clean close is in progress.
    Closing,
    /// An error is reported to the peer.
    Terminate,
    /// Stopped; all work was flushed.
    Error,
}

impl QpState {
    /// All states.
    pub const ALL: [QpState; 5] = [QpState::Idle, QpState::Rts, QpState::Closing, QpState::Terminate, QpState::Error];
}

impl fmt::Display for QpState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            QpState::Idle => "Idle",
            QpState::Rts => "RTS",
            QpState::Closing => "Closing",
            QpState::Terminate => "Terminate",
            QpState::Error => "Error",
        })
    }
}

/// What happens to a Queue Pair.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum QpEvent {
    /// Modify QP to this state.
    Modify(QpState),
    /// PostSQ or PostRQ.
    Post,
    /// An inbound segment that is good.
    Segment,
    /// The peer's Terminate.
    TerminateReceived,
    /// An error with a local work request that a Work Completion reports.
    WorkError,
    /// An error with an inbound message that an Asynchronous Event reports.
    MessageError,
    /// An error with an inbound Send that the receive's Work Completion reports.
    SendError,
    /// An error of the LLP after which a Terminate can still be sent.
    LlpErrorSpeaking,
    /// The LLP cannot send any more: reset, or timed out.
    LlpFailure,
    /// The peer closed; the SQ and the IRRQ are empty.
    LlpCloseDone,
    /// The peer closed; the SQ or the IRRQ is not empty.
    LlpCloseBusy,
    /// Both sides of the LLP are closed.
    CloseComplete,
    /// In Closing: a WQE is on the SQ, or a remote Read is in progress.
    WorkLeft,
}

/// What is done about it, in this order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum QpAction {
    /// Attributes take their new values.
    ChangeAttributes,
    /// A work request is put on its queue.
    Enqueue,
    /// RDMAP and what is below start anew on the stream; a stream message goes first.
    Attach,
    /// The segment is processed.
    Process,
    /// The error's work request completes with it.
    CompleteInError,
    /// An Asynchronous Event reports it.
    Notify,
    /// The Terminate goes out, after at most the segment in progress.
    SendTerminate,
    /// The LLP's graceful close begins.
    CloseLlp,
    /// The LLP is reset.
    ResetLlp,
    /// All unfinished work of both queues completes as Flushed.
    Flush,
    /// All unfinished receives complete as Flushed.
    FlushReceives,
    /// The stream and the Queue Pair know each other no longer.
    Detach,
}

/// One row of a state summary.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cell {
    /// The figure that has it.
    pub figure: u8,
    /// In this state
    pub state: QpState,
    /// when this happens
    pub event: QpEvent,
    /// these are done,
    pub actions: &'static [QpAction],
    /// and this is the state then.
    pub next: QpState,
}

const fn cell(figure: u8, state: QpState, event: QpEvent, actions: &'static [QpAction], next: QpState) -> Cell {
    Cell { figure, state, event, actions, next }
}

use QpAction::{
    Attach, ChangeAttributes, CloseLlp, CompleteInError, Detach, Enqueue, Flush, FlushReceives, Notify, Process,
    ResetLlp, SendTerminate,
};
use QpEvent::{
    CloseComplete, LlpCloseBusy, LlpCloseDone, LlpErrorSpeaking, LlpFailure, MessageError, Modify, Post, Segment,
    SendError, TerminateReceived, WorkError, WorkLeft,
};
use QpState::{Closing, Error, Idle, Rts, Terminate};

/// Figures 7 to 11, the entry actions of a state written into the cells that lead to it. Flushing
/// begins with Terminate (VERBS-6.2.3-12); posting is refused there, in Error and in Closing from
/// the start (VERBS-6.2.3-11, VERBS-6.2.4-6, VERBS-6.2.5-7), so these have no cells.
pub const CELLS: &[Cell] = &[
    cell(7, Idle, Post, &[Enqueue], Idle),
    cell(7, Idle, Modify(Idle), &[ChangeAttributes], Idle),
    cell(7, Idle, Modify(Rts), &[ChangeAttributes, Attach], Rts),
    cell(7, Idle, Modify(Error), &[Flush], Error),
    cell(8, Rts, Post, &[Enqueue], Rts),
    cell(8, Rts, Segment, &[Process], Rts),
    cell(8, Rts, Modify(Closing), &[CloseLlp, FlushReceives], Closing),
    cell(8, Rts, Modify(Rts), &[ChangeAttributes], Rts),
    cell(8, Rts, Modify(Error), &[ResetLlp, Detach, Flush], Error),
    cell(8, Rts, Modify(Terminate), &[SendTerminate, CloseLlp, Flush], Terminate),
    cell(8, Rts, LlpFailure, &[ResetLlp, Detach, Notify, Flush], Error),
    cell(8, Rts, LlpErrorSpeaking, &[Notify, SendTerminate, CloseLlp, Flush], Terminate),
    cell(8, Rts, MessageError, &[Notify, SendTerminate, CloseLlp, Flush], Terminate),
    cell(8, Rts, SendError, &[CompleteInError, SendTerminate, CloseLlp, Flush], Terminate),
    cell(8, Rts, WorkError, &[CompleteInError, SendTerminate, CloseLlp, Flush], Terminate),
    cell(8, Rts, TerminateReceived, &[Notify, CloseLlp, Flush], Terminate),
    cell(8, Rts, LlpCloseBusy, &[Notify, SendTerminate, CloseLlp, Flush], Terminate),
    cell(8, Rts, LlpCloseDone, &[CloseLlp, FlushReceives], Closing),
    cell(9, Terminate, CloseComplete, &[Detach], Error),
    cell(9, Terminate, LlpFailure, &[ResetLlp, Notify, Detach], Error),
    cell(9, Terminate, Segment, &[], Terminate),
    cell(10, Error, Modify(Idle), &[], Idle),
    cell(11, Closing, CloseComplete, &[Notify, Detach], Idle),
    cell(11, Closing, WorkLeft, &[ResetLlp, Notify, Detach, Flush], Error),
    cell(11, Closing, LlpFailure, &[ResetLlp, Notify, Detach, Flush], Error),
    cell(11, Closing, Segment, &[ResetLlp, Notify, Detach, Flush], Error),
    cell(11, Closing, TerminateReceived, &[ResetLlp, Notify, Detach, Flush], Error),
];

/// The row of a state and an event.
#[must_use]
pub fn find(state: QpState, event: QpEvent) -> Option<&'static Cell> {
    CELLS.iter().find(|cell| cell.state == state && cell.event == event)
}

/// An attribute that Modify QP can be given, besides the next state.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Attribute {
    /// LLP Stream Handle.
    LlpStreamHandle,
    /// Stream message buffer.
    StreamMessage,
    /// ORD.
    Ord,
    /// IRD.
    Ird,
    /// Maximum number of SQ WQEs.
    SqWrs,
    /// Maximum number of RQ WQEs; without effect when there is an S-RQ.
    RqWrs,
    /// The Queue Pair's RQ limit, and its arming.
    RqLimit,
}

/// One transition of Figures 4 and 5.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Transition {
    /// From
    pub from: QpState,
    /// to.
    pub to: QpState,
    /// Must be given (Figure 4).
    pub required: &'static [Attribute],
    /// Can be given with every RNIC (Figure 4).
    pub supported: &'static [Attribute],
    /// Can be given with this RNIC (Figure 5, and RQ limit arming in RTS by section 6.3.8).
    pub optional: &'static [Attribute],
}

/// Figures 4 and 5.
pub const TRANSITIONS: &[Transition] = &[
    transition(Idle, Idle, &[], &[Attribute::Ord], ALL_OPTIONAL),
    transition(Idle, Rts, &[Attribute::LlpStreamHandle], &[Attribute::StreamMessage, Attribute::Ord], ALL_OPTIONAL),
    transition(Idle, Error, &[], &[], &[]),
    transition(Rts, Rts, &[], &[Attribute::Ord], ALL_OPTIONAL),
    transition(Rts, Closing, &[], &[], &[]),
    transition(Rts, Terminate, &[], &[], &[]),
    transition(Rts, Error, &[], &[], &[]),
    transition(Error, Idle, &[], &[], &[]),
];

const ALL_OPTIONAL: &[Attribute] = &[Attribute::SqWrs, Attribute::RqWrs, Attribute::Ird, Attribute::RqLimit];

const fn transition(
    from: QpState,
    to: QpState,
    required: &'static [Attribute],
    supported: &'static [Attribute],
    optional: &'static [Attribute],
) -> Transition {
    Transition { from, to, required, supported, optional }
}

/// The row of a transition that the Consumer may ask for.
#[must_use]
pub fn transition_of(from: QpState, to: QpState) -> Option<&'static Transition> {
    TRANSITIONS.iter().find(|transition| transition.from == from && transition.to == to)
}
