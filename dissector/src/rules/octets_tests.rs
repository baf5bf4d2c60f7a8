//! Tests which octets a finding locates. These octets are in an earlier unit, for example an
//! earlier FPDU, or in a unit that consists of several pieces.

use weft_core::wire::sdp::{FieldOrder, Mid};
use weft_core::{RequirementId, requirement};

use crate::testing::sdp::SdpScript;
use crate::testing::{self, Marked, Wire, exchange, fpdu, hex};

/// Returns the octets that the first finding with requirement `id` locates, in hexadecimal.
fn octets(wire: &Wire, id: RequirementId) -> String {
    let findings = wire.findings();
    let finding = findings.iter().find(|finding| finding.requirement == id);
    let finding = finding.unwrap_or_else(|| panic!("{id:?} is not among {findings:#?}"));
    assert!(finding.locations.iter().any(|located| located.frame == finding.frame), "{finding:#?}");
    let mut found = String::new();
    wire.changed(|frames| {
        for located in &finding.locations {
            let (at, len) = (located.offset.unwrap() as usize, usize::try_from(located.len).unwrap());
            let frame = &frames[usize::try_from(u64::from(located.frame)).unwrap() - 1].1;
            found.extend(frame[at..at + len].iter().map(|octet| format!("{octet:02x}")));
        }
        frames
    });
    found
}

fn script(send: impl FnOnce(&mut SdpScript)) -> Wire {
    let mut script = SdpScript::bare();
    send(&mut script);
    script.wire
}

#[test]
fn a_field_of_a_message_in_sends_is_located() {
    let wrong_mid = script(|script| script.send_changed(0, Mid::DATA, "", |message| message[3] = 0x0f));
    assert_eq!(octets(&wrong_mid, requirement!("SDP-6.1.1-1")), "0f");
    // The finding locates RDMAP's control octet of the Send.
    let hello_ack = SdpScript::acknowledged_in(FieldOrder::Figure, 3).wire;
    assert_eq!(octets(&hello_ack, requirement!("SDP-14.2-7")), "43");
    // If a message has two segments, the header is in the first segment.
    let number = script(|script| {
        script.send(0, Mid::DATA, "", 4);
        script.mseq[0] += 1;
        script.send_in_two(0, 100);
    });
    assert_eq!(octets(&number, requirement!("SDP-6.1.5-2")), "00000003");
}

#[test]
fn an_sdp_message_that_is_checked_at_the_end_is_located() {
    let ahead = script(|script| {
        script.ack[0] = 3;
        script.send(0, Mid::DATA, "", 4);
    });
    assert_eq!(octets(&ahead, requirement!("SDP-6.1.6-2")), "00000003");
    let write = script(|script| {
        script.send(0, Mid::DATA, "", 4);
        script.write(0, 0x77, 0, 8);
    });
    assert_eq!(octets(&write, requirement!("SDP-6.3.3.3-2")), "00000077");
    let read = script(|script| {
        script.send(0, Mid::DATA, "", 4);
        script.request_read(0, 0x78, 0, 8);
    });
    assert_eq!(octets(&read, requirement!("SDP-6.3.2.3-2")), "00000078");
}

#[test]
fn a_key_is_located() {
    let mut request = testing::request();
    request[7] ^= 0x20;
    let key = request[..16].iter().map(|octet| format!("{octet:02x}")).collect::<String>();
    let mut wire = Wire::connected();
    // The key is in two segments, and the finding locates both parts.
    wire.send(0, &request[..9]);
    wire.send(0, &request[9..]);
    wire.fin(1);
    let found = octets(&wire, requirement!("MPA-7.1.1-1"));
    assert_eq!(found, key[..18]);
    let mut wire = Wire::connected();
    wire.send(0, &testing::request());
    wire.send(1, &testing::request());
    let key = testing::request()[..16].iter().map(|octet| format!("{octet:02x}")).collect::<String>();
    assert_eq!(octets(&wire, requirement!("MPA-7.1.1-3")), key);
}

#[test]
fn a_segment_of_an_earlier_unit_is_located() {
    let first = "0143 00000000 00000000 00000001 00000000 01020304";
    let not_last = exchange(&[(0, first), (0, "4143 00000000 00000000 00000002 00000000 01020304")]);
    assert_eq!(octets(&not_last, requirement!("DDP-4.1-4")), "01");
    let second = "4143 00000000 00000000 00000001 00000004 01020304";
    let third = "4143 00000000 00000000 00000001 00000008 01020304";
    let early = exchange(&[(0, first), (0, second), (0, third)]);
    assert_eq!(octets(&early, requirement!("DDP-4.1-5")), "41");
    let response =
        exchange(&[(0, "4143 00000000 00000000 00000001 00000000 01"), (1, "c142 00000100 0000000000001000 01")]);
    assert_eq!(octets(&response, requirement!("RDMAP-5.2-1")), "c142000001000000000000001000");
}

#[test]
fn the_first_fpdu_of_the_responder_is_located() {
    let mut wire = Wire::started();
    let octets_of = fpdu(&hex("4143 00000000 00000000 00000001 00000000 0102"));
    wire.at_once(|wire| wire.send(1, &octets_of), |wire| wire.send(0, &octets_of));
    let ulpdu_length_and_ulpdu = octets_of[..22].iter().map(|octet| format!("{octet:02x}")).collect::<String>();
    assert_eq!(octets(&wire, requirement!("MPA-7.1.2-17")), ulpdu_length_and_ulpdu);
}

#[test]
fn octets_that_are_no_fpdu_are_located() {
    let mut wire = Wire::started();
    let mut sender = Marked::default();
    for msn in 1..=3 {
        wire.send(0, &sender.fpdu(&testing::send_of(msn, 30)));
    }
    let found = octets(&wire, requirement!("MPA-7.1.1-8"));
    assert!(found.starts_with("00000000"), "{found}");
}
