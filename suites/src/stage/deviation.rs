//! The steps of a case that deviate from a plain exchange, and the FPDUs of the plain exchanges
//! that replace these steps in a control. `control.rs` explains these terms.

use weft_core::wire::ddp::{RawTagged, RawUntagged};
use weft_core::wire::mpa::fpdu::len_without_markers;

use super::message::Message;

/// Maximum number of FPDU lengths that a control tries.
const MAX_LENGTHS: usize = 64;
/// Length in bytes of the header of an untagged segment.
pub(super) const UNTAGGED: usize = RawUntagged::LEN;
/// Length in bytes of the header of a tagged segment.
pub(super) const TAGGED: usize = RawTagged::LEN;

/// How a step of a script differs from a plain exchange.
#[derive(Debug, Clone)]
pub(crate) enum Deviation {
    /// The step sends FPDUs. In a control, plain exchanges replace it.
    Fpdus,
    /// The step sends a start-up frame. In a control, this legal frame replaces it.
    Startup(Message),
}

/// The marked steps of a case, and the outcome of its control.
#[derive(Debug, Default)]
pub(crate) struct ControlLog {
    /// Whether a marked step sent a start-up frame.
    pub(crate) has_startup: bool,
    /// Lengths in bytes of the ULPDUs that the marked steps sent, without duplicates.
    pub(crate) lengths: Vec<u16>,
    /// In a control, this is the result of the plain exchange, with the reason if the exchange
    /// failed. `None` if the plain exchange was not reached.
    pub(crate) outcome: Option<Result<(), String>>,
}

impl ControlLog {
    /// Notes the lengths of the ULPDUs that a marked step sends. `octets` has the bytes of the
    /// step.
    pub(super) fn note(&mut self, octets: &[u8]) {
        let mut rest = octets;
        while let Some(length) = rest.first_chunk().map(|length| u16::from_be_bytes(*length)) {
            self.note_length(usize::from(length));
            rest = rest.get(len_without_markers(length)..).unwrap_or_default();
        }
    }

    /// Notes the length of a ULPDU that a marked step sends.
    pub(super) fn note_length(&mut self, length: usize) {
        let length = u16::try_from(length).unwrap_or(u16::MAX);
        if !self.lengths.contains(&length) && self.lengths.len() < MAX_LENGTHS {
            self.lengths.push(length);
        }
    }
}

/// Returns the payload length of a ULPDU with `length` bytes and a header of `header` bytes. If
/// `length` is less than `header`, the ULPDU is longer, but has the same PAD.
pub(super) fn payload_len(mut length: usize, header: usize) -> usize {
    while length < header {
        length += 4;
    }
    length - header
}

/// Returns bytes whose values depend on their positions.
pub(super) fn pattern(len: usize) -> Vec<u8> {
    (0..len).map(|position| b'a' + (position % 23) as u8).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::correct;

    #[test]
    fn each_length_of_a_marked_step_is_tried_once() {
        let mut log = ControlLog::default();
        let fpdu = |payload: &[u8]| correct::fpdu(&correct::send(1, payload), true);
        log.note(&[fpdu(b"one"), fpdu(b"four"), fpdu(b"two")].concat());
        log.note(&fpdu(b"four")[..7]);
        assert_eq!(log.lengths, [21, 22]);
    }

    #[test]
    fn a_plain_exchange_has_the_same_pad() {
        for length in 0..100usize {
            for header in [UNTAGGED, TAGGED] {
                let made = header + payload_len(length, header);
                assert_eq!((made % 4, made >= length), (length % 4, true));
            }
        }
        assert_eq!(payload_len(21, UNTAGGED), 3);
    }
}
