//! The SDP state machine on an RNIC, without sockets and without a clock.
//!
//! `step` turns outputs of a [`Connection`](crate::sdp::Connection) into Work Requests, which the
//! caller posts. `complete` turns completions into inputs of the state machine. The caller owns the
//! memory of the Work Requests (`Memory`): a socket gathers payload from its user's writes, and an
//! [`Endpoint`] copies payload.
//!
//! An [`Endpoint`] is one complete side of a connection, with its own software RNIC. Its inputs are
//! bytes of TCP and the time. Its outputs are bytes and events.

mod area;
mod binding;
mod buffers;
mod endpoint;

pub(crate) use binding::{Memory, Step, complete, step};
pub use endpoint::{Endpoint, Progress, Queues};
