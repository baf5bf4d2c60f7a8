//! Reads frames from capture files, or from standard input. The formats are pcap, pcapng, snoop,
//! Network Monitor and ERF. A file can be compressed.
//!
//! [`Capture`] delivers [`Frame`]s in file order. A frame borrows its octets from the buffer. This
//! module does not interpret the octets of frames. If a file is damaged or truncated, `Capture`
//! delivers all frames up to the damage, and [`Capture::note`] reports where and why reading
//! stopped. Other crates implement live capture.

mod buffer;
mod capture_names;
mod comments;
mod compressed;
mod contents;
pub(crate) mod erf;
mod file;
mod format;
mod frame;
mod media;
mod names;
mod netmon;
mod pcap;
mod pcapng;
mod snoop;
mod time_resolution;

pub use capture_names::{CAPTURE_EXTENSIONS, is_capture_name};
pub use comments::Comments;
pub use contents::decompressed;
pub use file::{Capture, OpenError};
pub use frame::Frame;
pub(crate) use media::Media;
pub use names::Names;
pub use time_resolution::TimeResolution;
