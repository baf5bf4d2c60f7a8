//! [`Buffer`] contains those octets of a capture file that are in memory. The buffer grows only if
//! a record needs more space.

use std::io::{self, Read};

/// Number of octets to read at a time.
const CHUNK: usize = 128 << 10;
/// Maximum length of a record in octets. If a length field has a larger value, the field is
/// damaged.
pub(super) const LONGEST_RECORD: usize = 64 << 20;

pub(super) struct Buffer {
    reader: Box<dyn Read + Send>,
    /// The unconsumed octets are in `start..end`. The rest is free space. It was set to zero when
    /// the buffer grew.
    octets: Vec<u8>,
    start: usize,
    end: usize,
    /// Number of octets of the file before `start`.
    consumed: u64,
    at_end: bool,
    /// A read error. The error is reported only after the octets before it are delivered.
    failed: Option<io::Error>,
}

impl Buffer {
    pub(super) fn new(reader: Box<dyn Read + Send>) -> Self {
        Buffer { reader, octets: Vec::new(), start: 0, end: 0, consumed: 0, at_end: false, failed: None }
    }

    /// The octets that were read, but are not consumed yet.
    pub(super) fn octets(&self) -> &[u8] {
        &self.octets[self.start..self.end]
    }

    pub(super) fn consume(&mut self, count: usize) {
        self.start += count;
        self.consumed += count as u64;
    }

    /// Number of octets of the (decompressed) file before [`Buffer::octets`].
    pub(super) fn position(&self) -> u64 {
        self.consumed
    }

    /// Reads more octets. Returns `false` at the end of the file, or if the buffer already has
    /// [`LONGEST_RECORD`] unconsumed octets.
    pub(super) fn fill(&mut self) -> io::Result<bool> {
        if let Some(error) = self.failed.take() {
            self.at_end = true;
            return Err(error);
        }
        if self.at_end || self.octets().len() >= LONGEST_RECORD {
            return Ok(false);
        }
        if self.start > 0 {
            self.octets.copy_within(self.start..self.end, 0);
            self.end -= self.start;
            self.start = 0;
        }
        let had = self.end;
        if self.octets.len() < had + CHUNK {
            self.octets.resize(had + CHUNK, 0);
        }
        let mut got = 0;
        while got < CHUNK {
            let wanted = CHUNK - got;
            match self.reader.read(&mut self.octets[had + got..had + CHUNK]) {
                Ok(0) => {
                    self.at_end = true;
                    break;
                }
                Ok(n) => {
                    got += n;
                    // If a read returns less than a full chunk, no further octets are available
                    // now. Stop here, because the reader should not wait until a live source has a
                    // full chunk.
                    if n < wanted {
                        break;
                    }
                }
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => {
                    self.failed = Some(e);
                    break;
                }
            }
        }
        self.end = had + got;
        match self.failed.take_if(|_| got == 0) {
            Some(error) => {
                self.at_end = true;
                Err(error)
            }
            None => Ok(got > 0),
        }
    }
}
