//! Where frames come from: capture files (pcap, pcapng, snoop, Network Monitor, ERF; plain or
//! compressed) and standard input.
//!
//! A source hands out [`Frame`]s in file order, borrowing their octets, and never looks inside
//! them. A damaged or truncated file yields every frame that was readable; [`Capture::note`] then
//! says where and why reading stopped. Live capture is not here.

mod buffer;
mod compressed;
mod contents;
pub(crate) mod erf;
mod file;
mod media;
mod netmon;
mod pcap;
mod pcapng;
mod snoop;

pub use contents::decompressed;
pub use file::{Capture, OpenError};
pub(crate) use media::Media;

/// One captured frame.
#[derive(Debug, Clone, Copy)]
pub struct Frame<'a> {
    /// Its place in the capture, from 1.
    pub number: u64,
    /// When it was captured: nanoseconds since 1970-01-01 UTC, 0 where the capture does not tell.
    pub time: u64,
    /// The interface that it was captured on, as the capture numbers them; 0 where there is one.
    pub interface: u32,
    /// Link type as <https://www.tcpdump.org/linktypes.html> numbers it. From 0x8000 on it is a
    /// media type that has none.
    pub link_type: u16,
    /// The octets that were captured.
    pub octets: &'a [u8],
    /// How many octets the frame had on the wire; never less than `octets.len()`.
    pub wire_len: u32,
}

/// What a format reader found next in the buffered octets.
enum Next {
    /// A frame: octets of the buffer from `start`, `len` long; `used` octets of the buffer are done
    /// with after it.
    Frame { start: usize, len: usize, used: usize, time: u64, interface: u32, link_type: u16, wire_len: u32 },
    /// A frame of an interface that the capture does not describe: it counts, but cannot be read.
    Unreadable { used: usize },
    /// Something that is no frame.
    Other { used: usize },
    /// More octets are needed.
    Incomplete,
    /// The octets make no sense from here on.
    Damaged(String),
}

/// A file format behind its file header.
trait Format: Send {
    /// What begins `octets`.
    fn next(&mut self, octets: &[u8]) -> Next;

    /// The last record, of which only `octets` are in the file.
    fn cut(&mut self, octets: &[u8]) -> Next {
        let _ = octets;
        Next::Incomplete
    }
}
