//! Soak (a long random test): random connections between two endpoints of this crate, with mangled
//! traffic. One seed determines each run.
//!
//! The seed determines all random choices of a run: the two endpoints (each is a Queue Pair of a
//! software RNIC, or a [`Connection`](crate::Connection)), their MPA settings, and the actions of
//! both users. The seed also determines which endpoints send through a
//! [`Mangler`](crate::hostile::mangle::Mangler), and the Mangler's plan. A few endpoints get a
//! deviation (a named fault). The run then simulates the connection on a virtual clock until the
//! connection ends. A run checks only conditions that have to be true for all input:
//!
//! - no panic (the caller has to catch it);
//! - no hang: both endpoints are over before a deadline, and the number of events is limited;
//! - no access outside registered memory, or against its rights. Patterns in and around the memory
//!   must be unchanged, and sent bytes must not contain them ([`GuardedMemory`]);
//! - no leaks: each verb that frees a resource succeeds.
//!
//! [`play`] performs one run. The soak over TCP also uses [`GuardedMemory`] and [`RandomWork`].

mod builtin;
mod endpoint;
mod guarded_memory;
mod random_work;
mod rnic;
mod simulation;

pub use guarded_memory::{GuardedMemory, MemoryViolation, Remote};
pub use random_work::RandomWork;
pub(crate) use simulation::draw_mpa;
pub use simulation::{RunReport, SoakError, play};
