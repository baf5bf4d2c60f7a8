//! Tests of the software RNIC through its verbs: one RNIC with synthetic octets, and two RNICs
//! joined by queues under virtual time.
#![expect(clippy::unwrap_used, reason = "the lint's exemption of tests does not reach their helpers")]

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
