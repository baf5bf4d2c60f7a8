//! Reads frames from capture files (pcap, pcapng, snoop, Network Monitor, ERF, plain or
//! compressed), or from standard input.
//!
//! [`Capture`] delivers [`Frame`]s in file order. A frame borrows its octets from the buffer. This
//! module does not interpret the octets of frames. From a damaged or truncated file, `Capture`
//! delivers every readable frame, and [`Capture::note`] explains where and why reading stopped.
//! Other crates implement live capture.

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
