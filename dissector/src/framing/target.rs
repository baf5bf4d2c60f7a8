//! The receiver of units, and the buffer for octets that are not in one piece.

use std::ops::Range;

use crate::located::Placed;
use crate::parse::{Ends, Kind, Misread, Origin, StreamOrigin, Unit};
use crate::part::Part;
use crate::stream_id::StreamId;
use crate::tcp::{Arrived, Half};

/// The receiver of the units of a direction.
pub(crate) struct Target<'t> {
    /// Number of the connection.
    pub stream: StreamId,
    /// 0 or 1.
    pub direction: u8,
    /// Sender and receiver.
    pub ends: &'t Ends,
    /// The segment that holds the octets of the units, unless the stream itself does.
    pub arrived: Option<&'t Arrived<'t>>,
    /// Called with each unit.
    pub sink: &'t mut dyn FnMut(&Unit<'_>),
}

impl Target<'_> {
    #[inline]
    pub(super) fn unit(
        &mut self,
        half: &Half,
        start: u64,
        (frame, time): (u64, u64),
        incomplete: bool,
        kind: Kind<'_>,
    ) {
        self.kept(half, (start, &[]), (frame, time), incomplete, kind, None);
    }

    /// The same for octets that the stream may no longer keep; takes the location of the first
    /// ones.
    #[inline]
    pub(super) fn kept(
        &mut self,
        half: &Half,
        (start, kept): (u64, &[Placed]),
        (frame, time): (u64, u64),
        incomplete: bool,
        kind: Kind<'_>,
        misread: Option<Misread>,
    ) {
        (self.sink)(&Unit {
            stream: Some(self.stream),
            direction: self.direction,
            ends: self.ends,
            frame,
            time,
            incomplete,
            kind,
            origin: Origin::Stream(StreamOrigin { half, arrived: self.arrived, start, kept }),
            misread,
        });
    }
}

/// A buffer for octets that are not in one piece; kept from unit to unit.
#[derive(Debug, Default)]
pub(super) struct Scratch {
    octets: Vec<u8>,
    known: Vec<u8>,
}

impl Scratch {
    /// Octets of memory in use.
    pub(super) fn memory(&self) -> usize {
        self.octets.capacity() + self.known.capacity()
    }

    /// The octets of `ranges` as one part.
    pub(super) fn part<'a>(&'a mut self, half: &'a Half, mut ranges: impl Iterator<Item = Range<u64>>) -> Part<'a> {
        let first = ranges.next().unwrap_or(0..0);
        let second = ranges.next();
        if second.is_none()
            && let Ok(Some(octets)) = half.octets(first.start, first.end)
        {
            return Part::complete(octets);
        }
        self.octets.clear();
        self.known.clear();
        for range in std::iter::once(first).chain(second).chain(ranges) {
            for stretch in half.stretches(range.start, range.end) {
                let captured = if stretch.captured { half.octets(stretch.start, stretch.end) } else { Ok(None) };
                let len = self.octets.len() + usize::try_from(stretch.end - stretch.start).unwrap_or(0);
                if let Ok(Some(octets)) = captured {
                    self.octets.extend_from_slice(octets);
                }
                self.octets.resize(len, 0);
                self.known.resize(len, u8::from(stretch.captured));
            }
        }
        Part::with_known(&self.octets, &self.known)
    }
}
