//! Reassembles TCP streams: finds the connection of a segment, and puts the octets of a direction
//! in order.
//!
//! The module does not check windows and congestion control. Checksums and acknowledgements
//! determine whether damaged octets count. A stream stores only unread octets. [`half`] documents
//! the memory limit.

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
