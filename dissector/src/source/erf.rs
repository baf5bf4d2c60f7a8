//! The Extensible Record Format (ERF) of Endace: records without a file header. Lengths are
//! big-endian, and times are little-endian.

use super::format::{Format, Next};
use super::media::Media;
use super::time_resolution::NANOSECONDS;
use crate::link_type;

pub(super) const HEADER_LEN: usize = 16;
const EXTENSION_LEN: usize = 8;
/// Maximum number of extension headers.
const MAX_EXTENSIONS: usize = 16;

/// Record types of Ethernet. The next two constants are the record types of InfiniBand and IP.
const ETHERNET: [u8; 4] = [2, 11, 16, 20];
const INFINIBAND: u8 = 21;
const IP: [u8; 2] = [22, 23];
/// Record types without a packet: descriptions of the capture, and padding.
const NO_PACKET: [u8; 2] = [27, 48];

/// Maximum number of records that are checked to recognise the format.
const MAX_CHECKED_RECORDS: usize = 8;

pub(super) struct Erf;

impl Erf {
    /// Returns whether `octets` possibly start with a record.
    pub(super) fn may_begin(octets: &[u8]) -> bool {
        Record::read(octets).is_some_and(|record| record.is_plausible())
    }

    /// Recognises the format. Because ERF has no magic number, this function requires that the
    /// first records are plausible. It also requires at least two records, or one record with
    /// exactly the length of `octets`.
    pub(super) fn recognise(octets: &[u8]) -> Option<Self> {
        let mut rest = octets;
        let mut last = 0;
        for index in 0..MAX_CHECKED_RECORDS {
            if rest.len() < HEADER_LEN {
                return (index > 1 || index == 1 && rest.is_empty()).then_some(Erf);
            }
            let record = Record::read(rest)?;
            let seconds = record.time / 1_000_000_000;
            // A record is allowed to be at most one second older than the record before it.
            let plausible = record.is_plausible() && seconds + 1 >= last;
            if !plausible {
                return None;
            }
            last = seconds;
            match rest.get(record.total..) {
                Some(next) => rest = next,
                None => return (index > 0).then_some(Erf),
            }
        }
        Some(Erf)
    }
}

/// The header of a record.
struct Record {
    kind: u8,
    /// Length of the record in bytes.
    total: usize,
    wire_len: u32,
    /// Capture time in nanoseconds since 1970.
    time: u64,
    /// Port of the capture card.
    interface: u32,
    has_extensions: bool,
}

impl Record {
    /// Returns whether the record type is supported, the year is from 1995 to 2099, and the lengths
    /// are possible.
    fn is_plausible(&self) -> bool {
        let packet = ETHERNET.contains(&self.kind) || IP.contains(&self.kind) || self.kind == INFINIBAND;
        (packet && self.wire_len > 0 || NO_PACKET.contains(&self.kind))
            && (788_918_400..4_102_444_800).contains(&(self.time / 1_000_000_000))
            && self.total >= HEADER_LEN
    }

    fn read(octets: &[u8]) -> Option<Self> {
        let head = octets.first_chunk::<HEADER_LEN>()?;
        let fraction = u64::from(u32::from_le_bytes([head[0], head[1], head[2], head[3]]));
        let seconds = u64::from(u32::from_le_bytes([head[4], head[5], head[6], head[7]]));
        Some(Record {
            kind: head[8] & 0x7f,
            total: usize::from(u16::from_be_bytes([head[10], head[11]])),
            wire_len: u32::from(u16::from_be_bytes([head[14], head[15]])),
            time: seconds * 1_000_000_000 + ((fraction * 1_000_000_000) >> 32),
            // The lowest two bits of the flags.
            interface: u32::from(head[9] & 3),
            has_extensions: head[8] & 0x80 != 0,
        })
    }
}

/// Returns the link type and the offset of the packet in the record at the start of `octets`.
/// Returns `None` if the record has no packet, or if its headers are incomplete.
pub(crate) fn packet(octets: &[u8]) -> Option<(u16, usize)> {
    let record = Record::read(octets)?;
    let mut at = HEADER_LEN;
    let mut more = record.has_extensions;
    for _ in 0..MAX_EXTENSIONS {
        if !more {
            break;
        }
        more = octets.get(at)? & 0x80 != 0;
        at += EXTENSION_LEN;
    }
    match record.kind {
        // Before the Ethernet frame, there are one byte of offset and one byte of padding.
        kind if ETHERNET.contains(&kind) => Some((link_type::ETHERNET, at + 2)),
        kind if IP.contains(&kind) => Some((link_type::RAW_IP, at)),
        INFINIBAND => Some((link_type::INFINIBAND, at)),
        kind if NO_PACKET.contains(&kind) => None,
        other => Some((Media::Erf(other).link_type(), at)),
    }
}

impl Format for Erf {
    fn next(&mut self, octets: &[u8]) -> Next {
        let Some(record) = Record::read(octets) else { return Next::Incomplete };
        let used = record.total;
        if used < HEADER_LEN {
            return Next::Damaged("an ERF record is shorter than its header".to_owned());
        }
        if octets.len() < used {
            return Next::Incomplete;
        }
        let Some((link_type, start)) = packet(&octets[..used]).filter(|(_, start)| *start <= used) else {
            return Next::Other { used };
        };
        // The rest of the record can include padding. So limit the packet to its length on the
        // wire.
        let len = (used - start).min(record.wire_len as usize);
        let (interface, wire_len) = (record.interface, record.wire_len);
        Next::Frame { start, len, used, time: record.time, interface, link_type, wire_len }
    }

    /// As in tshark. The fraction of a time has 32 bits.
    fn decimals(&self, _: u32) -> u8 {
        NANOSECONDS
    }
}
