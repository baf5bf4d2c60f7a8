//! Reads compressed capture files: gzip, zstd, xz, bzip2 and lz4. The first bytes of a file
//! identify the compression.

use std::io::{self, Read};

use lzma_rust2::{Action, Status, XzStream};

/// A compression format with a magic number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Compression {
    Gzip,
    Zstd,
    Xz,
    Bzip2,
    Lz4,
}

pub(super) fn recognise(octets: &[u8]) -> Option<Compression> {
    match octets {
        [0x1f, 0x8b, ..] => Some(Compression::Gzip),
        [0x28, 0xb5, 0x2f, 0xfd, ..] => Some(Compression::Zstd),
        [0xfd, b'7', b'z', b'X', ..] => Some(Compression::Xz),
        [b'B', b'Z', b'h', b'1'..=b'9', ..] => Some(Compression::Bzip2),
        [0x04, 0x22, 0x4d, 0x18, ..] => Some(Compression::Lz4),
        _ => None,
    }
}

/// Memory limit for the decompression of an xz file, in KiB. A file of `xz -9` needs 65 MiB.
const MAX_XZ_MEMORY_KIB: u32 = 128 << 10;
/// Number of octets of an xz file that one call decompresses. The number is small for this reason:
/// if a call fails, it also discards the octets that it has already decoded.
const XZ_INPUT: usize = 32;
/// Number of compressed octets to read at a time.
const CHUNK: usize = 32 << 10;

impl Compression {
    /// Returns a reader of the decompressed octets. Like the command-line tools, this function
    /// reads concatenated compressed files as one file.
    pub(super) fn decompress(self, reader: Box<dyn Read + Send>) -> io::Result<Box<dyn Read + Send>> {
        Ok(match self {
            Compression::Gzip => Box::new(flate2::read::MultiGzDecoder::new(reader)),
            Compression::Zstd => Box::new(zstd::stream::read::Decoder::new(reader)?),
            Compression::Xz => Box::new(Decompressed::new(reader, XzStream::new_mem_limit(true, MAX_XZ_MEMORY_KIB))),
            Compression::Bzip2 => Box::new(Decompressed::new(reader, Bzip2::default())),
            Compression::Lz4 => Box::new(lz4_flex::frame::FrameDecoder::new(reader)),
        })
    }
}

/// Result of one call of a [`Decoder`]. `consumed` and `produced` are valid even if the call
/// failed.
struct Progress {
    consumed: usize,
    produced: usize,
    /// `true` at the end of the last member. A member is one of several concatenated compressed
    /// files.
    result: io::Result<bool>,
}

/// A decompressor that receives its input as slices.
///
/// weft uses decoders for xz and bzip2, instead of the `Read` types of the libraries. If a call of
/// such a `Read` type fails, the call loses the octets that it has already decoded. If the capture
/// is short, the call can lose all octets of the capture.
trait Decoder {
    /// Decompresses `input` into `output`. `last` is set if no further input follows.
    fn decode(&mut self, input: &[u8], output: &mut [u8], last: bool) -> Progress;
}

impl Decoder for XzStream {
    fn decode(&mut self, input: &[u8], output: &mut [u8], last: bool) -> Progress {
        let (consumed, produced) = (self.total_in(), self.total_out());
        let action = if last { Action::Finish } else { Action::Run };
        let result = self.process(&input[..input.len().min(XZ_INPUT)], output, action);
        Progress {
            consumed: (self.total_in() - consumed) as usize,
            produced: (self.total_out() - produced) as usize,
            result: match result {
                Ok(result) => Ok(result.status == Status::StreamEnd),
                Err(error) => Err(io::Error::new(error.kind(), format!("invalid xz data: {error}"))),
            },
        }
    }
}

/// A bzip2 file of one or more members.
#[derive(Default)]
struct Bzip2 {
    /// `None` before the first octet of a member.
    member: Option<bzip2::Decompress>,
}

impl Decoder for Bzip2 {
    fn decode(&mut self, input: &[u8], output: &mut [u8], last: bool) -> Progress {
        if self.member.is_none() && input.is_empty() {
            return Progress { consumed: 0, produced: 0, result: Ok(last) };
        }
        let member = self.member.get_or_insert_with(|| bzip2::Decompress::new(false));
        let (consumed, produced) = (member.total_in(), member.total_out());
        let result = member.decompress(input, output);
        let (consumed, produced) = (member.total_in() - consumed, member.total_out() - produced);
        let is_stuck = last && input.is_empty() && produced == 0;
        let result = match result {
            Ok(bzip2::Status::StreamEnd) => {
                self.member = None;
                Ok(false)
            }
            Ok(_) if is_stuck => Err(io::Error::new(io::ErrorKind::UnexpectedEof, "the bzip2 stream is incomplete")),
            Ok(_) => Ok(false),
            Err(error) => Err(io::Error::new(io::ErrorKind::InvalidData, error)),
        };
        Progress { consumed: consumed as usize, produced: produced as usize, result }
    }
}

/// Reads decompressed octets: first all octets that a [`Decoder`] could decode, and then the error
/// of the [`Decoder`].
struct Decompressed<D> {
    reader: Box<dyn Read + Send>,
    decoder: D,
    /// The compressed octets that were read. The octets from `start` on are not decoded yet.
    input: Vec<u8>,
    start: usize,
    at_end: bool,
    is_finished: bool,
    failed: Option<io::Error>,
}

impl<D: Decoder> Decompressed<D> {
    fn new(reader: Box<dyn Read + Send>, decoder: D) -> Self {
        let input = Vec::with_capacity(CHUNK);
        Decompressed { reader, decoder, input, start: 0, at_end: false, is_finished: false, failed: None }
    }

    /// Reads more compressed octets. Call this only when all earlier octets are decoded.
    fn refill(&mut self) -> io::Result<()> {
        self.input.resize(CHUNK, 0);
        let read = self.reader.read(&mut self.input);
        self.start = 0;
        self.input.truncate(*read.as_ref().unwrap_or(&0));
        self.at_end = read? == 0;
        Ok(())
    }
}

impl<D: Decoder> Read for Decompressed<D> {
    fn read(&mut self, output: &mut [u8]) -> io::Result<usize> {
        let mut filled = 0;
        let mut was_idle = false;
        while !self.is_finished && self.failed.is_none() && filled < output.len() {
            if self.start == self.input.len() && !self.at_end {
                // The next read possibly waits for a live source. So first return the octets that
                // are already decompressed.
                if filled > 0 {
                    break;
                }
                self.refill()?;
            }
            let Progress { consumed, produced, result } =
                self.decoder.decode(&self.input[self.start..], &mut output[filled..], self.at_end);
            self.start += consumed;
            filled += produced;
            // One call without progress is possible between two members.
            let is_idle = consumed == 0 && produced == 0;
            match result {
                Ok(is_finished) => self.is_finished = is_finished,
                Err(error) => self.failed = Some(error),
            }
            if is_idle && was_idle && !self.is_finished {
                let error = || io::Error::new(io::ErrorKind::InvalidData, "the decompressor makes no progress");
                self.failed.get_or_insert_with(error);
            }
            was_idle = is_idle;
        }
        match self.failed.take_if(|_| filled == 0) {
            Some(error) => {
                self.is_finished = true;
                Err(error)
            }
            None => Ok(filled),
        }
    }
}
