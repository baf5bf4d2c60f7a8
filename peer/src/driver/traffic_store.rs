//! The events that a [`TrafficLog`](super::TrafficLog) keeps.
//!
//! | part | content |
//! | --- | --- |
//! | head | the first events, at most a quarter of the limit |
//! | middle | starts and ends of later connections, at most a quarter; counts of dropped bytes |
//! | tail | the newest events |
//!
//! Nothing is dropped until all parts together reach the limit. Then the oldest event leaves the
//! tail. It moves to the middle if it shows how a connection starts or ends. Otherwise the store
//! drops it, and counts its bytes in an [`EventContent::Dropped`] of its connection and direction.
//! All bytes that are dropped in one direction follow each other in the stream.
//!
//! **Memory.** Payload and the cost of each event count against the limit. In addition, the store
//! has at most two small entries for each connection whose start it keeps.

use std::collections::{HashMap, VecDeque};

use weft_core::crc;

use super::traffic_log::{Direction, DroppedOctets, EventContent, TrafficEvent};

/// Memory in bytes that each event needs in addition to its payload. Because of this number, the
/// limit also applies to many tiny reads. The number covers the event, the header of the event's
/// allocation, and the packet and the transcript line that weft makes from the event.
const EVENT_COST: usize = 512;

/// An event is part of the start of a direction if it begins before this number of bytes. A
/// start-up frame has at most 532 bytes.
const START_OCTETS: u64 = 1024;

/// The callback of [`TrafficLog::on_overflow`](super::TrafficLog::on_overflow).
type OverflowReader = Box<dyn FnMut(&TrafficEvent, bool) + Send>;

/// A direction of a connection, or the datagrams of a direction.
type StreamKey = (Option<u32>, Direction);

/// What the head and the middle have of a direction.
#[derive(Default)]
struct Stream {
    /// Number of bytes.
    octets: u64,
    /// Index of the [`EventContent::Dropped`] in the middle.
    dropped: Option<usize>,
}

#[derive(Default)]
pub(super) struct TrafficStore {
    head: Vec<TrafficEvent>,
    middle: Vec<TrafficEvent>,
    tail: VecDeque<TrafficEvent>,
    /// The limit in bytes.
    room: usize,
    /// Bytes that the head can still store. 0 as soon as the tail has had an event.
    head_room: usize,
    /// Bytes that the middle can still store.
    middle_room: usize,
    /// Bytes that all parts use.
    used: usize,
    /// Number of dropped events.
    lost: u64,
    /// Empty until the first event leaves the tail.
    streams: HashMap<StreamKey, Stream>,
    has_overflowed: bool,
    reader: Option<OverflowReader>,
}

impl TrafficStore {
    pub(super) fn with_room(room: usize) -> Self {
        let mut store = TrafficStore::default();
        store.set_room(room);
        store
    }

    /// Sets the number of bytes that the store can store in addition to its present events.
    pub(super) fn set_room(&mut self, room: usize) {
        self.room = self.used.saturating_add(room);
        // Events in the tail follow all events of the head.
        self.head_room = if self.tail.is_empty() && !self.has_overflowed { room / 4 } else { 0 };
        self.middle_room = room / 4;
    }

    pub(super) fn on_overflow(&mut self, reader: OverflowReader) {
        self.reader = Some(reader);
    }

    pub(super) fn push(&mut self, event: TrafficEvent) {
        let cost = cost(&event);
        self.used += cost;
        if cost <= self.head_room {
            self.head_room -= cost;
            self.head.push(event);
        } else {
            self.head_room = 0;
            self.tail.push_back(event);
        }
        while self.used > self.room
            && let Some(oldest) = self.tail.pop_front()
        {
            self.leave_tail(oldest);
        }
    }

    /// Moves the oldest event of the tail to the middle, or drops the event.
    fn leave_tail(&mut self, event: TrafficEvent) {
        if !self.has_overflowed {
            self.has_overflowed = true;
            for event in &self.head {
                enter(&mut self.streams, event);
                if let Some(reader) = &mut self.reader {
                    reader(event, true);
                }
            }
        }
        let is_kept = self.keeps(&event);
        if let Some(reader) = &mut self.reader {
            reader(&event, is_kept);
        }
        if is_kept {
            self.middle_room -= cost(&event);
            enter(&mut self.streams, &event);
            self.middle.push(event);
        } else {
            self.drop_event(&event);
        }
    }

    /// Returns whether the middle keeps an event that leaves the tail.
    fn keeps(&self, event: &TrafficEvent) -> bool {
        let stream = self.streams.get(&key(event));
        // After a gap, the direction keeps no more bytes, so that it has only one gap.
        let is_start = |stream: &Stream| stream.dropped.is_none() && stream.octets < START_OCTETS;
        cost(event) <= self.middle_room
            && match event.content {
                EventContent::Connected { .. } => true,
                EventContent::Fin | EventContent::Reset => stream.is_some(),
                EventContent::Octets(_) => stream.is_some_and(is_start),
                EventContent::Datagram { .. } | EventContent::Dropped(_) => false,
            }
    }

    fn drop_event(&mut self, event: &TrafficEvent) {
        self.used -= cost(event);
        self.lost += 1;
        let (datagrams, payload) = match &event.content {
            EventContent::Octets(octets) => (false, octets),
            EventContent::Datagram { octets, .. } => (true, octets),
            _ => return,
        };
        if datagrams {
            self.streams.entry(key(event)).or_default();
        }
        // Without the start of a connection, nothing can show its bytes.
        let Some(stream) = self.streams.get_mut(&key(event)) else { return };
        let index = *stream.dropped.get_or_insert_with(|| {
            let TrafficEvent { at, connection, direction, .. } = *event;
            let dropped = DroppedOctets { datagrams, events: 0, octets: 0, crc: 0, until: at };
            self.middle.push(TrafficEvent { at, connection, direction, content: EventContent::Dropped(dropped) });
            self.middle.len() - 1
        });
        if let Some(TrafficEvent { content: EventContent::Dropped(dropped), .. }) = self.middle.get_mut(index) {
            dropped.events += 1;
            dropped.octets += payload.len() as u64;
            dropped.crc = crc::append(dropped.crc, payload);
            dropped.until = event.at;
        }
    }

    /// Returns a copy of all kept events, in order.
    pub(super) fn events(&self) -> Vec<TrafficEvent> {
        self.head.iter().chain(&self.middle).chain(&self.tail).cloned().collect()
    }

    /// Returns the index, in [`events`](Self::events), of the first event that the callback has not
    /// received.
    pub(super) fn unread(&self) -> usize {
        if self.has_overflowed { self.head.len() + self.middle.len() } else { 0 }
    }

    /// Returns the number of dropped events.
    pub(super) fn lost(&self) -> u64 {
        self.lost
    }
}

/// Notes an event that the head or the middle keeps.
fn enter(streams: &mut HashMap<StreamKey, Stream>, event: &TrafficEvent) {
    match &event.content {
        EventContent::Connected { .. } => {
            for direction in [Direction::ToTarget, Direction::FromTarget] {
                streams.entry((Some(event.connection), direction)).or_default();
            }
        }
        EventContent::Octets(octets) => {
            if let Some(stream) = streams.get_mut(&key(event)) {
                stream.octets += octets.len() as u64;
            }
        }
        _ => {}
    }
}

fn key(event: &TrafficEvent) -> StreamKey {
    let is_datagram = matches!(event.content, EventContent::Datagram { .. });
    ((!is_datagram).then_some(event.connection), event.direction)
}

fn cost(event: &TrafficEvent) -> usize {
    EVENT_COST
        + match &event.content {
            EventContent::Octets(octets) | EventContent::Datagram { octets, .. } => octets.len(),
            _ => 0,
        }
}

#[cfg(test)]
mod tests {
    use std::net::SocketAddr;
    use std::sync::{Arc, Mutex};

    use bytes::Bytes;

    use super::*;
    use crate::time::Instant;
    use Direction::{FromTarget, ToTarget};

    /// Each event of this many bytes costs 1,512 bytes of the limit.
    const LEN: usize = 1000;
    /// The limit of 24,192 bytes has room for sixteen such events. A quarter of it, for the head,
    /// has room for three such events after the start of a connection.
    const ROOM: usize = 16 * (EVENT_COST + LEN);

    fn event(at: u64, connection: u32, direction: Direction, content: EventContent) -> TrafficEvent {
        TrafficEvent { at: Instant::from_nanos(at), connection, direction, content }
    }

    fn connected(at: u64, connection: u32) -> TrafficEvent {
        let [tester, target] = [50_000, 7174].map(|port| SocketAddr::from(([192, 0, 2, 1], port)));
        event(at, connection, ToTarget, EventContent::Connected { tester, target })
    }

    /// An event in which each byte is `at`.
    fn octets(at: u8) -> TrafficEvent {
        event(at.into(), 0, ToTarget, EventContent::Octets(Bytes::from(vec![at; LEN])))
    }

    fn times(events: &[TrafficEvent]) -> Vec<u64> {
        events.iter().map(|event| event.at.as_nanos()).collect()
    }

    #[test]
    fn drops_nothing_below_its_limit() {
        let mut store = TrafficStore::with_room(ROOM);
        store.push(connected(0, 0));
        (1..=15).for_each(|at| store.push(octets(at)));
        assert_eq!((times(&store.events()), store.unread()), ((0..=15).collect::<Vec<u64>>(), 0));
        assert_eq!(store.lost(), 0);
    }

    #[test]
    fn keeps_the_first_and_the_newest_events_and_hashes_the_rest() {
        let mut store = TrafficStore::with_room(ROOM);
        store.push(connected(0, 0));
        (1..=30).for_each(|at| store.push(octets(at)));
        let events = store.events();
        // The head has the start of the connection and three events. The tail has twelve events.
        assert_eq!(times(&events), [0, 1, 2, 3, 4, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30]);
        let missing: Vec<u8> = (4..=18).flat_map(|at| [at; LEN]).collect();
        let crc = crc::crc32c(&missing);
        let until = Instant::from_nanos(18);
        let dropped = DroppedOctets { datagrams: false, events: 15, octets: 15 * LEN as u64, crc, until };
        assert_eq!(events[4], event(4, 0, ToTarget, EventContent::Dropped(dropped)));
        assert_eq!((store.unread(), store.lost()), (5, 15));
    }

    #[test]
    fn keeps_how_each_connection_starts_and_ends() {
        let mut store = TrafficStore::with_room(ROOM);
        store.push(connected(0, 0));
        (1..=15).for_each(|at| store.push(octets(at)));
        let frame = || EventContent::Octets(Bytes::from_static(&[7; 20]));
        store.push(connected(16, 1));
        store.push(event(17, 1, ToTarget, frame()));
        store.push(event(18, 1, FromTarget, frame()));
        store.push(event(19, 1, FromTarget, EventContent::Fin));
        (20..=40).for_each(|at| store.push(octets(at)));
        // The gap of connection 0 is at the time 4. The events at 16 to 19 follow it.
        assert_eq!(times(&store.events())[..9], [0, 1, 2, 3, 4, 16, 17, 18, 19]);
    }

    #[test]
    fn has_one_gap_in_each_direction() {
        let mut store = TrafficStore::with_room(ROOM);
        store.push(connected(0, 0));
        for at in (1..=60).step_by(2) {
            store.push(octets(at));
            store.push(event(u64::from(at) + 1, 0, FromTarget, EventContent::Octets(Bytes::from(vec![at; LEN]))));
        }
        let dropped = |event: &&TrafficEvent| matches!(event.content, EventContent::Dropped(_));
        let events = store.events();
        let gaps: Vec<Direction> = events.iter().filter(dropped).map(|event| event.direction).collect();
        assert_eq!(gaps.len(), 2);
        assert_ne!(gaps[0], gaps[1]);
    }

    #[test]
    fn counts_datagrams_apart_from_the_first_connection() {
        let mut store = TrafficStore::with_room(ROOM);
        let end = SocketAddr::from(([192, 0, 2, 1], 3935));
        for at in 0..40 {
            let octets = Bytes::from(vec![7; LEN]);
            store.push(event(at, 0, ToTarget, EventContent::Datagram { tester: end, target: end, octets }));
        }
        // The head has four datagrams, because a quarter of the limit is 6,048 bytes. The tail has
        // twelve datagrams.
        let events = store.events();
        let EventContent::Dropped(dropped) = &events[4].content else { panic!("{:?}", events[4]) };
        assert_eq!((dropped.datagrams, dropped.events), (true, 24));
    }

    #[test]
    fn passes_on_each_event_before_it_drops_the_first_one() {
        let mut store = TrafficStore::with_room(ROOM);
        let read = Arc::new(Mutex::new(Vec::new()));
        let reader = Arc::clone(&read);
        store.on_overflow(Box::new(move |event, is_kept| reader.lock().unwrap().push((event.at.as_nanos(), is_kept))));
        store.push(connected(0, 0));
        (1..=15).for_each(|at| store.push(octets(at)));
        assert!(read.lock().unwrap().is_empty());
        (16..=18).for_each(|at| store.push(octets(at)));
        let expected = [(0, true), (1, true), (2, true), (3, true), (4, false), (5, false), (6, false)];
        assert_eq!(*read.lock().unwrap(), expected);
        let events = store.events();
        assert_eq!(times(&events[store.unread()..]), (7..=18).collect::<Vec<u64>>());
    }

    /// The store stays within its limit even if each event is larger than the limit.
    #[test]
    fn drops_an_event_that_is_larger_than_its_limit() {
        let mut store = TrafficStore::with_room(LEN);
        (1..=3).for_each(|at| store.push(octets(at)));
        assert_eq!((store.events(), store.lost(), store.used), (Vec::new(), 3, 0));
    }
}
