//! Tests connections under a virtual clock: two connections joined by queues, and one connection
//! with a synthetic peer.
#![expect(clippy::unwrap_used, reason = "the lint exempts test functions, but not their helper functions")]

mod closing;
mod kernel;
pub(crate) mod machine;
mod malformed;
mod mutation;
mod operation;
mod startup;
