//! The octets of one segment, with the stream position of these octets, before the stream stores
//! them.

use crate::frame_number::FrameNumber;
use crate::location::{Location, StreamLocation};

use super::run::Source;

/// The octets of a segment that has just arrived, as returned by
/// [`DirectionStream::arrive`](super::DirectionStream::arrive).
#[derive(Debug, Clone, Copy)]
pub(crate) struct SegmentOctets<'a> {
    octets: &'a [u8],
    source: Source,
}

impl<'a> SegmentOctets<'a> {
    /// Combines the octets with the source of the first octet.
    pub(super) fn new(octets: &'a [u8], source: Source) -> Self {
        SegmentOctets { octets, source }
    }

    /// Stream position of the first octet.
    pub(crate) fn position(&self) -> u64 {
        self.source.position
    }

    /// Number and capture time of the frame.
    pub(crate) fn frame(&self) -> (FrameNumber, u64) {
        (self.source.frame, self.source.time)
    }

    /// The captured octets from `position` on, and the source of the first returned octet. Returns
    /// `None` if there are no such octets.
    pub(super) fn after(&self, position: u64) -> Option<(&'a [u8], Source)> {
        let skip = position.saturating_sub(self.source.position);
        let octets = self.octets.get(usize::try_from(skip).ok()?..).filter(|octets| !octets.is_empty())?;
        Some((octets, self.source.after(skip)))
    }

    /// The captured octets from `position` on; empty if there are no such octets.
    #[inline]
    pub(crate) fn from(&self, position: u64) -> &'a [u8] {
        self.after(position).map_or(&[], |(octets, _)| octets)
    }

    /// The octets at positions `start..end`; `None` if the segment does not have all these octets.
    pub(crate) fn octets(&self, start: u64, end: u64) -> Option<&'a [u8]> {
        let at = |position: u64| usize::try_from(position.checked_sub(self.source.position)?).ok();
        self.octets.get(at(start)?..at(end)?)
    }

    /// Location in the capture of those octets at positions `start..end` that are in the segment.
    pub(crate) fn locate(&self, start: u64, end: u64) -> Option<StreamLocation> {
        let (octets, source) = self.after(start)?;
        let len = end.saturating_sub(source.position).min(octets.len() as u64);
        let location = Location { frame: source.frame, offset: source.offset, len };
        (len > 0).then_some(StreamLocation { at: source.position, location })
    }
}
