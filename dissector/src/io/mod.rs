//! Storage commands: which RDMA operations served a command, how long each part took, and what was
//! wrong.
//!
//! [`IoTracker`] is a [`Sink`](crate::Sink). It follows the commands of each connection and returns
//! an [`IoCommand`] for each finished command. It knows no storage protocol: an adapter translates
//! the messages of a protocol into the begin and the end of commands. To add a protocol, add a file
//! in `adapters`, and a line for it in `adapters/mod.rs`.
//!
//! ```text
//! units -> adapters -> begin, end --+
//! Writes, Reads, Read Responses ----+-> IoConnection -> IoCommand -> percentiles, text, JSON
//! segments, findings, gaps ---------+
//! ```
//!
//! | file | purpose |
//! | --- | --- |
//! | `adapters`, `event` | what the messages of a protocol mean |
//! | `access` | a use of a buffer: a Write, a Read Request or a Read Response |
//! | `tracked` | a command that has not been returned yet |
//! | `connection` | the commands of one connection |
//! | `early` | accesses and responses that have no command yet |
//! | `transport` | what TCP shows about a connection |
//! | `tracker` | the sink |
//! | `command`, `text` | the result, and its text |
//! | `histogram`, `kinds`, `series` | percentiles, and outstanding commands over time |
//!
//! **Attribution.** A command advertises buffers: STag, offset and length. A Write inside a buffer,
//! a Read Request for a part of it, and the Read Response belong to the command. The dissector can
//! deliver a unit of one direction before an earlier unit of the other direction. So an access or a
//! response without a command waits until the direction of the commands is read up to its frame.
//!
//! **Notes.** An [`IoNote`] is about a cancellation, or a contradiction between the layers, for
//! example a Write outside the buffer of its command. It is not a violated requirement. If the
//! capture lacks bytes of the connection or its start, there are no notes that depend on these
//! bytes.
//!
//! **Memory.** It does not depend on the number of commands. At most [`MAX_OUTSTANDING`] commands
//! of a connection, and [`MAX_ALL_OUTSTANDING`] of all connections, are followed at a time. A
//! finished command is kept for one second of capture time, and at most [`MAX_RECENT`] of a
//! connection, because a late access can still concern it.

mod access;
mod adapters;
mod command;
mod connection;
mod early;
mod event;
mod histogram;
mod kinds;
mod series;
#[cfg(test)]
mod tests;
mod text;
mod tracked;
mod tracker;
mod transport;

pub use adapters::is_followed;
pub use command::{
    CommandFinding, CommandState, DataFlow, IoCommand, IoNote, IoOperation, Latency, MAX_FINDINGS, MAX_OPERATIONS,
    NoteKind, OperationKind,
};
pub use connection::{MAX_OUTSTANDING, MAX_RECENT};
pub use kinds::{KindStatistics, MAX_KINDS};
pub use series::OutstandingSeries;
pub use text::{command_line, milliseconds, totals_text};
pub use tracker::{IoTotals, IoTracker, MAX_ALL_OUTSTANDING, MAX_CONNECTIONS};
