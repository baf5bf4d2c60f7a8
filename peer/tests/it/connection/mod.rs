//! Tests of connections under a virtual clock: two connections joined by queues, and one connection
//! with a synthetic peer.
#![expect(clippy::unwrap_used, reason = "the lint's exemption of tests does not reach their helpers")]

mod closing;
mod kernel;
pub(crate) mod machine;
mod malformed;
mod mutation;
mod operation;
mod startup;
