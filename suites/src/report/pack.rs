//! Compressed bytes in a page: zlib (RFC 1950) in base64, which browsers unpack without libraries
//! (`DecompressionStream`).
//!
//! A pack holds many pieces, for example captures, because compression uses their similarities.
//! Packs are small enough to be unpacked without a noticeable delay.

use std::fmt;
use std::io::{self, Write};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use flate2::Compression;
use flate2::write::ZlibEncoder;

/// A pack with at least this number of bytes gets no further pieces.
const ENOUGH: usize = 1 << 20;

/// Collects pieces in packs.
pub(super) struct Packer {
    name: &'static str,
    open: Vec<u8>,
    done: Vec<Pack>,
}

/// A complete pack.
pub(super) struct Pack {
    /// Id of the pack in the page.
    pub(super) id: String,
    /// The bytes of the pack, compressed, in base64.
    pub(super) text: String,
}

/// The position of some bytes in a pack.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Piece {
    /// Id of the pack.
    pub(super) pack: String,
    /// Index of the first byte in the uncompressed pack.
    pub(super) from: usize,
    /// Index after the last byte.
    pub(super) to: usize,
}

/// Formats the piece for the script of the page: the pack, the first index, and the index after the
/// last byte.
impl fmt::Display for Piece {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} {}", self.pack, self.from, self.to)
    }
}

impl Packer {
    /// Creates packs whose ids start with `name`.
    pub(super) fn new(name: &'static str) -> Self {
        Packer { name, open: Vec::new(), done: Vec::new() }
    }

    fn id(&self) -> String {
        format!("{}-{}", self.name, self.done.len())
    }

    /// Adds bytes to a pack. Returns their position there.
    pub(super) fn put(&mut self, octets: &[u8]) -> io::Result<Piece> {
        let from = self.open.len();
        self.open.extend_from_slice(octets);
        let piece = Piece { pack: self.id(), from, to: self.open.len() };
        if self.open.len() >= ENOUGH {
            self.close()?;
        }
        Ok(piece)
    }

    /// Returns all packs.
    pub(super) fn finish(mut self) -> io::Result<Vec<Pack>> {
        if !self.open.is_empty() {
            self.close()?;
        }
        Ok(self.done)
    }

    fn close(&mut self) -> io::Result<()> {
        let mut encoder = ZlibEncoder::new(Vec::new(), Compression::best());
        encoder.write_all(&self.open)?;
        let pack = Pack { id: self.id(), text: STANDARD.encode(encoder.finish()?) };
        self.done.push(pack);
        self.open.clear();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;

    #[test]
    fn each_piece_is_found_again() {
        let mut packer = Packer::new("x");
        let large = vec![7; ENOUGH - 3];
        let pieces: Vec<Piece> =
            [&b"abc"[..], b"", &large, b"d"].map(|octets| packer.put(octets).unwrap()).into_iter().collect();
        let packs = packer.finish().unwrap();
        assert_eq!(packs.iter().map(|pack| pack.id.as_str()).collect::<Vec<_>>(), ["x-0", "x-1"]);
        let unpacked = |piece: &Piece| {
            let text = &packs.iter().find(|pack| pack.id == piece.pack).unwrap().text;
            let mut octets = Vec::new();
            let packed = STANDARD.decode(text).unwrap();
            flate2::read::ZlibDecoder::new(&packed[..]).read_to_end(&mut octets).unwrap();
            octets[piece.from..piece.to].to_vec()
        };
        assert_eq!(unpacked(&pieces[0]), b"abc");
        assert_eq!(unpacked(&pieces[1]), b"");
        assert_eq!(unpacked(&pieces[2]), large);
        assert_eq!((unpacked(&pieces[3]), pieces[3].pack.as_str()), (b"d".to_vec(), "x-1"));
    }

    #[test]
    fn an_empty_packer_makes_no_pack() {
        assert!(Packer::new("x").finish().unwrap().is_empty());
    }
}
