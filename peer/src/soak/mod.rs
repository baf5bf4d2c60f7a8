//! Soak: random connections between two endpoints of this crate, with mangled traffic. Each run is
//! made from one seed.
//!
//! From its seed, a run draws the two endpoints (each a Queue Pair of a software RNIC, or a
//! [`Connection`](crate::Connection)), their MPA settings, and what both users do. It also draws
//! whose output passes a [`Mangler`](crate::hostile::mangle::Mangler), with which plan, and now and
//! then a named deviation. Then it plays the connection on a virtual clock until it ends. A run
//! checks only what has to be true for all input:
//!
//! - no panic (the caller has to catch it);
//! - no hang: both endpoints are over before a deadline, and the number of events is limited;
//! - no access outside registered memory, or against its rights. Patterns in and around the memory
//!   must be unchanged, and sent bytes must not contain them ([`Ground`]);
//! - no leaks: each verb that frees a resource succeeds.
//!
//! [`play`] performs one run. The soak over TCP also uses [`Ground`] and [`Doing`].

mod builtin;
mod doing;
mod end;
mod ground;
mod rnic;
mod world;

pub use doing::Doing;
pub use ground::{Ground, Remote, Spoilt};
pub(crate) use world::drawn_mpa;
pub use world::{Failed, Played, play};
