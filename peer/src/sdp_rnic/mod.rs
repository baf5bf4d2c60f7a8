//! SDP's machine on an RNIC, without sockets and without a clock.
//!
//! `step` turns the outputs of a [`Connection`](crate::sdp::Connection) into work requests, which
//! its caller posts. `complete` turns work completions into inputs of the machine. The memory that
//! work requests name belongs to the caller (`Memory`): a socket gathers payload from where its
//! user wrote it, an [`Endpoint`] copies.
//!
//! An [`Endpoint`] is the complete side of a connection, with a software RNIC of its own. Its inputs
//! are octets of TCP and an instant; its outputs are octets and events.

mod area;
mod binding;
mod endpoint;

pub(crate) use binding::{Memory, Step, complete, step};
pub use endpoint::{Endpoint, Progress, Queues};
