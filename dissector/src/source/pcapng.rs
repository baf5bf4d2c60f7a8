//! Reads the pcapng format: sections in both byte orders, several interfaces, and all time
//! resolutions.
//!
//! A packet can have options. weft reads only the comments among these options.

use std::net::IpAddr;

use pcap_parser::pcapng::{
    Block, NameRecord, NameRecordType, OptionCode, PcapNGOption, parse_block_be, parse_block_le,
};

use super::format::{Format, Next};
use super::time_resolution::{MICROSECONDS, NANOSECONDS};

/// The supported major version. All minor versions have the same layout of blocks.
const MAJOR_VERSION: u16 = 1;
const SECTION_HEADER: u32 = 0x0a0d_0d0a;
const OBSOLETE_PACKET: u32 = 2;
const ENHANCED_PACKET: u32 = 6;
/// Codes of options.
const END_OF_OPTIONS: u16 = 0;
const COMMENT: u16 = 1;
/// Length in octets of block type and block length.
const BLOCK_HEADER_LEN: usize = 8;
/// Length in octets of the fixed part of the body of an enhanced packet block.
const ENHANCED_LEN: usize = 20;

/// Length in octets of a section header block, without its options and its last length.
const SECTION_LEN: usize = 24;

/// Maximum number of interfaces in a section. A small compressed capture can describe very many
/// interfaces. This limit therefore bounds the memory.
const MAX_INTERFACES: usize = 65_536;

#[derive(Clone, Copy)]
struct Interface {
    link_type: u16,
    snap_len: u32,
    /// Time resolution in ticks per second.
    resolution: u64,
    /// Number of seconds that must be added to every time.
    offset: i64,
}

/// Returns the ticks per second for a value of the option `if_tsresol`. If the highest bit of the
/// value is set, the result is a power of two. Otherwise it is a power of ten. If the power exceeds
/// 64 bits, the result is 1,000,000 (microseconds).
fn ticks_a_second(resolution: u8) -> u64 {
    let exponent = u32::from(resolution & 0x7f);
    let base: u64 = if resolution & 0x80 == 0 { 10 } else { 2 };
    base.checked_pow(exponent).unwrap_or(1_000_000)
}

/// The address in a record of a name resolution block, and its first name.
fn first_name(record: &NameRecord<'_>) -> Option<(IpAddr, String)> {
    let (address, names) = match record.record_type {
        NameRecordType::Ipv4 => {
            let (address, names) = record.record_value.split_first_chunk::<4>()?;
            (IpAddr::from(*address), names)
        }
        NameRecordType::Ipv6 => {
            let (address, names) = record.record_value.split_first_chunk::<16>()?;
            (IpAddr::from(*address), names)
        }
        _ => return None,
    };
    let name = names.split(|octet| *octet == 0).next()?;
    Some((address, String::from_utf8_lossy(name).into_owned()))
}

#[derive(Default)]
pub(super) struct PcapNg {
    big_endian: bool,
    interfaces: Vec<Interface>,
    /// The names of the blocks since the last frame.
    names: Vec<(IpAddr, String)>,
    /// The comments of the section header, until they are taken.
    comments: Vec<String>,
}

impl Format for PcapNg {
    fn next(&mut self, octets: &[u8]) -> Next {
        let Some((kind, total)) = self.block_header(octets) else { return Next::Incomplete };
        if total < 12 {
            return Next::Damaged(format!("a block has a length of {total} bytes; the minimum is 12"));
        }
        let used = total.next_multiple_of(4);
        if octets.len() < used {
            return Next::Incomplete;
        }
        let block = &octets[..used];
        let parsed = if self.big_endian { parse_block_be(block) } else { parse_block_le(block) };
        match parsed {
            Ok((_, Block::SectionHeader(_))) if let Err((major, minor)) = Self::check_version(block) => {
                Next::Damaged(format!("a section has pcapng version {major}.{minor}; weft reads version 1"))
            }
            Ok((_, Block::SectionHeader(_))) => {
                self.interfaces.clear();
                let options = block.get(SECTION_LEN..used - 4).unwrap_or(&[]);
                self.comments = self.comments_in(options);
                Next::Other { used }
            }
            Ok((_, Block::InterfaceDescription(_))) if self.interfaces.len() == MAX_INTERFACES => {
                Next::Damaged(format!("a section describes more than {MAX_INTERFACES} interfaces"))
            }
            Ok((_, Block::InterfaceDescription(interface))) => {
                self.interfaces.push(Interface {
                    link_type: (interface.linktype.0 & 0xffff) as u16,
                    snap_len: interface.snaplen,
                    resolution: ticks_a_second(interface.if_tsresol),
                    offset: self.seconds_to_add(&interface.options),
                });
                Next::Other { used }
            }
            Ok((_, Block::EnhancedPacket(packet))) => {
                let ticks = u64::from(packet.ts_high) << 32 | u64::from(packet.ts_low);
                let len = (packet.caplen as usize).min(packet.data.len());
                self.frame(packet.if_id, BLOCK_HEADER_LEN + ENHANCED_LEN, len, used, ticks, packet.origlen)
            }
            Ok((_, Block::SimplePacket(packet))) => {
                let snap_len = self.interfaces.first().map_or(0, |i| i.snap_len);
                let captured = if snap_len == 0 { packet.origlen } else { packet.origlen.min(snap_len) };
                let len = (captured as usize).min(packet.data.len());
                self.frame(0, BLOCK_HEADER_LEN + 4, len, used, 0, packet.origlen)
            }
            Ok((_, Block::NameResolution(block))) => {
                self.names.extend(block.nr.iter().filter_map(first_name));
                Next::Other { used }
            }
            Ok((_, Block::Unknown(_))) if kind == OBSOLETE_PACKET => self.obsolete_packet(block, used),
            Ok(_) => Next::Other { used },
            Err(_) if kind == SECTION_HEADER => Next::Damaged("the section header is invalid".to_owned()),
            Err(_) => Next::Damaged(format!("the block of type {kind:#x} is invalid")),
        }
    }

    fn comments(&self, record: &[u8]) -> Vec<String> {
        let Some(body) = record.get(BLOCK_HEADER_LEN..record.len().saturating_sub(4)) else { return Vec::new() };
        if body.len() < ENHANCED_LEN || self.u32(record) != ENHANCED_PACKET {
            return Vec::new();
        }
        let data = (self.u32(&body[12..]) as usize).next_multiple_of(4);
        self.comments_in(body.get(ENHANCED_LEN.saturating_add(data)..).unwrap_or(&[]))
    }

    /// As in tshark, a resolution between two powers of ten counts as the coarser one.
    fn decimals(&self, interface: u32) -> u8 {
        let interface = self.interfaces.get(interface as usize);
        let digits = interface.and_then(|interface| interface.resolution.checked_ilog10());
        digits.map_or(MICROSECONDS, |digits| u8::try_from(digits).unwrap_or(NANOSECONDS).min(NANOSECONDS))
    }

    fn take_capture_comments(&mut self) -> Vec<String> {
        std::mem::take(&mut self.comments)
    }

    fn take_names(&mut self) -> Vec<(IpAddr, String)> {
        std::mem::take(&mut self.names)
    }

    /// Reads the last block of a truncated file.
    fn cut(&mut self, octets: &[u8]) -> Next {
        let Some((ENHANCED_PACKET, _)) = self.block_header(octets) else { return Next::Incomplete };
        let body = &octets[BLOCK_HEADER_LEN..];
        if body.len() < ENHANCED_LEN {
            return Next::Incomplete;
        }
        let word = |at: usize| self.u32(&body[at..]);
        let ticks = u64::from(word(4)) << 32 | u64::from(word(8));
        let len = (word(12) as usize).min(body.len() - ENHANCED_LEN);
        self.frame(word(0), BLOCK_HEADER_LEN + ENHANCED_LEN, len, octets.len(), ticks, word(16))
    }
}

impl PcapNg {
    /// Returns the comments among these options of a block.
    fn comments_in(&self, mut options: &[u8]) -> Vec<String> {
        let mut comments = Vec::new();
        // An option has code, length, value, and padding to 32 bits.
        while let Some((head, rest)) = options.split_first_chunk::<4>() {
            let half =
                |a: u8, b: u8| if self.big_endian { u16::from_be_bytes([a, b]) } else { u16::from_le_bytes([a, b]) };
            let (code, len) = (half(head[0], head[1]), usize::from(half(head[2], head[3])));
            let Some(value) = rest.get(..len) else { break };
            match code {
                END_OF_OPTIONS => break,
                COMMENT => comments.push(String::from_utf8_lossy(value).into_owned()),
                _ => {}
            }
            options = rest.get(len.next_multiple_of(4)..).unwrap_or(&[]);
        }
        comments
    }

    /// Checks the version of the section header at the start of `octets`. If the major version is
    /// not [`MAJOR_VERSION`], returns the version as an error. Accepts a header that ends before
    /// its version.
    pub(super) fn check_version(octets: &[u8]) -> Result<(), (u16, u16)> {
        let Some(&[b0, b1, b2, b3, a0, a1, i0, i1]) = octets.get(BLOCK_HEADER_LEN..).and_then(<[u8]>::first_chunk)
        else {
            return Ok(());
        };
        let is_big_endian = [b0, b1, b2, b3] == [0x1a, 0x2b, 0x3c, 0x4d];
        let number = |octets| if is_big_endian { u16::from_be_bytes(octets) } else { u16::from_le_bytes(octets) };
        let (major, minor) = (number([a0, a1]), number([i0, i1]));
        if major == MAJOR_VERSION { Ok(()) } else { Err((major, minor)) }
    }

    /// Reads the obsolete packet block of early pcapng. The layout differs from the enhanced packet
    /// block in one respect: the interface number has only 16 bits, and a drop count of 16 bits
    /// follows it.
    fn obsolete_packet(&self, block: &[u8], used: usize) -> Next {
        let body = &block[BLOCK_HEADER_LEN..];
        if body.len() < ENHANCED_LEN + 4 {
            return Next::Damaged("a packet block is shorter than its fixed part".to_owned());
        }
        let interface = self.u32(body);
        let interface = if self.big_endian { interface >> 16 } else { interface & 0xffff };
        let word = |at: usize| self.u32(&body[at..]);
        let ticks = u64::from(word(4)) << 32 | u64::from(word(8));
        let len = (word(12) as usize).min(body.len() - ENHANCED_LEN - 4);
        self.frame(interface, BLOCK_HEADER_LEN + ENHANCED_LEN, len, used, ticks, word(16))
    }

    fn frame(&self, interface: u32, start: usize, len: usize, used: usize, ticks: u64, wire_len: u32) -> Next {
        let number = interface;
        let Some(interface) = self.interfaces.get(number as usize) else { return Next::Unreadable { used } };
        let nanoseconds = u128::from(ticks) * 1_000_000_000 / u128::from(interface.resolution);
        let nanoseconds = i128::try_from(nanoseconds).unwrap_or(0) + i128::from(interface.offset) * 1_000_000_000;
        Next::Frame {
            start,
            len,
            used,
            time: u64::try_from(nanoseconds).unwrap_or(0),
            interface: number,
            link_type: interface.link_type,
            wire_len: wire_len.max(u32::try_from(len).unwrap_or(u32::MAX)),
        }
    }

    /// Returns the value of the option `if_tsoffset`, a signed number of seconds in the byte order
    /// of the section. Returns 0 if the interface does not have the option.
    fn seconds_to_add(&self, options: &[PcapNGOption<'_>]) -> i64 {
        let option = options.iter().find(|option| option.code == OptionCode::IfTsoffset);
        let Some(octets) = option.and_then(|option| option.value().first_chunk::<8>()) else { return 0 };
        if self.big_endian { i64::from_be_bytes(*octets) } else { i64::from_le_bytes(*octets) }
    }

    /// Returns the type and the total length of the block at the start of `octets`. If the block is
    /// a section header, also sets the byte order.
    fn block_header(&mut self, octets: &[u8]) -> Option<(u32, usize)> {
        if octets.len() < 12 {
            return None;
        }
        if octets[..4] == SECTION_HEADER.to_be_bytes() {
            self.big_endian = octets[8..12] == [0x1a, 0x2b, 0x3c, 0x4d];
        }
        Some((self.u32(octets), self.u32(&octets[4..]) as usize))
    }

    /// The first four octets as a number. The caller has checked that `octets` has at least four
    /// octets.
    fn u32(&self, octets: &[u8]) -> u32 {
        let field = [octets[0], octets[1], octets[2], octets[3]];
        if self.big_endian { u32::from_be_bytes(field) } else { u32::from_le_bytes(field) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::hex;

    /// The option `if_tsresol` is described in section 4.2 of the pcapng draft.
    #[test]
    fn decimals_follow_the_resolution_of_the_interface() {
        let resolutions = [6, 9, 0, 3, 12, 0x80 | 20, 0x80 | 30];
        let interface =
            |resolution| Interface { link_type: 1, snap_len: 0, resolution: ticks_a_second(resolution), offset: 0 };
        let format = PcapNg { interfaces: resolutions.map(interface).into(), ..PcapNg::default() };
        // 2^20 is 1,048,576, and 2^30 is 1,073,741,824.
        assert_eq!([0, 1, 2, 3, 4, 5, 6].map(|number| format.decimals(number)), [6, 9, 0, 3, 9, 6, 9]);
    }

    /// The blocks have the layout of section 4.5 of the pcapng draft. The name of the first record
    /// is padded, and the second record has two names.
    #[test]
    fn reads_the_names_of_a_name_resolution_block() {
        let mut format = PcapNg::default();
        let octets = hex(concat!(
            "04000000 3c000000",
            "0100 0b00 0a000001 736572766572 00 00",
            "0200 1600 fd000000 00000000 00000000 00000002 6262 00 6363 00 0000",
            "00000000 3c000000",
        ));
        assert_eq!(octets.len(), 0x3c);
        assert!(matches!(format.next(&octets), Next::Other { used: 0x3c }));
        let server = (IpAddr::from([10, 0, 0, 1]), "server".to_owned());
        let client = ("fd00::2".parse().unwrap(), "bb".to_owned());
        assert_eq!(format.take_names(), [server, client]);
        assert_eq!(format.take_names(), []);
    }
}
