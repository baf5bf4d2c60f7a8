//! Octet layouts, one file a header or message, in two views.
//!
//! The **raw view** (`Raw…` structs, laid out by `zerocopy`) is the octets under their field names.
//! It judges nothing and can express every illegal value: the dissector reads through it, the
//! hostile endpoint writes through it. The **checked representation** (the struct without `Raw`)
//! holds only what makes sense; `parse` and `emit` join the two, and what `emit` writes `parse`
//! reads back. The reference endpoint speaks through it.
//!
//! All integers are big endian unless a field is defined otherwise (only the CRC is, see
//! [`crate::crc`]). Offsets count octets from the start of the header that is described.

mod exact;
mod open_enum;

pub mod ddp;
pub mod mpa;
pub mod portmap;
pub mod rdmap;
pub mod sdp;
