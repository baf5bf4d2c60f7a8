//! What every reader of a file format provides.

/// The result of a format reader for the buffered octets.
pub(super) enum Next {
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
pub(super) trait Format: Send {
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
