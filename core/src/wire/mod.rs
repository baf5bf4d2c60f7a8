//! Octet layouts of headers and messages. Each header or message has its own file, and two views.
//!
//! The **raw view** (`Raw…` structs, laid out by `zerocopy`) gives names to the octets of a header.
//! The raw view checks nothing and can express every illegal value. The dissector uses it to read
//! headers, and the endpoint uses it to write illegal headers. The **checked representation** (the
//! struct without `Raw`) contains only valid values. `parse` converts octets to this
//! representation, and `emit` converts the representation to octets. If `parse` reads the output of
//! `emit`, the result is the value that `emit` wrote. The reference endpoint uses the checked
//! representation.
//!
//! All integers are big endian, except for the CRC (see [`crate::crc`]). Offsets count octets from
//! the start of the header.

mod exact;
mod open_enum;

pub mod ddp;
pub mod mpa;
pub mod portmap;
pub mod rdmap;
pub mod sdp;
