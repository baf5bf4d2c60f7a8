//! Recognises the protocol above RDMAP on a connection.
//!
//! The folder of each protocol has a test for messages. When a message proves a protocol, the
//! connection gets this protocol. The private data of the start-up frames can prove a protocol,
//! too. If a later message fails the test of this protocol, it is possible that the proof was an
//! accident. From then on, the protocol of the connection is unknown. A message whose first bytes
//! were not captured neither proves nor disproves a protocol. If the first `MAX_TESTED_SENDS` + 1
//! messages prove no protocol, later messages are not tested.
//!
//! If a Send has several segments, the test uses the bytes of the first segment, and the total
//! length, which the last segment shows.

use weft_core::wire::ddp::{Msn, Segment};
use weft_core::wire::mpa::StartupKind;
use weft_core::wire::rdmap::Opcode;

use super::protocol::{Judgement, SendInfo, Verdict};
use super::startup::Startup;
use super::table::{Connections, Ulp, UlpMessage};
use crate::direction::Direction;
use crate::frame_number::FrameNumber;
use crate::parse::SegmentView;
use crate::part::Part;

/// Maximum number of tested Sends before the Send that proves a protocol.
pub(super) const MAX_TESTED_SENDS: u8 = 32;

/// An incomplete Send: its MSN, and the test results for its first bytes.
#[derive(Debug, Clone)]
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
    /// The incomplete Send of each direction. It is large, and most connections have none.
    partial: [Option<Box<PartialSend>>; 2],
    protocols: Connections,
}

impl Default for Recognition {
    fn default() -> Self {
        let (state, partial) = (State::Looking(MAX_TESTED_SENDS), [None, None]);
        Recognition { state, partial, protocols: Connections::default() }
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

    /// Processes a start-up frame. Returns the protocol to which its private data belongs.
    pub(crate) fn startup(&mut self, kind: StartupKind, direction: Direction, part: Part<'_>) -> Option<Ulp> {
        let startup = Startup::read(kind, direction, part)?;
        let (ulp, proves) = self.protocols.startup(&startup)?;
        if proves && matches!(self.state, State::Looking(_)) {
            self.state = State::Named(ulp);
        }
        Some(ulp)
    }

    /// Processes a segment. `frame` is the number of the frame that completed the segment. Returns
    /// the parsed message that the segment completes.
    pub(crate) fn segment(
        &mut self,
        direction: Direction,
        view: &SegmentView<'_>,
        frame: FrameNumber,
    ) -> Option<UlpMessage> {
        if self.state == State::GivenUp {
            return None;
        }
        let Segment::Untagged(header, _) = view.segment else {
            return self.tagged(direction, view);
        };
        if !view.opcode().is_send() {
            if view.opcode() == Opcode::READ_REQUEST {
                self.protocols.read_request(direction, view, self.name());
            }
            return None;
        }
        let (msn, mo) = (header.msn(), header.mo.get());
        let len = u64::from(mo) + u64::from(view.payload_len);
        let send = SendInfo { direction, frame, len, is_recognised: self.name().is_some() };
        if mo == 0 {
            let bytes = view.payload.beginning();
            let is_complete = view.last() && bytes.len() == view.payload_len as usize;
            let mut verdicts = Connections::read(bytes, is_complete, self.name());
            if view.last() {
                // Most Sends have one segment. Their results need not be stored.
                self.partial[direction] = None;
                return self.complete_send(&mut verdicts, &send);
            }
            self.partial[direction] = Some(Box::new(PartialSend { msn, verdicts }));
        }
        if !view.last() {
            return None;
        }
        let mut partial = self.partial[direction].take().filter(|partial| partial.msn == msn)?;
        self.complete_send(&mut partial.verdicts, &send)
    }

    /// Allocated memory in bytes.
    pub(crate) fn memory(&self) -> usize {
        self.partial.iter().flatten().count() * size_of::<PartialSend>() + self.protocols.memory()
    }

    /// Processes a tagged segment. A segment of a Read Response can prove a protocol, or can
    /// contain a message of the recognised protocol.
    fn tagged(&mut self, direction: Direction, view: &SegmentView<'_>) -> Option<UlpMessage> {
        if view.opcode() != Opcode::READ_RESPONSE {
            return None;
        }
        match self.state {
            State::Looking(_) => {
                if let Some(ulp) = self.protocols.proved_by_response(direction, view) {
                    self.state = State::Named(ulp);
                }
                None
            }
            State::Named(ulp) => self.protocols.read_response(ulp, direction, view),
            State::GivenUp => None,
        }
    }

    /// Processes a complete Send. `verdicts` are the test results for its first bytes.
    fn complete_send(
        &mut self,
        verdicts: &mut [Verdict<UlpMessage>; Ulp::COUNT],
        send: &SendInfo,
    ) -> Option<UlpMessage> {
        for verdict in &mut *verdicts {
            if matches!(*verdict, Verdict::Is { len: due, .. } if !due.fits(send.len)) {
                *verdict = Verdict::Not;
            }
        }
        if let State::Named(ulp) = self.state {
            let is_disproved = match &mut verdicts[ulp as usize] {
                Verdict::Is { parsed, .. } => match self.protocols.message(send, parsed) {
                    Judgement::Open | Judgement::Proves => return Some(*parsed),
                    Judgement::Disproves => true,
                },
                Verdict::Open => false,
                Verdict::Not => true,
            };
            if is_disproved {
                self.state = State::GivenUp;
            }
            return None;
        }
        for verdict in verdicts {
            let Verdict::Is { parsed, proves, .. } = verdict else { continue };
            let is_proved = match self.protocols.message(send, parsed) {
                Judgement::Open => *proves,
                Judgement::Proves => true,
                Judgement::Disproves => false,
            };
            if is_proved {
                self.state = State::Named(parsed.ulp());
                return Some(*parsed);
            }
        }
        if let State::Looking(left) = self.state {
            self.state = left.checked_sub(1).map_or(State::GivenUp, State::Looking);
        }
        None
    }
}
