//! [`Passed`]: octets outside start-up frames and FPDUs, until their unit is delivered.

use super::target::Target;
use crate::located::Placed;
use crate::parse::{Kind, Misread, STREAMING_HEAD};
use crate::tcp::Half;

/// A range of octets. Either all octets in the range were captured, or none of them.
#[derive(Debug, Clone, Copy)]
struct Piece {
    start: u64,
    end: u64,
    captured: bool,
    /// Number and capture time of the latest frame with octets of the range.
    latest: (u64, u64),
    /// Number and capture time of the frame with the first octet.
    first: (u64, u64),
}

/// Maximum number of pieces, for captures with very many gaps. Further octets extend the last
/// piece.
const MOST_PIECES: usize = 4096;

/// The octets that were skipped since the last unit.
#[derive(Debug, Default)]
pub(super) struct Passed {
    pieces: Vec<Piece>,
    hasher: crc32fast::Hasher,
    head: Vec<u8>,
    /// Locations of the octets of `head`, counted from the first skipped octet.
    placed: Vec<Placed>,
    /// The probable error of the sender at the first octets.
    misread: Option<Misread>,
}

impl Passed {
    /// Adds the octets at positions `start..end`, before `half` drops them.
    pub(super) fn absorb(&mut self, half: &Half, start: u64, end: u64) {
        for stretch in half.stretches(start, end) {
            let latest = half.frame_of(stretch.start, stretch.end);
            if stretch.captured
                && let Ok(Some(octets)) = half.octets(stretch.start, stretch.end)
            {
                self.hasher.update(octets);
                let room = STREAMING_HEAD - self.head.len();
                let taken = octets.len().min(room);
                self.head.extend_from_slice(&octets[..taken]);
                let first = self.pieces.first().map_or(stretch.start, |first| first.start);
                let located = half.locate(stretch.start, stretch.start + taken as u64);
                self.placed.extend(located.map(|placed| Placed { at: placed.at - first, ..placed }));
            }
            let full = self.pieces.len() >= MOST_PIECES;
            match self.pieces.last_mut() {
                Some(last) if last.captured == stretch.captured || full => {
                    last.end = stretch.end;
                    last.latest = last.latest.max(latest);
                }
                _ => self.pieces.push(Piece {
                    start: stretch.start,
                    end: stretch.end,
                    captured: stretch.captured,
                    latest,
                    first: half.frame_of(stretch.start, stretch.start + 1),
                }),
            }
        }
    }

    /// Sets the probable error of the sender at the next octets.
    pub(super) fn explain(&mut self, misread: Option<Misread>) {
        self.misread = misread;
    }

    /// Used memory in bytes.
    pub(super) fn memory(&self) -> usize {
        let placed = self.placed.capacity() * size_of::<Placed>();
        self.pieces.capacity() * size_of::<Piece>() + self.head.capacity() + placed
    }

    /// Returns whether some of the octets were not captured.
    pub(super) fn has_hole(&self) -> bool {
        self.pieces.iter().any(|piece| !piece.captured)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.pieces.is_empty()
    }

    /// Delivers all octets as one streaming unit. Missing octets directly before a FIN become a
    /// gap.
    pub(super) fn streaming(&mut self, half: &Half, out: &mut Target<'_>) {
        let gap = self.pieces.pop_if(|last| !last.captured && half.is_hole_before_fin(last.end));
        if let (Some(first), Some(last)) = (self.pieces.first(), self.pieces.last()) {
            let missing = self.pieces.iter().any(|piece| !piece.captured);
            let latest = self.pieces.iter().map(|p| p.latest).max().unwrap_or_default();
            let crc32 = (!missing).then(|| self.hasher.clone().finalize());
            let kind = Kind::Streaming { len: last.end - first.start, crc32, head: &self.head };
            out.kept(half, (first.start, &self.placed), latest, missing, kind, None);
        }
        if let Some(Piece { start, end, .. }) = gap {
            out.unit(half, start, half.frame_after(end), false, Kind::Gap { len: end - start });
        }
        self.clear();
    }

    /// Delivers captured octets as [`Kind::Unparsed`] and missing octets as [`Kind::Gap`].
    pub(super) fn unread(&mut self, half: &Half, out: &mut Target<'_>) {
        let mut misread = self.misread.take();
        for (index, piece) in self.pieces.iter().enumerate() {
            let len = piece.end - piece.start;
            if piece.captured {
                let kind = Kind::Unparsed { len };
                let placed: &[Placed] = if index == 0 { &self.placed } else { &[] };
                out.kept(half, (piece.start, placed), piece.latest, false, kind, misread.take());
            } else {
                let after = half.frame_after(piece.end);
                let next = self.pieces.iter().find(|p| p.start == piece.end).map_or(after, |p| p.first);
                out.unit(half, piece.start, next, false, Kind::Gap { len });
            }
        }
        self.clear();
    }

    fn clear(&mut self) {
        self.pieces.clear();
        self.hasher.reset();
        self.head.clear();
        self.placed.clear();
        self.misread = None;
    }
}
