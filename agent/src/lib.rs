//! The agent runs on the NIC's host. It executes a test's requests with the NIC's own verbs.
//!
//! | module | what |
//! | --- | --- |
//! | [`Limits`] | limits of one control connection |
//! | [`listen`] | control connections over TCP, each on its own thread |
//! | [`protocol`] | the messages between tester and agent |
//! | [`serve`] | one control connection, with any device |
//! | `rdma` | the device through libibverbs and librdmacm, loaded at run time (feature `rdma`) |
//! | `soft` | the software RNIC as the device, in process, for weft's targets (feature `soft`) |
//!
//! The agent does not offer datagrams, sending of immediate data, separate completion queues or
//! tuning. Each Queue Pair has one completion queue, and the agent reports its completions as
//! events.

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
