//! Writes pcap captures with times in nanoseconds. pcap has no comments;
//! [`pcapng`](super::pcapng) has them.

use std::io::{self, Write};

/// The first octets of a capture with times in nanoseconds, as a little-endian number.
const MAGIC: u32 = 0xa1b2_3c4d;
/// The snap length in the header in octets, as in captures of tcpdump.
const SNAP_LEN: u32 = 262_144;
const NANOSECONDS: u64 = 1_000_000_000;

/// Writes a capture.
pub struct Writer<W> {
    out: W,
}

impl<W: Write> Writer<W> {
    /// Writes the header of a capture with packets of this link type
    /// ([`link_type`](crate::link_type)).
    ///
    /// # Errors
    /// `out` reports an error. The same applies to the other methods.
    pub fn new(mut out: W, link_type: u16) -> io::Result<Self> {
        let mut header = MAGIC.to_le_bytes().to_vec();
        // The version is 2.4. The next eight octets are always zero.
        header.extend([2, 0, 4, 0]);
        header.extend([0; 8]);
        header.extend(SNAP_LEN.to_le_bytes());
        header.extend(u32::from(link_type).to_le_bytes());
        out.write_all(&header)?;
        Ok(Writer { out })
    }

    /// Writes a packet. `time` is in nanoseconds since 1970, and `wire_len` in octets.
    ///
    /// # Errors
    /// As [`Writer::new`].
    pub fn packet(&mut self, time: u64, octets: &[u8], wire_len: u32) -> io::Result<()> {
        let captured = u32::try_from(octets.len()).unwrap_or(u32::MAX);
        let seconds = u32::try_from(time / NANOSECONDS).unwrap_or(u32::MAX);
        for word in [seconds, (time % NANOSECONDS) as u32, captured, wire_len.max(captured)] {
            self.out.write_all(&word.to_le_bytes())?;
        }
        self.out.write_all(octets)
    }

    /// Flushes the output and returns it.
    ///
    /// # Errors
    /// As [`Writer::new`].
    pub fn finish(mut self) -> io::Result<W> {
        self.out.flush()?;
        Ok(self.out)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::Capture;

    #[test]
    fn what_is_written_reads_back() {
        let mut writer = Writer::new(Vec::new(), 101).unwrap();
        writer.packet(1_000_000_002, &[1, 2, 3], 60).unwrap();
        writer.packet(2_000_000_003, &[], 0).unwrap();
        let mut capture = Capture::from_reader(Box::new(io::Cursor::new(writer.finish().unwrap()))).unwrap();
        let mut frames = Vec::new();
        while let Some(frame) = capture.next_frame() {
            frames.push((frame.time, frame.link_type, frame.octets.to_vec(), frame.wire_len));
        }
        assert_eq!(capture.note(), None);
        assert_eq!(frames, [(1_000_000_002, 101, vec![1, 2, 3], 60), (2_000_000_003, 101, vec![], 0)]);
    }
}
