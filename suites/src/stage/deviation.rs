//! The steps of a case that deviate from a plain exchange, and the FPDUs of the plain exchange that a
//! control does in their place.

use weft_core::wire::mpa::fpdu::len_without_markers;

use super::message::Message;

/// Most lengths of FPDUs that a control tries.
const MOST_LENGTHS: usize = 64;
/// Octets of the header of an untagged and of a tagged segment (RFC 5041 section 4).
pub(super) const UNTAGGED: usize = 18;
pub(super) const TAGGED: usize = 14;
/// Distance and length of markers, in octets (RFC 5044 section 4.3).
const MARKER_INTERVAL: u64 = 512;
const MARKER: u64 = 4;

/// How a step of a script differs from a plain exchange.
#[derive(Debug, Clone)]
pub(crate) enum Deviation {
    /// In FPDUs: plain exchanges take its place.
    Fpdus,
    /// In a start-up frame: this legal one takes its place.
    Startup(Message),
}

/// The marked steps of a case, and the outcome of its control.
#[derive(Debug, Default)]
pub(crate) struct ControlLog {
    /// A marked step sent a start-up frame.
    pub(crate) has_startup: bool,
    /// Lengths of the ULPDUs that the marked steps sent, each once.
    pub(crate) lengths: Vec<u16>,
    /// For a control: did the plain exchange work, and if not, why? `None`: it was not reached.
    pub(crate) outcome: Option<Result<(), String>>,
}

impl ControlLog {
    /// A marked step sends these octets.
    pub(super) fn note(&mut self, octets: &[u8]) {
        let mut rest = octets;
        while let Some(length) = rest.first_chunk().map(|length| u16::from_be_bytes(*length)) {
            self.note_length(usize::from(length));
            rest = rest.get(len_without_markers(length)..).unwrap_or_default();
        }
    }

    /// A marked step sends a ULPDU of this length.
    pub(super) fn note_length(&mut self, length: usize) {
        let length = u16::try_from(length).unwrap_or(u16::MAX);
        if !self.lengths.contains(&length) && self.lengths.len() < MOST_LENGTHS {
            self.lengths.push(length);
        }
    }
}

/// Octets of a stream from this position, without the markers among them.
pub(super) fn without_markers(position: u64, octets: &[u8]) -> Vec<u8> {
    (position..).zip(octets).filter(|(at, _)| at % MARKER_INTERVAL >= MARKER).map(|(_, octet)| *octet).collect()
}

/// Length of the payload of a ULPDU that has `length` octets with its header, or is longer and has
/// the same PAD.
pub(super) fn payload_len(mut length: usize, header: usize) -> usize {
    while length < header {
        length += 4;
    }
    length - header
}

/// Octets that differ by position.
pub(super) fn pattern(len: usize) -> Vec<u8> {
    (0..len).map(|position| b'a' + (position % 23) as u8).collect()
}
