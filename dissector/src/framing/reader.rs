//! [`Reader`]: the state machine that reads one direction of a connection.

use super::hello::{Hello, private_hello, streaming_hello};
use super::sdp::Collector;
use super::search_budget::SearchBudget;
use super::settings::{OwnStartup, PeerView, Settings};
use super::skipped_octets::SkippedOctets;
use super::unit_output::{Scratch, UnitOutput};
use crate::tcp::{DirectionStream, Pending};

/// Maximum number of octets that a direction stores while it waits for the start-up frame of the
/// peer. The same maximum applies if the capture starts in mid-stream and the direction waits for
/// octets before the first captured octet.
pub(super) const MAX_BUFFERED_OCTETS: usize = 256 << 10;

/// The state of a direction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum State {
    /// So far, the reader has found neither a start-up frame of this direction nor an FPDU with a
    /// proven position.
    #[default]
    Searching,
    /// The position of the first FPDU is known. Markers and CRC depend on the start-up frame of the
    /// peer.
    Starting,
    /// The reader reads consecutive FPDUs.
    InSync,
    /// No FPDU was found at the expected position. The reader searches for the next FPDU.
    Lost,
    /// The connection was rejected. Until a new start-up frame arrives, octets are not MPA.
    Rejected,
    /// A new start-up frame has arrived after the rejection. The other direction has no new
    /// start-up frame yet.
    Restarting,
}

/// Reads one direction.
#[derive(Debug, Default)]
pub(crate) struct Reader {
    pub(super) state: State,
    pub(crate) startup: Option<OwnStartup>,
    /// The SDP Hello of this direction.
    pub(super) hello: Option<Hello>,
    /// The SDP Hello of this direction or, if this direction has no Hello, of the other direction.
    pub(super) sdp: Option<Hello>,
    /// Whether the user requested to read the connection as SDP, even without a Hello.
    pub(crate) as_sdp: bool,
    pub(super) settings: Settings,
    /// Whether the absence of markers is a guess. A start-up frame, or a correct FPDU of at least
    /// 512 octets without markers, confirms the absence.
    pub(super) guesses_no_markers: bool,
    /// The marker phase: the remainder of marker positions modulo 512; `None` if there are no
    /// markers.
    pub(super) phase: Option<u16>,
    /// Whether `phase` is only one of several possible phases.
    pub(super) guesses_phase: bool,
    /// Whether the end of the last FPDU is a guess, because the FPDU was not captured completely
    /// and possibly has markers.
    pub(super) guesses_end: bool,
    /// Position of the first FPDU. The distance from here to each later FPDU is a multiple of four.
    pub(super) origin: u64,
    /// Lowest position of the direction.
    pub(super) zero: u64,
    /// Whether the FPDUs of this direction are proven to have no CRC fields.
    pub(crate) without_crc: bool,
    /// Whether the other direction is proven to have no CRC fields.
    pub(crate) peer_without_crc: bool,
    /// Whether octets before the start-up frame of this direction may be missing. The missing
    /// octets may contain another start-up frame.
    pub(crate) startup_follows_hole: bool,
    /// The value of `startup_follows_hole` of the other direction.
    pub(crate) peer_startup_follows_hole: bool,
    pub(super) fpdus: u64,
    /// Position after the last FPDU.
    pub(super) next: u64,
    /// The remaining budget of the search for FPDUs.
    pub(super) budget: SearchBudget,
    /// Position up to which octets were searched for a start-up key.
    pub(super) searched: u64,
    /// Whether all octets have arrived and contain no start-up key.
    pub(super) keyless: bool,
    /// The event that the last step waits for. The step is repeated after this event.
    pub(super) blocked: Option<Pending>,
    /// The last reported state of the other direction.
    pub(super) peer: PeerView,
    /// Octets that belong to no unit yet.
    pub(super) skipped: SkippedOctets,
    pub(super) scratch: Scratch,
    pub(super) collector: Collector,
}

impl Reader {
    /// Returns whether `peer` equals the last reported state of the other direction.
    pub(crate) fn is_peer_unchanged(&self, peer: &PeerView) -> bool {
        self.peer == *peer
    }

    /// Records the state of the other direction.
    pub(crate) fn set_peer(&mut self, peer: &PeerView) {
        self.sdp = self.hello.or(peer.hello);
        if self.peer != *peer {
            (self.peer, self.blocked) = (*peer, None);
        }
    }

    /// Reads as many of the arrived octets as possible.
    pub(crate) fn poll(&mut self, half: &mut DirectionStream, out: &mut UnitOutput<'_>) {
        let is_blocked = self.blocked.is_some_and(|pending| half.still_awaits(&pending));
        if is_blocked && self.state != State::Searching {
            return;
        }
        while half.has_octets() {
            match self.step(half, out) {
                Ok(()) => {}
                Err(pending) => {
                    if self.state != State::Searching {
                        self.blocked = Some(pending);
                    }
                    break;
                }
            }
            if half.is_finished() && half.consumed() >= half.end() {
                break;
            }
        }
    }

    /// Delivers all remaining octets at the end of the capture. Before this method, call
    /// [`DirectionStream::finish`] and then [`Reader::poll`].
    pub(crate) fn finish(&mut self, half: &DirectionStream, out: &mut UnitOutput<'_>) {
        if self.state == State::Searching || self.is_rejected() {
            self.skipped.deliver_streaming(half, out);
        } else {
            self.skipped.deliver_unread(half, out);
        }
    }

    fn step(&mut self, half: &mut DirectionStream, out: &mut UnitOutput<'_>) -> Result<(), Pending> {
        match self.state {
            State::Searching => self.search(half, out),
            State::Starting => self.start(half, out),
            State::InSync => self.read_next(half, out),
            State::Lost => self.find_next(half, out),
            State::Rejected => self.skip_rejected(half),
            State::Restarting if !half.is_finished() && half.weight() < MAX_BUFFERED_OCTETS => Err(Pending::NEXT),
            State::Restarting => {
                self.state = State::Rejected;
                self.skip_all(half)
            }
        }
    }

    /// Approximate memory in bytes that is kept between units.
    pub(crate) fn memory(&self) -> usize {
        self.skipped.memory() + self.scratch.memory() + self.collector.memory()
    }

    /// Returns whether the reader has read octets whose unit is not delivered yet.
    pub(crate) fn has_skipped(&self) -> bool {
        !self.skipped.is_empty()
    }

    /// Returns whether this direction is read as SDP because the user requested this, although no
    /// Hello was found.
    pub(crate) fn assumes_sdp(&self) -> bool {
        self.as_sdp && self.sdp.is_none()
    }

    /// The SDP Hello of this direction. Returns the Hello even while octets before the first
    /// captured octet may still arrive.
    pub(crate) fn hello(&self, half: &DirectionStream) -> Option<Hello> {
        if half.has_octets() && !half.has_begun() {
            streaming_hello(half).or_else(|| private_hello(half))
        } else {
            self.hello
        }
    }

    fn read_next(&mut self, half: &mut DirectionStream, out: &mut UnitOutput<'_>) -> Result<(), Pending> {
        let at = half.consumed();
        if half.is_end(at)? {
            return Err(Pending::NEXT);
        }
        let Some(chosen) = self.choose(half, at)? else {
            self.skipped.explain(self.explain(half, at));
            self.state = State::Lost;
            return Ok(());
        };
        self.emit_fpdu(half, &chosen, out);
        self.next = chosen.layout.end;
        half.consume(chosen.layout.end.min(half.end()));
        Ok(())
    }

    fn find_next(&mut self, half: &mut DirectionStream, out: &mut UnitOutput<'_>) -> Result<(), Pending> {
        match self.resync(half)? {
            Some(position) => {
                self.sync_at(half, position, out);
                Ok(())
            }
            None => self.skip_all(half),
        }
    }

    /// Skips all octets that have arrived.
    pub(super) fn skip_all(&mut self, half: &mut DirectionStream) -> Result<(), Pending> {
        let to = half.settled();
        if half.consumed() >= to {
            return Err(Pending::NEXT);
        }
        self.skip_to(half, to);
        Ok(())
    }

    /// Skips the octets before `to`.
    pub(super) fn skip_to(&mut self, half: &mut DirectionStream, to: u64) {
        self.skipped.absorb(half, half.consumed(), to);
        half.consume(to);
    }

    /// Delivers the octets before the FPDU at `position` as unread octets, and resumes at this
    /// FPDU.
    pub(super) fn sync_at(&mut self, half: &mut DirectionStream, position: u64, out: &mut UnitOutput<'_>) {
        self.skip_to(half, position);
        self.skipped.deliver_unread(half, out);
        self.state = State::InSync;
    }
}
