//! An iWARP endpoint as sans-IO machines, and the drivers that join them with a network.
//!
//! A machine takes octets or a command and an [`Instant`], and gives octets, events and its next
//! deadline. Nothing outside [`driver`] reads a clock, a random source or a socket, so the same
//! [`Connection`] runs over real TCP, over the virtual link with its virtual clock, in tests and in
//! fuzzers.
//!
//! - [`mpa`], [`ddp`], [`rdmap`]: one protocol layer each;
//! - [`verbs`], [`memory`]: a software RNIC, its Queue Pairs and its registered memory;
//! - [`sdp`]: sockets on such an RNIC;
//! - [`sdp_rnic`]: joins such a socket with the work requests and completions of an RNIC;
//! - [`Connection`]: the layers composed, the type that drivers and services hold;
//! - [`service`]: the service that a builtin endpoint runs on its connections (echo);
//! - [`workload`]: what a pair of RNICs does with a connection (ping);
//! - [`portmap`]: the SDP port mapper, client and server;
//! - [`shim`]: the messages between the preload shim and its agent, and the rules;
//! - [`hostile`]: the same endpoint with named deviations, each with the requirements it violates;
//! - [`soak`]: two ends under mangled octets, run by run;
//! - [`driver`]: TCP, the virtual link, the tester's [`driver::Link`], builtin responder and initiator.
//!
//! What is absent on purpose: verdicts. This crate reports what it did and why; whether a peer is
//! right is judged elsewhere.
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
