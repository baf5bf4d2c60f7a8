//! Soak: two ends of this crate under mangled octets, run by run, each made of one seed.
//!
//! A run draws from its seed who is at each end (a Queue Pair of a software RNIC, or a
//! [`Connection`](crate::Connection)), what MPA settles, what both users do, whose octets a
//! [`Mangler`](crate::hostile::mangle::Mangler) gets and by which plan, and now and then a named
//! deviation. It then plays all of it on a virtual clock, to the end. Nothing is judged but what
//! must hold whatever arrives:
//!
//! - no panic (the caller's concern: it knows how to catch one);
//! - no hang: both ends are over by a deadline, and no instant has endless events;
//! - no access outside registered memory, nor against its rights: patterns around and in it are as they were, and none of it is in
//!   what was sent ([`Ground`]);
//! - no leaks: each verb that gives a resource back takes it.
//!
//! [`play`] is one run. [`Ground`] and [`Doing`] serve a soak over TCP, too.

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
