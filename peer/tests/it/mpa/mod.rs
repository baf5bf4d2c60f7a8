//! Tests MPA with a virtual clock. The tests cover every negotiation, every marker and every
//! start-up frame. Each test declares the requirements that it proves.
#![expect(clippy::unwrap_used, reason = "the lint exempts test functions, but not their helper functions")]

mod appendix_c;
mod enhanced;
mod full_operation;
mod markers;
mod matrix;
mod rows;
mod rtr;
mod startup;
mod stimuli;
mod streaming;
pub(crate) mod wire;
