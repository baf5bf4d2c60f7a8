//! Detects a new start-up frame after a rejection. After a rejection, the TCP connection can stay
//! open. The ULP is allowed to use the connection for any purpose (RFC 5044 section 7.1.2), for
//! example for another MPA start-up.

use weft_core::wire::mpa::startup::{KEY_LEN, MAX_PD_LENGTH, MAX_REVISION, REPLY_KEY, REQUEST_KEY};
use weft_core::wire::mpa::{RawStartup, StartupKind};
use zerocopy::FromBytes;

use super::reader::{Reader, State};
use crate::tcp::{DirectionStream, Pending};

impl Reader {
    /// After a rejection, skips octets up to the next TCP segment that starts with a start-up
    /// frame.
    pub(super) fn skip_rejected(&mut self, half: &mut DirectionStream) -> Result<(), Pending> {
        let mut at = half.consumed();
        loop {
            if half.segment_starts_at(at) && may_begin(half.contiguous(at), half.is_finished()) {
                self.skip_to(half, at);
                if half.contiguous(at).len() >= KEY_LEN {
                    self.state = State::Restarting;
                }
                return Err(Pending::NEXT);
            }
            match half.segment_end_after(at) {
                Some(end) if end < half.settled() => at = end,
                _ => return self.skip_all(half),
            }
        }
    }

    /// Returns whether the connection was rejected and this direction has a new start-up frame.
    pub(crate) fn has_new_startup(&self) -> bool {
        self.state == State::Restarting
    }

    /// Returns whether the connection was rejected.
    pub(crate) fn is_rejected(&self) -> bool {
        matches!(self.state, State::Rejected | State::Restarting)
    }

    /// Restarts the reader, as if the direction started with the unread octets.
    pub(crate) fn restart(&mut self, half: &DirectionStream) {
        let (zero, skipped, scratch) =
            (half.consumed(), std::mem::take(&mut self.skipped), std::mem::take(&mut self.scratch));
        *self = Reader { zero, searched: zero, skipped, scratch, ..Reader::default() };
    }
}

/// Returns whether `octets` start with a valid start-up frame. If `octets` are too short for this
/// check and further octets may arrive (`is_finished` is false), returns whether `octets` are the
/// start of a key.
pub(super) fn may_begin(octets: &[u8], is_finished: bool) -> bool {
    match RawStartup::ref_from_prefix(octets) {
        Ok((raw, _)) => {
            StartupKind::of_key(&raw.key).is_some()
                && raw.revision <= MAX_REVISION
                && raw.pd_length.get() <= MAX_PD_LENGTH
        }
        Err(_) => {
            let key = &octets[..octets.len().min(KEY_LEN)];
            !is_finished && !key.is_empty() && (REQUEST_KEY.starts_with(key) || REPLY_KEY.starts_with(key))
        }
    }
}

#[cfg(test)]
mod tests {
    use weft_core::requirement;

    use crate::testing::{Wire, fpdu, reply, reply_frame, request, send_of, startup_frame};
    use crate::unit::{Kind, Unit};
    use crate::{Dissector, Sink};

    /// Collects start-up frames and FPDUs.
    #[derive(Default)]
    struct Count(usize, usize);

    impl Sink for Count {
        fn unit(&mut self, unit: &Unit<'_>) {
            self.0 += usize::from(matches!(unit.kind, Kind::Startup(..)));
            self.1 += usize::from(matches!(unit.kind, Kind::Fpdu(_)));
        }
    }

    /// Plays a rejected connection. After the rejection, `happens` sends further segments. Then
    /// each endpoint sends an FPDU. Returns the numbers of start-up frames and of FPDUs.
    fn after_rejection(happens: impl FnOnce(&mut Wire)) -> (usize, usize) {
        let mut wire = Wire::started_as(&request(), &reply_frame(0x60, 1, &[]));
        happens(&mut wire);
        (0..2).for_each(|direction| wire.send(direction, &fpdu(&send_of(1, 30))));
        (0..2).for_each(|direction| wire.fin(direction));
        let mut count = Count::default();
        wire.feed_to(Dissector::default(), &mut count, |_| {});
        assert!(count.1 == 0 || wire.errors().is_empty(), "{:#?}", wire.errors());
        (count.0, count.1)
    }

    fn start(wire: &mut Wire) {
        wire.send(0, &request());
        wire.send(1, &reply());
    }

    #[test]
    fn a_connection_may_start_again_after_a_rejection() {
        assert_eq!(after_rejection(start), (4, 2));
        let other_use_first = |wire: &mut Wire| {
            wire.send(0, b"MPA is not to your liking?");
            wire.send(1, b"No.");
            start(wire);
        };
        assert_eq!(after_rejection(other_use_first), (4, 2));
        let rejected_twice = |wire: &mut Wire| {
            wire.send(0, &request());
            wire.send(1, &reply_frame(0x60, 1, &[]));
            start(wire);
        };
        assert_eq!(after_rejection(rejected_twice), (6, 2));
        let in_pieces = |wire: &mut Wire| {
            request().chunks(7).for_each(|piece| wire.send(0, piece));
            reply().chunks(1).for_each(|piece| wire.send(1, piece));
        };
        assert_eq!(after_rejection(in_pieces), (4, 2));
        // The capture has the Reply before the Request.
        let swapped = |wire: &mut Wire| wire.swapped(|wire| wire.send(0, &request()), |wire| wire.send(1, &reply()));
        assert_eq!(after_rejection(swapped), (4, 2));
    }

    /// The capture has two Requests and no Reply between them. It is possible that a Reply with a
    /// rejection is missing.
    #[test]
    fn the_rejection_may_be_missing() {
        let rejected = |captured: bool| {
            let mut wire = Wire::connected();
            wire.send(0, &startup_frame(0x40, 1, b"v9"));
            let rejection = reply_frame(0x60, 1, b"only v1");
            if captured {
                wire.send(1, &rejection);
            } else {
                wire.lose(1, &rejection);
            }
            wire.send(0, &startup_frame(0x40, 1, b"v1"));
            wire.send(1, &reply());
            (0..2).for_each(|direction| wire.send(direction, &fpdu(&send_of(1, 30))));
            (0..2).for_each(|direction| wire.fin(direction));
            wire
        };
        assert_eq!(rejected(true).errors(), []);
        assert_eq!(rejected(false).errors(), []);
        let mut twice = Wire::connected();
        twice.send(0, &[startup_frame(0x40, 1, b"v9"), startup_frame(0x40, 1, b"v1")].concat());
        twice.send(1, &reply());
        (0..2).for_each(|direction| twice.send(direction, &fpdu(&send_of(1, 30))));
        let ids: Vec<_> = twice.errors().iter().map(|finding| finding.requirement).collect();
        assert!(ids.contains(&requirement!("MPA-7.1-1")) && ids.contains(&requirement!("MPA-4.1-1")), "{ids:?}");
    }

    #[test]
    fn a_key_within_other_octets_begins_nothing() {
        let mentioned = |wire: &mut Wire| wire.send(0, &[b"not ", &request()[..]].concat());
        assert_eq!(after_rejection(mentioned), (2, 0));
        let wrong = |wire: &mut Wire| wire.send(0, b"MPA ID Req Frame will not come");
        assert_eq!(after_rejection(wrong), (2, 0));
    }
}
