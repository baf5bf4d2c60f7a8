//! The classic pcap format: both byte orders, microseconds and nanoseconds.

use pcap_parser::pcap::{parse_pcap_frame, parse_pcap_frame_be, parse_pcap_header};

use super::Next;

/// Octets of the file header.
pub(super) const HEADER_LEN: usize = 24;
const RECORD_HEADER_LEN: usize = 16;

pub(super) struct Pcap {
    big_endian: bool,
    nanoseconds: bool,
    link_type: u16,
}

impl Pcap {
    pub(super) fn recognise(octets: &[u8]) -> Option<Self> {
        let (_, header) = parse_pcap_header(octets).ok()?;
        if header.is_modified_format() {
            return None;
        }
        // The upper half of the field tells about checksums at the end of frames, not the link type.
        let link_type = (header.network.0 & 0xffff) as u16;
        Some(Pcap { big_endian: header.is_bigendian(), nanoseconds: header.is_nanosecond_precision(), link_type })
    }

    pub(super) fn next(&mut self, octets: &[u8]) -> Next {
        let parsed = if self.big_endian { parse_pcap_frame_be(octets) } else { parse_pcap_frame(octets) };
        match parsed {
            Ok((_, block)) => self.frame(block.data.len(), block.ts_sec, block.ts_usec, block.origlen),
            Err(nom::Err::Incomplete(_)) => Next::Incomplete,
            Err(_) => Next::Damaged("no pcap record stands there".to_owned()),
        }
    }

    /// The last record, of which only a part is in the file.
    pub(super) fn cut(&mut self, octets: &[u8]) -> Next {
        let Some((header, data)) = octets.split_first_chunk::<RECORD_HEADER_LEN>() else { return Next::Incomplete };
        let field = |at: usize| {
            let field = [header[at], header[at + 1], header[at + 2], header[at + 3]];
            if self.big_endian { u32::from_be_bytes(field) } else { u32::from_le_bytes(field) }
        };
        self.frame(data.len(), field(0), field(4), field(12))
    }

    fn frame(&self, len: usize, seconds: u32, fraction: u32, wire_len: u32) -> Next {
        let fraction = u64::from(fraction) * if self.nanoseconds { 1 } else { 1_000 };
        Next::Frame {
            start: RECORD_HEADER_LEN,
            len,
            used: RECORD_HEADER_LEN + len,
            time: u64::from(seconds) * 1_000_000_000 + fraction,
            link_type: self.link_type,
            wire_len: wire_len.max(u32::try_from(len).unwrap_or(u32::MAX)),
        }
    }
}
