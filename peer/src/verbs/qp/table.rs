//! The states of a Queue Pair as a table: draft-hilland-rddp-verbs Figures 4 and 5 (attributes) and
//! 7 to 11 (events). The draft has no drawing for Figure 6, the state diagram. The table also
//! contains the transitions of this missing diagram.
//!
//! For a state and an event, the module `machine` executes only the actions of the table entry. If
//! a verb has no entry in the current state, the result is an Immediate Error. Other events without
//! an entry have no effect.
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

/// State of a Queue Pair (draft section 6.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum QpState {
    /// The Queue Pair has no stream. Posted work waits.
    Idle,
    /// Ready to send: posted work is processed.
    Rts,
    /// A clean close is in progress.
    Closing,
    /// The stream ends because of an error or a Terminate.
    Terminate,
    /// The Queue Pair has stopped. All work was flushed.
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

/// Event of a Queue Pair.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum QpEvent {
    /// The Consumer calls Modify QP with this state.
    Modify(QpState),
    /// The Consumer calls PostSQ or PostRQ.
    Post,
    /// A valid inbound segment arrived.
    Segment,
    /// The peer's Terminate arrived.
    TerminateReceived,
    /// An error with a local Work Request. A Work Completion reports the error.
    WorkError,
    /// An error with an inbound message. An Asynchronous Event reports the error.
    MessageError,
    /// An error with an inbound Send. The Work Completion of the receive reports the error.
    SendError,
    /// An error of the LLP after which a Terminate can still be sent.
    LlpErrorSpeaking,
    /// A reset or a time-out has ended the LLP, so the LLP cannot send.
    LlpFailure,
    /// The peer closed while the Send Queue (SQ) and the inbound Read Request queue (IRRQ) are
    /// empty.
    LlpCloseDone,
    /// The peer closed while the SQ or the IRRQ is not empty.
    LlpCloseBusy,
    /// Both directions of the LLP are closed.
    CloseComplete,
    /// In Closing: a WQE is on the SQ, or a Read of the peer is in progress.
    WorkLeft,
}

/// Action for an event. The actions of a table entry are executed in order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum QpAction {
    /// Set the new values of attributes.
    ChangeAttributes,
    /// Add a Work Request to its queue.
    Enqueue,
    /// Start RDMAP and the layers below RDMAP on the stream. If there is a stream message, it is
    /// sent before all FPDUs.
    Attach,
    /// Process the segment.
    Process,
    /// Complete the Work Request that has the error.
    CompleteInError,
    /// Report an Asynchronous Event.
    Notify,
    /// Send the Terminate. At most the segment in progress is sent before the Terminate.
    SendTerminate,
    /// Begin the graceful close of the LLP.
    CloseLlp,
    /// Reset the LLP.
    ResetLlp,
    /// Complete all unfinished work of both queues as Flushed.
    Flush,
    /// Complete all unfinished receives as Flushed.
    FlushReceives,
    /// Disconnect the stream from the Queue Pair.
    Detach,
}

/// The actions for an event in a state: one row of a state summary of the draft.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TableEntry {
    /// Number of the draft's figure that contains the row.
    pub figure: u8,
    /// State before the event.
    pub state: QpState,
    /// The event.
    pub event: QpEvent,
    /// The actions, in order.
    pub actions: &'static [QpAction],
    /// State after the event.
    pub next: QpState,
}

const fn entry(figure: u8, state: QpState, event: QpEvent, actions: &'static [QpAction], next: QpState) -> TableEntry {
    TableEntry { figure, state, event, actions, next }
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

/// The rows of Figures 7 to 11. If the draft requires actions when a Queue Pair enters a state,
/// each entry that leads to this state has these actions. Work is flushed when the Queue Pair
/// enters Terminate (VERBS-6.2.3-12). Terminate, Error and Closing have no entry for `Post`,
/// because they reject posted work (VERBS-6.2.3-11, VERBS-6.2.4-6, VERBS-6.2.5-7).
pub const ENTRIES: &[TableEntry] = &[
    entry(7, Idle, Post, &[Enqueue], Idle),
    entry(7, Idle, Modify(Idle), &[ChangeAttributes], Idle),
    entry(7, Idle, Modify(Rts), &[ChangeAttributes, Attach], Rts),
    entry(7, Idle, Modify(Error), &[Flush], Error),
    entry(8, Rts, Post, &[Enqueue], Rts),
    entry(8, Rts, Segment, &[Process], Rts),
    entry(8, Rts, Modify(Closing), &[CloseLlp, FlushReceives], Closing),
    entry(8, Rts, Modify(Rts), &[ChangeAttributes], Rts),
    entry(8, Rts, Modify(Error), &[ResetLlp, Detach, Flush], Error),
    entry(8, Rts, Modify(Terminate), &[SendTerminate, CloseLlp, Flush], Terminate),
    entry(8, Rts, LlpFailure, &[ResetLlp, Detach, Notify, Flush], Error),
    entry(8, Rts, LlpErrorSpeaking, &[Notify, SendTerminate, CloseLlp, Flush], Terminate),
    entry(8, Rts, MessageError, &[Notify, SendTerminate, CloseLlp, Flush], Terminate),
    entry(8, Rts, SendError, &[CompleteInError, SendTerminate, CloseLlp, Flush], Terminate),
    entry(8, Rts, WorkError, &[CompleteInError, SendTerminate, CloseLlp, Flush], Terminate),
    entry(8, Rts, TerminateReceived, &[Notify, CloseLlp, Flush], Terminate),
    entry(8, Rts, LlpCloseBusy, &[Notify, SendTerminate, CloseLlp, Flush], Terminate),
    entry(8, Rts, LlpCloseDone, &[CloseLlp, FlushReceives], Closing),
    entry(9, Terminate, CloseComplete, &[Detach], Error),
    entry(9, Terminate, LlpFailure, &[ResetLlp, Notify, Detach], Error),
    entry(9, Terminate, Segment, &[], Terminate),
    entry(10, Error, Modify(Idle), &[], Idle),
    entry(11, Closing, CloseComplete, &[Notify, Detach], Idle),
    entry(11, Closing, WorkLeft, &[ResetLlp, Notify, Detach, Flush], Error),
    entry(11, Closing, LlpFailure, &[ResetLlp, Notify, Detach, Flush], Error),
    entry(11, Closing, Segment, &[ResetLlp, Notify, Detach, Flush], Error),
    entry(11, Closing, TerminateReceived, &[ResetLlp, Notify, Detach, Flush], Error),
];

/// Returns the entry for a state and an event. `None` if the table has no such entry.
#[must_use]
pub fn find(state: QpState, event: QpEvent) -> Option<&'static TableEntry> {
    ENTRIES.iter().find(|entry| entry.state == state && entry.event == event)
}

/// An attribute of Modify QP, besides the next state.
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
    /// Maximum number of RQ WQEs. Has no effect if the Queue Pair has an S-RQ.
    RqWrs,
    /// RQ limit of the Queue Pair. A new value also arms the event for this limit.
    RqLimit,
}

/// The attributes that Modify QP can change in one state transition (Figures 4 and 5).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Transition {
    /// State before the transition.
    pub from: QpState,
    /// State after the transition.
    pub to: QpState,
    /// Attributes that the Consumer must set (Figure 4).
    pub required: &'static [Attribute],
    /// Attributes that every RNIC can change (Figure 4).
    pub supported: &'static [Attribute],
    /// Attributes that this RNIC can change (Figure 5, and section 6.3.8 for the RQ limit in RTS).
    pub optional: &'static [Attribute],
}

/// The transitions of Figures 4 and 5.
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

/// The transition between two states. `None` if the Consumer cannot request this transition.
#[must_use]
pub fn transition_of(from: QpState, to: QpState) -> Option<&'static Transition> {
    TRANSITIONS.iter().find(|transition| transition.from == from && transition.to == to)
}
