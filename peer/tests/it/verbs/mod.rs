//! Tests the software RNIC through its verbs (draft-hilland-rddp-verbs). A test has one RNIC and
//! builds the octets of its peer, or it has two RNICs that are joined by queues. The clock is
//! virtual.
#![expect(clippy::unwrap_used, reason = "the lint exempts test functions, but not their helper functions")]

mod closed;
mod closing;
mod completing;
mod completion;
mod cq;
mod errors;
mod extensions;
mod failures;
mod figure_23;
mod figure_27;
mod figure_36;
mod figure_37;
mod figures;
mod handlers;
mod idle_and_rts;
mod memory_verbs;
mod model;
mod ordering;
mod overflow;
mod peers;
mod posting;
mod qp_create;
mod qp_modify;
mod read_resources;
mod regions;
mod registering;
mod rights;
mod rnic;
mod shared_receive;
mod srq;
mod states;
mod stopping;
mod supported;
mod terminating;
mod transfer;
mod window_access;
mod windows;
