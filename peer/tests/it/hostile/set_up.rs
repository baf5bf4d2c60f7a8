//! Checks of deviations (named faults of an endpoint) in the enhanced set-up of RFC 6581.

use weft_peer::connection::Transmit;
use weft_peer::mpa::{EnhancedSettings, EnhancedUse, Model, PrivateData, Rtr, RtrKinds};
use weft_peer::{Deviations, Settings};

use crate::connection::machine::{Machine, SEND, WRITE, mpa};
use crate::hostile::Check;
use crate::mpa::wire::fpdus;

fn peer_to_peer(deviations: &Deviations, change: impl FnOnce(&mut EnhancedSettings)) -> Settings {
    let settings = mpa(|mpa| {
        mpa.enhanced = EnhancedUse::Request;
        mpa.enhanced_settings.model = Model::PeerToPeer;
        change(&mut mpa.enhanced_settings);
    });
    Settings { deviations: deviations.clone(), ..settings }
}

/// A Request in the peer-to-peer model, without the 16 octets of its key.
fn request(deviations: &Deviations) -> Vec<u8> {
    Machine::initiator(peer_to_peer(deviations, |_| ())).octets_sent()[16..].to_vec()
}

/// A default Responder that received a Request with the octets `tail` after the key.
fn responder(deviations: &Deviations, tail: &[u8]) -> Machine {
    let mut machine = Machine::responder(Settings { deviations: deviations.clone(), ..Settings::default() });
    machine.octets(&[b"MPA ID Req Frame", tail].concat());
    machine
}

/// Returns the Reply to an enhanced Request whose IRD and ORD fields are `words`. The 16 octets of
/// the Reply's key are left out.
fn reply(deviations: &Deviations, words: [u8; 4]) -> Vec<u8> {
    let octets = responder(deviations, &[&[0x50, 2, 0, 4][..], &words].concat()).octets_sent();
    octets.get(16..).unwrap_or_default().to_vec()
}

/// The Request of an enhanced client in the client-server model.
fn client_server(deviations: &Deviations) -> Vec<u8> {
    Machine::initiator(peer_to_peer(deviations, |e| e.model = Model::ClientServer)).octets_sent()
}

/// The ULPDUs that an Initiator sends after a Reply whose IRD and ORD fields are `words`.
fn opening(deviations: &Deviations, words: [u8; 4]) -> Vec<Vec<u8>> {
    let mut machine =
        Machine::initiator(peer_to_peer(deviations, |e| e.rtr = RtrKinds { send: false, ..RtrKinds::ALL }));
    machine.forget();
    machine.octets(&[&b"MPA ID Rep Frame\x50\x02\0\x04"[..], &words].concat());
    let framing = weft_core::wire::mpa::Framing { markers: false, crc: true };
    fpdus(&machine.octets_sent(), framing).into_iter().map(|fpdu| fpdu.ulpdu).collect()
}

const ASK_ALL: [u8; 4] = [0xc0, 8, 0xc0, 8];
const OFFER_WRITE: [u8; 4] = [0x80, 8, 0x80, 8];
const OFFER_SEND: [u8; 4] = [0xc0, 8, 0, 8];

pub(crate) const CHECKS: &[Check] = &[
    ("p2p.a-and-b-exchanged", |d| {
        let mut machine = Machine::initiator(peer_to_peer(d, |e| e.rtr = RtrKinds { send: false, ..RtrKinds::ALL }));
        machine.settle();
        machine.octets_sent()[20..] == [0x40, 32, 0xc0, 32]
    }),
    ("p2p.accepts-short-words", |d| responder(d, &[0x50, 2, 0, 2, 1, 1]).octets_sent().ends_with(b"Frame\x40\x02\0\0")),
    ("p2p.checks-rtr-stag", |d| {
        let mut machine = responder(d, &[&[0x50, 2, 0, 4][..], &ASK_ALL].concat());
        let mut write = WRITE[..16].to_vec();
        write[7] = 1;
        let crc = weft_core::crc::to_octets(weft_core::crc::crc32c(&write));
        machine.octets(&[&write[..], &crc].concat());
        !machine.connection.is_operating()
    }),
    ("p2p.closes-enhanced", |d| responder(d, &[&[0x50, 2, 0, 4][..], &ASK_ALL].concat()).sent == [Transmit::Fin]),
    ("p2p.counts-without-words", |d| request(d)[3] == 0 && reply(d, ASK_ALL)[3] == 0),
    ("p2p.enhanced-without-need", |d| {
        let settings = Settings { deviations: d.clone(), ..Settings::default() };
        Machine::initiator(settings).octets_sent()[16..] == [0x50, 2, 0, 4, 0, 32, 0, 32]
    }),
    ("p2p.looks-at-kinds-of-client-server", |d| reply(d, [0x40, 8, 0xc0, 8])[4..] == [0x40, 32, 0xc0, 8]),
    ("p2p.opens-late", |d| opening(d, OFFER_WRITE) == [&SEND[2..20], &WRITE[2..16]]),
    ("p2p.opens-twice", |d| opening(d, [0x80, 8, 0x40, 8]) == [Rtr::Read.ulpdu(1), Rtr::Write.ulpdu(1)]),
    ("p2p.opens-unrequested", |d| opening(d, [0, 8, 0, 8]) == [&WRITE[2..16]]),
    ("p2p.opens-with-another-kind", |d| {
        opening(d, OFFER_WRITE) == [Rtr::Read.ulpdu(1)] && opening(d, [0x80, 8, 0x40, 8]) == [Rtr::Write.ulpdu(1)]
    }),
    ("p2p.opens-with-data", |d| {
        let read = opening(d, [0x80, 8, 0x40, 8]);
        opening(d, OFFER_WRITE)[0].len() == 15 && read[0].len() == 46 && read[0][30..34] == [0, 0, 0, 1]
    }),
    ("p2p.forgets-opening-send", |d| {
        let only_send = |e: &mut EnhancedSettings| {
            (e.rtr, e.preferred_rtr) = (RtrKinds::only(Rtr::Send), Rtr::Send);
        };
        let mut machine = Machine::initiator(peer_to_peer(d, only_send));
        machine.octets(&[&b"MPA ID Rep Frame\x50\x02\0\x04"[..], &OFFER_SEND].concat());
        machine.forget();
        machine.connection.post_send(&b"first"[..]).unwrap();
        machine.settle();
        machine.octets_sent()[12..16] == [0, 0, 0, 1]
    }),
    ("p2p.insufficient-ird-as-no-match", |d| opening(d, [0x80, 8, 0x80 | 0x3f, 0xfe])[0][18..20] == [0x20, 7]),
    ("p2p.opens-with-empty-fpdu", |d| opening(d, OFFER_WRITE) == [[]]),
    ("p2p.reply-copies-depths", |d| reply(d, [0, 3, 0, 40])[4..] == [0, 3, 0, 40]),
    ("p2p.revision-among-flags", |d| request(d)[0] == 0x52 && reply(d, ASK_ALL)[0] == 0x52),
    ("p2p.opens-with-nothing", |d| opening(d, OFFER_WRITE).is_empty()),
    ("p2p.rejects-unenhanced", |d| {
        let settings = Settings { accept: false, deviations: d.clone(), ..Settings::default() };
        let mut machine = Machine::responder(settings);
        machine.octets(&[&b"MPA ID Req Frame\x50\x02\0\x04"[..], &ASK_ALL].concat());
        machine.connection.reject(&PrivateData::new(&b"no"[..]).unwrap()).unwrap();
        machine.settle();
        machine.octets_sent()[16..] == *b"\x60\x02\0\x02no"
    }),
    ("p2p.reply-adds-ord", |d| reply(d, [0, 3, 0, 3])[6..] == [0, 4]),
    ("p2p.reply-claims-peer-to-peer", |d| reply(d, [0, 3, 0, 3])[4] == 0x80),
    ("p2p.reply-denies-peer-to-peer", |d| reply(d, ASK_ALL)[4..] == [0, 32, 0, 8]),
    ("p2p.reply-ignores-open-ird", |d| reply(d, [0x3f, 0xff, 0, 8])[4..] == [0, 32, 0, 32]),
    ("p2p.reply-ignores-open-ord", |d| reply(d, [0, 8, 0x3f, 0xff])[4..] == [0, 32, 0, 8]),
    ("p2p.reply-little-endian", |d| {
        reply(d, [0, 3, 0, 3])[4..] == [32, 0, 3, 0] && request(d)[4..] == [32, 0xc0, 32, 0xc0]
    }),
    ("p2p.reply-lowers-ird", |d| reply(d, [0, 3, 0, 40])[4..6] == [0, 7]),
    ("p2p.reply-names-no-kind", |d| reply(d, ASK_ALL)[4..] == [0x80, 32, 0, 8]),
    ("p2p.reply-unenhanced", |d| reply(d, ASK_ALL) == [0x40, 2, 0, 0]),
    ("p2p.request-claims-peer-to-peer", |d| client_server(d)[20..] == [0x80, 32, 0, 32]),
    ("p2p.request-kinds-of-client-server", |d| client_server(d)[20..] == [0x40, 32, 0xc0, 32]),
    ("p2p.request-without-kinds", |d| request(d)[4..] == [0x80, 32, 0, 32]),
    ("p2p.revision-1-with-words", |d| request(d)[..2] == [0x50, 1] && reply(d, ASK_ALL)[..2] == [0x50, 1]),
    ("p2p.s-bit-moved", |d| request(d)[0] == 0x48 && reply(d, ASK_ALL)[0] == 0x48),
    ("p2p.takes-enhanced-as-unenhanced", |d| reply(d, ASK_ALL) == [0x40, 2, 0, 0]),
    ("p2p.terminate-code", |d| {
        let too_much = opening(d, [0x80, 8, 0x80 | 0x3f, 0xfe]);
        too_much[0][18..20] == [0x20, 5] && opening(d, OFFER_SEND)[0][18..20] == [0x20, 5]
    }),
    ("p2p.terminate-with-header", |d| {
        let terminate = &opening(d, OFFER_SEND)[0];
        terminate[18..21] == [0x20, 7, 0xc0] && terminate[22..24] == [0, 14] && terminate.len() == 38
    }),
    ("p2p.terminate-with-length", |d| {
        let terminate = &opening(d, OFFER_SEND)[0];
        terminate[18..21] == [0x20, 7, 0x80] && terminate.len() == 24
    }),
    ("p2p.withholds-read-response", |d| {
        let mut machine = responder(d, &[&[0x50, 2, 0, 4][..], &ASK_ALL].concat());
        machine.forget();
        let mut read = Vec::new();
        let framing = weft_core::wire::mpa::Framing { markers: false, crc: true };
        weft_core::wire::mpa::fpdu::emit(0, &[&Rtr::Read.ulpdu(1)], framing, &mut read).unwrap();
        machine.octets(&read);
        machine.connection.is_operating() && machine.sent.is_empty()
    }),
];
