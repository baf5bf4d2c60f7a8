//! The record of a direction whose reading was interrupted. It has the settings, but no octets.

use super::effort::Effort;
use super::hello::Hello;
use super::reader::{Reader, State};
use super::settings::{OwnStartup, Settings};
use crate::tcp::Half;

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
    doubts_end: bool,
    origin: u64,
    zero: u64,
    crc_field: bool,
    fpdus: u64,
    effort: Effort,
    next: u64,
}

impl ReaderRecord {
    /// Position from which the direction continues. If the last FPDU was delivered incomplete, the
    /// position after that FPDU.
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
    pub(crate) fn record(self, half: &Half) -> ReaderRecord {
        let Reader { state, startup, hello, settings, phase, guesses_no_markers, guesses_phase, doubts_end, .. } = self;
        let Reader { origin, zero, crc_field, fpdus, effort, .. } = self;
        let next = if state == State::InStep { self.next.max(half.end()) } else { half.end() };
        ReaderRecord {
            state,
            startup,
            hello,
            settings,
            phase,
            guesses_no_markers,
            guesses_phase,
            doubts_end,
            origin,
            zero,
            crc_field,
            fpdus,
            effort,
            next,
        }
    }

    /// A reader that continues at [`ReaderRecord::next`].
    pub(crate) fn resumed(record: ReaderRecord) -> Self {
        let ReaderRecord {
            state, startup, hello, settings, phase, guesses_no_markers, guesses_phase, doubts_end, ..
        } = record;
        let ReaderRecord { origin, zero, crc_field, fpdus, effort, next, .. } = record;
        let startup = Reader { state, startup, hello, sdp: hello, settings, ..Reader::default() };
        let markers = Reader { phase, guesses_no_markers, guesses_phase, doubts_end, ..startup };
        Reader { origin, zero, crc_field, fpdus, effort, next, searched: next, ..markers }
    }
}
