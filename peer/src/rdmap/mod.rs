//! Remote Direct Memory Access Protocol (RFC 5040) and its extensions (RFC 7306).
//!
//! [`Receiver`] checks every inbound segment. It calls a [`DataSink`], the owner of buffers and
//! requests, for placement and delivery. The reason for a rejected segment is a [`Fault`]. A
//! [`StreamError`] contains the fault, and provides the Terminate to send and the requirement that
//! the peer violated.
//!
//! [`Outbound`] and [`Inbound`] send and receive Sends on a connection without registered memory.
//! For [`Inbound`], every Write with payload has an invalid STag, and no Read Request finds a
//! buffer. The software RNIC has a sink of its own.

mod error;
mod fault;
mod inbound;
mod outbound;
mod receiver;
mod sink;

pub use error::{SegmentError, StreamError};
pub use fault::Fault;
pub use inbound::{Delivery, Inbound};
pub use outbound::{Outbound, SendId};
pub use receiver::Receiver;
pub use sink::{DataSink, Received};
