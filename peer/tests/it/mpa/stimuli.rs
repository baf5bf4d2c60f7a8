//! Tests start-up with a table of stimuli. Each row has something that a tester can send to an
//! endpoint in start-up, and the required reaction.

use std::time::Duration;

use weft_peer::Settings;
use weft_peer::connection::Transmit;
use weft_peer::mpa::{EnhancedUse, Rnic};

use crate::connection::machine::{Machine, REPLY, REQUEST, WRITE, mpa};

/// The required reaction.
#[derive(Debug, PartialEq, Eq)]
enum Result {
    /// The endpoint sends FIN, and no octet before it.
    Close,
    /// The endpoint sends this frame, and the connection continues.
    Reply(Vec<u8>),
    /// The endpoint sends this frame, and then FIN.
    ReplyAndClose(Vec<u8>),
    /// The endpoint sends nothing yet.
    Silence,
}

fn result(machine: &Machine) -> Result {
    let octets = machine.octets_sent();
    match (octets.is_empty(), machine.sent.contains(&Transmit::Fin)) {
        (true, true) => Result::Close,
        (true, false) => Result::Silence,
        (false, true) => Result::ReplyAndClose(octets),
        (false, false) => Result::Reply(octets),
    }
}

fn request(tail: &[u8]) -> Vec<u8> {
    [b"MPA ID Req Frame", tail].concat()
}

fn reply(tail: &[u8]) -> Result {
    Result::Reply([b"MPA ID Rep Frame", tail].concat())
}

fn responds(settings: Settings, octets: &[u8]) -> Result {
    let mut machine = Machine::responder(settings);
    machine.octets(octets);
    result(&machine)
}

#[test]
fn each_row() {
    let default = Settings::default;
    let responder = |octets: &[u8]| responds(default(), octets);
    let initiator = |octets: &[u8]| {
        let mut machine = Machine::initiator(default());
        machine.forget();
        machine.octets(octets);
        result(&machine)
    };
    let wrong = |at: usize| {
        let mut request = *REQUEST;
        request[at] ^= 1;
        request
    };

    assert!((0..16).all(|at| responder(&wrong(at)) == Result::Close), "key wrong by one octet");
    assert_eq!(initiator(REQUEST), Result::Close, "Reply with Request key");
    assert_eq!(responder(&request(b"\xc0\0\0\0")), Result::Close, "Rev 0");
    let tolerated = mpa(|mpa| mpa.answer_revision_0 = true);
    let answered = Result::ReplyAndClose(b"MPA ID Rep Frame\x40\x01\0\0".to_vec());
    assert_eq!(responds(tolerated, &request(b"\xc0\0\0\0")), answered, "Rev 0, as C.2.1 has it");
    let permissive = mpa(|mpa| mpa.rnic = Rnic::PermissiveIetf);
    assert_eq!(responds(permissive, &request(b"\xc0\0\0\0")), reply(b"\xc0\0\0\0"), "Rev 0, permissive");
    assert!((3..=255).all(|rev| responder(&request(&[0x40, rev, 0, 0])) == Result::Close), "Rev 3 to 255");
    let unenhanced = || mpa(|mpa| mpa.enhanced = EnhancedUse::Off);
    let enhanced = request(b"\x50\x02\0\x04\x80\x01\xc0\x01");
    assert_eq!(responds(unenhanced(), &enhanced), Result::Close, "Rev 2 S=1, unenhanced");
    assert_eq!(responder(&enhanced), reply(b"\x50\x02\0\x04\x80\x20\xc0\x01"), "Rev 2 S=1, enhanced");
    for length in [513u16, 1024, 0x7fff, 0xffff] {
        let octets = [&b"\x40\x01"[..], &length.to_be_bytes(), &[0; 600]].concat();
        assert_eq!(responder(&request(&octets)), Result::Close, "PD_Length {length}");
    }
    assert_eq!(responder(&request(b"\x40\x01\0\x02four")), Result::Close, "more octets than PD_Length");
    assert_eq!(initiator(b"MPA ID Rep Frame\x40\x01\0\x02four"), Result::Close, "the same in a Reply");
    let mut stalls = Machine::responder(default());
    stalls.octets(&request(b"\x40\x01\0\x08four"));
    assert_eq!(result(&stalls), Result::Silence);
    stalls.pass(Duration::from_secs(120));
    assert_eq!(result(&stalls), Result::Close, "fewer octets, then stall");
    let mut ends = Machine::responder(default());
    ends.octets(&request(b"\x40\x01\0\x08four"));
    ends.fin();
    assert_eq!(result(&ends), Result::Close, "fewer octets, then FIN");
    for cut in 1..20 {
        let mut split = Machine::responder(default());
        split.octets(&REQUEST[..cut]);
        split.pass(Duration::from_millis(200));
        split.octets(&REQUEST[cut..]);
        assert_eq!(split.octets_sent(), REPLY, "frame split over TCP segments");
    }
    assert_eq!(responder(&request(b"\x5f\x01\0\0")), reply(b"\x40\x01\0\0"), "Res bits set");
    assert_eq!(responder(&request(b"\x60\x01\0\0")), reply(b"\x40\x01\0\0"), "R=1 in Request");
    let mut marked = Machine::responder(default());
    marked.octets(&request(b"\xc0\x01\0\0"));
    assert_eq!(marked.octets_sent(), REPLY);
    marked.connection.post_send(&b""[..]).unwrap();
    marked.octets(WRITE);
    assert_eq!(marked.octets_sent()[20..24], [0; 4], "M=1: markers");
    for length in 0..4u8 {
        let octets = [&[0x50, 2, 0, length][..], &[0; 3][..usize::from(length)]].concat();
        assert_eq!(responder(&request(&octets)), Result::Close, "S=1, PD_Length {length}");
    }
    assert_eq!(responder(&request(b"\x50\x01\0\x04abcd")), reply(b"\x40\x01\0\0"), "S=1, Rev 1");
    let mut bad = Machine::responder(default());
    bad.octets(REQUEST);
    bad.forget();
    bad.octets(&[&WRITE[..19], &[0]].concat());
    assert_eq!(result(&bad), Result::Close, "first FPDU bad CRC");
}

/// For any flags, any revision and any short PD_Length, the endpoint either closes or sends a valid
/// Reply.
#[test]
fn every_header() {
    let mut replies = 0;
    for flags in 0..=255u8 {
        for revision in 0..=4u8 {
            for length in 0..6u8 {
                let octets = [&[flags, revision, 0, length][..], &[0x41; 6][..usize::from(length)]].concat();
                let good = match (revision, flags & 0x10 != 0) {
                    (1, _) | (2, false) => true,
                    (2, true) => length >= 4,
                    _ => false,
                };
                match responds(Settings::default(), &request(&octets)) {
                    Result::Close => assert!(!good, "{octets:02x?}"),
                    Result::Reply(reply) => {
                        assert!(good, "{octets:02x?}");
                        assert_eq!(&reply[..16], b"MPA ID Rep Frame");
                        let enhanced = revision == 2 && flags & 0x10 != 0;
                        assert_eq!(reply[16], if enhanced { 0x50 } else { 0x40 });
                        assert_eq!((reply[17], reply.len()), (revision, if enhanced { 24 } else { 20 }));
                        replies += 1;
                    }
                    other => panic!("{other:?}"),
                }
            }
        }
    }
    assert_eq!(replies, 256 * 6 + 128 * 6 + 128 * 2);
}
