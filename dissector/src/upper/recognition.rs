//! Recognises the protocol above RDMAP on a connection.
//!
//! The folder of each protocol has a test for messages. When a message proves a protocol, the
//! connection gets this protocol. If a later message fails the test of this protocol, it is
//! possible that the proof was an accident. From then on, the protocol of the connection is
//! unknown. A message whose first bytes were not captured neither proves nor disproves a protocol.
//! If the first `MAX_TESTED_SENDS` + 1 messages prove no protocol, later messages are not tested.
//!
//! If a Send has several segments, the test uses the bytes of the first segment, and the total
//! length, which the last segment shows.

use weft_core::wire::ddp::{Msn, Segment};
use weft_core::wire::rdmap::Opcode;

use super::protocol::Verdict;
use super::table::{Connections, Ulp, UlpMessage};
use crate::direction::Direction;
use crate::parse::SegmentView;

/// Maximum number of tested Sends before the Send that proves a protocol.
pub(super) const MAX_TESTED_SENDS: u8 = 32;

/// An incomplete Send: its MSN, and the test results for its first bytes.
#[derive(Debug, Clone, Copy)]
struct PartialSend {
    msn: Msn,
    verdicts: [Verdict<UlpMessage>; Ulp::COUNT],
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// Not recognised yet. The value is the number of messages to test after the next message.
    Looking(u8),
    Named(Ulp),
    /// The first messages proved no protocol, or a later message failed the test.
    GivenUp,
}

/// State of the recognition on one connection.
#[derive(Debug, Clone)]
pub(crate) struct Recognition {
    state: State,
    partial: [Option<PartialSend>; 2],
    protocols: Connections,
}

impl Default for Recognition {
    fn default() -> Self {
        Recognition { state: State::Looking(MAX_TESTED_SENDS), partial: [None; 2], protocols: Connections::default() }
    }
}

impl Recognition {
    /// The recognised protocol of the connection.
    pub(crate) fn name(&self) -> Option<Ulp> {
        match self.state {
            State::Named(ulp) => Some(ulp),
            State::Looking(_) | State::GivenUp => None,
        }
    }

    /// Processes a segment. Returns the parsed message that the segment completes.
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
        let (msn, mo) = (header.msn(), header.mo.get());
        if mo == 0 {
            let verdicts = Connections::read(view.payload.beginning(), view.last(), self.name());
            self.partial[direction] = Some(PartialSend { msn, verdicts });
        }
        if !view.last() {
            return None;
        }
        let partial = self.partial[direction].take().filter(|partial| partial.msn == msn)?;
        self.complete_send(direction, partial, u64::from(mo) + u64::from(view.payload_len))
    }

    /// Processes a tagged segment. A segment of a Read Response can prove a protocol.
    fn tagged(&mut self, direction: Direction, view: &SegmentView<'_>) {
        if !matches!(self.state, State::Looking(_)) || view.opcode() != Opcode::READ_RESPONSE {
            return;
        }
        if let Some(ulp) = self.protocols.proved_by_response(direction, view) {
            self.state = State::Named(ulp);
        }
    }

    fn complete_send(&mut self, direction: Direction, partial: PartialSend, len: u64) -> Option<UlpMessage> {
        let fits = |verdict: Verdict<UlpMessage>| match verdict {
            Verdict::Is { len: due, .. } if !due.fits(len) => Verdict::Not,
            other => other,
        };
        let verdicts = partial.verdicts.map(fits);
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
