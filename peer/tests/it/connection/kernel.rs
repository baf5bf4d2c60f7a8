//! Tests a connection with octets that siw, the software iWARP driver of the Linux kernel, sent and
//! received. The octets are from the captures of the project.

use weft_core::wire::rdmap::TerminateError;
use weft_peer::Settings;
use weft_peer::connection::{CloseCause, Closed, ClosedBy, Event};
use weft_peer::mpa::PrivateData;

use crate::connection::machine::{Machine, REPLY, mpa};

/// In the capture `rdma-client-server-mpa1`, both sides use revision 1 without CRC. Each side sends
/// a Send of 16 zero octets.
const REQUEST: &[u8] = b"MPA ID Req Frame\0\x01\0\0";
const REPLY_WITHOUT_CRC: &[u8] = b"MPA ID Rep Frame\0\x01\0\0";
const SEND: &[u8] = b"\0\x22\x41\x43\0\0\0\0\0\0\0\0\0\0\0\x01\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0";

fn without_crc() -> Settings {
    mpa(|mpa| mpa.crc = false)
}

/// weft's endpoint replaces siw, first as Responder and then as Initiator. It sends exactly the
/// octets that siw sent.
#[test]
fn the_same_exchange_without_siw() {
    let mut responder = Machine::responder(without_crc());
    responder.octets(REQUEST);
    assert_eq!(responder.octets_sent(), REPLY_WITHOUT_CRC);
    responder.connection.post_receive(16).unwrap();
    responder.octets(SEND);
    assert_eq!(responder.received(), [[0; 16]]);
    responder.connection.post_send(vec![0; 16]).unwrap();
    responder.settle();
    assert_eq!(responder.octets_sent(), [REPLY_WITHOUT_CRC, SEND].concat());

    let mut initiator = Machine::initiator(without_crc());
    initiator.octets(REPLY_WITHOUT_CRC);
    initiator.connection.post_receive(16).unwrap();
    initiator.connection.post_send(vec![0; 16]).unwrap();
    initiator.settle();
    assert_eq!(initiator.octets_sent(), [REQUEST, SEND].concat());
    initiator.octets(SEND);
    assert_eq!(initiator.received(), [[0; 16]]);
}

/// weft's endpoint also sends exactly the octets that siw sent in the capture `reject-mpa1`, in
/// which the Responder rejects.
#[test]
fn the_same_rejection_without_siw() {
    let request = b"MPA ID Req Frame\0\x01\0\x06please";
    let reply = b"MPA ID Rep Frame\x20\x01\0\x05sorry";
    let mut responder = Machine::responder(Settings { accept: false, ..without_crc() });
    responder.octets(request);
    let [Event::Request(event)] = &responder.events[..] else { panic!("{:?}", responder.events) };
    assert_eq!(event.private_data.as_octets(), b"please");
    responder.connection.reject(&PrivateData::new(&b"sorry"[..]).unwrap()).unwrap();
    responder.settle();
    assert_eq!(responder.octets_sent(), reply);

    let private_data = PrivateData::new(&b"please"[..]).unwrap();
    let mut initiator = Machine::initiator(Settings { private_data, ..without_crc() });
    assert_eq!(initiator.octets_sent(), request);
    initiator.octets(reply);
    let [Event::Rejected(rejection)] = &initiator.events[..] else { panic!("{:?}", initiator.events) };
    assert_eq!(rejection.private_data.as_octets(), b"sorry");
}

/// In the capture `terminate-no-receive-crc`, the Terminate of siw has additional bits, and a code
/// that no specification assigns. This Terminate ends the stream nevertheless.
#[test]
fn siws_terminate_is_understood() {
    let terminate = b"\x00\x2a\x41\x47\x00\x00\x00\x00\x00\x00\x00\x02\x00\x00\x00\x01\x00\x00\x00\x00\x21\x02\x03\x00\
        \x00\x64\x41\x43\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x01\x00\x00\x00\x00\x4b\x4c\x42\xd2";
    let mut initiator = Machine::initiator(Settings::default());
    initiator.octets(REPLY);
    initiator.octets(terminate);
    initiator.fin();
    let error = TerminateError::new(2, 1, 2);
    assert!(initiator.events.contains(&Event::TerminateReceived(error)), "{:?}", initiator.events);
    assert_eq!(initiator.closed(), Some(Closed { by: ClosedBy::Peer, why: CloseCause::TerminateReceived(error) }));
}
