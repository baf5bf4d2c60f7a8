//! What the fuzz targets do: each target in `fuzz_targets/` is one call into here.
//!
//! | module | subject |
//! | --- | --- |
//! | [`wire`] | parsers of the core: no octets panic, and what was read is written again as it was |
//! | [`stream`] | TCP segments made up here, through the dissector |
//! | [`capture`] | capture files, through the dissector and the outputs |
//! | [`filter`] | display filters |
//! | [`agent`] | lines of the agent's control connection |
//! | [`messages`] | what peers send to the workloads; lines of the preload library and its agent |
#![forbid(unsafe_code)]

pub mod agent;
pub mod capture;
pub mod filter;
pub mod messages;
pub mod stream;
pub mod wire;
