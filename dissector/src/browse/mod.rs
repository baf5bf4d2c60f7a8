//! For whoever leafs through a capture: an index of all frames, a few frames in full, the frames
//! that pass a filter.
//!
//! Each is a [`Sink`](crate::Sink) that is fed a capture from its beginning, since what a frame
//! means depends on those before it. What they keep is bounded, and they say what they left out.
//! Files, threads and screens are the caller's.

pub mod detail;
pub mod index;
pub mod sieve;

pub use detail::Details;
pub use index::Index;
pub use sieve::Sieve;
