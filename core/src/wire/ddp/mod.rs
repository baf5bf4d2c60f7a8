//! Direct Data Placement: RFC 5041.
//!
//! A DDP segment is the ULPDU of one FPDU: a tagged (14 octets) or untagged (18 octets) header,
//! then payload. Of the octets that DDP reserves for its ULP, RDMAP uses the first as its control
//! octet and the next four (untagged only) as the STag to invalidate; their meaning is in
//! [`crate::wire::rdmap`].

mod check;
mod control;
mod header;
mod segment;
mod tagged;
mod untagged;

pub use control::Control;
pub use header::RawHeader;
pub use segment::Segment;
pub use tagged::{RawTagged, Tagged};
pub use untagged::{RawUntagged, Untagged, UntaggedUlp, queue};
