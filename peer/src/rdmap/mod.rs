//! Remote Direct Memory Access Protocol (RFC 5040) and its extensions (RFC 7306).
//!
//! [`Receiver`] checks every inbound segment of every opcode and hands placement and delivery to a
//! [`DataSink`], the owner of buffers and requests. Every refusal is a [`Fault`]; a [`StreamError`]
//! around it knows the Terminate to answer with and the requirement that the peer broke.
//!
//! [`Outbound`] and [`Inbound`] are the Sends of a connection without registered memory: the latter
//! is a sink for which Writes with payload name an invalid STag, and Read Requests find no buffer.
//! The software RNIC has a sink of its own.

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
