//! Checks of deviations (named faults of an endpoint) in the octets of ULPDUs. Other checks are
//! about the events that the user gets at start-up and at the end of a connection.

use weft_core::wire::mpa::Framing;
use weft_peer::Deviations;
use weft_peer::hostile::{ConnectionOutcome, conceals_outcome};
use weft_peer::mpa::{
    AfterReply, AfterRequest, Deframer, Depth, EnhancedUse, MpaSettings, PeerFrame, PrivateData, WaitReply, WaitRequest,
};

use crate::connection::machine::mpa;
use crate::hostile::Check;

/// The frame that is reported to the user for a Request with these octets after its key.
fn reported_frame(deviations: &Deviations, tail: &[u8]) -> PeerFrame {
    let waiting = WaitRequest::start(MpaSettings::default(), deviations.clone());
    match waiting.handle_octets(&[b"MPA ID Req Frame", tail].concat()) {
        Ok(AfterRequest::Arrived(decision)) => decision.request().clone(),
        other => panic!("{other:?}"),
    }
}

fn reported_length(deviations: &Deviations, tail: &[u8]) -> usize {
    reported_frame(deviations, tail).private_data.as_octets().len()
}

/// Returns how an Initiator reacts to a Reply whose IRD and ORD fields are `words`. The Initiator
/// requests four Reads in each direction.
fn concluded(deviations: &Deviations, words: [u8; 4]) -> AfterReply {
    let settings = mpa(|mpa| {
        mpa.enhanced = EnhancedUse::Request;
        (mpa.enhanced_settings.ird, mpa.enhanced_settings.ord) = (Depth::negotiated(4), Depth::negotiated(4));
    });
    let waiting = WaitReply::start(settings.mpa, &PrivateData::default(), deviations.clone(), &mut Vec::new()).unwrap();
    waiting.handle_octets(&[&b"MPA ID Rep Frame\x50\x02\0\x04"[..], &words].concat()).unwrap()
}

const WITH_WORDS: &[u8] = b"\x50\x02\0\x06\0\x03\0\x05hi";

pub(crate) const CHECKS: &[Check] = &[
    ("mpa.conceals-end", |d| conceals_outcome(d, ConnectionOutcome::Disconnected)),
    ("mpa.conceals-failure", |d| {
        conceals_outcome(d, ConnectionOutcome::Failed) && conceals_outcome(d, ConnectionOutcome::Rejected)
    }),
    ("mpa.conceals-private-data", |d| reported_length(d, b"\x40\x01\0\x02hi") == 0),
    ("mpa.pads-private-data", |d| reported_length(d, b"\x40\x01\0\x02hi") == 196),
    ("mpa.passes-trailer", |d| {
        // The FPDU has a ULPDU of one octet, and one octet of PAD.
        let mut octets = b"\x00\x01U\x00".to_vec();
        octets.extend(weft_core::crc::to_octets(weft_core::crc::crc32c(&octets)));
        let mut deframer = Deframer::deviating(Framing { markers: false, crc: true }, d.clone());
        deframer.next(&mut &octets[..]).unwrap().unwrap() == &octets[2..]
    }),
    ("p2p.swaps-reported-depths", |d| {
        reported_frame(d, WITH_WORDS).enhanced.is_some_and(|words| (words.ird, words.ord) == (5, 3))
    }),
    ("p2p.takes-open-ird-for-none", |d| match concluded(d, [0x3f, 0xff, 0, 1]) {
        AfterReply::Accepted(negotiated, _) => negotiated.enhanced.unwrap().ord == 0,
        other => panic!("{other:?}"),
    }),
    ("p2p.takes-open-ord-for-a-number", |d| matches!(concluded(d, [0, 4, 0x3f, 0xff]), AfterReply::Unacceptable(..))),
    ("p2p.reports-words", |d| reported_length(d, WITH_WORDS) == 6),
];
