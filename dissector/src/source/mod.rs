//! Where frames come from: capture files (pcap, pcapng, snoop, Network Monitor, ERF; plain or
//! compressed) and standard input.
//!
//! A source delivers [`Frame`]s in file order, borrowing their octets, and never looks inside them.
//! A damaged or truncated file yields every readable frame; [`Capture::note`] then explains where
//! and why reading stopped. Live capture is not here.

mod buffer;
mod comments;
mod compressed;
mod contents;
pub(crate) mod erf;
mod file;
mod format;
mod frame;
mod media;
mod netmon;
mod pcap;
mod pcapng;
mod snoop;

pub use comments::Comments;
pub use contents::decompressed;
pub use file::{Capture, OpenError};
pub use frame::Frame;
pub(crate) use media::Media;
