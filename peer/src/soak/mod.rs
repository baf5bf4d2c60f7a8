//! Soak (a long random test): random connections between two endpoints of this crate, with mangled
//! (randomly damaged) traffic. One seed determines each run.
//!
//! The seed determines all random choices of a run: the two endpoints, their MPA settings, and the
//! actions of both users. Each endpoint is a Queue Pair of a software RNIC, or a
//! [`Connection`](crate::Connection). The seed also determines which endpoints send through a
//! [`Mangler`](crate::hostile::mangle::Mangler), and the Mangler's plan. A few endpoints get a
//! deviation (a named fault). The run then simulates the connection on a virtual clock until the
//! connection ends. It checks only conditions that have to be true for any input:
//!
//! - no panic (the caller has to catch it);
//! - no hang: both endpoints finish before a deadline, and the number of events is limited;
//! - no access outside registered memory, and no access that the rights of the memory do not
//!   permit. Patterns in and around the memory must be unchanged, and sent bytes must not contain
//!   these patterns ([`GuardedMemory`]);
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
