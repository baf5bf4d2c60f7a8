//! Octet layouts of headers and messages, one file for each, in two views.
//!
//! The **raw view** (`Raw…` structs, laid out by `zerocopy`) gives names to the octets of a header.
//! It checks nothing and can express every illegal value. The dissector reads headers through it,
//! and the endpoint writes illegal headers through it. The **checked representation** (the struct
//! without `Raw`) contains only valid values. `parse` converts octets to this representation, and
//! `emit` converts the representation to octets. If `parse` reads the output of `emit`, the result
//! is the same value. The reference endpoint uses the checked representation.
//!
//! All integers are big endian, except for the CRC (see [`crate::crc`]). Offsets count octets from
//! the start of the described header.

mod exact;
mod open_enum;

pub mod ddp;
pub mod mpa;
pub mod portmap;
pub mod rdmap;
pub mod sdp;
