//! The agent: executes requests of a test with a NIC's own verbs, on the NIC's host.
//!
//! | module | what |
//! | --- | --- |
//! | [`Limits`] | how much one control connection may take |
//! | [`listen`] | control connections over TCP, each on a thread of its own |
//! | [`protocol`] | the messages between tester and agent |
//! | [`serve`] | one control connection, of whatever carries its actions out |
//! | `rdma` | what carries them out: libibverbs and librdmacm, loaded at run time (feature `rdma`) |
//! | `soft` | the same by the software RNIC, in process, for weft's own targets (feature `soft`) |
//!
//! What is left out: datagrams, sending immediate data, completion queues of one's own (each Queue
//! Pair has one, whose completions are reported as they come), and tuning.

#![cfg_attr(not(test), warn(clippy::expect_used, clippy::panic))]

mod common;
pub mod listen;
pub mod protocol;
#[cfg(feature = "rdma")]
pub mod rdma;
pub mod serve;
#[cfg(feature = "soft")]
pub mod soft;

pub use common::Limits;
