//! Recognizes the protocol of a connection.
//!
//! Each protocol has a test that a complete message passes or fails, in the folder of the protocol.
//! The first message that proves a protocol names the connection. The name is removed for good when
//! a later message fails the test of that protocol: one of the two was a coincidence. A message
//! whose beginning was not captured neither proves nor disproves a protocol. If the first
//! `MOST_TRIES` messages prove nothing, later ones are not checked.
//!
//! Sends of several segments are checked by the beginning in their first segment and by the length
//! from their last one.

use weft_core::wire::ddp::Segment;
use weft_core::wire::rdmap::Opcode;

use super::protocol::Verdict;
use super::table::{Connections, Ulp, UlpMessage};
use crate::direction::Direction;
use crate::parse::SegmentView;

/// Sends that are checked on a connection without a name.
pub(super) const MOST_TRIES: u8 = 32;

/// An unfinished Send: its MSN, and the test results for its beginning.
#[derive(Debug, Clone, Copy)]
struct Begun {
    msn: u32,
    verdicts: [Verdict<UlpMessage>; Ulp::COUNT],
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// Number of messages that may still prove a protocol.
    Looking(u8),
    Named(Ulp),
    /// No protocol was proved in time, or the proved one was contradicted.
    GivenUp,
}

/// How far the recognition of a connection's protocol is.
#[derive(Debug, Clone)]
pub(crate) struct Recognition {
    state: State,
    begun: [Option<Begun>; 2],
    protocols: Connections,
}

impl Default for Recognition {
    fn default() -> Self {
        Recognition { state: State::Looking(MOST_TRIES), begun: [None; 2], protocols: Connections::default() }
    }
}

impl Recognition {
    /// The name of the connection's protocol.
    pub(crate) fn name(&self) -> Option<Ulp> {
        match self.state {
            State::Named(ulp) => Some(ulp),
            State::Looking(_) | State::GivenUp => None,
        }
    }

    /// Processes a segment. Returns the parsed message that it ends.
    pub(crate) fn segment(&mut self, direction: Direction, view: &SegmentView<'_>) -> Option<UlpMessage> {
        if self.state == State::GivenUp {
            return None;
        }
        let Segment::Untagged(header, _) = view.segment else {
            self.tagged(direction, view);
            return None;
        };
        if !view.opcode().is_send() {
            if view.opcode() == Opcode::READ_REQUEST && self.name().is_none() {
                self.protocols.read_request(direction, view);
            }
            return None;
        }
        let (msn, mo) = (header.msn.get(), header.mo.get());
        if mo == 0 {
            let verdicts = Connections::read(view.payload.beginning(), view.last(), self.name());
            self.begun[direction] = Some(Begun { msn, verdicts });
        }
        if !view.last() {
            return None;
        }
        let begun = self.begun[direction].take().filter(|begun| begun.msn == msn)?;
        self.ended(direction, begun, u64::from(mo) + u64::from(view.payload_len))
    }

    /// A Read Response may prove a protocol.
    fn tagged(&mut self, direction: Direction, view: &SegmentView<'_>) {
        if !matches!(self.state, State::Looking(_)) || view.opcode() != Opcode::READ_RESPONSE {
            return;
        }
        if let Some(ulp) = self.protocols.proved_by_response(direction, view) {
            self.state = State::Named(ulp);
        }
    }

    fn ended(&mut self, direction: Direction, begun: Begun, len: u64) -> Option<UlpMessage> {
        let fits = |verdict: Verdict<UlpMessage>| match verdict {
            Verdict::Is { len: due, .. } if !due.fits(len) => Verdict::Not,
            other => other,
        };
        let verdicts = begun.verdicts.map(fits);
        if let State::Named(ulp) = self.state {
            return match verdicts[ulp as usize] {
                Verdict::Is { parsed, .. } => Some(parsed),
                Verdict::Open => None,
                Verdict::Not => {
                    self.state = State::GivenUp;
                    None
                }
            };
        }
        for verdict in verdicts {
            let Verdict::Is { parsed, proves, .. } = verdict else { continue };
            self.protocols.message(direction, &parsed);
            if proves {
                self.state = State::Named(parsed.ulp());
                return Some(parsed);
            }
        }
        if let State::Looking(left) = self.state {
            self.state = left.checked_sub(1).map_or(State::GivenUp, State::Looking);
        }
        None
    }
}
