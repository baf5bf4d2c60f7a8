//! Reads one direction: its state, and the steps from one state to the next.

use super::effort::Effort;
use super::hello::{Hello, private_hello, streaming_hello};
use super::sdp::Collector;
use super::settings::{OwnStartup, PeerView, Settings};
use super::stretch::Passed;
use super::target::{Scratch, Target};
use crate::tcp::{Half, Later};

/// Octets that a direction keeps while it waits for the peer's start-up frame, or for a lower first
/// octet of a capture that began in mid-stream.
pub(super) const WAIT: usize = 256 << 10;

/// The state of a direction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum State {
    /// No own start-up frame yet, and no FPDU that proves itself.
    Searching,
    /// The start of the FPDUs is known; markers and CRC depend on the peer's frame.
    Starting,
    /// FPDU after FPDU.
    InStep,
    /// Framing is lost: searching for the next FPDU.
    Lost,
    /// The rest is not MPA (a rejected connection), unless a start-up frame comes.
    Outside,
    /// A start-up frame has come; the other direction is not there yet.
    Again,
}

/// Reads one direction.
#[derive(Debug)]
pub(crate) struct Reader {
    pub(super) state: State,
    pub(super) startup: Option<OwnStartup>,
    /// The SDP Hello of this direction.
    pub(super) hello: Option<Hello>,
    /// The SDP Hello of either direction.
    pub(super) sdp: Option<Hello>,
    /// The user requested SDP, although its Hello may not be in the capture.
    pub(crate) as_sdp: bool,
    pub(super) settings: Settings,
    /// Is it only a guess that there are no markers? No start-up frame and no long FPDU shows it.
    pub(super) guesses_no_markers: bool,
    /// Residue modulo 512 of marker positions.
    pub(super) phase: Option<u16>,
    /// Is `phase` only one of several that the FPDUs so far allow?
    pub(super) guesses_phase: bool,
    /// Is the end of the last FPDU a guess? It was not captured completely, and may have markers.
    pub(super) doubts_end: bool,
    /// Position from which FPDUs are at multiples of four.
    pub(super) origin: u64,
    /// Lowest position of the direction.
    pub(super) zero: u64,
    pub(super) crc_field: bool,
    /// Is it proven that the other direction has no CRC fields?
    pub(crate) peer_without_crc: bool,
    /// May octets before its own start-up frame be missing, with another start-up frame among them?
    pub(super) startup_follows_hole: bool,
    /// The same of the other direction.
    pub(crate) peer_startup_follows_hole: bool,
    pub(super) fpdus: u64,
    /// Position after the last chosen FPDU, or after its captured part if its end was not captured.
    pub(super) next: u64,
    /// The remaining budget of the search for FPDUs.
    pub(super) effort: Effort,
    /// Octets before this were searched for a start-up key.
    pub(super) searched: u64,
    /// All octets have arrived, and there is no start-up key among them.
    pub(super) keyless: bool,
    /// The event that the last question waits for; the question is not repeated before.
    pub(super) blocked: Option<Later>,
    /// The last reported state of the peer.
    pub(super) peer: PeerView,
    /// Octets that belong to no unit yet.
    pub(super) passed: Passed,
    pub(super) scratch: Scratch,
    pub(super) collector: Collector,
}

impl Default for Reader {
    fn default() -> Self {
        Reader {
            state: State::Searching,
            startup: None,
            hello: None,
            sdp: None,
            as_sdp: false,
            settings: Settings::default(),
            guesses_no_markers: false,
            phase: None,
            guesses_phase: false,
            doubts_end: false,
            origin: 0,
            zero: 0,
            crc_field: true,
            peer_without_crc: false,
            startup_follows_hole: false,
            peer_startup_follows_hole: false,
            fpdus: 0,
            next: 0,
            effort: Effort::default(),
            searched: 0,
            keyless: false,
            blocked: None,
            peer: PeerView::default(),
            passed: Passed::default(),
            scratch: Scratch::default(),
            collector: Collector::default(),
        }
    }
}

impl Reader {
    /// Did an FPDU of this direction prove that it has no CRC field?
    pub(crate) fn is_without_crc_fields(&self) -> bool {
        !self.crc_field
    }

    /// May the capture lack another start-up frame before its own?
    pub(crate) fn startup_follows_hole(&self) -> bool {
        self.startup_follows_hole
    }

    /// Is `peer` the state that was last reported?
    #[must_use]
    pub(crate) fn knows(&self, peer: &PeerView) -> bool {
        self.peer == *peer
    }

    /// Records the state of the other direction.
    pub(crate) fn meet(&mut self, peer: &PeerView) {
        self.sdp = self.hello.or(peer.hello);
        if self.peer != *peer {
            (self.peer, self.blocked) = (*peer, None);
        }
    }

    /// Reads as far as the octets that have arrived allow.
    pub(crate) fn poll(&mut self, half: &mut Half, out: &mut Target<'_>) {
        let is_blocked = self.blocked.is_some_and(|later| half.still_awaits(&later));
        if is_blocked && self.state != State::Searching {
            return;
        }
        while half.has_octets() {
            match self.step(half, out) {
                Ok(()) => {}
                Err(later) => {
                    if self.state != State::Searching {
                        self.blocked = Some(later);
                    }
                    break;
                }
            }
            if half.is_finished() && half.consumed() >= half.end() {
                break;
            }
        }
    }

    /// The end of the capture: delivers everything that was held back. Call [`Half::finish`] and a
    /// last [`Reader::poll`] before.
    pub(crate) fn finish(&mut self, half: &Half, out: &mut Target<'_>) {
        if self.state == State::Searching || self.is_rejected() {
            self.passed.streaming(half, out);
        } else {
            self.passed.unread(half, out);
        }
    }

    fn step(&mut self, half: &mut Half, out: &mut Target<'_>) -> Result<(), Later> {
        match self.state {
            State::Searching => self.search(half, &{ self.peer }, out),
            State::Starting => self.start(half, &{ self.peer }, out),
            State::InStep => self.in_step(half, out),
            State::Lost => self.find_next(half, out),
            State::Outside => self.outside(half),
            State::Again if !half.is_finished() && half.weight() < WAIT => Err(Later::NEXT),
            State::Again => {
                self.state = State::Outside;
                self.pass_all(half)
            }
        }
    }

    /// Octets of memory that are kept from unit to unit, approximately.
    #[must_use]
    pub(crate) fn memory(&self) -> usize {
        self.passed.memory() + self.scratch.memory() + self.collector.memory()
    }

    /// Are there octets whose unit is not delivered?
    #[must_use]
    pub(crate) fn has_passed(&self) -> bool {
        !self.passed.is_empty()
    }

    /// Does it read SDP messages without having read a Hello?
    #[must_use]
    pub(crate) fn assumes_sdp(&self) -> bool {
        self.as_sdp && self.sdp.is_none()
    }

    /// Its own start-up frame, if one was found.
    #[must_use]
    pub(crate) fn startup(&self) -> Option<&OwnStartup> {
        self.startup.as_ref()
    }

    /// The SDP Hello of this direction, also if a lower octet may still come before it.
    #[must_use]
    pub(crate) fn hello(&self, half: &Half) -> Option<Hello> {
        if half.has_octets() && !half.has_begun() {
            streaming_hello(half).or_else(|| private_hello(half))
        } else {
            self.hello
        }
    }

    fn in_step(&mut self, half: &mut Half, out: &mut Target<'_>) -> Result<(), Later> {
        let at = half.consumed();
        if half.is_end(at)? {
            return Err(Later::NEXT);
        }
        let Some(chosen) = self.choose(half, at)? else {
            self.passed.explain(self.explain(half, at));
            self.state = State::Lost;
            return Ok(());
        };
        self.emit_fpdu(half, &chosen, out);
        self.next = chosen.layout.end;
        half.consume(chosen.layout.end.min(half.end()));
        Ok(())
    }

    fn find_next(&mut self, half: &mut Half, out: &mut Target<'_>) -> Result<(), Later> {
        match self.resync(half)? {
            Some(position) => {
                self.passed.absorb(half, half.consumed(), position);
                half.consume(position);
                self.passed.unread(half, out);
                self.state = State::InStep;
                Ok(())
            }
            None => self.pass_all(half),
        }
    }

    /// Skips all octets that have arrived.
    pub(super) fn pass_all(&mut self, half: &mut Half) -> Result<(), Later> {
        let (from, to) = (half.consumed(), half.settled());
        if from >= to {
            return Err(Later::NEXT);
        }
        self.passed.absorb(half, from, to);
        half.consume(to);
        Ok(())
    }
}
