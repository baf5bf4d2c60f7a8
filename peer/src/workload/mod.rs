//! Applications that run on a connected pair of endpoints. They use the verbs of a
//! [`Device`](crate::driver::Device).
//!
//! - [`mod@bench`]: streams of equal messages, for measurements;
//! - [`cat`]: one stream of bytes, by Sends, RDMA Writes or RDMA Reads;
//! - [`ping`]: both roles of rping's message sequence (Send, Read, Send, Send, Write, Send);
//! - [`probe`]: single operations that the caller selects, including invalid ones.
//!
//! If a function of a workload waits for the peer or for a completion, it is async. The functions
//! for message formats and data only convert bytes. Each side has an [`Endpoint`]: a Queue Pair
//! with its completion queue and registered memory.

pub mod bench;
pub mod cat;
mod endpoint;
mod error;
pub mod ping;
pub mod probe;

pub use endpoint::{Endpoint, EndpointSettings, Region, or_reject};
pub use error::WorkloadError;
