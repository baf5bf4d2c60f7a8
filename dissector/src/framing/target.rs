//! [`Target`] delivers units to the monitor and the sink. [`Scratch`] collects octets that are not
//! contiguous in the stream.

use std::ops::Range;

use crate::located::Placed;
use crate::parse::{Ends, Kind, Misread, Origin, StreamOrigin, Unit};
use crate::part::Part;
use crate::stream_id::StreamId;
use crate::tcp::{Arrived, Half};

/// Delivers the units of one direction. Its fields are common to all units of a call.
pub(crate) struct Target<'t> {
    /// Number of the connection.
    pub stream: StreamId,
    /// Number of the direction, 0 or 1.
    pub direction: u8,
    /// Sender and receiver.
    pub ends: &'t Ends,
    /// The TCP segment that contains the octets of the units; `None` if the stream (`half`) has
    /// stored them.
    pub arrived: Option<&'t Arrived<'t>>,
    /// Receives each unit.
    pub sink: &'t mut dyn FnMut(&Unit<'_>),
}

impl Target<'_> {
    /// Delivers a unit that starts at stream position `start`. `frame` and `time` belong to the
    /// frame that completes the unit. `incomplete` is set if octets of the unit are missing in the
    /// capture.
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

    /// Delivers a unit like [`Target::unit`], for octets that the stream may have dropped. `kept`
    /// has the locations of the first octets. `misread` is the probable error of the sender.
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

/// A buffer for octets of a unit that are not contiguous. It is reused for the next unit.
#[derive(Debug, Default)]
pub(super) struct Scratch {
    octets: Vec<u8>,
    known: Vec<u8>,
}

impl Scratch {
    /// Used memory in bytes.
    pub(super) fn memory(&self) -> usize {
        self.octets.capacity() + self.known.capacity()
    }

    /// Collects the octets at the stream positions in `ranges`, in this order. Octets that were not
    /// captured are marked as missing. A single captured range is borrowed, and not copied.
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
