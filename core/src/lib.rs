//! The vocabulary of the iWARP wire, shared by everything in weft.
//!
//! Here live the octet layouts ([`wire`]), the checksum ([`crc`]), markers ([`marker`]), the catalogue of
//! requirements ([`mod@requirement`]) and the one error type of parsing ([`error`]).
//!
//! What is absent on purpose: sockets, clocks, random sources, async runtimes, state machines and verdicts. The endpoint
//! (`weft-peer`) and the monitor (`weft-dissector`) share these types and nothing else, so that a verdict never rests
//! on the endpoint's own opinion of itself.
#![forbid(unsafe_code)]

pub mod coverage;
pub mod crc;
pub mod error;
pub mod marker;
pub mod requirement;
pub mod spelling;
pub mod wire;

pub use error::WireError;
pub use requirement::{Requirement, RequirementId};
