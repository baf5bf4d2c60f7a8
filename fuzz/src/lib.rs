//! The code of the fuzz targets. Each target in `fuzz_targets/` calls one function of this crate.
//!
//! | module | subject |
//! | --- | --- |
//! | [`wire`] | the parsers of `core`; they never panic, and `emit` and `parse` return the same value |
//! | [`stream`] | the dissector, with synthetic TCP segments |
//! | [`capture`] | the dissector and all outputs, with capture files |
//! | [`upper`] | the same for connections of the protocols above RDMAP |
//! | [`filter`] | the parser of display filters |
//! | [`agent`] | the agent, with lines on its control connection |
//! | [`messages`] | the parsers of messages to workloads, to the preload library and to its agent |
#![forbid(unsafe_code)]

pub mod agent;
pub mod capture;
pub mod filter;
pub mod messages;
pub mod stream;
pub mod upper;
pub mod wire;
