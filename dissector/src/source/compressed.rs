//! Compressed capture files: gzip, zstd, xz, bzip2 and lz4, by their first bytes.

use std::io::{self, Read};

/// A compression, recognised by its magic number.
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

/// Memory limit of an xz file, in KiB: files of `xz -9` need 65 MiB to decompress.
const MOST_XZ_KIB: u32 = 128 << 10;

impl Compression {
    /// Several compressed files one after the other are read as one, as the command-line tools do.
    pub(super) fn decompress(self, reader: Box<dyn Read + Send>) -> io::Result<Box<dyn Read + Send>> {
        Ok(match self {
            Compression::Gzip => Box::new(flate2::read::MultiGzDecoder::new(reader)),
            Compression::Zstd => Box::new(zstd::stream::read::Decoder::new(reader)?),
            Compression::Xz => Box::new(lzma_rust2::XzReader::new_mem_limit(reader, true, MOST_XZ_KIB)),
            Compression::Bzip2 => Box::new(bzip2::read::MultiBzDecoder::new(reader)),
            Compression::Lz4 => Box::new(lz4_flex::frame::FrameDecoder::new(reader)),
        })
    }
}
