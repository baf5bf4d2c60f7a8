//! Writes pcapng captures (draft-ietf-opsawg-pcapng). A capture has one section, any number of
//! interfaces, times in nanoseconds, and comments on packets.

use std::io::{self, Write};

pub(super) const SECTION_HEADER: u32 = 0x0a0d_0d0a;
pub(super) const INTERFACE: u32 = 1;
pub(super) const ENHANCED_PACKET: u32 = 6;
const BYTE_ORDER_MAGIC: u32 = 0x1a2b_3c4d;

pub(super) const OPT_COMMENT: u16 = 1;
const SHB_OS: u16 = 3;
const SHB_USERAPPL: u16 = 4;
const IF_NAME: u16 = 2;
const IF_DESCRIPTION: u16 = 3;
const IF_TSRESOL: u16 = 9;
const EPB_FLAGS: u16 = 2;

/// Maximum length of a written option value in octets. The limit of the format is 65,535.
const MAX_OPTION: usize = 32 * 1024;

/// A capture interface.
#[derive(Debug, Clone, Copy, Default)]
pub struct Interface<'a> {
    /// Link type ([`link_type`](crate::link_type)).
    pub link_type: u16,
    /// Maximum number of captured octets of each frame; 0 for no limit.
    pub snap_len: u32,
    /// Name of the interface.
    pub name: Option<&'a str>,
    /// Description of the interface.
    pub description: Option<&'a str>,
}

/// The direction of a packet at the capture interface.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PacketDirection {
    /// The interface received the packet.
    Inbound,
    /// The interface sent the packet.
    Outbound,
}

/// A packet to write.
#[derive(Debug, Clone, Copy)]
pub struct PacketBlock<'a> {
    /// The interface number that [`Writer::interface`] returned.
    pub interface: u32,
    /// Capture time in nanoseconds since 1970.
    pub time: u64,
    /// Captured octets.
    pub octets: &'a [u8],
    /// Length on the wire in octets.
    pub wire_len: u32,
    /// Direction, if known.
    pub direction: Option<PacketDirection>,
    /// Comments on the packet. They are written in this order.
    pub comments: &'a [String],
}

/// Writes a capture with one section.
pub struct Writer<W> {
    out: W,
    body: Vec<u8>,
    interfaces: u32,
}

impl<W: Write> Writer<W> {
    /// Writes the section header with a comment, the name of the operating system, and the name and
    /// version of this program.
    ///
    /// # Errors
    /// `out` reports an error. The same applies to the other methods.
    pub fn new(out: W, comment: Option<&str>) -> io::Result<Self> {
        let mut writer = Writer { out, body: Vec::new(), interfaces: 0 };
        writer.body.extend(BYTE_ORDER_MAGIC.to_le_bytes());
        writer.body.extend(1u16.to_le_bytes());
        writer.body.extend(0u16.to_le_bytes());
        // The length of the section is unknown. Readers continue to the next section header or to
        // the end of the file.
        writer.body.extend(u64::MAX.to_le_bytes());
        if let Some(comment) = comment {
            writer.option(OPT_COMMENT, comment.as_bytes());
        }
        writer.option(SHB_OS, std::env::consts::OS.as_bytes());
        writer.option(SHB_USERAPPL, concat!("weft ", env!("CARGO_PKG_VERSION")).as_bytes());
        writer.block(SECTION_HEADER)?;
        Ok(writer)
    }

    /// Writes the description of an interface. Returns the number of the interface.
    ///
    /// # Errors
    /// As [`Writer::new`].
    pub fn interface(&mut self, interface: &Interface<'_>) -> io::Result<u32> {
        self.body.extend(interface.link_type.to_le_bytes());
        self.body.extend(0u16.to_le_bytes());
        self.body.extend(interface.snap_len.to_le_bytes());
        for (code, text) in [(IF_NAME, interface.name), (IF_DESCRIPTION, interface.description)] {
            if let Some(text) = text {
                self.option(code, text.as_bytes());
            }
        }
        self.option(IF_TSRESOL, &[9]);
        self.block(INTERFACE)?;
        self.interfaces += 1;
        Ok(self.interfaces - 1)
    }

    /// Writes a packet.
    ///
    /// # Errors
    /// As [`Writer::new`].
    pub fn packet(&mut self, packet: &PacketBlock<'_>) -> io::Result<()> {
        let captured = u32::try_from(packet.octets.len()).unwrap_or(u32::MAX);
        for word in
            [packet.interface, (packet.time >> 32) as u32, packet.time as u32, captured, packet.wire_len.max(captured)]
        {
            self.body.extend(word.to_le_bytes());
        }
        self.body.extend(packet.octets);
        self.pad();
        if let Some(direction) = packet.direction {
            let flags: u32 = if direction == PacketDirection::Inbound { 1 } else { 2 };
            self.option(EPB_FLAGS, &flags.to_le_bytes());
        }
        for comment in packet.comments {
            self.option(OPT_COMMENT, comment.as_bytes());
        }
        self.block(ENHANCED_PACKET)
    }

    /// The output.
    #[must_use]
    pub fn get_ref(&self) -> &W {
        &self.out
    }

    /// The output. After each method call, the output contains only complete blocks. Therefore the
    /// caller may flush it.
    pub fn get_mut(&mut self) -> &mut W {
        &mut self.out
    }

    /// Flushes the output and returns it.
    ///
    /// # Errors
    /// As [`Writer::new`].
    pub fn finish(mut self) -> io::Result<W> {
        self.out.flush()?;
        Ok(self.out)
    }

    /// Writes `body` as a block of type `kind`: type, total length, body, total length.
    fn block(&mut self, kind: u32) -> io::Result<()> {
        // This option (`opt_endofopt`) ends the list of options.
        self.body.extend([0; 4]);
        let total = u32::try_from(self.body.len() + 12).unwrap_or(u32::MAX).to_le_bytes();
        self.out.write_all(&kind.to_le_bytes())?;
        self.out.write_all(&total)?;
        self.out.write_all(&self.body)?;
        self.out.write_all(&total)?;
        self.body.clear();
        Ok(())
    }

    fn option(&mut self, code: u16, value: &[u8]) {
        append_option(&mut self.body, code, value, false);
    }

    fn pad(&mut self) {
        pad(&mut self.body);
    }
}

/// Appends an option to the body of a block.
pub(super) fn append_option(body: &mut Vec<u8>, code: u16, value: &[u8], big_endian: bool) {
    let mut end = value.len().min(MAX_OPTION);
    // Do not cut the value inside a UTF-8 character.
    while end < value.len() && value[end] & 0xc0 == 0x80 {
        end -= 1;
    }
    for number in [code, u16::try_from(end).unwrap_or(u16::MAX)] {
        body.extend(if big_endian { number.to_be_bytes() } else { number.to_le_bytes() });
    }
    body.extend(&value[..end]);
    pad(body);
}

/// Appends zeros up to a multiple of four octets.
pub(super) fn pad(body: &mut Vec<u8>) {
    body.resize(body.len().next_multiple_of(4), 0);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::link_type::{ETHERNET, RAW_IP};
    use crate::source::Capture;

    fn written() -> Vec<u8> {
        let mut writer = Writer::new(Vec::new(), Some("section")).unwrap();
        let ethernet =
            writer.interface(&Interface { link_type: ETHERNET, name: Some("tester"), ..Interface::default() }).unwrap();
        let raw = writer.interface(&Interface { link_type: RAW_IP, ..Interface::default() }).unwrap();
        let comments = ["hello".to_owned(), "again".to_owned()];
        let packet = PacketBlock {
            interface: ethernet,
            time: (1 << 40) + 7,
            octets: &[1, 2, 3],
            wire_len: 60,
            direction: Some(PacketDirection::Outbound),
            comments: &comments,
        };
        writer.packet(&packet).unwrap();
        writer
            .packet(&PacketBlock { interface: raw, time: u64::MAX, direction: None, comments: &[], ..packet })
            .unwrap();
        writer.finish().unwrap()
    }

    #[test]
    fn blocks_are_complete_and_hold_their_comments() {
        let capture = written();
        let word = |at: usize| u32::from_le_bytes(capture[at..at + 4].try_into().unwrap());
        let (mut at, mut kinds) = (0, Vec::new());
        while at < capture.len() {
            let total = word(at + 4) as usize;
            assert_eq!((total % 4, word(at + total - 4) as usize), (0, total));
            kinds.push(word(at));
            at += total;
        }
        assert_eq!(kinds, [SECTION_HEADER, INTERFACE, INTERFACE, ENHANCED_PACKET, ENHANCED_PACKET]);
        let count = |text: &[u8]| capture.windows(text.len()).filter(|window| *window == text).count();
        assert_eq!((count(b"hello"), count(b"again"), count(b"section"), count(b"tester")), (1, 1, 1, 1));
    }

    #[test]
    fn what_is_written_reads_back() {
        let mut capture = Capture::from_reader(Box::new(io::Cursor::new(written()))).unwrap();
        let mut frames = Vec::new();
        while let Some(frame) = capture.next_frame() {
            frames.push((frame.time, frame.link_type, frame.octets.to_vec(), frame.wire_len));
        }
        assert_eq!(capture.note(), None);
        assert_eq!(frames, [((1 << 40) + 7, 1, vec![1, 2, 3], 60), (u64::MAX, 101, vec![1, 2, 3], 60)]);
    }

    #[test]
    fn long_comments_are_cut_between_characters() {
        let mut writer = Writer { out: Vec::new(), body: Vec::new(), interfaces: 0 };
        writer.option(OPT_COMMENT, "ü".repeat(MAX_OPTION).as_bytes());
        assert_eq!(writer.body.len(), 4 + MAX_OPTION);
        writer.body.clear();
        writer.option(OPT_COMMENT, format!("x{}", "ü".repeat(MAX_OPTION)).as_bytes());
        assert_eq!(u16::from_le_bytes([writer.body[2], writer.body[3]]), 32 * 1024 - 1);
    }
}
