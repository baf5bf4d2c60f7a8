//! The formats of Microsoft Network Monitor, versions 1 and 2. All fields are little-endian.
//!
//! A table at the end of the file contains the offset of each frame. weft reads the file as a
//! stream and does not use the table. weft assumes that the frames directly follow the header, one
//! after the other, because Network Monitor and Wireshark write files like this. Times are in the
//! time zone of the capturing host. Because a file of version 1 does not contain the time zone,
//! weft takes all times as UTC.

use super::format::{Format, Next};
use super::media::Media;
use crate::calendar::days_since_1970;
use crate::link_type::ETHERNET;

pub(super) const HEADER_LEN: usize = 128;

pub(super) struct NetMon {
    major: u8,
    minor: u8,
    /// Media type of all frames. It is used only before version 2.1: from version 2.1 on, each
    /// frame has its own media type.
    media: u16,
    /// Start of the capture, in nanoseconds since 1970.
    begin: u64,
    /// Number of frames that are not read yet. Tables follow the last frame.
    left: u32,
}

impl NetMon {
    /// Returns whether `octets` start with the magic number.
    pub(super) fn may_begin(octets: &[u8]) -> bool {
        octets.starts_with(b"RTSS") || octets.starts_with(b"GMBU")
    }

    pub(super) fn recognise(octets: &[u8]) -> Option<Self> {
        if !Self::may_begin(octets) || octets.len() < HEADER_LEN {
            return None;
        }
        let half = |at: usize| u16::from_le_bytes([octets[at], octets[at + 1]]);
        // Year, month, day of the week, day, hour, minute, second, millisecond.
        let [year, month, _, day, hour, minute, second, millisecond] = [8, 10, 12, 14, 16, 18, 20, 22].map(half);
        let days = days_since_1970(i64::from(year), i64::from(month), i64::from(day));
        let seconds = days * 86_400 + i64::from(hour) * 3_600 + i64::from(minute) * 60 + i64::from(second);
        let nanoseconds = i128::from(seconds) * 1_000_000_000 + i128::from(millisecond) * 1_000_000;
        Some(NetMon {
            major: octets[5],
            minor: octets[4],
            media: half(6),
            begin: u64::try_from(nanoseconds).unwrap_or(0),
            left: u32_at(octets, 28)? / 4,
        })
    }

    fn record_header_len(&self) -> usize {
        if self.major < 2 { 8 } else { 16 }
    }

    /// Number of bytes after a frame. These bytes contain the media type (from version 2.1 on), the
    /// process (from version 2.2 on), and the time and the time zone (from version 2.3 on).
    fn trailer_len(&self) -> usize {
        match (self.major, self.minor) {
            (0 | 1, _) | (2, 0) => 0,
            (2, 1) => 2,
            (2, 2) => 6,
            _ => 15,
        }
    }

    /// Reads the record at the start of `octets`. Returns the length of the frame in the file, its
    /// length on the wire, and its time in nanoseconds since 1970.
    fn record(&self, octets: &[u8]) -> Option<(usize, u32, u64)> {
        if self.major < 2 {
            let time = u64::from(u32_at(octets, 0)?) * 1_000_000;
            let lengths = octets.get(4..8)?;
            let half = |at: usize| u16::from_le_bytes([lengths[at], lengths[at + 1]]);
            return Some((usize::from(half(2)), u32::from(half(0)), self.begin.saturating_add(time)));
        }
        let microseconds = u64::from(u32_at(octets, 4)?) << 32 | u64::from(u32_at(octets, 0)?);
        let time = self.begin.saturating_add(microseconds.saturating_mul(1_000));
        Some((u32_at(octets, 12)? as usize, u32_at(octets, 8)?, time))
    }
}

/// Converts a media type to a link type of <https://www.tcpdump.org/linktypes.html>. Returns `None`
/// for records that are not frames.
fn link_type(media: u16) -> Option<u16> {
    match media {
        1 => Some(ETHERNET),
        // The low 12 bits are a link type.
        0xe000..=0xefff => Some(media & 0xfff),
        // Records of Network Monitor that are not frames.
        0xfff0..=0xffff => None,
        other => Some(Media::NetMon(other).link_type()),
    }
}

impl Format for NetMon {
    fn next(&mut self, octets: &[u8]) -> Next {
        if self.left == 0 {
            // The rest of the file consists of tables.
            return if octets.is_empty() { Next::Incomplete } else { Next::Other { used: octets.len() } };
        }
        let Some((len, wire_len, time)) = self.record(octets) else { return Next::Incomplete };
        let head = self.record_header_len();
        let used = head.saturating_add(len).saturating_add(self.trailer_len());
        if octets.len() < used {
            return Next::Incomplete;
        }
        self.left -= 1;
        let trailer = &octets[head + len..used];
        let media = if trailer.len() < 2 { self.media } else { u16::from_le_bytes([trailer[0], trailer[1]]) };
        match link_type(media) {
            Some(link_type) => {
                let wire_len = wire_len.max(u32::try_from(len).unwrap_or(u32::MAX));
                Next::Frame { start: head, len, used, time, interface: 0, link_type, wire_len }
            }
            None => Next::Other { used },
        }
    }
}

fn u32_at(octets: &[u8], at: usize) -> Option<u32> {
    octets.get(at..at + 4).map(|w| u32::from_le_bytes([w[0], w[1], w[2], w[3]]))
}
