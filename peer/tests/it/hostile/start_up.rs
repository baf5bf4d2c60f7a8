//! Checks of deviations (named faults of an endpoint) in the start-up frames of RFC 5044.

use std::time::Duration;

use weft_core::crc;
use weft_peer::connection::Transmit;
use weft_peer::mpa::PrivateData;
use weft_peer::{Deviations, Settings};

use crate::connection::machine::{Machine, REPLY, REQUEST, SEND, WRITE};
use crate::hostile::Check;

fn settings(deviations: &Deviations) -> Settings {
    Settings { deviations: deviations.clone(), ..Settings::default() }
}

fn responder(deviations: &Deviations, octets: &[u8]) -> Machine {
    let mut machine = Machine::responder(settings(deviations));
    machine.octets(octets);
    machine
}

/// The answer to this Request.
fn reply(deviations: &Deviations, octets: &[u8]) -> Vec<u8> {
    responder(deviations, octets).octets_sent()
}

fn request(deviations: &Deviations) -> Vec<u8> {
    Machine::initiator(settings(deviations)).octets_sent()
}

/// An Initiator that received this Reply. Its earlier output is discarded.
fn replied(deviations: &Deviations, octets: &[u8]) -> Machine {
    let mut machine = Machine::initiator(settings(deviations));
    machine.forget();
    machine.octets(octets);
    machine
}

fn refuses(machine: &Machine) -> bool {
    machine.sent == [Transmit::Fin]
}

fn with_private_data(deviations: &Deviations, octets: usize) -> Vec<u8> {
    let private_data = PrivateData::new(vec![0x55; octets]).unwrap();
    Machine::initiator(Settings { private_data, ..settings(deviations) }).octets_sent()
}

/// A frame with the key `key`, the four octets `tail` of the header, and `private_data` octets of
/// private data.
fn frame(key: &[u8], tail: [u8; 4], private_data: usize) -> Vec<u8> {
    [&key[..16], &tail, &vec![0x55; private_data]].concat()
}

/// The Send of an Initiator after a Reply of revision 0. `None` if the Initiator does not accept
/// this Reply.
fn after_revision_0(deviations: &Deviations) -> Option<Vec<u8>> {
    let mut machine = replied(deviations, b"MPA ID Rep Frame\xc0\0\0\0");
    machine.connection.post_send(&b""[..]).ok()?;
    machine.settle();
    Some(machine.octets_sent())
}

pub(crate) const CHECKS: &[Check] = &[
    ("mpa.accepts-any-revision", |d| {
        let taken = |revision| reply(d, &frame(REQUEST, [0x40, revision, 0, 0], 0)) == REPLY;
        taken(0) && taken(3) && taken(255) && replied(d, &frame(REPLY, [0x40, 9, 0, 0], 0)).connection.is_operating()
    }),
    ("mpa.accepts-long-private-data", |d| reply(d, &frame(REQUEST, [0x40, 1, 2, 1], 513)) == REPLY),
    ("mpa.accepts-wrong-key", |d| {
        (0..16).all(|at| {
            let mut octets = *REQUEST;
            octets[at] ^= 4;
            reply(d, &octets) == REPLY
        })
    }),
    ("mpa.accepts-wrong-reply-key", |d| {
        let mut octets = *REPLY;
        octets[0] = b'm';
        replied(d, &octets).connection.is_operating() && replied(d, REQUEST).connection.is_operating()
    }),
    ("mpa.answers-malformed-request", |d| {
        let machine = responder(d, b"GET / HTTP/1.1\r\n\r\n");
        machine.octets_sent() == REPLY && machine.sent.last() == Some(&Transmit::Fin)
    }),
    ("mpa.asks-no-crc", |d| request(d)[16] == 0 && reply(d, b"MPA ID Req Frame\0\x01\0\0")[16] == 0),
    ("mpa.begins-without-reply", |d| request(d) == [&REQUEST[..], WRITE].concat()),
    ("mpa.closes-late", |d| {
        let mut machine = responder(d, b"GET / HTTP/1.1\r\n\r\n");
        let silent = machine.sent.is_empty();
        machine.pass(Duration::from_secs(10));
        silent && refuses(&machine)
    }),
    ("mpa.frame-pd-length-short", |d| with_private_data(d, 9)[18..20] == [0, 8]),
    ("mpa.frame-private-data-600", |d| {
        let octets = request(d);
        octets.len() == 620 && octets[18..20] == [2, 88]
    }),
    ("mpa.frame-reserved-bits", |d| request(d)[16] == 0x4f && reply(d, REQUEST)[16] == 0x4f),
    ("mpa.frame-with-crc", |d| request(d) == [&REQUEST[..], &crc::to_octets(crc::crc32c(REQUEST))].concat()),
    ("mpa.never-times-out-fpdu", |d| {
        let mut machine = responder(d, REQUEST);
        machine.pass(Duration::from_secs(86_400));
        machine.sent.len() == 1
    }),
    ("mpa.never-times-out-startup", |d| {
        let mut machine = responder(d, &REQUEST[..7]);
        machine.pass(Duration::from_secs(86_400));
        machine.octets(&REQUEST[7..]);
        machine.octets_sent() == REPLY
    }),
    ("mpa.rdmac-reply-without-markers", |d| reply(d, REQUEST)[16..] == [0x40, 0, 0, 0]),
    ("mpa.rdmac-request-without-markers", |d| request(d)[16..] == [0x40, 0, 0, 0]),
    ("mpa.rdmac-version-1", |d| after_revision_0(d).is_some_and(|octets| octets[6..8] == [0x41, 0x43])),
    ("mpa.rdmac-without-crc", |d| after_revision_0(d).is_some_and(|octets| octets.ends_with(&[0; 4]))),
    ("mpa.refuses-good-reply", |d| refuses(&replied(d, REPLY))),
    ("mpa.reject-bit-moved", |d| {
        let mut machine = Machine::responder(Settings { accept: false, ..settings(d) });
        machine.octets(REQUEST);
        machine.connection.reject(&PrivateData::default()).unwrap();
        machine.settle();
        machine.octets_sent()[16] == 0x50
    }),
    ("mpa.reply-ends-with-nul", |d| {
        let private_data = PrivateData::new(&b"name"[..]).unwrap();
        let mut machine = Machine::responder(Settings { private_data, ..settings(d) });
        machine.octets(REQUEST);
        machine.octets_sent()[18..] == *b"\0\x04name\0"
    }),
    ("mpa.request-length-of-frame", |d| with_private_data(d, 8)[18..20] == [0, 28] && request(d)[18..] == [0, 0]),
    ("mpa.rejects-silently", |d| {
        let mut machine = Machine::responder(Settings { accept: false, ..settings(d) });
        machine.octets(REQUEST);
        machine.connection.reject(&PrivateData::default()).unwrap();
        machine.settle();
        machine.sent.is_empty()
    }),
    ("mpa.replies-unrequested", |d| reply(d, b"") == REPLY),
    ("mpa.refuses-long-private-data", |d| {
        refuses(&responder(d, &frame(REQUEST, [0x40, 1, 1, 1], 257)))
            && reply(d, &frame(REQUEST, [0x40, 1, 1, 0], 256)) == REPLY
    }),
    ("mpa.refuses-markers", |d| refuses(&responder(d, &frame(REQUEST, [0xc0, 1, 0, 0], 0)))),
    ("mpa.refuses-pieces", |d| refuses(&responder(d, &REQUEST[..19])) && reply(d, REQUEST) == REPLY),
    ("mpa.refuses-request-r", |d| refuses(&responder(d, &frame(REQUEST, [0x60, 1, 0, 0], 0)))),
    ("mpa.refuses-reserved-bits", |d| refuses(&responder(d, &frame(REQUEST, [0x44, 1, 0, 0], 0)))),
    ("mpa.refuses-revision-1", |d| refuses(&responder(d, REQUEST))),
    ("mpa.reply-key", |d| reply(d, REQUEST)[..16] == REQUEST[..16]),
    ("mpa.reply-markers-not-requested", |d| {
        // The machine does not understand an FPDU in the format of M=0.
        let mut machine = responder(d, REQUEST);
        let m = machine.octets_sent()[16] & 0x80;
        machine.connection.post_receive(0).unwrap();
        machine.octets(SEND);
        m == 0 && machine.received().is_empty()
    }),
    ("mpa.reply-rejects", |d| reply(d, REQUEST)[16] == 0x60),
    ("mpa.reply-revision", |d| reply(d, REQUEST)[17] == 3),
    ("mpa.reply-to-rdmac-without-markers", |d| {
        reply(d, &frame(REQUEST, [0xc0, 0, 0, 0], 0)).ends_with(b"Frame\x40\0\0\0")
    }),
    ("mpa.request-key", |d| request(d)[..16] == *b"MPA ID ReQ Frame"),
    ("mpa.request-rejects", |d| request(d)[16] == 0x60),
    ("mpa.request-revision", |d| request(d)[17] == 3),
    ("mpa.sends-after-rejection", |d| replied(d, b"MPA ID Rep Frame\x60\x01\0\0").octets_sent() == WRITE),
    ("mpa.takes-surplus", |d| reply(d, &[&REQUEST[..], b"more"].concat()) == REPLY),
    ("mpa.wrong-c-in-reply", |d| reply(d, REQUEST)[16] == 0),
    ("p2p.enhanced-reply-to-unenhanced", |d| reply(d, REQUEST)[16..] == [0x50, 1, 0, 4, 0, 1, 0, 1]),
];
