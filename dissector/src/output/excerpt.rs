//! Copies selected packets of a pcapng capture, and adds findings as comments to the copied
//! packets.
//!
//! The copy also has the blocks that a reader needs to interpret the packets: section headers,
//! interfaces, name resolution, and interface statistics such as drop counts. Packets keep their
//! options. Blocks of all other types are omitted, for example decryption secrets.

use std::io::{self, Read, Write};

use super::pcapng::{ENHANCED_PACKET, INTERFACE, OPT_COMMENT, SECTION_HEADER, append_option, pad};
use crate::frame_number::FrameNumber;

const OBSOLETE_PACKET: u32 = 2;
const SIMPLE_PACKET: u32 = 3;
const NAME_RESOLUTION: u32 = 4;
const INTERFACE_STATISTICS: u32 = 5;

/// Number of octets of a block that are not its body: the type and the total length before the
/// body, and a second total length after the body.
const AROUND_BODY: usize = 12;
/// Maximum total length of a block in octets, as in [`crate::source`].
const LONGEST_BLOCK: usize = 64 << 20;
/// Number of octets before the options in the body of a section header.
const SECTION_FIXED: usize = 16;
/// Number of octets before the packet data in the body of an enhanced packet block. An obsolete
/// packet block has the same number of octets there. The field with the captured length is at
/// offset [`CAPTURED_LEN_AT`].
const PACKET_FIXED: usize = 20;
const CAPTURED_LEN_AT: usize = 12;

/// Reads a capture, and writes the selected packets.
pub struct Excerpt<R, W> {
    from: R,
    out: W,
    comment: String,
    big_endian: bool,
    kind: u32,
    /// Body of the last block that was read.
    body: Vec<u8>,
    /// Number of packets read so far.
    packets: u64,
    /// Whether no further block can be read, because the capture ends or a block is invalid.
    is_over: bool,
}

impl<R: Read, W: Write> Excerpt<R, W> {
    /// Copies from the uncompressed capture `from` to `out`. The section header of each section
    /// gets the comment `comment`.
    pub fn new(from: R, out: W, comment: &str) -> Self {
        let (comment, body) = (comment.to_owned(), Vec::new());
        Excerpt { from, out, comment, big_endian: false, kind: 0, body, packets: 0, is_over: false }
    }

    /// Copies the blocks before packet `number`, except packets and blocks of omitted types. Then
    /// copies packet `number`, and adds each of `comments` that the packet does not have yet. Call
    /// this method with increasing numbers. As in [`crate::source::Frame`], the first packet has
    /// number 1.
    ///
    /// Returns whether the copied packet has all comments in `comments`. The result is `false` for
    /// a simple packet block, because such a block cannot have comments. The result is also `false`
    /// if the capture has no packet `number`.
    ///
    /// # Errors
    /// `from` or `out` reports an error. The same applies to [`Excerpt::finish`].
    pub fn packet(&mut self, number: FrameNumber, comments: &[String]) -> io::Result<bool> {
        while FrameNumber::from(self.packets) < number && self.read()? {
            if !self.is_packet() {
                self.describe()?;
                continue;
            }
            self.packets += 1;
            if FrameNumber::from(self.packets) == number {
                let commented = comments.is_empty() || self.add_to_packet(comments);
                self.write()?;
                return Ok(commented);
            }
        }
        Ok(false)
    }

    /// Copies the remaining blocks up to the end of the capture, except packets and blocks of
    /// omitted types. Returns the output.
    ///
    /// # Errors
    /// As [`Excerpt::packet`].
    pub fn finish(mut self) -> io::Result<W> {
        while self.read()? {
            if !self.is_packet() {
                self.describe()?;
            }
        }
        self.into_output()
    }

    /// Ends the copy at the current position. Returns the output.
    ///
    /// # Errors
    /// As [`Excerpt::packet`].
    pub fn into_output(mut self) -> io::Result<W> {
        self.out.flush()?;
        Ok(self.out)
    }

    fn is_packet(&self) -> bool {
        matches!(self.kind, ENHANCED_PACKET | SIMPLE_PACKET | OBSOLETE_PACKET)
    }

    /// Reads the next block. Returns `false` at the end of the file, or if the block or an earlier
    /// block is invalid. If the file ends inside an enhanced packet, reads the part of the packet
    /// that is in the file.
    fn read(&mut self) -> io::Result<bool> {
        if self.is_over {
            return Ok(false);
        }
        self.is_over = true;
        self.body.clear();
        (&mut self.from).take(AROUND_BODY as u64).read_to_end(&mut self.body)?;
        let Some(&[k0, k1, k2, k3, l0, l1, l2, l3, b0, b1, b2, b3]) = self.body.first_chunk::<AROUND_BODY>() else {
            return Ok(false);
        };
        let kind = [k0, k1, k2, k3];
        if kind == SECTION_HEADER.to_be_bytes() {
            self.big_endian = [b0, b1, b2, b3] == [0x1a, 0x2b, 0x3c, 0x4d];
        }
        self.kind = self.number(kind);
        let total = self.number([l0, l1, l2, l3]) as usize;
        if !(AROUND_BODY..=LONGEST_BLOCK).contains(&total) {
            return Ok(false);
        }
        let total = total.next_multiple_of(4);
        self.body.clear();
        self.body.extend([b0, b1, b2, b3]);
        // Read the remaining octets of the body, and the second total length.
        let rest = total - AROUND_BODY;
        (&mut self.from).take(rest as u64).read_to_end(&mut self.body)?;
        if self.body.len() < 4 + rest {
            return Ok(self.kind == ENHANCED_PACKET && self.complete_packet());
        }
        self.body.truncate(rest);
        self.is_over = false;
        Ok(true)
    }

    /// Adjusts the length field and the padding of a truncated packet. Returns whether the fixed
    /// part of the packet is complete.
    fn complete_packet(&mut self) -> bool {
        let Some(there) = self.body.len().checked_sub(PACKET_FIXED) else { return false };
        let Some(captured) = self.captured_len() else { return false };
        let captured = captured.min(there);
        self.body.truncate(PACKET_FIXED + captured);
        let captured = u32::try_from(captured).unwrap_or(u32::MAX);
        let captured = if self.big_endian { captured.to_be_bytes() } else { captured.to_le_bytes() };
        self.body[CAPTURED_LEN_AT..CAPTURED_LEN_AT + 4].copy_from_slice(&captured);
        pad(&mut self.body);
        true
    }

    /// The captured length in octets. It is in the length field of an enhanced or obsolete packet.
    fn captured_len(&self) -> Option<usize> {
        let field = self.body.get(CAPTURED_LEN_AT..)?.first_chunk::<4>()?;
        Some(self.number(*field) as usize)
    }

    fn number(&self, octets: [u8; 4]) -> u32 {
        if self.big_endian { u32::from_be_bytes(octets) } else { u32::from_le_bytes(octets) }
    }

    /// Writes the block if a reader needs it to interpret packets. Omits blocks of all other types.
    fn describe(&mut self) -> io::Result<()> {
        match self.kind {
            SECTION_HEADER if self.body.len() >= SECTION_FIXED => {
                // The copy changes the length of the section. So write -1: this value means that
                // the length is unknown.
                self.body[SECTION_FIXED - 8..SECTION_FIXED].fill(0xff);
                let comment = [std::mem::take(&mut self.comment)];
                self.add_comments(SECTION_FIXED, &comment);
                [self.comment] = comment;
                self.write()
            }
            INTERFACE | NAME_RESOLUTION | INTERFACE_STATISTICS => self.write(),
            _ => Ok(()),
        }
    }

    /// Adds comments to a packet. Returns `false` if the packet cannot have comments.
    fn add_to_packet(&mut self, comments: &[String]) -> bool {
        let data_len = self.captured_len().filter(|len| *len <= LONGEST_BLOCK);
        match data_len.map(|len| PACKET_FIXED + len.next_multiple_of(4)) {
            Some(fixed) if self.kind != SIMPLE_PACKET && fixed <= self.body.len() => {
                self.add_comments(fixed, comments);
                true
            }
            _ => false,
        }
    }

    /// Adds comments to the options that start at offset `fixed` of the body.
    fn add_comments(&mut self, fixed: usize, comments: &[String]) {
        let mut missing: Vec<&String> = comments.iter().collect();
        let mut end = fixed;
        while let Some(&[c0, c1, l0, l1]) = self.body.get(end..).and_then(<[u8]>::first_chunk::<4>) {
            let [code, len] = [[c0, c1], [l0, l1]]
                .map(|field| if self.big_endian { u16::from_be_bytes(field) } else { u16::from_le_bytes(field) });
            let start = end + 4;
            let Some(value) = self.body.get(start..start + usize::from(len)).filter(|_| code != 0) else { break };
            if code == OPT_COMMENT {
                missing.retain(|comment| comment.as_bytes() != value);
            }
            end = (start + value.len()).next_multiple_of(4);
        }
        if missing.is_empty() {
            return;
        }
        self.body.resize(end, 0);
        for comment in missing {
            append_option(&mut self.body, OPT_COMMENT, comment.as_bytes(), self.big_endian);
        }
        // This option (`opt_endofopt`) ends the list of options.
        self.body.extend([0; 4]);
    }

    fn write(&mut self) -> io::Result<()> {
        let total = u32::try_from(self.body.len() + AROUND_BODY).unwrap_or(u32::MAX);
        let [kind, total] =
            [self.kind, total].map(|number| if self.big_endian { number.to_be_bytes() } else { number.to_le_bytes() });
        for part in [&kind[..], &total, &self.body, &total] {
            self.out.write_all(part)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use super::*;
    use crate::source::Capture;

    const SECRETS: u32 = 10;

    /// Creates the octets of a capture in one byte order.
    struct Made {
        big_endian: bool,
        octets: Vec<u8>,
    }

    impl Made {
        fn words(&self, words: &[u32]) -> Vec<u8> {
            let octets = |word: &u32| if self.big_endian { word.to_be_bytes() } else { word.to_le_bytes() };
            words.iter().flat_map(octets).collect()
        }

        fn block(&mut self, kind: u32, body: &[u8]) {
            let total = u32::try_from(body.len() + AROUND_BODY).unwrap();
            let (head, tail) = (self.words(&[kind, total]), self.words(&[total]));
            self.octets.extend([&head[..], body, &tail].concat());
        }

        /// Adds a packet of interface 0. The packet has four octets and a comment.
        fn packet(&mut self, octet: u8, comment: &str) {
            let mut body = self.words(&[0, 0, 7, 4, 60]);
            body.extend([octet; 4]);
            append_option(&mut body, OPT_COMMENT, comment.as_bytes(), self.big_endian);
            body.extend([0; 4]);
            self.block(ENHANCED_PACKET, &body);
        }
    }

    /// Returns a section with a named interface, name resolution, secrets, three packets and drop
    /// counts. One of the packets is in a simple packet block.
    fn made(big_endian: bool) -> Vec<u8> {
        let mut made = Made { big_endian, octets: Vec::new() };
        // The section header contains the length of the section.
        let mut section = made.words(&[0x1a2b_3c4d]);
        section.extend(if big_endian { [0, 1, 0, 0] } else { [1, 0, 0, 0] });
        section.extend([0; 8]);
        made.block(SECTION_HEADER, &section);
        let mut interface = if big_endian { vec![0, 1, 0, 0] } else { vec![1, 0, 0, 0] };
        interface.extend([0; 4]);
        // if_name
        append_option(&mut interface, 2, b"eth7", big_endian);
        made.block(INTERFACE, &interface);
        let mut names = Vec::new();
        // nrb_record_ipv4 (an address and a name), and then the end of the records.
        append_option(&mut names, 1, b"\x0a\0\0\x01a name\0", big_endian);
        names.extend([0; 4]);
        made.block(NAME_RESOLUTION, &names);
        let secrets = [made.words(&[0x544c_534b, 8]), b"a secret".to_vec()].concat();
        made.block(SECRETS, &secrets);
        made.packet(1, "first");
        let simple = [made.words(&[4]), vec![2; 4]].concat();
        made.block(SIMPLE_PACKET, &simple);
        made.packet(3, "third");
        let mut statistics = made.words(&[0, 0, 7]);
        // isb_ifdrop
        append_option(&mut statistics, 5, b"drops...", big_endian);
        made.block(INTERFACE_STATISTICS, &statistics);
        made.octets
    }

    /// The first octet of each packet in the output.
    fn packets(octets: &[u8]) -> Vec<u8> {
        let mut capture = Capture::from_reader(Box::new(Cursor::new(octets.to_vec()))).unwrap();
        let mut packets = Vec::new();
        while let Some(frame) = capture.next_frame() {
            assert_eq!(frame.octets.len(), 4);
            packets.push(frame.octets[0]);
        }
        assert_eq!(capture.note(), None);
        packets
    }

    fn count(octets: &[u8], text: &str) -> usize {
        octets.windows(text.len()).filter(|window| *window == text.as_bytes()).count()
    }

    #[test]
    fn keeps_what_describes_the_packets_that_are_chosen() {
        for big_endian in [false, true] {
            let from = made(big_endian);
            let mut excerpt = Excerpt::new(&from[..], Vec::new(), "an excerpt");
            let comments = ["third".to_owned(), "a finding".to_owned()];
            assert!(excerpt.packet(3.into(), &comments).unwrap());
            let written = excerpt.finish().unwrap();
            assert_eq!(packets(&written), [3]);
            for (text, times) in [
                ("an excerpt", 1),
                ("eth7", 1),
                ("a name", 1),
                ("drops...", 1),
                ("third", 1),
                ("a finding", 1),
                ("a secret", 0),
                ("first", 0),
            ] {
                assert_eq!(count(&written, text), times, "{text}, big-endian {big_endian}");
            }
            // The second copy adds nothing, because the packet already has the comment.
            let mut again = Excerpt::new(&written[..], Vec::new(), "an excerpt");
            assert!(again.packet(1.into(), &comments).unwrap());
            assert_eq!(again.finish().unwrap(), written);
        }
    }

    #[test]
    fn a_simple_packet_has_no_comments() {
        let from = made(false);
        let mut excerpt = Excerpt::new(&from[..], Vec::new(), "an excerpt");
        assert!(excerpt.packet(1.into(), &[]).unwrap());
        assert!(!excerpt.packet(2.into(), &["a finding".to_owned()]).unwrap());
        let written = excerpt.into_output().unwrap();
        assert_eq!((packets(&written), count(&written, "drops...")), (vec![1, 2], 0));
    }

    /// The file can end anywhere without a panic. If it ends inside a packet, the copy has the same
    /// part of the packet that [`Capture`] returns.
    #[test]
    fn a_capture_may_end_anywhere() {
        for big_endian in [false, true] {
            let from = made(big_endian);
            for end in 0..from.len() {
                let Ok(mut capture) = Capture::from_reader(Box::new(Cursor::new(from[..end].to_vec()))) else {
                    continue;
                };
                let mut excerpt = Excerpt::new(&from[..end], Vec::new(), "an excerpt");
                let mut read = Vec::new();
                while let Some(frame) = capture.next_frame() {
                    excerpt.packet(frame.number, &["a finding".to_owned()]).unwrap();
                    read.push(frame.octets.to_vec());
                }
                let written = excerpt.finish().unwrap();
                let mut copied = Vec::new();
                if let Ok(mut capture) = Capture::from_reader(Box::new(Cursor::new(written))) {
                    while let Some(frame) = capture.next_frame() {
                        copied.push(frame.octets.to_vec());
                    }
                    assert_eq!(capture.note(), None, "{end}");
                }
                assert_eq!(copied, read, "{end}");
            }
        }
    }
}
