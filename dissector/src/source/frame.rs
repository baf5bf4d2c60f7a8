//! A captured frame.

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
