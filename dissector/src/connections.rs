//! The connections of a capture: which are being read, which are over, and what is done when there are too many.
//!
//! **Memory.** A connection is handed out to its end, and all but [`Past`] of it forgotten, when
//!
//! * its ports are used again;
//! * it was closed (RST, or FIN from both ends) and [`LINGERING`] others were closed since: late repetitions change nothing.
//!
//! It is put aside when
//!
//! * more than [`MOST_OPEN`] are being read;
//! * all together keep more than [`MOST_OCTETS`]; never the one that was just heard of.
//!
//! Those without MPA and SDP go first, and of these the ones that are idle for longest. Of a connection with MPA or SDP a [`Record`]
//! stays.
//!
//! When one that is over is heard of again with octets that it did not have, it goes on under its number: as its record says, else as
//! one does whose beginning was not captured. [`Dropped`] counts what that cost. A segment that does not fit one that was put aside
//! does not take its place either, as long as there is a record to go on from: it is a [`rival`], as it is to one that is being read.
//!
//! **Equal ports in several networks.** The first segment of another VLAN, tunnel or interface with the ports of a known connection is
//! a copy of one, or the other direction of it, or of another connection. It counts as one of the connection if its sequence numbers fit, until a
//! segment with a known sequence number tells: with the same octets it is a copy, with others it begins another connection.
//! [`Joined`] counts the copies.
//!
//! **Ports that are used again.** A SYN with another sequence number begins another connection. If the SYN was not captured, the
//! sequence numbers tell: they are far from those of the connection before. If that one is not closed, both are kept until
//! [`rival`] tells them from segments that belong to neither.

mod rival;

use std::collections::VecDeque;
use std::net::{IpAddr, SocketAddr};

use crate::dissector::{Sink, Watch, of_segment};
use crate::dropped::Dropped;
use crate::framing::{PeerView, Reader, ReaderRecord, Target};
use crate::ip::Segment;
use crate::joined::Joined;
use crate::path::Path;
use crate::tcp::half::ORIGIN;
use crate::tcp::{
    Afterwards, Arrived, FAR, FAR_BEHIND_CLOSE, Half, HalfRecord, Located, Past, Place, Prints, Table, is_far,
};
use crate::unit::{Carrier, Ends, Kind, Unit};
use rival::{Claim, Rival};

/// Closed connections that are kept for octets which were captured late.
const LINGERING: usize = 1024;
/// Connections that are read at the same time.
const MOST_OPEN: usize = 8_192;
/// Bytes of a connection that is being read, without the octets and books that [`MOST_OCTETS`] bounds.
const CONNECTION: usize = 8 << 10;
/// Octets that they may keep together.
const MOST_OCTETS: usize = 64 << 20;
/// Sequence numbers that are farther apart in two networks are of two connections. Random ones are nearer once in 2,048 times, and
/// both directions have to be.
const NEAR: u32 = 1 << 20;
/// Sequence numbers are used again behind four times as many octets.
const SEQUENCE_NUMBERS_LAST: u64 = 1 << 30;
/// Suspended SDP connections that another one may come for.
const MOST_SUSPENDED: usize = 64;

/// An SDP connection was suspended: who connects again, and to where (section 13.1.1 of the draft).
#[derive(Clone, Copy, PartialEq, Eq)]
struct Suspended {
    peer: IpAddr,
    at: SocketAddr,
}

/// What is kept of each direction of a connection with MPA or SDP that was put aside.
type Record = [(HalfRecord, ReaderRecord); 2];

/// One direction of a connection.
struct Direction {
    ends: Ends,
    half: Half,
    reader: Reader,
    fin: bool,
    /// The first acknowledgement number that the other end sent for it, and the latest.
    acked: Option<u32>,
    latest_ack: Option<u32>,
    /// What its segments began with.
    prints: Prints,
}

impl Direction {
    fn new(src: SocketAddr, dst: SocketAddr) -> Self {
        Direction {
            ends: Ends::new(src, dst),
            half: Half::default(),
            reader: Reader::default(),
            fin: false,
            acked: None,
            latest_ack: None,
            prints: Prints::default(),
        }
    }

    /// Is the sequence number near to those that are known of the direction? `None` if none is.
    fn is_near(&self, seq: u32) -> Option<bool> {
        let known = self.half.end_seq().or(self.acked)?;
        Some(!is_far(known, seq, NEAR))
    }

    /// May a RST have this sequence number? Outside the receiver's window it changes nothing (RFC 9293 section 3.10.7.4).
    fn accepts_reset(&self, seq: u32) -> bool {
        let known = [self.half.end_seq(), self.latest_ack];
        known == [None; 2] || known.into_iter().flatten().any(|known| !is_far(known, seq, NEAR))
    }

    /// Does a segment carry what is known at its sequence number? `None`: that is not known.
    fn compare(&self, segment: &Segment<'_>) -> Option<bool> {
        let is_unique = self.half.end() < ORIGIN + SEQUENCE_NUMBERS_LAST;
        self.prints.compare(segment).filter(|_| is_unique)
    }

    /// Does a SYN with this number stand before what is known of the direction, though it was captured later?
    fn begins_with(&self, syn: u32) -> bool {
        let first = self.half.first_seq().or(self.acked);
        !self.half.has_begun() && first.is_some_and(|first| first.wrapping_sub(syn.wrapping_add(1)) < FAR_BEHIND_CLOSE)
    }

    fn as_peer(&self) -> PeerView {
        PeerView {
            startup: self.reader.startup().copied(),
            undecided: self.reader.is_undecided(&self.half),
            held_back: self.half.has_octets() && !self.half.has_begun(),
            begins_otherwise: self.reader.begins_otherwise(&self.half),
            hello: self.reader.hello(&self.half),
        }
    }
}

/// A connection. Direction 0 is that of its first frame.
struct Connection {
    number: u32,
    /// Which of the networks it is in where connections have its ports.
    network: u16,
    directions: [Direction; 2],
    /// Its monitor, when there is one.
    watch: Option<Watch>,
    /// The latest frame of it.
    heard: u64,
    /// Octets of memory that its directions keep, as last counted.
    memory: usize,
    /// Does each direction know both start-up frames? Then neither waits for the other any more.
    introduced: bool,
    /// Does it hold octets back, as last counted?
    holds_back: bool,
    closed: bool,
    /// Was it over, and goes on? Then its beginning was read.
    goes_on: bool,
    /// Units that were incomplete, and holes.
    broken: u64,
    /// Another connection that may take its place.
    rival: Option<Rival>,
    /// What it cost that it was put aside, until something new of it comes. Until then it has nothing to hand out.
    interrupted: Option<Dropped>,
}

impl Connection {
    fn new(number: u32, network: u16, (first, other): (SocketAddr, SocketAddr), watch: Option<Watch>) -> Self {
        let directions = [Direction::new(first, other), Direction::new(other, first)];
        Connection {
            number,
            network,
            directions,
            watch,
            heard: 0,
            memory: 0,
            introduced: false,
            holds_back: false,
            closed: false,
            goes_on: false,
            broken: 0,
            rival: None,
            interrupted: None,
        }
    }

    /// Nothing but these SYNs was captured before.
    fn begin(&mut self, syns: [Option<u32>; 2]) {
        for (direction, isn) in self.directions.iter_mut().zip(syns) {
            direction.half = isn.map_or_else(Half::default, Half::opened);
        }
    }

    /// It goes on, as its record says or as far as what is remembered of it tells.
    fn go_on(&mut self, past: &Past, record: Option<Box<Record>>) {
        let Some(record) = record else {
            self.begin([0, 1].map(|direction| past.syn_alone(direction)));
            self.goes_on = past.has_octets();
            return;
        };
        self.goes_on = true;
        for (direction, (half, reader)) in self.directions.iter_mut().zip(*record) {
            direction.half = Half::resumed(&half, reader.next());
            let as_sdp = direction.reader.as_sdp;
            direction.reader = Reader::resumed(reader);
            direction.reader.as_sdp = as_sdp;
            direction.fin = direction.half.has_fin();
        }
    }

    fn direction_of(&self, segment: &Segment<'_>) -> usize {
        usize::from(segment.src != self.directions[0].ends.src)
    }

    /// Is a segment of another network a copy of one of this connection's (`Some(true)`), of another connection (`Some(false)`)
    /// or, as far as its numbers tell, of this one (`None`)?
    fn recognises(&self, segment: &Segment<'_>) -> Option<bool> {
        let mine = self.direction_of(segment);
        let (own, other) = (&self.directions[mine], &self.directions[1 - mine]);
        if let Some(is_copy) = own.compare(segment) {
            return Some(is_copy);
        }
        let fits = if segment.syn {
            match own.half.isn() {
                Some(isn) => isn == segment.seq,
                None if segment.ack_flag => other.half.isn().is_some_and(|isn| isn.wrapping_add(1) == segment.ack),
                None => own.begins_with(segment.seq),
            }
        } else {
            let near = own.is_near(segment.seq);
            let acknowledges = if segment.ack_flag { other.is_near(segment.ack) } else { None };
            near.or(acknowledges) == Some(true) && acknowledges != Some(false)
        };
        if fits { None } else { Some(false) }
    }

    /// What was captured of the SYNs before a segment of another network turned out to be of another connection.
    fn syns(&self, segment: &Segment<'_>) -> [Option<u32>; 2] {
        let mine = self.direction_of(segment);
        let near = |direction: usize, number: u32| {
            let isn = self.directions[direction].half.isn();
            isn.filter(|isn| number.wrapping_sub(*isn) < NEAR)
        };
        let mut syns = [None; 2];
        syns[mine] = near(mine, segment.seq);
        syns[1 - mine] = near(1 - mine, segment.ack).filter(|_| segment.ack_flag);
        syns
    }

    /// Is it a SYN with another sequence number, or are its numbers far away?
    fn is_foreign(&self, segment: &Segment<'_>) -> bool {
        let mine = self.direction_of(segment);
        if !segment.syn {
            let Direction { half, fin, .. } = &self.directions[mine];
            let far = if *fin || self.closed { FAR_BEHIND_CLOSE } else { FAR };
            return !segment.rst && half.end_seq().is_some_and(|end| is_far(end, segment.seq, far));
        }
        let (own, other) = (&self.directions[mine].half, &self.directions[1 - mine].half);
        match own.isn() {
            Some(isn) => isn != segment.seq,
            None if !self.goes_on && self.directions[mine].begins_with(segment.seq) => false,
            None => own.has_octets() || (other.has_octets() && !segment.ack_flag),
        }
    }

    /// Takes a segment in; says whether the connection is closed by it.
    fn segment(&mut self, segment: &Segment<'_>, sink: &mut dyn Sink) -> bool {
        let index = self.direction_of(segment);
        self.heard = segment.frame;
        if segment.rst && !self.directions[index].accepts_reset(segment.seq) {
            return false;
        }
        if segment.ack_flag && self.directions[1 - index].half.acknowledge(segment.ack) {
            self.poll(1 - index, sink);
        }
        if let Some(watch) = &mut self.watch {
            watch.segment(index, segment);
        }
        self.directions[index].prints.note(segment);
        if segment.ack_flag && !segment.rst {
            self.directions[1 - index].acked.get_or_insert(segment.ack);
            self.directions[1 - index].latest_ack = Some(segment.ack);
        }
        if let Some(arrived) = self.directions[index].half.arrive(segment) {
            if self.introduced {
                let straight = |reader: &mut Reader, half: &mut Half, target: &mut Target<'_>| {
                    reader.read_straight(half, &arrived, target);
                };
                self.read(index, Some(&arrived), sink, straight);
            }
            self.directions[index].half.keep(&arrived, segment);
        }
        if !self.introduced || self.directions[index].half.has_unread() {
            self.poll(index, sink);
        }
        self.directions[index].fin |= segment.fin;
        let closes = !self.closed && (segment.rst || self.directions.iter().all(|direction| direction.fin));
        self.closed |= closes;
        closes
    }

    /// Reads on in the direction `index`, then in the other one as long as either finds what the other waits for.
    fn poll(&mut self, mut index: usize, sink: &mut dyn Sink) {
        loop {
            self.poll_direction(index, sink);
            if self.starts_again() {
                continue;
            }
            if self.introduced {
                return;
            }
            let view = self.directions[index].as_peer();
            if self.directions[1 - index].reader.knows(&view) {
                self.introduced = self.directions.iter().all(|direction| direction.reader.startup().is_some());
                return;
            }
            index = 1 - index;
        }
    }

    /// Is a start-up frame found behind a rejection that both directions know? Then both are read as from their beginning.
    fn starts_again(&mut self) -> bool {
        let [forth, back] = &self.directions;
        let any = forth.reader.begins_again() || back.reader.begins_again();
        let again = any && forth.reader.is_rejected() && back.reader.is_rejected();
        if again {
            self.introduced = false;
            self.directions.iter_mut().for_each(|Direction { half, reader, .. }| reader.restart(half));
        }
        again
    }

    fn poll_direction(&mut self, index: usize, sink: &mut dyn Sink) {
        let peer = (!self.introduced).then(|| self.directions[1 - index].as_peer());
        self.read(index, None, sink, |reader, half, target| {
            if let Some(peer) = &peer {
                reader.meet(peer);
            }
            reader.poll(half, target);
        });
    }

    /// Lets the reader of direction `index` read; its units go to the monitor and `sink`.
    fn read(
        &mut self,
        index: usize,
        arrived: Option<&Arrived<'_>>,
        sink: &mut dyn Sink,
        read: impl FnOnce(&mut Reader, &mut Half, &mut Target<'_>),
    ) {
        let assumes_sdp = self.directions.iter().all(|direction| direction.reader.assumes_sdp());
        let peer_without_crc = self.directions[1 - index].reader.is_without_crc_fields();
        if let Some(watch) = &mut self.watch {
            watch.peer_has_unread(self.directions[1 - index].half.has_unread());
        }
        let Direction { ends, half, reader, .. } = &mut self.directions[index];
        reader.peer_without_crc = peer_without_crc;
        let mut hand = |unit: &Unit<'_>| {
            self.broken += u64::from(unit.incomplete || matches!(unit.kind, Kind::Gap { .. }));
            match &mut self.watch {
                _ if assumes_sdp && is_assumed(unit) => sink.unit(unit),
                watch => hand_out(watch, unit, sink),
            }
        };
        let direction = u8::from(index == 1);
        read(reader, half, &mut Target { stream: self.number, direction, ends, arrived, sink: &mut hand });
    }

    fn finish(&mut self, sink: &mut dyn Sink) {
        if self.interrupted.is_some() {
            return;
        }
        for direction in &mut self.directions {
            direction.half.finish();
        }
        // The first time each direction learns whether it has a start-up frame; what waits for the other goes on the second time.
        for index in [0, 1, 0, 1] {
            self.poll(index, sink);
        }
        for index in [0, 1] {
            self.read(index, None, sink, |reader, half, target| reader.finish(half, target));
        }
        if let Some(watch) = &mut self.watch {
            watch.end(self.number, sink);
        }
    }

    /// Was MPA or SDP found on it?
    fn is_mpa(&self) -> bool {
        self.directions.iter().any(|direction| direction.reader.is_mpa())
    }

    /// Where it goes on, if both ends have agreed to suspend it.
    fn suspended(&self) -> Option<Suspended> {
        let (local, port) = self.watch.as_ref()?.suspended()?;
        let address = |direction: usize| self.directions[direction].ends.src.ip();
        Some(Suspended { peer: address(1 - local), at: SocketAddr::new(address(local), port) })
    }

    fn has_unread(&self) -> bool {
        self.directions.iter().any(|direction| direction.half.has_unread() || direction.reader.has_passed())
            || self.rival.as_ref().is_some_and(|rival| rival.connection.has_unread())
    }

    fn count_memory(&self) -> usize {
        let octets = self.directions.iter().map(|direction| direction.half.memory() + direction.reader.memory());
        let rival = self.rival.as_ref().map_or(0, |rival| CONNECTION + rival.connection.count_memory());
        octets.sum::<usize>() + self.watch.as_ref().map_or(0, Watch::memory) + rival
    }

    /// What is remembered of it; `aside`: it is open.
    fn past(&self, aside: bool) -> Past {
        let [forth, back] = &self.directions;
        Past {
            aside,
            number: self.number,
            first: forth.ends.src,
            isn: [forth.half.isn(), back.half.isn()],
            end: [forth.half.end_seq(), back.half.end_seq()],
        }
    }

    fn into_record(self) -> Record {
        self.directions.map(|Direction { half, reader, .. }| (half.record(), reader.record(&half)))
    }
}

fn hand_out(watch: &mut Option<Watch>, unit: &Unit<'_>, sink: &mut dyn Sink) {
    match watch {
        Some(watch) => watch.unit(unit, sink),
        None => sink.unit(unit),
    }
}

/// Is it an SDP message of a connection whose Hello is not in the capture? Its monitor knows nothing of what was agreed on, and
/// books that began here would be wrong.
fn is_assumed(unit: &Unit<'_>) -> bool {
    matches!(unit.kind, Kind::Sdp(Carrier::Send, ..))
}

/// The connections that were seen.
#[derive(Default)]
pub(crate) struct Connections {
    unwatched: bool,
    /// Ports whose connections are read as SDP.
    sdp_ports: Vec<u16>,
    table: Table<Record>,
    slots: Vec<Option<Box<Connection>>>,
    free: Vec<usize>,
    /// Numbers given away.
    count: u32,
    /// Octets that the open ones keep.
    memory: usize,
    /// How many of them hold octets back.
    holding: usize,
    /// Closed ones, oldest first: slot and number.
    closed: VecDeque<(usize, u32)>,
    /// Those that were suspended and did not go on, oldest first.
    suspended: VecDeque<Suspended>,
    dropped: Dropped,
    joined: Joined,
}

/// What a segment is of.
enum Owner {
    /// What is known in its network.
    Known(u16, Option<Place>),
    /// A new connection, whose SYNs may be known.
    New(u16, [Option<u32>; 2]),
}

impl Connections {
    /// Connections without monitors.
    pub(crate) fn unwatched() -> Self {
        Connections { unwatched: true, ..Connections::default() }
    }

    /// From now on, connections from and to `port` are read as SDP.
    pub(crate) fn decode_as_sdp(&mut self, port: u16) {
        self.sdp_ports.push(port);
    }

    /// Octets that the open ones keep.
    #[cfg(test)]
    pub(crate) fn memory(&self) -> usize {
        self.memory
    }

    /// Bytes that all take together, about.
    pub(crate) fn memory_of_all(&self) -> usize {
        self.memory + (self.slots.len() - self.free.len()) * CONNECTION + self.table.memory()
    }

    /// What the bounds on memory cost.
    pub(crate) fn dropped(&self) -> Dropped {
        Dropped { forgotten: self.dropped.forgotten + self.table.forgotten(), ..self.dropped }
    }

    /// Connections that were captured in several networks.
    pub(crate) fn joined(&self) -> Joined {
        self.joined
    }

    /// Are there octets that no unit was handed out for?
    pub(crate) fn hold_back(&self) -> bool {
        self.holding > 0
    }

    pub(crate) fn segment(&mut self, segment: &Segment<'_>, sink: &mut dyn Sink) {
        let Segment { src, dst, .. } = segment;
        let (slot, of_rival) = match self.owner(segment) {
            Owner::Known(network, Some(Place::Open(slot))) => self.take(slot, network, segment, sink),
            Owner::Known(network, Some(Place::Past(past))) => match past.sees(segment) {
                Afterwards::Nothing => return sink.packet(&of_segment(segment, past.number)),
                Afterwards::Another if self.may_resume(&past, network, segment) => {
                    let slot = self.go_on(&past, network, segment, sink);
                    self.take(slot, network, segment, sink)
                }
                Afterwards::Another => (self.open_new(network, segment, sink), false),
                Afterwards::Continues => (self.go_on(&past, network, segment, sink), false),
            },
            Owner::Known(network, None) => (self.open_new(network, segment, sink), false),
            Owner::New(network, syns) => {
                let slot = self.open_new(network, segment, sink);
                if let Some(Some(connection)) = self.slots.get_mut(slot) {
                    connection.begin(syns);
                }
                (slot, false)
            }
        };
        if !of_rival
            && let Some(Some(connection)) = self.slots.get(slot)
            && connection.interrupted.is_some()
            && connection.past(true).sees(segment) == Afterwards::Nothing
        {
            return sink.packet(&of_segment(segment, connection.number));
        }
        let resumes = segment.syn && !segment.ack_flag && self.take_suspended(Suspended { peer: src.ip(), at: *dst });
        let Some(Some(connection)) = self.slots.get_mut(slot) else { return };
        if let Some(cost) = connection.interrupted.take_if(|_| !of_rival) {
            self.dropped.interruptions += cost.interruptions;
            self.dropped.others += cost.others;
        }
        let target = connection.or_rival(of_rival);
        sink.packet(&of_segment(segment, target.number));
        if let Some(watch) = target.watch.as_mut().filter(|_| resumes) {
            watch.resume();
        }
        let closes = target.segment(segment, sink) && !of_rival;
        // TCP ends behind the SuspCommAck.
        if (segment.fin || segment.rst)
            && let Some(suspended) = target.suspended().filter(|suspended| !self.suspended.contains(suspended))
        {
            self.suspended.push_back(suspended);
            self.suspended.drain(..self.suspended.len().saturating_sub(MOST_SUSPENDED));
        }
        let number = connection.number;
        let memory = connection.count_memory();
        let before = std::mem::replace(&mut connection.memory, memory);
        self.memory = self.memory - before + memory;
        let holds_back = connection.has_unread();
        let held_back = std::mem::replace(&mut connection.holds_back, holds_back);
        self.holding = self.holding + usize::from(holds_back) - usize::from(held_back);
        if closes {
            self.closed.push_back((slot, number));
            self.retire_closed(sink);
        }
        if self.memory > MOST_OCTETS {
            let may = |it: &Connection| it.number != number && it.memory > 0;
            self.put_aside(may, |all| all.memory <= MOST_OCTETS / 2, sink);
        }
    }

    /// The slot that a segment with the ports of the connection in `slot` is read in, and whether it is of the rival there.
    fn take(&mut self, slot: usize, network: u16, segment: &Segment<'_>, sink: &mut dyn Sink) -> (usize, bool) {
        match self.claim(slot, segment) {
            Claim::Own => (slot, false),
            Claim::Replaces => {
                self.retire(slot, false, sink);
                (self.open_new(network, segment, sink), false)
            }
            Claim::Proves => (self.give_place(slot, network, segment, sink), false),
            Claim::Challenges => {
                self.challenge(slot, segment, sink);
                (slot, true)
            }
            Claim::OfRival => (slot, true),
        }
    }

    /// Can a connection that was put aside be read as one that never was, so that a segment which does not fit is only its rival?
    fn may_resume(&self, past: &Past, network: u16, segment: &Segment<'_>) -> bool {
        past.aside && (!past.has_octets() || self.table.has_record(segment, network))
    }

    /// Which connection a segment is of, by its ports and its network.
    fn owner(&mut self, segment: &Segment<'_>) -> Owner {
        let (network, place) = match self.table.find(segment) {
            Located::Known { network, place, is_certain: true } => return Owner::Known(network, place),
            Located::Known { network, place, is_certain: false } => (network, place),
            Located::Elsewhere => return self.owner_elsewhere(segment),
        };
        match place.and_then(|place| self.recognises(&place, segment)) {
            Some(true) => self.table.join(segment, network, true),
            Some(false) if self.is_open(place) => {
                if let Some(own) = self.table.separate(segment) {
                    self.joined.count -= 1;
                    return Owner::New(own, self.syns(place, segment));
                }
            }
            // What is over, or nearly so, gives its ports to another.
            Some(false) | None => {}
        }
        Owner::Known(network, place)
    }

    fn is_open(&self, place: Option<Place>) -> bool {
        let Some(Place::Open(slot)) = place else { return false };
        self.slots.get(slot).and_then(Option::as_ref).is_some_and(|connection| !connection.closed)
    }

    /// The same for the first segment of a path whose ports are known.
    fn owner_elsewhere(&mut self, segment: &Segment<'_>) -> Owner {
        for (network, place) in self.table.networks(segment) {
            let is_copy = self.recognises(&place, segment);
            if is_copy != Some(false) {
                self.table.join(segment, network, is_copy == Some(true));
                self.joined.count += 1;
                let stream = self.number_of(&place);
                self.joined.first = self.joined.first.or(stream.map(|stream| (stream, segment.frame)));
                return Owner::Known(network, Some(place));
            }
        }
        match self.table.separate(segment) {
            Some(network) => Owner::New(network, [None; 2]),
            None => Owner::Known(0, self.table.networks(segment).first().map(|(_, place)| *place)),
        }
    }

    fn number_of(&self, place: &Place) -> Option<u32> {
        match place {
            Place::Open(slot) => Some(self.slots.get(*slot)?.as_ref()?.number),
            Place::Past(past) => Some(past.number),
        }
    }

    /// As [`Connection::recognises`]; a connection that is over is known by its sequence numbers alone.
    fn recognises(&self, place: &Place, segment: &Segment<'_>) -> Option<bool> {
        match place {
            Place::Open(slot) => {
                let connection = self.slots.get(*slot).and_then(Option::as_ref);
                let known = connection.map_or(Some(false), |connection| connection.recognises(segment));
                let rival = connection.and_then(|connection| connection.rival.as_ref());
                match (known, rival) {
                    (Some(false), Some(rival)) => rival.connection.recognises(segment),
                    _ => known,
                }
            }
            Place::Past(past) if past.is_near(segment, NEAR) => None,
            Place::Past(_) => Some(false),
        }
    }

    fn syns(&self, place: Option<Place>, segment: &Segment<'_>) -> [Option<u32>; 2] {
        let Some(Place::Open(slot)) = place else { return [None; 2] };
        let connection = self.slots.get(slot).and_then(Option::as_ref);
        connection.map_or([None; 2], |it| {
            let [forth, back] = it.syns(segment);
            // Direction 0 of the new one is that of the segment.
            if it.direction_of(segment) == 0 { [forth, back] } else { [back, forth] }
        })
    }

    /// The connection that a segment, just taken in, belongs to: its number and monitor.
    pub(crate) fn watch_of(&mut self, segment: &Segment<'_>) -> Option<(u32, &mut Watch)> {
        let Located::Known { place: Some(Place::Open(slot)), .. } = self.table.find(segment) else { return None };
        let connection = self.slots.get_mut(slot)?.as_mut()?;
        let of_rival = connection.is_challenged_by(segment);
        let connection = connection.or_rival(of_rival);
        Some((connection.number, connection.watch.as_mut()?))
    }

    /// Does a connection go on by this one? It does once.
    fn take_suspended(&mut self, by: Suspended) -> bool {
        let at = self.suspended.iter().position(|suspended| *suspended == by);
        at.is_some_and(|at| self.suspended.remove(at).is_some())
    }

    fn claim(&self, slot: usize, segment: &Segment<'_>) -> Claim {
        self.slots.get(slot).and_then(Option::as_ref).map_or(Claim::Own, |connection| connection.claim(segment))
    }

    /// The segment begins a rival of the connection in `slot`.
    fn challenge(&mut self, slot: usize, segment: &Segment<'_>, sink: &mut dyn Sink) {
        let number = self.next_number();
        let Some(network) = self.slots.get(slot).and_then(Option::as_ref).map(|connection| connection.network) else {
            return;
        };
        let rival = self.make(number, network, (segment.src, segment.dst));
        let Some(Some(connection)) = self.slots.get_mut(slot) else { return };
        if let Some(mut before) = connection.rival.replace(Rival::new(rival, segment)) {
            before.connection.finish(sink);
        }
    }

    /// The connection in `slot` is over, and its rival has its place.
    fn give_place(&mut self, slot: usize, network: u16, segment: &Segment<'_>, sink: &mut dyn Sink) -> usize {
        let connection = self.slots.get_mut(slot).and_then(Option::as_mut);
        let rival = connection.and_then(|connection| connection.rival.take());
        self.retire(slot, false, sink);
        match rival {
            Some(rival) => self.place(rival.connection, (network, segment.path)).0,
            None => self.open_new(network, segment, sink),
        }
    }

    fn next_number(&mut self) -> u32 {
        let number = self.count;
        self.count = self.count.saturating_add(1);
        number
    }

    fn open_new(&mut self, network: u16, segment: &Segment<'_>, sink: &mut dyn Sink) -> usize {
        let number = self.next_number();
        self.open(number, (segment.src, segment.dst), (network, segment.path), sink).0
    }

    /// A connection that is over goes on.
    fn go_on(&mut self, past: &Past, network: u16, segment: &Segment<'_>, sink: &mut dyn Sink) -> usize {
        let other = if past.first == segment.src { segment.dst } else { segment.src };
        let (slot, record) = self.open(past.number, (past.first, other), (network, segment.path), sink);
        let cost = Dropped {
            interruptions: u64::from(record.is_some()),
            others: u64::from(record.is_none() && past.has_octets()),
            ..Dropped::default()
        };
        if let Some(Some(connection)) = self.slots.get_mut(slot) {
            connection.go_on(past, record);
            connection.interrupted = past.aside.then_some(cost);
            if !past.aside {
                connection.closed = true;
                self.closed.push_back((slot, past.number));
            }
        }
        slot
    }

    /// A new connection in a slot of its own, and the record of the one that had its ports before.
    fn open(
        &mut self,
        number: u32,
        ports: (SocketAddr, SocketAddr),
        at: (u16, Path),
        sink: &mut dyn Sink,
    ) -> (usize, Option<Box<Record>>) {
        if self.slots.len() - self.free.len() >= MOST_OPEN {
            self.put_aside(|_| true, |all| all.slots.len() - all.free.len() <= MOST_OPEN / 4 * 3, sink);
        }
        self.place(self.make(number, at.0, ports), at)
    }

    /// A connection without octets, read as its ports say.
    fn make(&self, number: u32, network: u16, ports: (SocketAddr, SocketAddr)) -> Box<Connection> {
        let mut connection = Connection::new(number, network, ports, (!self.unwatched).then(Watch::default));
        if self.sdp_ports.iter().any(|port| [ports.0.port(), ports.1.port()].contains(port)) {
            connection.directions.iter_mut().for_each(|direction| direction.reader.as_sdp = true);
        }
        Box::new(connection)
    }

    /// Puts a connection into a slot.
    fn place(&mut self, connection: Box<Connection>, at: (u16, Path)) -> (usize, Option<Box<Record>>) {
        let slot = self.free.pop().unwrap_or_else(|| {
            self.slots.push(None);
            self.slots.len() - 1
        });
        let Ends { src, dst, .. } = connection.directions[0].ends;
        self.slots[slot] = Some(connection);
        (slot, self.table.open((src, dst), at, slot))
    }

    /// Hands a connection out to its end; it may still go on, if it is put `aside`.
    fn retire(&mut self, slot: usize, aside: bool, sink: &mut dyn Sink) {
        let Some(mut connection) = self.slots.get_mut(slot).and_then(Option::take) else { return };
        self.free.push(slot);
        self.memory -= connection.memory;
        self.holding -= usize::from(connection.holds_back);
        let broken = connection.broken;
        connection.finish(sink);
        if let Some(mut rival) = connection.rival.take() {
            rival.connection.finish(sink);
        }
        let Ends { src, dst, .. } = connection.directions[0].ends;
        let network = connection.network;
        let past = connection.past(aside);
        let mut record = None;
        if aside && connection.is_mpa() {
            self.dropped.units += connection.broken - broken;
            record = Some(Box::new(connection.into_record()));
        }
        self.table.close(src, dst, network, past, record);
    }

    fn retire_closed(&mut self, sink: &mut dyn Sink) {
        while self.closed.len() > LINGERING {
            let Some((slot, number)) = self.closed.pop_front() else { return };
            // Its slot may have been given to another in the meantime.
            if matches!(self.slots.get(slot), Some(Some(connection)) if connection.number == number) {
                self.retire(slot, false, sink);
            }
        }
    }

    /// Puts connections aside that `may` go, until it is `enough`: those without MPA first, and those idle for longest.
    fn put_aside(&mut self, may: impl Fn(&Connection) -> bool, enough: impl Fn(&Self) -> bool, sink: &mut dyn Sink) {
        let open = self.slots.iter().enumerate().filter_map(|(slot, it)| Some((slot, it.as_ref()?)));
        let mut idle: Vec<(bool, u64, usize)> =
            open.filter(|(_, it)| may(it)).map(|(slot, it)| (it.is_mpa() && !it.closed, it.heard, slot)).collect();
        idle.sort_unstable();
        for (_, _, slot) in idle {
            if enough(self) {
                return;
            }
            let aside = self.slots.get(slot).is_some_and(|it| it.as_ref().is_some_and(|it| !it.closed));
            self.retire(slot, aside, sink);
        }
    }

    /// The capture ends: hands all connections out to their ends, by their numbers.
    pub(crate) fn finish(&mut self, sink: &mut dyn Sink) {
        let mut open: Vec<Box<Connection>> = std::mem::take(&mut self.slots).into_iter().flatten().collect();
        let rivals = open.iter_mut().filter_map(|connection| connection.rival.take());
        let rivals: Vec<_> = rivals.map(|rival| rival.connection).collect();
        open.extend(rivals);
        open.sort_by_key(|connection| connection.number);
        for connection in &mut open {
            connection.finish(sink);
        }
        let dropped = self.dropped();
        let Connections { count, unwatched, joined, .. } = *self;
        *self = Connections { count, unwatched, dropped, joined, ..Connections::default() };
    }
}
