//! A capture file of any known format, as frames.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use super::buffer::{Buffer, LONGEST_RECORD};
use super::{Frame, Next, pcap::Pcap, pcapng::PcapNg};

/// Why a capture cannot be read at all.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The operating system refuses.
    #[error("{0}")]
    Io(#[from] io::Error),
    /// It is a folder.
    #[error("is a directory; name a capture file")]
    Directory,
    /// There is nothing in it.
    #[error("is empty; a capture file begins with a pcap or pcapng header")]
    Empty,
    /// The first octets are no format that is known.
    #[error("is neither pcap nor pcapng (first octets: {0}); gzip and zstd compression are recognised")]
    UnknownFormat(String),
}

enum Format {
    Pcap(Pcap),
    PcapNg(PcapNg),
}

/// A capture that is being read. Memory is bounded by the longest record, not by the length of the file.
pub struct Capture {
    buffer: Buffer,
    format: Format,
    frames: u64,
    used: usize,
    note: Option<String>,
    /// The first frame of an interface that the capture does not describe, and how many there are.
    unreadable: Option<(u64, u64)>,
}

impl Capture {
    /// Opens the file at `path`; `-` is standard input.
    ///
    /// # Errors
    /// What [`OpenError`] lists. Damage further inside is no error: see [`Capture::note`].
    pub fn open(path: &Path) -> Result<Self, OpenError> {
        if path == Path::new("-") {
            return Self::from_reader(Box::new(io::stdin()));
        }
        let file = File::open(path)?;
        if file.metadata()?.is_dir() {
            return Err(OpenError::Directory);
        }
        Self::from_reader(Box::new(file))
    }

    /// Reads a capture from anything that gives octets.
    ///
    /// # Errors
    /// As [`Capture::open`].
    pub fn from_reader(reader: Box<dyn Read + Send>) -> Result<Self, OpenError> {
        let mut buffer = Buffer::new(reader);
        while buffer.octets().len() < 4 && buffer.fill()? {}
        let decompressed: Option<Box<dyn Read + Send>> = match buffer.octets() {
            [0x1f, 0x8b, ..] => Some(Box::new(flate2::read::MultiGzDecoder::new(BufferReader(buffer)))),
            [0x28, 0xb5, 0x2f, 0xfd, ..] => {
                Some(Box::new(zstd::stream::read::Decoder::new(BufferReader(buffer)).map_err(OpenError::Io)?))
            }
            _ => return Self::from_buffer(buffer),
        };
        let Some(reader) = decompressed else { return Err(OpenError::Empty) };
        let mut buffer = Buffer::new(reader);
        buffer.fill()?;
        Self::from_buffer(buffer)
    }

    fn from_buffer(mut buffer: Buffer) -> Result<Self, OpenError> {
        while buffer.octets().len() < pcap::HEADER_LEN && buffer.fill()? {}
        let octets = buffer.octets();
        if octets.is_empty() {
            return Err(OpenError::Empty);
        }
        let format = if octets.starts_with(&[0x0a, 0x0d, 0x0d, 0x0a]) {
            Format::PcapNg(PcapNg::default())
        } else if let Some(format) = Pcap::recognise(octets) {
            buffer.consume(pcap::HEADER_LEN);
            Format::Pcap(format)
        } else {
            let first: Vec<String> = octets.iter().take(8).map(|o| format!("{o:02x}")).collect();
            return Err(OpenError::UnknownFormat(first.join(" ")));
        };
        Ok(Capture { buffer, format, frames: 0, used: 0, note: None, unreadable: None })
    }

    /// The next frame; `None` at the end, or where damage makes reading on impossible ([`Capture::note`] tells which).
    pub fn next_frame(&mut self) -> Option<Frame<'_>> {
        self.buffer.consume(std::mem::take(&mut self.used));
        if self.note.is_some() {
            return None;
        }
        loop {
            let next = match &mut self.format {
                Format::Pcap(format) => format.next(self.buffer.octets()),
                Format::PcapNg(format) => format.next(self.buffer.octets()),
            };
            match next {
                Next::Frame { start, len, used, time, link_type, wire_len } => {
                    self.frames += 1;
                    self.used = used;
                    let octets = &self.buffer.octets()[start..start + len];
                    return Some(Frame { number: self.frames, time, link_type, octets, wire_len });
                }
                Next::Unreadable { used } => {
                    self.frames += 1;
                    self.unreadable.get_or_insert((self.frames, 0)).1 += 1;
                    self.buffer.consume(used);
                }
                Next::Other { used } => self.buffer.consume(used),
                Next::Incomplete => match self.buffer.fill() {
                    Ok(true) => {}
                    Ok(false) => return self.last_frame(),
                    Err(e) => {
                        self.note = Some(format!(
                            "reading stopped at octet {} of the capture, after frame {}: {e}",
                            self.buffer.position(),
                            self.frames
                        ));
                        return None;
                    }
                },
                Next::Damaged(what) => {
                    self.note = Some(format!(
                        "the capture is damaged at octet {}, after frame {}: {what}",
                        self.buffer.position(),
                        self.frames
                    ));
                    return None;
                }
            }
        }
    }

    /// Where and why reading stopped before the end of the file; `None` when nothing was wrong.
    #[must_use]
    pub fn note(&self) -> Option<&str> {
        self.note.as_deref()
    }

    /// Frames handed out so far.
    #[must_use]
    pub fn frames(&self) -> u64 {
        self.frames
    }

    /// Octets of the (decompressed) capture that are done with.
    #[must_use]
    pub fn position(&self) -> u64 {
        self.buffer.position()
    }

    /// Nothing more is read. Where the file ends within a record, what of its octets is there still counts.
    fn last_frame(&mut self) -> Option<Frame<'_>> {
        let left = self.buffer.octets().len();
        if left == 0 {
            self.note = self.unreadable.map(|(first, count)| match count {
                1 => format!("frame {first} names an interface that the capture does not describe, and is left out"),
                _ => format!(
                    "{count} frames, of which {first} is the first, name interfaces that the capture does not describe, and \
                     are left out"
                ),
            });
            return None;
        }
        if left >= LONGEST_RECORD {
            self.note = Some(format!(
                "the capture is damaged at octet {}, after frame {}: a record says that it is longer than {} MiB",
                self.buffer.position(),
                self.frames,
                LONGEST_RECORD >> 20
            ));
            return None;
        }
        self.note = Some(format!(
            "the capture is truncated: it ends within the record at octet {}, after frame {} ({left} octets of it are there)",
            self.buffer.position(),
            self.frames
        ));
        let cut = match &mut self.format {
            Format::Pcap(format) => format.cut(self.buffer.octets()),
            Format::PcapNg(format) => format.cut(self.buffer.octets()),
        };
        let Next::Frame { start, len, time, link_type, wire_len, .. } = cut else { return None };
        self.frames += 1;
        self.used = left;
        let octets = &self.buffer.octets()[start..start + len];
        Some(Frame { number: self.frames, time, link_type, octets, wire_len })
    }
}

/// A buffer read on as a stream: the octets that were looked at, then the rest.
struct BufferReader(Buffer);

impl Read for BufferReader {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        if self.0.octets().is_empty() && !self.0.fill()? {
            return Ok(0);
        }
        let octets = self.0.octets();
        let count = octets.len().min(out.len());
        out[..count].copy_from_slice(&octets[..count]);
        self.0.consume(count);
        Ok(count)
    }
}

use super::pcap;
