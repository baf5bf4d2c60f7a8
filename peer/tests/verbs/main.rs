//! The software RNIC through its verbs: alone, against octets made by hand, and two of them joined by queues under virtual time.
#![expect(clippy::unwrap_used, reason = "the lint's exemption of tests does not reach their helpers")]

mod completion;
mod errors;
mod figures;
mod model;
mod qp;
mod rnic;
mod states;
mod supported;
mod transfer;
mod world;
