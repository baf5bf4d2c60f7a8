//! The hostile endpoint: the correct one with named, switchable deviations.
//!
//! A [`Deviation`] is one misdeed with the requirements it breaks. They prove that a conformance case or a monitor rule can
//! fail. A connection's settings hold a set of them ([`Deviations`]), empty by default. The correct code knows nothing of
//! their inside: it calls one function of `hook` at each place where a misdeed can take hold, and looks at `Conduct` where
//! something is done or left out.
//!
//! To add one: a row in the table of its subject (`startup`, `p2p`, `fpdu`, `conduct`), which says what it does at which place, and a
//! test that the correct endpoint and the deviating one differ as its sentence says.

mod catalogue;
mod conduct;
mod fpdu;
pub(crate) mod hook;
mod p2p;
mod startup;

pub use catalogue::{Deviation, Deviations, UnknownDeviation, all, by_name};
pub(crate) use conduct::Conduct;
