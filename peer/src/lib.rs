//! An iWARP endpoint as sans-IO state machines, and the drivers that connect them to a network.
//!
//! A state machine takes received bytes or a command, and an [`Instant`]. It returns bytes to send,
//! events, and its next deadline. Only [`driver`] reads a clock, a random source or a socket. The
//! same [`Connection`] therefore runs over real TCP, over the virtual link with its virtual clock,
//! in tests and in fuzzers.
//!
//! - [`mpa`], [`ddp`], [`rdmap`]: one protocol layer each;
//! - [`verbs`], [`memory`]: a software RNIC, its Queue Pairs and its registered memory;
//! - [`sdp`]: SDP sockets on such an RNIC;
//! - [`sdp_rnic`]: connects an SDP socket to the Work Requests and completions of an RNIC;
//! - [`Connection`]: all layers in one type, which drivers and services use;
//! - [`service`]: applications that a builtin endpoint runs on its connections, such as echo;
//! - [`workload`]: applications on the Queue Pairs of an RNIC: ping, cat, bench and probe;
//! - [`portmap`]: the client and the server of the SDP port mapper protocol;
//! - [`shim`]: the messages between the preload library (the shim) and its agent, and the rules of
//!   the shim;
//! - [`hostile`]: an endpoint with deviations, which are named, deliberate protocol violations;
//!   each deviation lists the requirements that it violates;
//! - [`soak`]: random connections between two endpoints, with mangled traffic; the same seed always
//!   gives the same connection;
//! - [`driver`]: drivers for TCP and the virtual link, the tester's [`driver::Link`], and the
//!   builtin responder and initiator.
//!
//! This crate gives no verdicts, on purpose. It reports what its endpoint did and why. Other crates
//! judge whether a peer is right.
#![forbid(unsafe_code)]
#![cfg_attr(not(test), warn(clippy::expect_used, clippy::panic))]

pub mod connection;
pub mod ddp;
pub mod driver;
pub mod hostile;
pub mod memory;
pub mod mpa;
pub mod portmap;
pub mod rdmap;
mod reject;
pub mod sdp;
pub mod sdp_rnic;
pub mod service;
pub mod shim;
pub mod soak;
pub mod time;
pub mod verbs;
pub mod workload;

pub use connection::{Connection, Event, Settings, Transmit};
pub use hostile::{Deviation, Deviations};
pub use time::Instant;
