#![doc = include_str!("../README.md")]
//!
//! # Limits on purpose
//!
//! This crate has no sockets, clocks, random sources, async runtime, state machines or verdicts.
//! weft's endpoint (`weft-peer`) and its monitor (`weft-dissector`) share only the types of this
//! crate. A verdict of the monitor therefore never depends on the state of the endpoint.
#![forbid(unsafe_code)]
#![cfg_attr(not(test), warn(clippy::expect_used, clippy::panic))]

pub mod coverage;
pub mod crc;
pub mod error;
pub mod marker;
pub mod origin;
pub mod requirement;
pub mod spelling;
pub mod text;
pub mod wire;

pub use error::WireError;
pub use requirement::{Requirement, RequirementId};
