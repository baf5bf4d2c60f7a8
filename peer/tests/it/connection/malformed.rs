//! Every malformed start-up frame makes the endpoint close without a Reply (RFC 5044 sections
//! 7.1.1, 7.1.2, 8).

use weft_core::requirement;
use weft_peer::connection::{CloseCause, Closed, ClosedBy, Transmit};
use weft_peer::mpa::{EnhancedUse, StartupError};
use weft_peer::{Deviations, Settings};

use crate::connection::machine::{Machine, REPLY, REQUEST, WRITE, mpa};

/// Delivers `octets` to a machine that waits for its peer's frame. Checks that the machine closes
/// at once and sends only FIN. Returns the cause.
fn refused(mut machine: Machine, octets: &[u8]) -> CloseCause {
    machine.forget();
    machine.octets(octets);
    assert_eq!(machine.sent, [Transmit::Fin], "{octets:02x?}");
    machine.octets(REQUEST);
    machine.fin();
    assert_eq!(machine.sent.len(), 1, "nothing after FIN");
    match machine.closed() {
        Some(Closed { by: ClosedBy::Library, why }) => why,
        other => panic!("{other:?}"),
    }
}

fn responder() -> Machine {
    Machine::responder(Settings::default())
}

fn initiator() -> Machine {
    Machine::initiator(Settings::default())
}

/// If one bit of the key is wrong, the machine closes as soon as the octet with this bit arrives.
#[test]
fn a_key_wrong_in_one_bit() {
    for at in 0..16 {
        for bit in 0..8 {
            let mut request = *REQUEST;
            request[at] ^= 1 << bit;
            for frame in [&request[..], &request[..=at]] {
                let why = refused(responder(), frame);
                assert_eq!(why.requirement(), Some(requirement!("MPA-7.1.1-2")));
                assert!(why.to_string().contains(&format!("key at byte {at}")), "{why}");
            }
            let mut reply = *REPLY;
            reply[at] ^= 1 << bit;
            let expected = if at == 9 && bit == 0 { requirement!("MPA-7.1.2-22") } else { requirement!("MPA-7.1.1-4") };
            assert_eq!(refused(initiator(), &reply).requirement(), Some(expected));
        }
    }
}

/// MPA-7.1.2-22: an Initiator receives a Request, so both endpoints are Initiators. MPA-7.1.1-2: a
/// Responder receives a Reply.
#[test]
fn the_key_of_the_other_role() {
    assert_eq!(refused(initiator(), REQUEST), CloseCause::Startup(StartupError::BothInitiators));
    assert_eq!(refused(initiator(), &REQUEST[..10]).requirement(), Some(requirement!("MPA-7.1.2-22")));
    assert_eq!(refused(responder(), REPLY).requirement(), Some(requirement!("MPA-7.1.1-2")));
}

#[test]
fn each_revision_that_is_not_known() {
    for revision in (0..=255).filter(|revision| *revision != 1) {
        let mut request = *REQUEST;
        request[17] = revision;
        if revision != 2 {
            assert_eq!(refused(responder(), &request).requirement(), Some(requirement!("MPA-7.1.1-22")));
        }
        let mut reply = *REPLY;
        reply[17] = revision;
        assert_eq!(refused(initiator(), &reply).requirement(), Some(requirement!("MPA-7.1.1-22")));
    }
}

/// P2P-10-4: an endpoint that does not support RFC 6581 closes after an enhanced Request. It also
/// closes if the Request is too short for IRD and ORD (P2P-6-12).
#[test]
fn an_enhanced_request() {
    for tail in [&b"\x50\x02\x00\x04\x80\x01\xc0\x01"[..], b"\x50\x02\x00\x00", b"\x50\x02\x00\x03abc"] {
        let request = [&REQUEST[..16], tail].concat();
        let unenhanced = Machine::responder(mpa(|mpa| mpa.enhanced = EnhancedUse::Off));
        assert_eq!(refused(unenhanced, &request).requirement(), Some(requirement!("P2P-10-4")));
    }
}

#[test]
fn pd_length_beyond_512() {
    for pd_length in [513u16, 514, 0x0fff, 0x8000, 0xffff] {
        for (machine, frame) in [(responder(), REQUEST), (initiator(), REPLY)] {
            let frame = [&frame[..18], &pd_length.to_be_bytes()].concat();
            let why = refused(machine, &frame);
            assert_eq!(why.requirement(), Some(requirement!("MPA-7.1.2-24")));
            assert!(why.to_string().contains(&format!("found {pd_length} ")), "{why}");
        }
    }
}

/// MPA-7.1.1-26: more octets follow the frame's header than PD_Length announces. Both the Responder
/// and the Initiator close.
#[test]
fn surplus_octets() {
    for (machine, frame) in [(responder(), &REQUEST[..]), (initiator(), REPLY)] {
        let why = refused(machine, &[frame, WRITE].concat());
        assert_eq!(why.requirement(), Some(requirement!("MPA-7.1.1-26")));
        assert_eq!(why.to_string(), "20 bytes follow the start-up frame, but the peer must not send yet");
    }
}

/// MPA-7.1.1-26: a frame has fewer octets than it announces, and FIN follows. The test cuts the
/// frame at every offset. If no FIN follows, the start-up time-out applies.
#[test]
fn a_frame_cut_short_by_fin() {
    let request = [&b"MPA ID Req Frame\x40\x01\x00\x04"[..], b"four"].concat();
    for cut in 0..request.len() {
        let mut machine = responder();
        machine.octets(&request[..cut]);
        machine.fin();
        assert_eq!(machine.sent, [Transmit::Fin]);
        let Some(Closed { by: ClosedBy::Peer, why }) = machine.closed() else { panic!("{:?}", machine.events) };
        let expected = if cut == 0 { None } else { Some(requirement!("MPA-7.1.1-26")) };
        assert_eq!(why.requirement(), expected, "cut at {cut}");
    }
    let mut machine = initiator();
    machine.octets(&REPLY[..19]);
    machine.fin();
    assert_eq!(machine.closed().unwrap().why.requirement(), Some(requirement!("MPA-7.1.1-26")));
}

/// With the deviation `mpa.accepts-wrong-key`, each wrong key gets the same Reply as a correct key.
/// Nothing else changes.
#[test]
fn the_deviating_responder_takes_any_key() {
    let deviating =
        || Settings { deviations: Deviations::from_names(["mpa.accepts-wrong-key"]).unwrap(), ..Settings::default() };
    for at in 0..16 {
        let mut request = *REQUEST;
        request[at] = !request[at];
        for cut in 0..=request.len() {
            let mut machine = Machine::responder(deviating());
            machine.octets(&request[..cut]);
            machine.octets(&request[cut..]);
            assert_eq!(machine.octets_sent(), REPLY, "octet {at}, cut at {cut}");
        }
    }
    let mut request = *REQUEST;
    request[17] = 3;
    assert_eq!(refused(Machine::responder(deviating()), &request).requirement(), Some(requirement!("MPA-7.1.1-22")));
    let initiator = Machine::initiator(deviating());
    assert_eq!(refused(initiator, REQUEST).requirement(), Some(requirement!("MPA-7.1.2-22")));
}
