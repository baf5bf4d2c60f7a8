//! Tests of MPA under a virtual clock: every negotiation, every marker, every start-up frame. Each
//! test declares the requirements that it proves.
#![expect(clippy::unwrap_used, reason = "the lint's exemption of tests does not reach their helpers")]

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
