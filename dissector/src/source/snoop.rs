//! The snoop format of Solaris (RFC 1761), version 2. All fields are big-endian.

use super::format::{Format, Next};
use super::media::Media;
use crate::link_type;

pub(super) const HEADER_LEN: usize = 16;
const MAGIC: &[u8] = b"snoop\0\0\0\0\0\0\x02";
const RECORD_HEADER_LEN: usize = 24;

pub(super) struct Snoop {
    link_type: u16,
}

impl Snoop {
    pub(super) fn recognise(octets: &[u8]) -> Option<Self> {
        if !octets.starts_with(MAGIC) {
            return None;
        }
        let datalink = word(octets, 12)?;
        // RFC 1761 defines the datalink types 0 and 4 for Ethernet. The datalink type 26 is IP over
        // InfiniBand.
        let link_type = match datalink {
            0 | 4 => link_type::ETHERNET,
            26 => link_type::IPOIB,
            other => Media::Snoop(u16::try_from(other).unwrap_or(u16::MAX)).link_type(),
        };
        Some(Snoop { link_type })
    }

    fn frame(&self, octets: &[u8], len: usize, used: usize) -> Next {
        let field = |at| word(octets, at).unwrap_or(0);
        let time = u64::from(field(16)) * 1_000_000_000 + u64::from(field(20)) * 1_000;
        let wire_len = field(0).max(u32::try_from(len).unwrap_or(u32::MAX));
        Next::Frame { start: RECORD_HEADER_LEN, len, used, time, interface: 0, link_type: self.link_type, wire_len }
    }
}

impl Format for Snoop {
    fn next(&mut self, octets: &[u8]) -> Next {
        let (Some(len), Some(used)) = (word(octets, 4), word(octets, 8)) else { return Next::Incomplete };
        let (len, used) = (len as usize, used as usize);
        if used < RECORD_HEADER_LEN || len > used - RECORD_HEADER_LEN {
            return Next::Damaged("a snoop record is shorter than its packet".to_owned());
        }
        if octets.len() < used { Next::Incomplete } else { self.frame(octets, len, used) }
    }

    fn cut(&mut self, octets: &[u8]) -> Next {
        let (Some(len), true) = (word(octets, 4), octets.len() >= RECORD_HEADER_LEN) else { return Next::Incomplete };
        self.frame(octets, (len as usize).min(octets.len() - RECORD_HEADER_LEN), octets.len())
    }
}

fn word(octets: &[u8], at: usize) -> Option<u32> {
    octets.get(at..at + 4).map(|w| u32::from_be_bytes([w[0], w[1], w[2], w[3]]))
}
