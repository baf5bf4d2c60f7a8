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
mod media;
mod netmon;
mod pcap;
mod pcapng;
mod snoop;

pub use comments::Comments;
pub use contents::decompressed;
pub use file::{Capture, OpenError};
pub(crate) use media::Media;

/// One captured frame.
#[derive(Debug, Clone, Copy)]
pub struct Frame<'a> {
    /// Its number in the capture, from 1.
    pub number: u64,
    /// When it was captured: nanoseconds since 1970-01-01 UTC, 0 if the capture has no time.
    pub time: u64,
    /// The interface that it was captured on, as the capture numbers them; 0 where there is one.
    pub interface: u32,
    /// Link type as in <https://www.tcpdump.org/linktypes.html>. Numbers from 0x8000 on are media
    /// types without a link type.
    pub link_type: u16,
    /// The octets that were captured.
    pub octets: &'a [u8],
    /// How many octets the frame had on the wire; never less than `octets.len()`.
    pub wire_len: u32,
}

/// The result of a format reader for the buffered octets.
enum Next {
    /// A frame: octets of the buffer from `start`, `len` long. The first `used` octets of the
    /// buffer are consumed with it.
    Frame { start: usize, len: usize, used: usize, time: u64, interface: u32, link_type: u16, wire_len: u32 },
    /// A frame of an interface that the capture does not describe: it counts, but cannot be read.
    Unreadable { used: usize },
    /// Something other than a frame.
    Other { used: usize },
    /// More octets are needed.
    Incomplete,
    /// The octets are invalid from here on.
    Damaged(String),
}

/// A file format after its file header.
trait Format: Send {
    /// The item at the beginning of `octets`.
    fn next(&mut self, octets: &[u8]) -> Next;

    /// The comments in the record of a frame, which [`Format::next`] found at the start of
    /// `record`.
    fn comments(&self, record: &[u8]) -> Vec<String> {
        let _ = record;
        Vec::new()
    }

    /// The last record, of which only `octets` are in the file.
    fn cut(&mut self, octets: &[u8]) -> Next {
        let _ = octets;
        Next::Incomplete
    }
}
