//! The window of a capture file that is in memory: grows only when one record needs it.

use std::io::{self, Read};

/// Octets read at a time.
const CHUNK: usize = 128 << 10;
/// The longest record that is accepted; a longer one is a damaged length field.
pub(super) const LONGEST_RECORD: usize = 64 << 20;

pub(super) struct Buffer {
    reader: Box<dyn Read + Send>,
    /// Octets that were read and not consumed are in `start..end`; the rest is free space, zeroed
    /// once.
    octets: Vec<u8>,
    start: usize,
    end: usize,
    /// Octets of the file before `start`.
    consumed: u64,
    at_end: bool,
    /// An error after octets that are delivered first.
    failed: Option<io::Error>,
}

impl Buffer {
    pub(super) fn new(reader: Box<dyn Read + Send>) -> Self {
        Buffer { reader, octets: Vec::new(), start: 0, end: 0, consumed: 0, at_end: false, failed: None }
    }

    /// The octets that were read and not consumed.
    pub(super) fn octets(&self) -> &[u8] {
        &self.octets[self.start..self.end]
    }

    pub(super) fn consume(&mut self, count: usize) {
        self.start += count;
        self.consumed += count as u64;
    }

    /// Octets of the (decompressed) file before those of [`Buffer::octets`].
    pub(super) fn position(&self) -> u64 {
        self.consumed
    }

    /// Reads more octets. Returns `false` at the end, or if a record would exceed the maximum
    /// length.
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
                    // A short read returns all octets that are available now: a live source should
                    // not wait for a full chunk.
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
