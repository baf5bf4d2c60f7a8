//! Makes a capture that can be shared: replaces payload and addresses, and keeps the structure.
//!
//! Three passes read the same frames. [`Survey`] finds the protocols above RDMAP. [`Planner`]
//! decides which octets of each TCP stream stay. [`Scrubber`] replaces all other octets.
//!
//! - Headers stay as they are, also if they are wrong: IP, TCP, UDP, MPA, DDP, RDMAP, SDP, and the
//!   headers of the recognised protocols above RDMAP.
//! - Payload of all protocols is replaced, octet by octet. So are private data without a known
//!   meaning, and PAD octets other than zero.
//! - Addresses become reserved addresses. An address has the same replacement in all frames, and in
//!   port mapper messages.
//! - Correct checksums and CRCs stay correct, and wrong ones stay wrong.
//!
//! The value of an octet of a TCP stream depends only on its position, and the replacement of the
//! result is the result.

mod addresses;
mod checksum;
mod counts;
mod crc_field;
mod fill;
mod fragments;
mod frame;
mod kept;
mod link_header;
mod plan;
mod planner;
mod portmap;
mod scrubber;
mod survey;
mod tcp_options;
#[cfg(test)]
mod tests;

pub use counts::Counts;
pub use planner::Planner;
pub use scrubber::Scrubber;
pub use survey::Survey;
