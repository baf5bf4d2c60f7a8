//! The record of a direction of an evicted connection. The record has the settings, but no octets.

use super::hello::Hello;
use super::reader::{Reader, State};
use super::search_budget::SearchBudget;
use super::settings::{OwnStartup, Settings};
use crate::tcp::DirectionStream;

/// The state that [`Reader::resumed`] needs to continue.
#[derive(Debug)]
pub(crate) struct ReaderRecord {
    state: State,
    startup: Option<OwnStartup>,
    hello: Option<Hello>,
    settings: Settings,
    phase: Option<u16>,
    guesses_no_markers: bool,
    guesses_phase: bool,
    guesses_end: bool,
    origin: u64,
    zero: u64,
    without_crc: bool,
    fpdus: u64,
    budget: SearchBudget,
    next: u64,
}

impl ReaderRecord {
    /// Position from which the direction continues. If the last FPDU was delivered incomplete, this
    /// is the position after that FPDU.
    pub(crate) fn next(&self) -> u64 {
        self.next
    }
}

impl Reader {
    /// Returns whether a start-up frame, an FPDU or an SDP Hello was found.
    pub(crate) fn is_mpa(&self) -> bool {
        self.state != State::Searching || self.hello.is_some()
    }

    /// The record for [`Reader::resumed`]. Call this method after [`Reader::finish`].
    pub(crate) fn record(self, half: &DirectionStream) -> ReaderRecord {
        let Reader { state, startup, hello, settings, phase, guesses_no_markers, guesses_phase, guesses_end, .. } =
            self;
        let Reader { origin, zero, without_crc, fpdus, budget, .. } = self;
        let next = if state == State::InSync { self.next.max(half.end()) } else { half.end() };
        ReaderRecord {
            state,
            startup,
            hello,
            settings,
            phase,
            guesses_no_markers,
            guesses_phase,
            guesses_end,
            origin,
            zero,
            without_crc,
            fpdus,
            budget,
            next,
        }
    }

    /// A reader that continues at [`ReaderRecord::next`].
    pub(crate) fn resumed(record: ReaderRecord) -> Self {
        let ReaderRecord {
            state, startup, hello, settings, phase, guesses_no_markers, guesses_phase, guesses_end, ..
        } = record;
        let ReaderRecord { origin, zero, without_crc, fpdus, budget, next, .. } = record;
        let startup = Reader { state, startup, hello, sdp: hello, settings, ..Reader::default() };
        let markers = Reader { phase, guesses_no_markers, guesses_phase, guesses_end, ..startup };
        Reader { origin, zero, without_crc, fpdus, budget, next, searched: next, ..markers }
    }
}
