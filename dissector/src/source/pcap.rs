//! Reads the classic pcap format in both byte orders, with microseconds or nanoseconds. Also reads
//! the modified pcap format. Its records have more fields.

use super::format::{Format, Next};
use super::time_resolution;

/// Magic numbers.
const MICROSECONDS: u32 = 0xa1b2_c3d4;
const NANOSECONDS: u32 = 0xa1b2_3c4d;
const MODIFIED: u32 = 0xa1b2_cd34;

/// Length of the file header in octets.
pub(super) const HEADER_LEN: usize = 24;
const RECORD_HEADER_LEN: usize = 16;
/// Length of a record header in the modified format (Linux patches of about the year 2000). Such a
/// header has additional fields for interface, protocol and packet type, and a byte of padding.
const MODIFIED_LEN: usize = 24;

pub(super) struct Pcap {
    big_endian: bool,
    nanoseconds: bool,
    record_header_len: usize,
    link_type: u16,
}

impl Pcap {
    pub(super) fn recognise(octets: &[u8]) -> Option<Self> {
        let header = octets.first_chunk::<HEADER_LEN>()?;
        let magic = u32::from_be_bytes([header[0], header[1], header[2], header[3]]);
        let (magic, big_endian) = match magic {
            MICROSECONDS | NANOSECONDS | MODIFIED => (magic, true),
            other => (other.swap_bytes(), false),
        };
        if !matches!(magic, MICROSECONDS | NANOSECONDS | MODIFIED) {
            return None;
        }
        let mut format = Pcap {
            big_endian,
            nanoseconds: magic == NANOSECONDS,
            record_header_len: if magic == MODIFIED { MODIFIED_LEN } else { RECORD_HEADER_LEN },
            link_type: 0,
        };
        // The upper half of the field describes the checksums at the end of frames.
        format.link_type = (format.field(octets, 20)? & 0xffff) as u16;
        Some(format)
    }

    fn field(&self, octets: &[u8], at: usize) -> Option<u32> {
        let field = octets.get(at..at + 4)?.first_chunk::<4>()?;
        Some(if self.big_endian { u32::from_be_bytes(*field) } else { u32::from_le_bytes(*field) })
    }

    fn frame(&self, len: usize, seconds: u32, fraction: u32, wire_len: u32) -> Next {
        let fraction = u64::from(fraction) * if self.nanoseconds { 1 } else { 1_000 };
        Next::Frame {
            start: self.record_header_len,
            len,
            used: self.record_header_len + len,
            time: u64::from(seconds) * 1_000_000_000 + fraction,
            interface: 0,
            link_type: self.link_type,
            wire_len: wire_len.max(u32::try_from(len).unwrap_or(u32::MAX)),
        }
    }
}

impl Format for Pcap {
    fn next(&mut self, octets: &[u8]) -> Next {
        let [Some(seconds), Some(fraction), Some(len), Some(wire_len)] = [0, 4, 8, 12].map(|at| self.field(octets, at))
        else {
            return Next::Incomplete;
        };
        let len = len as usize;
        if octets.len() - RECORD_HEADER_LEN < len.saturating_add(self.record_header_len - RECORD_HEADER_LEN) {
            return Next::Incomplete;
        }
        self.frame(len, seconds, fraction, wire_len)
    }

    fn decimals(&self, _: u32) -> u8 {
        if self.nanoseconds { time_resolution::NANOSECONDS } else { time_resolution::MICROSECONDS }
    }

    fn cut(&mut self, octets: &[u8]) -> Next {
        let Some(data) = octets.get(self.record_header_len..) else { return Next::Incomplete };
        let [seconds, fraction, wire_len] = [0, 4, 12].map(|at| self.field(octets, at).unwrap_or(0));
        self.frame(data.len(), seconds, fraction, wire_len)
    }
}
