//! [`Format`]: the interface of all readers of file formats.

use std::net::IpAddr;

use super::time_resolution::MICROSECONDS;

/// The result of a format reader for the buffered octets.
pub(super) enum Next {
    /// A frame: `len` octets of the buffer from offset `start` on. The record of the frame consists
    /// of the first `used` octets of the buffer.
    Frame { start: usize, len: usize, used: usize, time: u64, interface: u32, link_type: u16, wire_len: u32 },
    /// A frame with an interface that the capture does not describe. The frame cannot be read, but
    /// it gets a frame number.
    Unreadable { used: usize },
    /// A record without a frame.
    Other { used: usize },
    /// The record is incomplete in the buffer.
    Incomplete,
    /// The octets are invalid from here on. The text is the reason.
    Damaged(String),
}

/// A reader of the records of a file format, after the file header.
pub(super) trait Format: Send {
    /// Reads the record at the start of `octets`.
    fn next(&mut self, octets: &[u8]) -> Next;

    /// Returns the number of decimals of the times of an interface, in seconds. `interface` is the
    /// interface of a frame that [`Format::next`] has found.
    fn decimals(&self, interface: u32) -> u8 {
        let _ = interface;
        MICROSECONDS
    }

    /// Returns the comments in `record`. `record` is a record in which [`Format::next`] has found a
    /// frame.
    fn comments(&self, record: &[u8]) -> Vec<String> {
        let _ = record;
        Vec::new()
    }

    /// Returns the comments about the capture in the records without a frame since the last call.
    fn take_capture_comments(&mut self) -> Vec<String> {
        Vec::new()
    }

    /// Returns the names of addresses in the records without a frame since the last call.
    fn take_names(&mut self) -> Vec<(IpAddr, String)> {
        Vec::new()
    }

    /// Reads the last record of a truncated file. Only `octets` of the record are in the file.
    fn cut(&mut self, octets: &[u8]) -> Next {
        let _ = octets;
        Next::Incomplete
    }
}
