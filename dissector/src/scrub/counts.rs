//! [`Counts`]: what was replaced.

/// What was replaced in the frames so far, and what could not be read.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    /// Number of frames.
    pub frames: u64,
    /// Number of bytes of payload, of names and of private data that changed. Also counts changed
    /// CRC fields of FPDUs. Does not count bytes that already had the value of replaced bytes.
    pub changed_octets: u64,
    /// Number of different IPv4 addresses that were mapped.
    pub ipv4: u64,
    /// Number of different IPv6 addresses that were mapped.
    pub ipv6: u64,
    /// Number of different MAC addresses that were mapped.
    pub mac: u64,
    /// Number of frames that are longer on the wire than in the capture.
    pub cut_frames: u64,
    /// Number of frames with a fragment of an IP packet that is incomplete or has no TCP segment.
    /// Their payload is replaced completely.
    pub fragments: u64,
    /// Number of frames in which no complete TCP or UDP header was found. All bytes after the last
    /// header that was found are replaced.
    pub unread_frames: u64,
}
