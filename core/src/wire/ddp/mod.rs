//! Direct Data Placement: RFC 5041.
//!
//! A DDP segment is the ULPDU of one FPDU: a tagged (14 octets) or untagged (18 octets) header,
//! then payload. DDP reserves one octet (tagged) or five octets (untagged) of the header for its
//! upper-layer protocol. RDMAP uses the first of these octets as its control octet, and the next
//! four as the STag to invalidate. [`crate::wire::rdmap`] defines the meaning of these octets.

mod check;
mod control;
mod header;
mod msn;
mod segment;
mod tagged;
mod untagged;

pub use control::Control;
pub use header::RawHeader;
pub use msn::Msn;
pub use segment::Segment;
pub use tagged::{RawTagged, Tagged};
pub use untagged::{RawUntagged, Untagged, UntaggedUlp, queue};
