//! A rival: a second connection that may replace an open connection with the same ports.
//!
//! A segment does not fit a connection if it is a SYN with another sequence number, or if its
//! sequence numbers are far away. Such a segment starts another connection, or it is a stray
//! segment that its receiver drops. The receiver answers a stray SYN with a challenge ACK (RFC 9293
//! section 3.10.7.4). Only later segments show which case applies. Until then weft keeps both the
//! connection and a rival that starts with the segment.
//!
//! The rival replaces the connection if a SYN-ACK answers its SYN, or if octets continue at the end
//! of its first segment.

use super::Connections;
use super::connection::{Connection, DirectionState, Rival};
use super::limits::NEAR;
use crate::direction::Direction;
use crate::ip::Segment;
use crate::sink::Sink;
use crate::tcp::{FAR, FAR_AFTER_CLOSE, is_far};

/// The relation of a segment to a connection with the same ports.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Claim {
    /// The segment belongs to the connection.
    Own,
    /// The segment is the first of another connection. The existing connection is closed.
    Replaces,
    /// The segment is the first of a rival.
    Challenges,
    /// The segment belongs to the rival, but does not prove that the rival is real.
    OfRival,
    /// The segment belongs to the rival, and proves that the rival is real.
    Proves,
}

impl Rival {
    pub(super) fn new(connection: Box<Connection>, first: &Segment<'_>) -> Self {
        let next = first.seq.wrapping_add(u32::from(first.syn)).wrapping_add(first.wire_len);
        Rival { connection, next }
    }

    /// Returns whether `segment` is the SYN that started the rival, or a copy of that SYN.
    fn begins_with(&self, segment: &Segment<'_>) -> bool {
        segment.syn
            && self.connection.direction_of(segment) == Direction::Forward
            && self.connection.directions[0].half.isn() == Some(segment.seq)
    }

    /// Returns whether `syn` is the answer to the SYN that started the rival.
    fn is_answered_by(&self, syn: &Segment<'_>) -> bool {
        let [first, other] = &self.connection.directions;
        let acknowledged = first.half.isn().map(|isn| isn.wrapping_add(1));
        let answers = syn.ack_flag && acknowledged == Some(syn.ack);
        self.connection.direction_of(syn) == Direction::Reverse && (answers || other.begins_with(syn.seq))
    }

    /// The relation of a segment to this rival of `holder`; `None` if the segment does not belong
    /// to the rival.
    fn claim(&self, segment: &Segment<'_>, holder: &Connection) -> Option<Claim> {
        if segment.syn {
            let proves = self.is_answered_by(segment) || self.begins_with(segment) && holder.closed;
            return if proves { Some(Claim::Proves) } else { self.begins_with(segment).then_some(Claim::OfRival) };
        }
        let is_first_end = self.connection.direction_of(segment) == Direction::Forward;
        let number = if is_first_end { segment.seq } else { Some(segment.ack).filter(|_| segment.ack_flag)? };
        let index = Direction::sent_by(self.connection.directions[0].ends.src, holder.directions[0].ends.src);
        let held = &holder.directions[index];
        let is_mine = match held.half.end_seq().or(held.acked) {
            // A segment that repeats or continues octets of the holder belongs to the holder.
            Some(end) => end.wrapping_sub(number) >= NEAR && distance(number, self.next) < distance(number, end),
            None => distance(number, self.next) < NEAR,
        };
        let goes_on = segment.seq.wrapping_sub(self.next).cast_signed() >= 0
            && (segment.wire_len > 0 || self.connection.directions[0].half.isn().is_some());
        let proves = !segment.rst && (!is_first_end || goes_on);
        is_mine.then_some(if proves { Claim::Proves } else { Claim::OfRival })
    }
}

fn distance(a: u32, b: u32) -> u32 {
    a.wrapping_sub(b).cast_signed().unsigned_abs()
}

impl Connection {
    /// The relation of a segment with the same ports to this connection.
    pub(super) fn claim(&self, segment: &Segment<'_>) -> Claim {
        if let Some(claim) = self.rival.as_ref().and_then(|rival| rival.claim(segment, self)) {
            return claim;
        }
        match (self.is_foreign(segment), self.closed) {
            (false, _) => Claim::Own,
            (true, true) => Claim::Replaces,
            (true, false) => Claim::Challenges,
        }
    }

    /// Returns whether `segment` is a SYN with another sequence number, or has sequence numbers
    /// that are far away.
    fn is_foreign(&self, segment: &Segment<'_>) -> bool {
        let mine = self.direction_of(segment);
        if !segment.syn {
            let DirectionState { half, fin, .. } = &self.directions[mine];
            let far = if *fin || self.closed { FAR_AFTER_CLOSE } else { FAR };
            return !segment.rst && half.end_seq().is_some_and(|end| is_far(end, segment.seq, far));
        }
        let (own, other) = (&self.directions[mine].half, &self.directions[mine.peer()].half);
        match own.isn() {
            Some(isn) => isn != segment.seq,
            None if !self.goes_on && self.directions[mine].begins_with(segment.seq) => false,
            // A direction with a FIN but without octets belongs to an earlier connection with the
            // same ports.
            None => {
                let [own, other] = [own, other].map(|half| half.has_octets() || half.has_fin());
                own || (other && !segment.ack_flag)
            }
        }
    }

    /// This connection, or its rival if `rival` is set.
    pub(super) fn or_rival(&mut self, rival: bool) -> &mut Connection {
        if !rival {
            return self;
        }
        match self.rival {
            Some(ref mut it) => &mut it.connection,
            None => self,
        }
    }

    /// Returns whether `segment` is the SYN that started the rival of this connection.
    pub(super) fn is_challenged_by(&self, segment: &Segment<'_>) -> bool {
        self.rival.as_ref().is_some_and(|rival| rival.begins_with(segment))
    }
}

impl Connections {
    /// Assigns a segment with the ports of the connection in `slot`. Returns the slot of the owner,
    /// and whether the owner is the rival in that slot.
    pub(super) fn take(
        &mut self,
        slot: usize,
        network: u16,
        segment: &Segment<'_>,
        sink: &mut dyn Sink,
    ) -> (usize, bool) {
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

    fn claim(&self, slot: usize, segment: &Segment<'_>) -> Claim {
        self.slots.get(slot).and_then(Option::as_ref).map_or(Claim::Own, |connection| connection.claim(segment))
    }

    /// Starts a rival of the connection in `slot` with `segment`. Finishes an earlier rival.
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

    /// Replaces the connection in `slot` with its rival. Returns the new slot.
    fn give_place(&mut self, slot: usize, network: u16, segment: &Segment<'_>, sink: &mut dyn Sink) -> usize {
        let connection = self.slots.get_mut(slot).and_then(Option::as_mut);
        let rival = connection.and_then(|connection| connection.rival.take());
        self.retire(slot, false, sink);
        match rival {
            Some(rival) => self.place(rival.connection, (network, segment.path)).0,
            None => self.open_new(network, segment, sink),
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::testing::{Wire, fpdu, reply, request, send_of};
    use crate::unit::{Kind, Unit};
    use crate::{Dissector, Sink};

    /// The connection number of each FPDU.
    #[derive(Default)]
    struct Fpdus(Vec<u32>);

    impl Sink for Fpdus {
        fn unit(&mut self, unit: &Unit<'_>) {
            if let (Kind::Fpdu(_), Some(stream)) = (&unit.kind, unit.stream) {
                self.0.push(stream.into());
            }
        }
    }

    fn both(wire: &mut Wire, msn: u32) {
        (0..2).for_each(|direction| wire.send(direction, &fpdu(&send_of(msn, 30))));
    }

    /// The connection number of each FPDU. Each direction has an FPDU before and an FPDU after the
    /// segments that `happens` sends.
    fn streams(happens: impl FnOnce(&mut Wire)) -> Vec<u32> {
        let mut wire = Wire::started();
        both(&mut wire, 1);
        happens(&mut wire);
        both(&mut wire, 2);
        assert_eq!(wire.errors(), []);
        let mut fpdus = Fpdus::default();
        wire.feed_to(Dissector::default(), &mut fpdus, |_| {});
        fpdus.0
    }

    #[test]
    fn a_syn_that_gets_a_challenge_ack_changes_nothing() {
        for isn in [0x1234_5678, 999, 1050, 0xf000_0000] {
            let challenged = |wire: &mut Wire| {
                wire.syn_at(0, isn);
                wire.send(1, &[]);
            };
            assert_eq!(streams(challenged), [0; 4], "{isn:#x}");
        }
    }

    #[test]
    fn a_reset_outside_the_window_changes_nothing() {
        let reset = |wire: &mut Wire| {
            wire.rst_at(0, 0x4000_0000);
            wire.rst_at(1, 0x9000_0000);
            // If the RST had closed the connection, these octets would start another connection.
            wire.send_at(0, 0x2000_0000, b"stray");
        };
        assert_eq!(streams(reset), [0; 4]);
    }

    #[test]
    fn octets_with_numbers_far_away_change_nothing_if_none_follow() {
        let stray = |wire: &mut Wire| {
            wire.send_at(0, 0x7000_0000, b"stray");
            wire.send_at(0, 0x7000_0000, b"stray");
        };
        assert_eq!(streams(stray), [0; 4]);
    }

    #[test]
    fn a_syn_that_is_answered_begins_another_connection() {
        let again = |wire: &mut Wire| {
            wire.connect_from(0x1234_5678, 0x8765_4321);
            wire.send(0, &request());
            wire.send(1, &reply());
            both(wire, 1);
        };
        assert_eq!(streams(again), [0, 0, 1, 1, 1, 1]);
        // The host of one endpoint was restarted. Its RST answers the challenge ACK.
        let restarted = |wire: &mut Wire| {
            wire.syn_at(0, 0x1234_5678);
            wire.send(1, &[]);
            wire.rst(0);
            again(wire);
        };
        assert_eq!(streams(restarted), [0, 0, 1, 1, 1, 1]);
    }
}
