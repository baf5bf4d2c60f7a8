//! TCP streams from segments: connection, direction, and the order of octets.
//!
//! Windows and congestion are not checked; checksums and acknowledgements decide whether damaged
//! octets count. A stream keeps only unread octets; [`half`] states the limit.

mod arrived;
mod checksum;
pub(crate) mod half;
mod prints;
mod run;
mod table;
#[cfg(test)]
pub(crate) mod testing;

pub(crate) use arrived::Arrived;
pub(crate) use checksum::Checksum;
pub(crate) use half::{Half, HalfRecord, Later};
pub(crate) use prints::Prints;
pub(crate) use table::{Afterwards, FAR, FAR_AFTER_CLOSE, Located, Past, Place, Table, is_far};
