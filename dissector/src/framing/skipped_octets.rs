//! [`SkippedOctets`] stores octets outside start-up frames and FPDUs until their unit is delivered.

use super::unit_output::UnitOutput;
use crate::frame_number::FrameNumber;
use crate::location::StreamLocation;
use crate::parse::{Kind, STREAMING_HEAD, SenderError};
use crate::tcp::DirectionStream;

/// A range of octets. Either all octets in the range were captured, or none of these octets.
#[derive(Debug, Clone, Copy)]
struct Piece {
    start: u64,
    end: u64,
    captured: bool,
    /// Number and capture time of the latest frame with octets of the range.
    latest: (FrameNumber, u64),
    /// Number and capture time of the frame with the first octet.
    first: (FrameNumber, u64),
}

/// Maximum number of pieces. If a capture has very many gaps and the limit is reached, further
/// octets extend the last piece.
const MAX_PIECES: usize = 4096;

/// The octets that were skipped since the last unit.
#[derive(Debug, Default)]
pub(super) struct SkippedOctets {
    pieces: Vec<Piece>,
    hasher: crc32fast::Hasher,
    head: Vec<u8>,
    /// Locations of the octets in `head`. Their positions count from the first skipped octet.
    locations: Vec<StreamLocation>,
    /// The probable error of the sender at the first octets.
    sender_error: Option<SenderError>,
}

impl SkippedOctets {
    /// Adds the octets at positions `start..end`, before `half` drops them.
    pub(super) fn absorb(&mut self, half: &DirectionStream, start: u64, end: u64) {
        for span in half.spans(start, end) {
            let latest = half.frame_of(span.start, span.end);
            if span.captured
                && let Ok(Some(octets)) = half.octets(span.start, span.end)
            {
                self.hasher.update(octets);
                let room = STREAMING_HEAD - self.head.len();
                let taken = octets.len().min(room);
                self.head.extend_from_slice(&octets[..taken]);
                let first = self.pieces.first().map_or(span.start, |first| first.start);
                let locations = half.locate(span.start, span.start + taken as u64);
                self.locations.extend(locations.map(|location| StreamLocation { at: location.at - first, ..location }));
            }
            let full = self.pieces.len() >= MAX_PIECES;
            match self.pieces.last_mut() {
                Some(last) if last.captured == span.captured || full => {
                    last.end = span.end;
                    last.latest = last.latest.max(latest);
                }
                _ => self.pieces.push(Piece {
                    start: span.start,
                    end: span.end,
                    captured: span.captured,
                    latest,
                    first: half.frame_of(span.start, span.start + 1),
                }),
            }
        }
    }

    /// Sets the probable error of the sender at the next octets.
    pub(super) fn explain(&mut self, sender_error: Option<SenderError>) {
        self.sender_error = sender_error;
    }

    /// Used memory in bytes.
    pub(super) fn memory(&self) -> usize {
        let locations = self.locations.capacity() * size_of::<StreamLocation>();
        self.pieces.capacity() * size_of::<Piece>() + self.head.capacity() + locations
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
    pub(super) fn deliver_streaming(&mut self, half: &DirectionStream, out: &mut UnitOutput<'_>) {
        let gap = self.pieces.pop_if(|last| !last.captured && half.is_hole_before_fin(last.end));
        if let (Some(first), Some(last)) = (self.pieces.first(), self.pieces.last()) {
            let missing = self.pieces.iter().any(|piece| !piece.captured);
            let latest = self.pieces.iter().map(|p| p.latest).max().unwrap_or_default();
            let crc32 = (!missing).then(|| self.hasher.clone().finalize());
            let kind = Kind::Streaming { len: last.end - first.start, crc32, head: &self.head };
            out.deliver_with_locations(half, (first.start, &self.locations), latest, missing, kind, None);
        }
        if let Some(Piece { start, end, .. }) = gap {
            out.unit(half, start, half.frame_after(end), false, Kind::Gap { len: end - start });
        }
        self.clear();
    }

    /// Delivers captured octets as [`Kind::Unparsed`] and missing octets as [`Kind::Gap`].
    pub(super) fn deliver_unread(&mut self, half: &DirectionStream, out: &mut UnitOutput<'_>) {
        let mut sender_error = self.sender_error.take();
        for (index, piece) in self.pieces.iter().enumerate() {
            let len = piece.end - piece.start;
            if piece.captured {
                let kind = Kind::Unparsed { len };
                let locations: &[StreamLocation] = if index == 0 { &self.locations } else { &[] };
                out.deliver_with_locations(
                    half,
                    (piece.start, locations),
                    piece.latest,
                    false,
                    kind,
                    sender_error.take(),
                );
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
        self.locations.clear();
        self.sender_error = None;
    }
}
