//! Checks of deviations in FPDUs. A deviation is a named fault that an endpoint of weft commits on
//! request.

use weft_core::crc;
use weft_core::wire::mpa::fpdu::{Framing, emit};
use weft_peer::connection::Transmit;
use weft_peer::{Deviations, Settings};

use crate::connection::machine::{Machine, REPLY, REQUEST, SEND, WRITE, mpa};
use crate::hostile::Check;
use crate::mpa::wire::read;

/// Returns the output of an Initiator that posts Sends with these lengths. `flags` are the flags in
/// the peer's Reply.
fn sent(deviations: &Deviations, flags: u8, emss: u32, lengths: &[usize]) -> Vec<u8> {
    let settings = Settings { deviations: deviations.clone(), emss, ..mpa(|mpa| mpa.crc = flags & 0x40 != 0) };
    let mut machine = Machine::initiator(settings);
    machine.octets(&[b"MPA ID Rep Frame", &[flags, 1, 0, 0][..]].concat());
    machine.forget();
    for length in lengths {
        machine.connection.post_send(vec![0x11; *length]).unwrap();
    }
    machine.settle();
    machine.octets_sent()
}

/// One Send of five octets without markers.
fn plain(deviations: &Deviations) -> Vec<u8> {
    sent(deviations, 0x40, 1460, &[5])
}

/// The output of an Initiator that sends markers, for Sends of these lengths.
fn marked(deviations: &Deviations, lengths: &[usize]) -> Vec<u8> {
    sent(deviations, 0xc0, 1460, lengths)
}

fn right_plain() -> Vec<u8> {
    plain(&Deviations::NONE)
}

fn right_marked(lengths: &[usize]) -> Vec<u8> {
    marked(&Deviations::NONE, lengths)
}

fn sealed(octets: &[u8]) -> bool {
    let (covered, field) = octets.split_at(octets.len() - 4);
    crc::to_octets(crc::crc32c(covered)) == *field
}

fn with_crc(octets: &[u8]) -> Vec<u8> {
    [octets, &crc::to_octets(crc::crc32c(octets))].concat()
}

/// Returns a Responder after start-up that has posted receives. Its own flags C and M are `crc` and
/// `markers`, and the flags of its peer are 0. It has received the slices of `octets`, one at a
/// time.
fn receives(deviations: &Deviations, crc: bool, markers: bool, octets: &[&[u8]]) -> Machine {
    let settings = mpa(|mpa| (mpa.crc, mpa.markers) = (crc, markers));
    let mut machine = Machine::responder(Settings { deviations: deviations.clone(), ..settings });
    machine.octets(b"MPA ID Req Frame\0\x01\0\0");
    (0..4).for_each(|_| machine.connection.post_receive(900).unwrap());
    machine.forget();
    octets.iter().for_each(|octets| machine.octets(octets));
    machine
}

fn send(msn: u8, payload: &[u8]) -> Vec<u8> {
    let mut fpdu = SEND[..20].to_vec();
    (fpdu[1], fpdu[15]) = (18 + u8::try_from(payload.len()).unwrap(), msn);
    fpdu.extend_from_slice(payload);
    fpdu.resize(fpdu.len().next_multiple_of(4), 0);
    with_crc(&fpdu)
}

/// Returns the ULPDU of a Send with this number of octets of payload.
fn ulpdu(msn: u8, payload: usize) -> Vec<u8> {
    let mut ulpdu = SEND[2..20].to_vec();
    ulpdu[13] = msn;
    ulpdu.resize(18 + payload, 0x11);
    ulpdu
}

fn bad(msn: u8) -> Vec<u8> {
    let mut fpdu = send(msn, b"bad!");
    fpdu[20] ^= 1;
    fpdu
}

/// Puts `marker` before an FPDU that has no markers, and adds the new CRC.
fn leading(marker: [u8; 4], fpdu: &[u8]) -> Vec<u8> {
    with_crc(&[&marker, &fpdu[..fpdu.len() - 4]].concat())
}

/// Returns the Terminate of a Responder that has received an FPDU with a wrong CRC. `flags` are the
/// flags in the peer's Request.
fn terminate(deviations: &Deviations, flags: u8) -> Vec<u8> {
    let settings = mpa(|mpa| (mpa.crc, mpa.markers) = (true, false));
    let mut machine = Machine::responder(Settings { deviations: deviations.clone(), ..settings });
    machine.octets(&[b"MPA ID Req Frame", &[flags, 1, 0, 0][..]].concat());
    machine.forget();
    machine.octets(WRITE);
    machine.octets(&bad(1));
    machine.octets_sent()
}

fn longest(deviations: &Deviations, emss: u32) -> usize {
    let octets = sent(deviations, 0x40, emss, &[200_000]);
    read(&octets, false).iter().map(|fpdu| fpdu.ulpdu.len()).max().unwrap()
}

/// Lengths of two Sends. The FPDU of the first Send ends at octet 488, and the PAD of the second
/// Send ends at octet 512.
const TO_THE_EDGE: [usize; 2] = [458, 4];

pub(crate) const CHECKS: &[Check] = &[
    ("mpa.accepts-bad-crc", |d| receives(d, true, false, &[WRITE, &bad(1)]).received().len() == 1),
    ("mpa.acts-before-crc", |d| {
        let (first, second) = (send(1, b"one"), send(2, b"two"));
        let (most, rest) = first.split_at(first.len() - 3);
        let early = receives(d, true, false, &[WRITE, most]).received().len();
        early == 1 && receives(d, true, false, &[WRITE, most, rest, &second]).received().len() == 2
    }),
    ("mpa.checks-unused-crc", |d| receives(d, false, false, &[&bad(1)]).received().is_empty()),
    ("mpa.coalesces-sends", |d| {
        let octets = sent(d, 0x40, 1460, &[5, 6]);
        // The FPDU contains a segment with MSN 1 and five octets, and then a segment with MSN 2 and
        // six octets.
        octets[..2] == [0, 47]
            && octets[15] == 1
            && octets[25..27] == [0x41, 0x43]
            && octets[38] == 2
            && sealed(&octets)
    }),
    ("mpa.completes-cut-crc", |d| {
        let first = send(1, b"one");
        let mut machine = receives(d, true, false, &[WRITE, &first[..first.len() - 3]]);
        machine.fin();
        machine.received().len() == 1
    }),
    ("mpa.count-with-header", |d| {
        let octets = plain(d);
        octets[..2] == [0, 25] && octets[2..28] == right_plain()[2..28] && sealed(&octets)
    }),
    ("mpa.crc-byte-order", |d| {
        let mut octets = plain(d);
        octets[28..].reverse();
        octets == right_plain()
    }),
    ("mpa.crc-flipped", |d| {
        let mut octets = plain(d);
        octets[31] ^= 1;
        octets == right_plain()
    }),
    ("mpa.crc-left-out", |d| plain(d) == right_plain()[..28]),
    ("mpa.crc-of-terminate-byte-order", |d| {
        let mut octets = receives(d, true, false, &[WRITE, &bad(1)]).octets_sent();
        let at = octets.len() - 4;
        octets[at..].reverse();
        !octets.is_empty() && sealed(&octets)
    }),
    ("mpa.crc-of-payload", |d| plain(d) == [&right_plain()[..28], &with_crc(&right_plain()[2..28])[26..]].concat()),
    ("mpa.crc-unused-left-out", |d| sent(d, 0, 1460, &[5]).len() == 28 && plain(d) == right_plain()),
    ("mpa.crc-without-leading-marker", |d| marked(d, &[5])[4..] == right_plain()),
    ("mpa.crc-without-markers", |d| {
        let octets = marked(d, &[700]);
        let body = [&octets[4..512], &octets[516..octets.len() - 4]].concat();
        octets.ends_with(&with_crc(&body)[body.len()..])
    }),
    ("mpa.crc-without-trailing-marker", |d| {
        let octets = marked(d, &TO_THE_EDGE);
        octets[512..516] == [0, 0, 0, 24] && octets[516..] == with_crc(&octets[488..512])[24..]
    }),
    ("mpa.crc-zero", |d| plain(d)[28..] == [0; 4]),
    ("mpa.first-marker-left-out", |d| marked(d, &[5]) == right_plain()),
    ("mpa.marker-little-endian", |d| marked(d, &TO_THE_EDGE)[512..516] == [0, 0, 24, 0]),
    ("mpa.drops-posted-sends", |d| {
        let mut machine = Machine::initiator(Settings { deviations: d.clone(), ..Settings::default() });
        machine.octets(REPLY);
        machine.forget();
        machine.connection.post_send(&b"last"[..]).unwrap();
        machine.close();
        machine.sent == [Transmit::Fin]
    }),
    ("mpa.pad-of-ulpdu", |d| {
        let octets = plain(d);
        // The deviating endpoint pads only the ULPDU of 23 octets to a multiple of four, with one
        // octet of PAD. A correct endpoint also counts the two octets of ULPDU_Length, so its PAD
        // has three octets.
        octets[..25] == right_plain()[..25] && octets.len() == 2 + 23 + 1 + 4 && sealed(&octets)
    }),
    ("mpa.stops-at-fin", |d| {
        let mut machine = receives(d, true, false, &[&send(1, b"")]);
        machine.fin();
        machine.connection.post_send(&b"more"[..]).is_err()
    }),
    ("mpa.cuts-last-fpdu", |d| {
        let mut machine = Machine::initiator(Settings { deviations: d.clone(), ..Settings::default() });
        machine.octets(b"MPA ID Rep Frame\x40\x01\0\0");
        machine.forget();
        machine.connection.post_send(vec![0x11; 5]).unwrap();
        machine.close();
        machine.octets_sent() == right_plain()[..28] && machine.sent.last() == Some(&Transmit::Fin)
    }),
    ("mpa.cuts-fpdu-before-terminate", |d| {
        let mut machine = Machine::initiator(Settings { deviations: d.clone(), ..Settings::default() });
        machine.octets(REPLY);
        machine.connection.post_send(vec![0x11; 5]).unwrap();
        machine.settle();
        machine.forget();
        machine.octets(&bad(1));
        let octets = machine.octets_sent();
        // The FPDU that is cut has a ULPDU of 26 octets, and the Terminate's FPDU has 28 octets.
        octets.len() == 16 + 28
            && octets[..4] == [0, 26, 0x41, 0x43]
            && octets[16..18] == [0, 22]
            && sealed(&octets[16..])
    }),
    ("mpa.damages-fpdus-of-64", |d| {
        // The FPDU of the first Send has 2 + 18 + 38 + 2 + 4 octets, and that of the second has 68.
        let received = receives(d, true, false, &[&send(1, &[0x11; 38]), &send(2, &[0x11; 42])]).received();
        let [first, second] = received.as_slice() else { return false };
        first[..37] == [0x11; 37] && first[37..] == [0xee] && *second == [0x11; 42]
    }),
    ("mpa.drops-after-64-sends", |d| {
        let mut machine = Machine::responder(Settings { deviations: d.clone(), ..Settings::default() });
        machine.octets(REQUEST);
        (0..66).for_each(|_| machine.connection.post_receive(0).unwrap());
        machine.octets(&(1..=66).flat_map(|msn| send(msn, b"")).collect::<Vec<u8>>());
        machine.received().len() == 64
    }),
    ("mpa.drops-after-first-fpdu", |d| {
        receives(d, true, false, &[&[send(1, b"one"), send(2, b"two")].concat()]).received() == [b"one"]
    }),
    ("mpa.drops-first-fpdu", |d| receives(d, true, false, &[&send(1, b"one")]).received().is_empty()),
    ("mpa.goes-on-after-error", |d| {
        let machine = receives(d, true, false, &[WRITE, &bad(1), &send(1, b"good")]);
        machine.received() == [b"good"] && machine.sent.is_empty()
    }),
    ("mpa.closes-after-pause", |d| {
        let fpdu = send(1, b"one");
        let mut machine = receives(d, true, false, &[WRITE, &fpdu[..9]]);
        machine.pass(std::time::Duration::from_secs(2));
        machine.octets(&fpdu[9..]);
        machine.received().is_empty()
    }),
    ("mpa.ignores-fin-in-message", |d| {
        let mut machine = receives(d, true, false, &[WRITE, &send(1, b"one")[..9]]);
        machine.fin();
        machine.pass(std::time::Duration::from_secs(3600));
        machine.sent.is_empty()
    }),
    ("mpa.keeps-open-after-error", |d| {
        let mut machine = receives(d, true, false, &[WRITE, &bad(1)]);
        machine.pass(std::time::Duration::from_secs(3600));
        matches!(machine.sent[..], [Transmit::Octets(_)])
    }),
    ("mpa.length-byte-order", |d| plain(d)[..2] == [23, 0] && sealed(&plain(d))),
    ("mpa.marker-fields-swapped", |d| marked(d, &[700])[512..516] == [1, 0xfc, 0, 0]),
    ("mpa.marker-from-zero", |d| marked(d, &[5])[..4] == [0, 0, 0, 4]),
    ("mpa.marker-low-bits", |d| marked(d, &[700])[512..516] == [0, 0, 1, 0xff]),
    ("mpa.marker-modulo", |d| {
        let octets = marked(d, &[1400]);
        octets[512..516] == [0, 0, 1, 0xfc] && octets[1024..1028] == [0, 0, 2, 0] && sealed(&octets)
    }),
    ("mpa.marker-of-terminate-left-out", |d| {
        let octets = terminate(d, 0xc0);
        octets.len() == 28 && octets == terminate(&Deviations::NONE, 0x40)
    }),
    ("mpa.marker-off-by-four", |d| marked(d, &[700])[512..516] == [0, 0, 2, 0]),
    ("mpa.marker-reserved", |d| marked(d, &[5])[..4] == [0xff, 0xff, 0, 0]),
    ("mpa.markers-left-out", |d| marked(d, &[5]) == right_plain()),
    ("mpa.markers-out-of-phase", |d| {
        let octets = marked(d, &[1000]);
        octets[..2] == [3, 0xfa] && octets[256..260] == [0, 0, 1, 0] && octets[768..772] == [0, 0, 3, 0]
    }),
    ("mpa.markers-unrequested", |d| plain(d) == right_marked(&[5])),
    ("mpa.mulpdu-below-128", |d| longest(d, 1460) == 100),
    ("mpa.mulpdu-beyond-64768", |d| longest(d, 65_495) == 65_000),
    ("mpa.mulpdu-without-crc", |d| longest(d, 1460) == 1458),
    ("mpa.needs-alignment", |d| {
        let fpdu = send(1, b"one");
        !receives(d, true, false, &[WRITE, &fpdu[..9], &fpdu[9..]]).connection.is_operating()
    }),
    ("mpa.overlooks-markers", |d| receives(d, true, true, &[&leading([0, 0, 0, 8], WRITE)]).connection.is_operating()),
    ("mpa.pad-left-out", |d| plain(d) == with_crc(&right_plain()[..25])),
    ("mpa.pad-left-out-later", |d| {
        let right = sent(&Deviations::NONE, 0x40, 1460, &[5, 5]);
        sent(d, 0x40, 1460, &[5, 5]) == [&right[..32], &with_crc(&right[32..57])].concat()
    }),
    ("mpa.pad-not-zero", |d| plain(d) == with_crc(&[&right_plain()[..25], &[0xff; 3]].concat())),
    ("mpa.refuses-marker-bits", |d| {
        !receives(d, true, true, &[&leading([0, 0, 0, 1], WRITE)]).connection.is_operating()
    }),
    ("mpa.refuses-marker-in-header", |d| {
        // The second FPDU begins `distance` octets before the marker at position 512. The first
        // FPDU has a marker and 24 octets in addition to its payload.
        let takes = |distance: usize| {
            let (mut octets, framing) = (Vec::new(), Framing { markers: true, crc: true });
            let first = emit(0, &[&ulpdu(1, 512 - distance - 28)], framing, &mut octets).unwrap();
            emit(first.end, &[&ulpdu(2, 8)], framing, &mut octets).unwrap();
            receives(d, true, true, &[&octets]).connection.is_operating()
        };
        !takes(4) && !takes(8) && takes(12)
    }),
    ("mpa.refuses-marker-reserved", |d| {
        !receives(d, true, true, &[&leading([1, 0, 0, 0], WRITE)]).connection.is_operating()
    }),
    ("mpa.refuses-pad", |d| {
        let fpdu = with_crc(&[&send(1, b"five.")[..25], &[1; 3]].concat());
        !receives(d, true, false, &[&fpdu]).connection.is_operating()
    }),
    ("mpa.refuses-short-ulpdu", |d| !receives(d, true, false, &[WRITE]).connection.is_operating()),
    ("mpa.refuses-ulpdu-over-127", |d| {
        // The two ULPDUs have 127 and 128 octets.
        let (short, long) = (send(1, &[0x11; 109]), send(1, &[0x11; 110]));
        let takes = |fpdu: &[u8]| receives(d, true, false, &[WRITE, fpdu]).connection.is_operating();
        takes(&short) && !takes(&long)
    }),
    ("mpa.sends-early", |d| {
        let mut machine = Machine::responder(Settings { deviations: d.clone(), ..Settings::default() });
        machine.octets(REQUEST);
        let opening = machine.octets_sent();
        machine.forget();
        machine.connection.post_send(vec![0x11; 5]).unwrap();
        machine.settle();
        opening == [REPLY, WRITE].concat() && machine.octets_sent() == right_plain()
    }),
    ("mpa.skips-terminate", |d| receives(d, true, false, &[WRITE, &bad(1)]).sent == [Transmit::Fin]),
    ("mpa.splits-fpdus", |d| {
        let mut machine = receives(d, true, false, &[WRITE]);
        machine.connection.post_send(vec![0x11; 5]).unwrap();
        machine.settle();
        machine.sent.len() == 2 && machine.octets_sent() == right_plain()
    }),
    ("mpa.terminate-code", |d| receives(d, true, false, &[WRITE, &bad(1)]).octets_sent()[20..22] == [0x20, 0x01]),
    ("mpa.terminates-first-fpdu", |d| receives(d, true, false, &[&bad(1)]).octets_sent().len() == 28),
    ("mpa.two-ulpdus", |d| {
        let (octets, right) = (plain(d), right_plain());
        octets[..2] == [0, 46] && octets[2..25] == right[2..25] && octets[25..48] == right[2..25] && sealed(&octets)
    }),
    ("mpa.version-0", |d| plain(d)[2..4] == [0x40, 0x03]),
];
