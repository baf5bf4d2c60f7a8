//! The corrupted bytes that a side receives, until the unit with each byte is known.

use std::collections::{BTreeMap, HashMap};
use std::net::SocketAddr;

use weft_dissector::{FrameNumber, Location, Packet, StreamId, TransportKind};

use super::received::ReceivedBytes;
use super::{CorruptedUnit, Corruption, Flow, MAX_CONNECTIONS};
use crate::bridge::FaultInFrame;
use crate::frame::TcpFrame;

/// Maximum number of corrupted bytes that wait for their unit. If there are more, the oldest one
/// counts as a byte in no unit.
const MAX_WATCHED: usize = 4096;

/// The location of a byte: the frame, and the offset in the frame.
type BytePlace = (FrameNumber, u32);

/// A corrupted byte whose unit is not known yet.
#[derive(Debug)]
struct WatchedByte {
    fault: u32,
    /// Offset in the payload of the segment.
    at: u32,
    /// Whether the receiver already had the byte.
    is_repeated: bool,
}

impl WatchedByte {
    /// The result if no unit contains the byte.
    fn outside(self, frame: FrameNumber) -> Corruption {
        let unit = if self.is_repeated { CorruptedUnit::Repeated } else { CorruptedUnit::Other };
        Corruption { fault: self.fault, frame, flow: None, unit }
    }
}

/// The corrupted bytes, and the bytes that have arrived.
#[derive(Debug, Default)]
pub(super) struct WatchedBytes {
    waiting: BTreeMap<BytePlace, WatchedByte>,
    /// The bytes of each sender that have arrived, by connection.
    received: HashMap<(StreamId, SocketAddr), ReceivedBytes>,
    found: Vec<Corruption>,
}

impl WatchedBytes {
    /// Whether no byte waits for its unit.
    pub(super) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Watches the byte of `octets` that the fault changed, if it changed a byte. `frame` is the
    /// number of the frame `octets`. Call this before the dissector reads the frame.
    pub(super) fn watch(&mut self, frame: FrameNumber, octets: &[u8], fault: FaultInFrame) {
        let Some(offset) = fault.offset else { return };
        if self.waiting.len() >= MAX_WATCHED
            && let Some(((frame, _), oldest)) = self.waiting.pop_first()
        {
            self.found.push(oldest.outside(frame));
        }
        let payload = TcpFrame::find(octets).map_or(0, |tcp| tcp.payload.start);
        let [place, at] = [offset, offset.saturating_sub(payload)].map(|at| u32::try_from(at).unwrap_or(u32::MAX));
        self.waiting.insert((frame, place), WatchedByte { fault: fault.number, at, is_repeated: false });
    }

    /// Records a TCP segment, and whether its corrupted bytes have arrived before. Call this before
    /// [`unit_at`](Self::unit_at) for the units that the segment completes.
    pub(super) fn packet(&mut self, packet: &Packet) {
        let TransportKind::Tcp { stream, seq, syn, rst: false, .. } = packet.transport else { return };
        let key = (stream, packet.src);
        if self.received.len() >= 2 * MAX_CONNECTIONS && !self.received.contains_key(&key) {
            return;
        }
        let received = self.received.entry(key).or_default();
        // A SYN has a sequence number of its own (RFC 9293 section 3.4).
        let first = seq.wrapping_add(u32::from(syn));
        for (_, watched) in self.waiting.range_mut((packet.frame, 0)..=(packet.frame, u32::MAX)) {
            watched.is_repeated = received.contains(first.wrapping_add(watched.at));
        }
        received.add(first, packet.payload_len);
    }

    /// Records the unit of the watched bytes at this location.
    pub(super) fn unit_at(&mut self, location: &Location, flow: Option<Flow>, unit: CorruptedUnit) {
        let (frame, Some(start)) = (location.frame, location.offset) else { return };
        let end = start.saturating_add(u32::try_from(location.len).unwrap_or(u32::MAX));
        while let Some((place, watched)) = self.waiting.range((frame, start)..(frame, end)).next() {
            let (place, fault) = (*place, watched.fault);
            self.waiting.remove(&place);
            self.found.push(Corruption { fault, frame, flow, unit });
        }
    }

    /// Returns the unit of each corrupted byte.
    pub(super) fn finish(self) -> Vec<Corruption> {
        let WatchedBytes { waiting, mut found, .. } = self;
        found.extend(waiting.into_iter().map(|((frame, _), watched)| watched.outside(frame)));
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::side::Side;
    use crate::tap::Tap;
    use crate::testing::segment;

    /// Records segments of side A at the tap of side B: the sequence number, and whether byte 3 of
    /// the 10 payload bytes is corrupted. Returns for each fault the unit of the corrupted byte.
    fn recorded(segments: &[(u32, bool)]) -> Vec<(u32, CorruptedUnit)> {
        let mut tap = Tap::new(Side::B, "b", None::<Vec<u8>>).unwrap();
        let mut faults = 0;
        for (time, (seq, is_corrupted)) in (0..).zip(segments) {
            let octets = segment(*seq, &[7; 10]);
            let offset = TcpFrame::find(&octets).unwrap().payload.start + 3;
            faults += u32::from(*is_corrupted);
            let fault = FaultInFrame { number: faults, offset: Some(offset) };
            let in_frame: Vec<FaultInFrame> = is_corrupted.then_some(fault).into_iter().collect();
            tap.record(time, Side::A, &octets, &in_frame, &[]).unwrap();
        }
        let corruptions = tap.finish().unwrap().corruptions;
        corruptions.iter().map(|corruption| (corruption.fault, corruption.unit)).collect()
    }

    #[test]
    fn a_corrupted_byte_that_has_arrived_before_is_repeated() {
        use CorruptedUnit::{Other, Repeated};
        assert_eq!(recorded(&[(100, false), (100, true), (110, true)]), [(1, Repeated), (2, Other)]);
        // Bytes 110 to 119 are missing when byte 123 arrives for the second time.
        assert_eq!(recorded(&[(100, false), (120, false), (120, true), (110, true)]), [(1, Repeated), (2, Other)]);
        // Only the second of these bytes has arrived before.
        assert_eq!(recorded(&[(100, false), (108, true), (105, true)]), [(1, Other), (2, Repeated)]);
    }

    #[test]
    fn the_newest_corrupted_bytes_are_watched() {
        let count = u32::try_from(MAX_WATCHED).unwrap() + 10;
        let segments: Vec<(u32, bool)> = (0..count).map(|index| (index * 10, true)).collect();
        let numbers: Vec<u32> = recorded(&segments).iter().map(|(fault, _)| *fault).collect();
        assert_eq!(numbers, (1..=count).collect::<Vec<u32>>());
    }
}
