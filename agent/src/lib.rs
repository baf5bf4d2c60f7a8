//! The agent runs on the NIC's host. It executes a tester's requests with the verbs of the NIC (the
//! functions of the NIC's driver).
//!
//! | module | content |
//! | --- | --- |
//! | [`Limits`] | the limits of one control connection |
//! | [`listen`] | accepts control connections over TCP, and serves each of them on its own thread |
//! | [`protocol`] | the messages between tester and agent |
//! | [`serve`] | the service for one control connection, with any device |
//! | `rdma` | a device, through libibverbs and librdmacm, which are loaded at run time (feature `rdma`) |
//! | `soft` | the software RNIC instead of a device, in the same process, for weft's targets (feature `soft`) |
//!
//! The agent does not offer datagrams, separate completion queues or tuning, and cannot send
//! immediate data. Each Queue Pair has one completion queue. The agent reports the completions of
//! this queue as events.

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
