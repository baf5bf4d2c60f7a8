//! The agent runs on the NIC's host. It executes a tester's requests with the verbs of the NIC (the
//! functions of its driver).
//!
//! | module | content |
//! | --- | --- |
//! | [`Limits`] | the limits of one control connection |
//! | [`listen`] | control connections over TCP, each on its own thread |
//! | [`protocol`] | the messages between tester and agent |
//! | [`serve`] | the service for one control connection, with any device |
//! | `rdma` | a device that libibverbs and librdmacm access, loaded at run time (feature `rdma`) |
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
