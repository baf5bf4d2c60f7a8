//! From the octets of one direction to MPA's units: start-up frames, FPDUs, and what is neither.
//!
//! | file | question |
//! | --- | --- |
//! | [`startup`] | where does the direction's own start-up frame stand? |
//! | [`settings`] | are there markers and CRCs, by what both frames say? |
//! | [`guess`] | and when the peer's frame is not in the capture? |
//! | [`lock`] | where do FPDUs begin when nothing tells? |
//! | [`effort`] | how much may it cost to find that out? |
//! | [`straight`] | which FPDUs are as nearly all are? |
//! | [`choose`] | how is the FPDU laid out that begins here? |
//! | [`explain`] | what would explain that framing was lost? |
//! | [`resync`] | where do FPDUs go on after framing was lost? |
//! | [`again`] | does a rejected connection start again? |
//! | [`emit`] | what is handed out |
//! | [`record`] | what is kept when reading is interrupted? |
//!
//! Octets come in the order of the capture, so a question may have to wait: [`Later`] travels up
//! through `?`, nothing is changed, and the same question is asked again when what it waits for is
//! there. A direction whose own start-up frame was not captured goes by what is known of the peer's
//! when it locks; a frame that was captured later than that changes nothing. Nothing here judges;
//! see [`crate::rules`].

mod again;
mod choose;
mod effort;
mod emit;
mod explain;
mod guess;
mod lock;
mod record;
mod resync;
mod sdp;
mod settings;
mod startup;
mod straight;
mod stretch;

pub(crate) use emit::Target;
pub(crate) use record::ReaderRecord;
pub(crate) use settings::PeerView;
pub(crate) use startup::OwnStartup;

use weft_core::wire::sdp::FieldOrder;

use crate::tcp::{Half, Later};
use crate::unit::Carrier;
use effort::Effort;
use emit::Scratch;
use sdp::Collector;
use stretch::Passed;

/// Octets that a direction keeps while it waits for the peer's start-up frame, or for a lower first
/// octet of a capture that began in mid-stream.
const WAIT: usize = 256 << 10;

/// How far a direction has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// No own start-up frame yet, and no FPDU that proves itself.
    Searching,
    /// Where FPDUs begin is known; whether with markers and CRC depends on the peer's frame.
    Starting,
    /// FPDU after FPDU.
    InStep,
    /// Framing is lost: searching for the next FPDU.
    Lost,
    /// All that follows is no MPA (a rejected connection), unless a start-up frame comes.
    Outside,
    /// One has come; the other direction has not got so far.
    Again,
}

/// What is known of markers and CRC in one direction; `None`: not known.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Settings {
    /// Do markers stand in it?
    pub markers: Option<bool>,
    /// Are CRCs in use?
    pub crc: Option<bool>,
    /// Was the connection rejected?
    pub rejected: bool,
}

/// The SDP Hello that makes a connection one of SDP.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Hello {
    /// What carried it.
    pub(crate) carrier: Carrier,
    /// How its fields, and those of every message behind it, are ordered.
    pub(crate) order: FieldOrder,
}

/// Reads one direction.
#[derive(Debug)]
pub(crate) struct Reader {
    state: State,
    startup: Option<OwnStartup>,
    /// Where this direction has an SDP Hello.
    hello: Option<Hello>,
    /// Where either direction has one.
    sdp: Option<Hello>,
    /// Somebody says that it is SDP, though its Hello may not be in the capture.
    pub(crate) as_sdp: bool,
    settings: Settings,
    /// Residue modulo 512 of marker positions.
    phase: Option<u16>,
    /// Position from which FPDUs stand at multiples of four.
    origin: u64,
    /// Lowest position of the direction.
    zero: u64,
    crc_field: bool,
    /// Is the other direction proven to be without CRC fields?
    pub(crate) peer_without_crc: bool,
    /// May octets before the own start-up frame be missing, among them another one?
    startup_follows_hole: bool,
    /// The same of the other direction.
    pub(crate) peer_startup_follows_hole: bool,
    fpdus: u64,
    /// Position behind the last FPDU that was chosen; behind what was captured of it, where its end
    /// was not.
    next: u64,
    /// What searching for FPDUs may still cost.
    effort: Effort,
    /// Octets before this were searched for a start-up key.
    searched: u64,
    /// All octets are there, and no start-up key is among them.
    keyless: bool,
    /// What the last question waits for; it is not asked again before.
    blocked: Option<Later>,
    /// The peer as it was last told.
    peer: PeerView,
    /// Octets that belong to no unit yet.
    passed: Passed,
    scratch: Scratch,
    collector: Collector,
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
            phase: None,
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

    /// May the capture lack another start-up frame before the own one?
    pub(crate) fn startup_follows_hole(&self) -> bool {
        self.startup_follows_hole
    }

    /// Is this what was last told of the peer?
    #[must_use]
    pub(crate) fn knows(&self, peer: &PeerView) -> bool {
        self.peer == *peer
    }

    /// Takes note of what the other direction is like.
    pub(crate) fn meet(&mut self, peer: &PeerView) {
        self.sdp = self.hello.or(peer.hello);
        if self.peer != *peer {
            (self.peer, self.blocked) = (*peer, None);
        }
    }

    /// Reads as far as the octets that are there allow.
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

    /// The end of the capture: what is held back is handed out. [`Half::finish`] and a last
    /// [`Reader::poll`] come before.
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

    /// Octets of memory that are kept from unit to unit, near enough.
    #[must_use]
    pub(crate) fn memory(&self) -> usize {
        self.passed.memory() + self.scratch.memory() + self.collector.memory()
    }

    /// Have octets passed whose unit is not handed out?
    #[must_use]
    pub(crate) fn has_passed(&self) -> bool {
        !self.passed.is_empty()
    }

    /// Does it read SDP messages without having seen a Hello?
    #[must_use]
    pub(crate) fn assumes_sdp(&self) -> bool {
        self.as_sdp && self.sdp.is_none()
    }

    /// Own start-up frame, if one was found.
    #[must_use]
    pub(crate) fn startup(&self) -> Option<&OwnStartup> {
        self.startup.as_ref()
    }

    /// The SDP Hello of this direction; one that a lower octet may still come before, too.
    #[must_use]
    pub(crate) fn hello(&self, half: &Half) -> Option<Hello> {
        if half.has_octets() && !half.has_begun() {
            startup::streaming_hello(half).or_else(|| startup::private_hello(half))
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

    /// Everything that is there passes by.
    fn pass_all(&mut self, half: &mut Half) -> Result<(), Later> {
        let (from, to) = (half.consumed(), half.settled());
        if from >= to {
            return Err(Later::NEXT);
        }
        self.passed.absorb(half, from, to);
        half.consume(to);
        Ok(())
    }
}
