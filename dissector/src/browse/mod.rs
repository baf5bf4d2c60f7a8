//! Tools for interactive readers of a capture: an index of all frames, details of a few frames, and
//! the frames that pass a filter.
//!
//! Each is a [`Sink`](crate::Sink) that reads a capture from its beginning, because the meaning of
//! a frame depends on earlier frames. Their memory is bounded, and they report what they left out.
//! Files, threads and screens are up to the caller.

pub mod detail;
pub mod index;
pub mod sieve;

pub use detail::Details;
pub use index::Index;
pub use sieve::Sieve;
