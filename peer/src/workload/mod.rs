//! What a connected pair of endpoints does: workloads over the verbs of a
//! [`Device`](crate::driver::Device).
//!
//! - [`mod@bench`]: streams of equal messages, to be measured;
//! - [`cat`]: one stream of octets, by Sends, Writes or Reads;
//! - [`ping`]: rping's ritual, both roles: Send, Read, Send, Send, Write, Send;
//! - [`probe`]: operations of one's choice, one by one, wrong ones too.
//!
//! The verbs calls of a workload are async; the formats of its messages and of its data are
//! functions of bytes. Each has an [`Endpoint`]: a Queue Pair with its completion queue and
//! registered memory.

pub mod bench;
pub mod cat;
mod endpoint;
mod error;
pub mod ping;
pub mod probe;

pub use endpoint::{Endpoint, EndpointSettings, Region, or_reject};
pub use error::WorkloadError;
