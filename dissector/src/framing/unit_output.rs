//! [`UnitOutput`] delivers units to the monitor and the sink. [`Scratch`] collects octets that are
//! not contiguous in the stream.

use std::ops::Range;

use crate::frame_number::FrameNumber;
use crate::location::StreamLocation;
use crate::parse::{Endpoints, Kind, Origin, SenderError, StreamOrigin, Unit};
use crate::part::Part;
use crate::stream_id::StreamId;
use crate::tcp::{DirectionStream, SegmentOctets};

/// Delivers the units of one direction. The values in the fields apply to all units that one call
/// of the reader delivers.
pub(crate) struct UnitOutput<'t> {
    /// Number of the connection.
    pub stream: StreamId,
    /// Number of the direction, 0 or 1.
    pub direction: u8,
    /// Sender and receiver.
    pub ends: &'t Endpoints,
    /// The TCP segment that contains the octets of the units; `None` if the octets are already
    /// stored in the [`DirectionStream`].
    pub arrived: Option<&'t SegmentOctets<'t>>,
    /// Receives each unit.
    pub sink: &'t mut dyn FnMut(&Unit<'_>),
}

impl UnitOutput<'_> {
    /// Delivers a unit that starts at stream position `start`. `frame` and `time` belong to the
    /// frame that completes the unit. `incomplete` is set if octets of the unit are missing in the
    /// capture.
    #[inline]
    pub(super) fn unit(
        &mut self,
        half: &DirectionStream,
        start: u64,
        (frame, time): (FrameNumber, u64),
        incomplete: bool,
        kind: Kind<'_>,
    ) {
        self.deliver_with_locations(half, (start, &[]), (frame, time), incomplete, kind, None);
    }

    /// Delivers a unit like [`UnitOutput::unit`]. Use this method if it is possible that the stream
    /// has already dropped the octets of the unit. `kept` has the locations of the first octets.
    /// `sender_error` is the probable error of the sender.
    #[inline]
    pub(super) fn deliver_with_locations(
        &mut self,
        half: &DirectionStream,
        (start, kept): (u64, &[StreamLocation]),
        (frame, time): (FrameNumber, u64),
        incomplete: bool,
        kind: Kind<'_>,
        sender_error: Option<SenderError>,
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
            sender_error,
        });
    }
}

/// A buffer for the octets of a unit that are not contiguous in the stream. The next unit reuses
/// the buffer.
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
    /// captured are marked as missing. If there is only one range, and it was captured, its octets
    /// are borrowed and not copied.
    pub(super) fn part<'a>(
        &'a mut self,
        half: &'a DirectionStream,
        mut ranges: impl Iterator<Item = Range<u64>>,
    ) -> Part<'a> {
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
            for span in half.spans(range.start, range.end) {
                let captured = if span.captured { half.octets(span.start, span.end) } else { Ok(None) };
                let len = self.octets.len() + usize::try_from(span.end - span.start).unwrap_or(0);
                if let Ok(Some(octets)) = captured {
                    self.octets.extend_from_slice(octets);
                }
                self.octets.resize(len, 0);
                self.known.resize(len, u8::from(span.captured));
            }
        }
        Part::with_known(&self.octets, &self.known)
    }
}
