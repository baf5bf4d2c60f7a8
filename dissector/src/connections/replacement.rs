//! Keeps possible replacements of connections. A replacement is a second connection that has the
//! same ports as an open connection, and that possibly replaces it.
//!
//! A segment does not fit a connection if it is a SYN with another sequence number, or if its
//! sequence numbers are far from the sequence numbers of the connection. Such a segment starts
//! another connection, or it is a stray segment that its receiver drops. (If the stray segment is a
//! SYN, the receiver sends a challenge ACK: RFC 9293 section 3.10.7.4.) Only later segments show
//! which case applies. Until then, weft keeps the connection and also a replacement that starts
//! with the segment.
//!
//! weft switches to the replacement if a SYN-ACK answers the SYN of the replacement, or if a
//! segment continues where the first segment of the replacement ended.

use super::Connections;
use super::connection::{Connection, DirectionState, Replacement};
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
    /// The segment is the first segment of another connection, and the known connection is closed.
    Replaces,
    /// The segment is the first segment of a replacement.
    StartsReplacement,
    /// The segment belongs to the replacement, but does not prove that the replacement is real.
    OfReplacement,
    /// The segment belongs to the replacement, and proves that the replacement is real.
    ConfirmsReplacement,
}

impl Replacement {
    pub(super) fn new(connection: Box<Connection>, first: &Segment<'_>) -> Self {
        let next = first.seq.wrapping_add(u32::from(first.syn)).wrapping_add(first.wire_len);
        Replacement { connection, next }
    }

    /// Returns whether `segment` is the SYN that started the replacement, or a copy of that SYN.
    fn begins_with(&self, segment: &Segment<'_>) -> bool {
        segment.syn
            && self.connection.direction_of(segment) == Direction::Forward
            && self.connection.directions[0].half.isn() == Some(segment.seq)
    }

    /// Returns whether `syn` is the answer to the SYN that started the replacement.
    fn is_answered_by(&self, syn: &Segment<'_>) -> bool {
        let [first, other] = &self.connection.directions;
        let acknowledged = first.half.isn().map(|isn| isn.wrapping_add(1));
        let answers = syn.ack_flag && acknowledged == Some(syn.ack);
        self.connection.direction_of(syn) == Direction::Reverse && (answers || other.begins_with(syn.seq))
    }

    /// The relation of a segment to this replacement of `current`; `None` if the segment does not
    /// belong to the replacement.
    fn claim(&self, segment: &Segment<'_>, current: &Connection) -> Option<Claim> {
        if segment.syn {
            let proves = self.is_answered_by(segment) || self.begins_with(segment) && current.closed;
            return if proves {
                Some(Claim::ConfirmsReplacement)
            } else {
                self.begins_with(segment).then_some(Claim::OfReplacement)
            };
        }
        let is_first_end = self.connection.direction_of(segment) == Direction::Forward;
        let number = if is_first_end { segment.seq } else { Some(segment.ack).filter(|_| segment.ack_flag)? };
        let index = Direction::sent_by(self.connection.directions[0].ends.src, current.directions[0].ends.src);
        let sender = &current.directions[index];
        let is_mine = match sender.half.end_seq().or(sender.acked) {
            // A segment that repeats or continues octets of the current connection belongs to the
            // current connection.
            Some(end) => end.wrapping_sub(number) >= NEAR && distance(number, self.next) < distance(number, end),
            None => distance(number, self.next) < NEAR,
        };
        let continues = segment.seq.wrapping_sub(self.next).cast_signed() >= 0
            && (segment.wire_len > 0 || self.connection.directions[0].half.isn().is_some());
        let proves = !segment.rst && (!is_first_end || continues);
        is_mine.then_some(if proves { Claim::ConfirmsReplacement } else { Claim::OfReplacement })
    }
}

fn distance(a: u32, b: u32) -> u32 {
    a.wrapping_sub(b).cast_signed().unsigned_abs()
}

impl Connection {
    /// How a segment with the same ports relates to this connection.
    pub(super) fn claim(&self, segment: &Segment<'_>) -> Claim {
        if let Some(claim) = self.replacement.as_ref().and_then(|replacement| replacement.claim(segment, self)) {
            return claim;
        }
        match (self.is_foreign(segment), self.closed) {
            (false, _) => Claim::Own,
            (true, true) => Claim::Replaces,
            (true, false) => Claim::StartsReplacement,
        }
    }

    /// Returns whether `segment` does not fit this connection: it is a SYN with another sequence
    /// number, or its sequence number is far from the numbers of this connection. A RST without
    /// SYN always fits.
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
            None if !self.resumed && self.directions[mine].begins_with(segment.seq) => false,
            // If a direction already has octets or a FIN, this connection is earlier than the
            // connection that the SYN starts.
            None => {
                let [own, other] = [own, other].map(|half| half.has_octets() || half.fin().is_some());
                own || (other && !segment.ack_flag)
            }
        }
    }

    /// Returns the replacement of this connection if `replacement` is set, and this connection
    /// otherwise.
    pub(super) fn or_replacement(&mut self, replacement: bool) -> &mut Connection {
        if !replacement {
            return self;
        }
        match self.replacement {
            Some(ref mut it) => &mut it.connection,
            None => self,
        }
    }

    /// Returns whether `segment` is the SYN that started the replacement of this connection.
    pub(super) fn is_replacement_syn(&self, segment: &Segment<'_>) -> bool {
        self.replacement.as_ref().is_some_and(|replacement| replacement.begins_with(segment))
    }
}

impl Connections {
    /// Assigns a segment with the ports of the connection in `slot`. Returns the slot of the
    /// connection that owns the segment, and whether that connection is the replacement in the
    /// slot.
    pub(super) fn assign(
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
            Claim::ConfirmsReplacement => (self.switch_to_replacement(slot, network, segment, sink), false),
            Claim::StartsReplacement => {
                self.start_replacement(slot, segment, sink);
                (slot, true)
            }
            Claim::OfReplacement => (slot, true),
        }
    }

    fn claim(&self, slot: usize, segment: &Segment<'_>) -> Claim {
        self.slots.get(slot).and_then(Option::as_ref).map_or(Claim::Own, |connection| connection.claim(segment))
    }

    /// Starts a replacement of the connection in `slot`. `segment` is the first segment of the
    /// replacement. If the connection already had a replacement, finishes that replacement.
    fn start_replacement(&mut self, slot: usize, segment: &Segment<'_>, sink: &mut dyn Sink) {
        let number = self.next_number();
        let Some(network) = self.slots.get(slot).and_then(Option::as_ref).map(|connection| connection.network) else {
            return;
        };
        let replacement = self.make(number, network, (segment.src, segment.dst));
        let Some(Some(connection)) = self.slots.get_mut(slot) else { return };
        if let Some(mut before) = connection.replacement.replace(Replacement::new(replacement, segment)) {
            before.connection.finish(sink);
        }
    }

    /// Replaces the connection in `slot` with its replacement. Returns the new slot.
    fn switch_to_replacement(
        &mut self,
        slot: usize,
        network: u16,
        segment: &Segment<'_>,
        sink: &mut dyn Sink,
    ) -> usize {
        let connection = self.slots.get_mut(slot).and_then(Option::as_mut);
        let replacement = connection.and_then(|connection| connection.replacement.take());
        self.retire(slot, false, sink);
        match replacement {
            Some(replacement) => self.insert(replacement.connection, (network, segment.path)).0,
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

    /// Returns the connection number of each FPDU. In each direction, one FPDU is sent before
    /// `happens` runs, and one FPDU after that. `happens` sends the segments whose effect a test
    /// examines.
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
        // The host of one endpoint was restarted. The RST of this host answers the challenge ACK.
        let restarted = |wire: &mut Wire| {
            wire.syn_at(0, 0x1234_5678);
            wire.send(1, &[]);
            wire.rst(0);
            again(wire);
        };
        assert_eq!(streams(restarted), [0, 0, 1, 1, 1, 1]);
    }
}
