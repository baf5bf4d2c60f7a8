//! Evidence from the wire: captured frames that replace the frames made from the tester's own
//! record.
//!
//! Only captured frames show where segments begin, and which endpoint sent which FIN or reset. The
//! captured frames replace the synthetic frames only if they are complete. They are complete if
//! each direction has all bytes of the tester's record, or the reset that ended the direction.
//! Otherwise the case keeps the synthetic frames, and its evidence states the reason.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::net::SocketAddr;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;
use weft_capture::{Next, OpenError, Settings};
use weft_dissector::link_type::ETHERNET;
use weft_peer::driver::{Direction, EventContent, TrafficEvent};

use super::sequence::TcpSegment;
use super::{Frame, Frames, Source};

/// Maximum size of the frames of one case in bytes.
const MAX_BUFFERED: usize = 64 << 20;
/// The time for which the kernel may delay a frame.
const BATCH: Duration = Duration::from_millis(5);

/// A capture on an interface during a run.
pub(crate) struct Wire {
    buffer: Arc<CaptureBuffer>,
}

#[derive(Default)]
struct CaptureBuffer {
    segments: Mutex<VecDeque<Segment>>,
    /// Notifies that frames have arrived, or that the capture has ended.
    changed: Notify,
    has_ended: AtomicBool,
}

/// A frame with a TCP segment.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Segment {
    /// Nanoseconds since 1970.
    time: u64,
    frame: Vec<u8>,
    from: SocketAddr,
    to: SocketAddr,
    seq: u32,
    len: u32,
    syn: bool,
    fin: bool,
    rst: bool,
}

impl CaptureBuffer {
    fn segments(&self) -> MutexGuard<'_, VecDeque<Segment>> {
        self.segments.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Wire {
    /// Begins to capture TCP on `interface`. The capture ends when the value is dropped.
    ///
    /// # Errors
    /// The interface cannot be opened, or its frames are not Ethernet frames.
    pub(crate) fn open(interface: &str) -> Result<Self, OpenError> {
        let settings = Settings { filter: Some("tcp".to_owned()), batch: BATCH, ..Settings::new(interface) };
        let mut live = weft_capture::Live::open(&settings)?;
        let other = |why: String| OpenError::Other { interface: interface.to_owned(), why };
        if live.link_type() != ETHERNET {
            return Err(other(format!(
                "the interface has frames of link type {}, but evidence needs Ethernet frames",
                live.link_type()
            )));
        }
        let buffer = Arc::new(CaptureBuffer::default());
        let writer = Arc::downgrade(&buffer);
        let read = move || {
            let mut buffered = 0;
            // If the run is over, its `Wire` is gone, and the loop ends.
            while let Some(buffer) = writer.upgrade() {
                match live.next_frame() {
                    Next::Packet(packet) => {
                        if let Some(segment) = segment(packet.time, packet.octets) {
                            let mut segments = buffer.segments();
                            buffered = if segments.is_empty() { 0 } else { buffered } + segment.frame.len();
                            segments.push_back(segment);
                            while buffered > MAX_BUFFERED
                                && let Some(oldest) = segments.pop_front()
                            {
                                buffered -= oldest.frame.len();
                            }
                        }
                    }
                    Next::Idle => buffer.changed.notify_one(),
                    Next::Over(why) => {
                        tracing::warn!(why, "the capture has ended");
                        buffer.has_ended.store(true, Relaxed);
                        buffer.changed.notify_one();
                        return;
                    }
                }
            }
        };
        std::thread::Builder::new()
            .name("capture".to_owned())
            .spawn(read)
            .map_err(|error| other(format!("cannot start a thread for the capture: {error}")))?;
        Ok(Wire { buffer })
    }

    /// Begins a case: discards earlier frames.
    pub(crate) fn begin(&self) {
        self.buffer.segments().clear();
    }

    /// Waits until the frames of a case's connections are complete. After `time_limit`, returns the
    /// reason why they are incomplete.
    pub(crate) async fn frames(
        &self,
        traffic: &[TrafficEvent],
        began_unix_ns: u64,
        time_limit: Duration,
    ) -> Result<Frames, String> {
        let waited = tokio::time::sleep(time_limit);
        let mut waited = std::pin::pin!(waited);
        loop {
            let why = match frames(traffic, self.buffer.segments().iter(), began_unix_ns) {
                Ok(frames) => return Ok(frames),
                Err(why) => why,
            };
            if self.buffer.has_ended.load(Relaxed) {
                return Err("the capture has ended".to_owned());
            }
            tokio::select! {
                () = self.buffer.changed.notified() => {}
                () = &mut waited => return Err(why),
            }
        }
    }
}

fn segment(time: u64, frame: &[u8]) -> Option<Segment> {
    let TcpSegment { from, to, seq, len, syn, fin, rst } = TcpSegment::parse(frame)?;
    Some(Segment { time, frame: frame.to_vec(), from, to, seq, len, syn, fin, rst })
}

/// One direction of a connection.
#[derive(Default)]
struct DirectionIndex {
    /// Sequence number of the direction's SYN.
    first: Option<u32>,
    /// Ranges of captured bytes. Each range has its begin, its end and the index of its frame.
    /// Bytes are counted from 0.
    runs: Vec<(u64, u64, usize)>,
    fin: Option<usize>,
    rst: Option<usize>,
    /// Number of the direction's bytes in the traffic log so far.
    logged: u64,
}

impl DirectionIndex {
    fn add(&mut self, segment: &Segment, frame: usize) {
        if segment.syn {
            self.first = Some(segment.seq);
        }
        if let Some(first) = self.first
            && segment.len > 0
        {
            let begin = segment.seq.wrapping_sub(first.wrapping_add(1));
            // A keep-alive probe of TCP may carry the byte before byte 0. The number of that byte
            // wraps around to a large number.
            if begin < 1 << 31 {
                self.runs.push((u64::from(begin), u64::from(begin) + u64::from(segment.len), frame));
            }
        }
        if segment.fin {
            self.fin.get_or_insert(frame);
        }
        if segment.rst {
            self.rst.get_or_insert(frame);
        }
    }

    /// Returns the number of bytes before the first gap.
    fn contiguous(&self) -> u64 {
        let mut runs: Vec<(u64, u64)> = self.runs.iter().map(|(begin, end, _)| (*begin, *end)).collect();
        runs.sort_unstable();
        runs.into_iter().fold(0, |last, (begin, end)| if begin <= last { last.max(end) } else { last })
    }
}

/// Finds the frames of a direction's bytes. A target can send each byte in its own segment, and
/// each segment several times. So no search looks at all runs.
struct FrameSearch {
    /// The runs, in the order of their begins.
    runs: Vec<(u64, u64, usize)>,
    /// Number of runs that begin at or before the last byte that was searched.
    begun: usize,
    /// The frames of these runs, the first frame at the top, with the ends of the runs. Runs that
    /// end before this byte are removed when they are at the top.
    frames: BinaryHeap<Reverse<(usize, u64)>>,
}

impl FrameSearch {
    fn new(mut runs: Vec<(u64, u64, usize)>) -> Self {
        runs.sort_unstable();
        FrameSearch { runs, begun: 0, frames: BinaryHeap::new() }
    }

    /// Returns the first frame that has this byte, and the end of its bytes. No later search may be
    /// for an earlier byte.
    fn first_with(&mut self, octet: u64) -> Option<(usize, u64)> {
        while let Some(&(begin, end, frame)) = self.runs.get(self.begun)
            && begin <= octet
        {
            self.frames.push(Reverse((frame, end)));
            self.begun += 1;
        }
        while let Some(&Reverse((frame, end))) = self.frames.peek() {
            if octet < end {
                return Some((frame, end));
            }
            self.frames.pop();
        }
        None
    }

    /// Returns the first frame that has the first of these bytes, and a frame that has the last of
    /// them. No later search may be for earlier bytes.
    fn frames_of(&mut self, octets: &Range<u64>) -> (Option<usize>, Option<usize>) {
        let first = self.first_with(octets.start);
        let last_octet = octets.end.saturating_sub(1).max(octets.start);
        // If the segments are out of order, the frame of the last byte may be earlier.
        let last = first.filter(|(_, end)| last_octet < *end).or_else(|| self.first_with(last_octet));
        (first.map(|(frame, _)| frame), last.map(|(frame, _)| frame))
    }
}

/// Returns the frames of the traffic log's connections, or the reason why they are incomplete.
fn frames<'s>(
    traffic: &[TrafficEvent],
    segments: impl Iterator<Item = &'s Segment>,
    began_unix_ns: u64,
) -> Result<Frames, String> {
    let is_datagram = |event: &TrafficEvent| match &event.content {
        EventContent::Datagram { .. } => true,
        EventContent::Dropped(dropped) => dropped.datagrams,
        _ => false,
    };
    if traffic.iter().any(is_datagram) {
        return Err("the case has datagrams, but weft captures only TCP".to_owned());
    }
    let plain = |address: SocketAddr| SocketAddr::new(address.ip().to_canonical(), address.port());
    let connected = traffic.iter().filter_map(|event| match event.content {
        EventContent::Connected { tester, target } => Some((event.connection, plain(tester), plain(target))),
        _ => None,
    });
    let connections: Vec<(u32, SocketAddr, SocketAddr)> = connected.collect();
    let mut directions: Vec<[DirectionIndex; 2]> =
        connections.iter().map(|_| <[DirectionIndex; 2]>::default()).collect();
    // This function runs at each pause of the capture. So it copies frames only when all frames
    // have arrived.
    let mut list: Vec<(&Segment, bool)> = Vec::new();
    let mut order: Vec<usize> = Vec::new();
    // The first frame of each connection, in the order of `order`.
    let mut begun: Vec<usize> = Vec::new();
    for segment in segments {
        let ends = connections.iter().position(|(_, tester, target)| {
            (segment.from, segment.to) == (*tester, *target) || (segment.from, segment.to) == (*target, *tester)
        });
        let Some(index) = ends else { continue };
        let from_tester = segment.from == connections[index].1;
        if !order.contains(&index) {
            order.push(index);
            begun.push(list.len());
        }
        directions[index][usize::from(!from_tester)].add(segment, list.len());
        list.push((segment, from_tester));
    }
    // The monitor numbers connections by their first frames, and its findings have these numbers.
    // So the capture must show the connections in the order of the traffic log.
    if order.len() != connections.len() || !order.is_sorted() {
        return Err(
            "the capture lacks a connection's start, or shows connections in another order than the tester".to_owned()
        );
    }
    let captured: Vec<[u64; 2]> =
        directions.iter().map(|directions| directions.each_ref().map(DirectionIndex::contiguous)).collect();
    // The position of each event is its bytes, or the frame of a FIN or reset. If this loop
    // finds a gap, it returns an error, and the search for the frame of each byte does not start.
    let mut positions = Vec::with_capacity(traffic.len());
    for event in traffic {
        let Some(index) = connections.iter().position(|(number, ..)| *number == event.connection) else {
            positions.push(EventPosition::Nowhere);
            continue;
        };
        let side = usize::from(event.direction == Direction::FromTarget);
        let other_reset = directions[index][1 - side].rst;
        let direction = &mut directions[index][side];
        let of_end = |frame: Option<usize>| match frame.or(other_reset) {
            // The tester's last packet may never have left the tester. A packet that the tester
            // received was on the wire, so a complete capture has it.
            None if side == 1 => Err(format!("the capture lacks the end of connection {}", event.connection + 1)),
            Some(frame) => Ok(EventPosition::Frame(frame)),
            None => Ok(EventPosition::Nowhere),
        };
        positions.push(match &event.content {
            EventContent::Connected { .. } => EventPosition::Frame(begun[index]),
            EventContent::Datagram { .. } => EventPosition::Nowhere,
            EventContent::Octets(_) | EventContent::Dropped(_) => {
                let begin = direction.logged;
                direction.logged += match &event.content {
                    EventContent::Octets(octets) => octets.len() as u64,
                    EventContent::Dropped(dropped) => dropped.octets,
                    _ => 0,
                };
                if captured[index][side] < direction.logged
                    && (side == 1 || (direction.rst.is_none() && other_reset.is_none()))
                {
                    return Err(format!("the capture lacks bytes of connection {}", event.connection + 1));
                }
                EventPosition::Octets { index, side, range: begin..direction.logged }
            }
            EventContent::Fin => of_end(direction.fin.or(direction.rst))?,
            EventContent::Reset => of_end(direction.rst.or(direction.fin))?,
        });
    }
    let mut searches: Vec<[FrameSearch; 2]> =
        directions.into_iter().map(|pair| pair.map(|direction| FrameSearch::new(direction.runs))).collect();
    let places = positions.iter().map(|position| match position {
        EventPosition::Nowhere => (None, None),
        EventPosition::Frame(frame) => (Some(*frame), Some(*frame)),
        EventPosition::Octets { index, side, range } => searches[*index][*side].frames_of(range),
    });
    let (anchors, ends) = places.unzip();
    let frame = |(segment, from_tester): &(&Segment, bool)| Frame {
        at_ns: segment.time.saturating_sub(began_unix_ns),
        from_tester: *from_tester,
        octets: segment.frame.clone(),
        event: 0,
    };
    Ok(Frames { list: list.iter().map(frame).collect(), anchors, ends, source: Source::Wire })
}

/// The position of an event of the traffic log in a capture.
enum EventPosition {
    Nowhere,
    Frame(usize),
    /// The frames with these bytes of a direction.
    Octets {
        index: usize,
        side: usize,
        range: Range<u64>,
    },
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::evidence::synthesize_frames;
    use weft_peer::Instant;
    use weft_peer::driver::DroppedOctets;

    fn address(last: u8, port: u16) -> SocketAddr {
        SocketAddr::from(([192, 0, 2, last], port))
    }

    fn traffic(contents: &[(Direction, EventContent)]) -> Vec<TrafficEvent> {
        let connected = EventContent::Connected { tester: address(2, 50_000), target: address(1, 7174) };
        let contents = [(Direction::ToTarget, connected)].into_iter().chain(contents.iter().cloned());
        contents
            .map(|(direction, content)| TrafficEvent { at: Instant::from_nanos(5), connection: 0, direction, content })
            .collect()
    }

    fn octets(len: usize) -> EventContent {
        EventContent::Octets(vec![7; len].into())
    }

    /// The segments of a traffic log, as a capture would have them.
    fn captured(traffic: &[TrafficEvent]) -> Vec<Segment> {
        synthesize_frames(traffic)
            .list
            .iter()
            .map(|frame| segment(1_000 + frame.at_ns, &frame.octets).unwrap())
            .collect()
    }

    #[test]
    fn events_are_at_their_captured_frames() {
        use Direction::{FromTarget, ToTarget};
        // One read returned the bytes of two segments. Two writes were sent in one segment.
        let known = traffic(&[
            (ToTarget, octets(20)),
            (ToTarget, octets(10)),
            (FromTarget, octets(2000)),
            (FromTarget, EventContent::Fin),
            (ToTarget, EventContent::Reset),
        ]);
        let was = traffic(&[
            (ToTarget, octets(30)),
            (FromTarget, octets(2000)),
            (FromTarget, EventContent::Fin),
            (ToTarget, EventContent::Reset),
        ]);
        // Frames 0 to 2 are the handshake, and frame 3 has both writes. Frames 4 and 5 are segments
        // of the target. Frame 6 is the FIN, frame 7 acknowledges the FIN, and frame 8 is the
        // reset. A segment of another connection is left out.
        let mut segments = captured(&was);
        segments.insert(4, Segment { from: address(9, 1), ..segments[4].clone() });
        let frames = frames(&known, segments.iter(), 1_000).unwrap();
        assert_eq!(frames.source, Source::Wire);
        assert_eq!(frames.list.len(), 9);
        assert!(frames.list.iter().all(|frame| frame.at_ns == 5));
        assert_eq!(frames.anchors, [Some(0), Some(3), Some(3), Some(4), Some(6), Some(8)]);
        assert_eq!(frames.ends, [Some(0), Some(3), Some(3), Some(5), Some(6), Some(8)]);
        assert_eq!(frames.list[4].octets, synthesize_frames(&was).list[4].octets);
    }

    #[test]
    fn retransmitted_bytes_are_at_the_first_frame_that_has_them() {
        let mut search = FrameSearch::new(vec![(0, 10, 3), (20, 30, 4), (0, 20, 5), (20, 40, 6)]);
        assert_eq!(search.frames_of(&(0..10)), (Some(3), Some(3)));
        assert_eq!(search.frames_of(&(10..30)), (Some(5), Some(4)));
        assert_eq!(search.frames_of(&(30..40)), (Some(6), Some(6)));
        assert_eq!(search.frames_of(&(40..50)), (None, None));
        // One segment and one read for each byte: no search looks at all segments.
        let mut search = FrameSearch::new((0..200_000).map(|at| (at, at + 1, at as usize)).collect());
        for at in 0..200_000 {
            assert_eq!(search.frames_of(&(at..at + 1)), (Some(at as usize), Some(at as usize)));
        }
    }

    /// The traffic log dropped bytes, but the capture has them.
    #[test]
    fn a_capture_has_the_bytes_that_the_traffic_log_dropped() {
        use Direction::{FromTarget, ToTarget};
        let was = traffic(&[(ToTarget, octets(20)), (FromTarget, octets(1000)), (FromTarget, octets(30))]);
        let segments = captured(&was);
        let logged = |missing: u64| {
            let until = Instant::from_nanos(5);
            let dropped = DroppedOctets { datagrams: false, events: 1, octets: missing, crc: 0, until };
            let dropped = EventContent::Dropped(dropped);
            traffic(&[(ToTarget, octets(20)), (FromTarget, dropped), (FromTarget, octets(30))])
        };
        // Frames 0 to 2 are the handshake.
        let frames = super::frames(&logged(1000), segments.iter(), 0).unwrap();
        assert_eq!(frames.anchors, [Some(0), Some(3), Some(4), Some(5)]);
        assert!(super::frames(&logged(1001), segments.iter(), 0).is_err());
    }

    #[test]
    fn rejects_an_incomplete_capture() {
        use Direction::{FromTarget, ToTarget};
        let known = traffic(&[(ToTarget, octets(20)), (FromTarget, octets(2000)), (FromTarget, EventContent::Fin)]);
        let segments = captured(&known);
        let why = |lost: usize| {
            let left = segments.iter().enumerate().filter(|(index, _)| *index != lost).map(|(_, segment)| segment);
            frames(&known, left, 0).map(|_| ()).unwrap_err()
        };
        // Each loop loses one frame: the SYN of either side, the tester's bytes, or a segment of
        // the target. The target's FIN follows below.
        for lost in [0, 1, 3, 4, 5] {
            assert_eq!(why(lost), "the capture lacks bytes of connection 1", "{lost}");
        }
        assert_eq!(why(6), "the capture lacks the end of connection 1");
        let nothing = frames(&known, [].iter(), 0).map(|_| ()).unwrap_err();
        assert_eq!(
            nothing,
            "the capture lacks a connection's start, or shows connections in another order than the tester"
        );
        let datagram = EventContent::Datagram { tester: address(2, 1), target: address(1, 2), octets: vec![0].into() };
        assert!(frames(&traffic(&[(ToTarget, datagram)]), segments.iter(), 0).is_err());
    }

    #[test]
    fn does_not_wait_for_octets_that_a_reset_discarded() {
        use Direction::{FromTarget, ToTarget};
        let known = traffic(&[(ToTarget, octets(20)), (FromTarget, EventContent::Reset)]);
        let segments: Vec<Segment> = captured(&known).into_iter().filter(|segment| segment.len == 0).collect();
        let frames = frames(&known, segments.iter(), 0).unwrap();
        assert_eq!(frames.anchors, [Some(0), None, Some(3)]);
    }
}
