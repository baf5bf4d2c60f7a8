//! One small capture for each cause.

use weft_core::wire::sdp::Mid;

use super::{Cause, Culprit, Diagnoses, Diagnosis, EndKind, ExchangeReport};
use crate::exchange::{CapturePoint, Exchange};
use crate::frame_number::FrameNumber;
use crate::testing::sdp::SdpScript;
use crate::testing::{Wire, exchange, fpdu, hex, reply, reply_frame, request, send_of, startup_frame};

/// The Terminate of the endpoint that sends in direction 1, up to the layer of the error.
const TERMINATE: &str = "4147 00000000 00000002 00000001 00000000";
/// A Send of direction 0, so that direction 1 may send.
const FIRST: &str = "4143 00000000 00000000 00000001 00000000 2a";
/// A Send that advertises 64 bytes with STag 11223344.
const ADVERT: &str = "4143 00000000 00000000 00000001 00000000 0000560000001000 11223344 00000040";

fn all(wire: &Wire) -> Vec<Diagnosis> {
    let mut diagnoses = Diagnoses::default();
    wire.feed(&mut diagnoses);
    diagnoses.finish();
    assert_eq!(diagnoses.others() + diagnoses.unstored(), 0);
    diagnoses.connections().cloned().collect()
}

pub(super) fn one(wire: &Wire) -> Diagnosis {
    let mut all = all(wire);
    assert_eq!(all.len(), 1, "{all:#?}");
    all.remove(0)
}

fn frames(diagnosis: &Diagnosis) -> Vec<FrameNumber> {
    diagnosis.chain.iter().filter_map(|link| link.frame).collect()
}

/// A Write of `len` octets.
fn write(stag: u32, to: u64, len: usize) -> Vec<u8> {
    let mut ulpdu = hex(&format!("c140 {stag:08x} {to:016x}"));
    ulpdu.resize(14 + len, 7);
    fpdu(&ulpdu)
}

/// Direction 1 advertises a buffer, direction 0 writes to it, and direction 1 sends a Terminate
/// with the error `error` (layer and type, code). Then direction 0 closes.
fn rejected_write(stag: u32, to: u64, len: usize, error: &str) -> Wire {
    let mut wire = exchange(&[(0, FIRST), (1, ADVERT)]);
    wire.send(0, &write(stag, to, len));
    let segment_length = 14 + len;
    wire.send_ulpdu(1, &format!("{TERMINATE} {error} c000 {segment_length:04x} c140 {stag:08x} {to:016x}"));
    wire.fin(0);
    wire
}

#[test]
fn a_write_beyond_the_buffer_names_the_excess() {
    let found = one(&rejected_write(0x1122_3344, 0x5600_0000_1000, 160, "1101"));
    assert_eq!((found.cause, found.culprit), (Cause::BeyondBuffer, Culprit::First), "{found}");
    assert!(found.headline.contains("96 bytes beyond the end"), "{found}");
    assert_eq!(frames(&found), [6, 7, 8, 9].map(FrameNumber::from));
    assert_eq!(found.ending.kind, EndKind::Terminated);
}

#[test]
fn the_bounds_of_a_buffer_must_fit_its_advertisement() {
    let found = one(&rejected_write(0x1122_3344, 0x5600_0000_1000, 64, "1101"));
    assert_eq!((found.cause, found.culprit), (Cause::OwnBuffer, Culprit::Second), "{found}");
    // The owner may have invalidated the STag.
    let found = one(&rejected_write(0x1122_3344, 0x5600_0000_1000, 64, "1100"));
    assert_eq!((found.cause, found.culprit), (Cause::OwnBuffer, Culprit::NotInCapture), "{found}");
}

/// A Read of direction 0 beyond the buffer, and a Terminate with the octets `fixed`.
fn rejected_read(fixed: &str) -> Diagnosis {
    let read = "00000100 0000000000001000 00000080 11223344 0000560000001000";
    let request = format!("4141 00000000 00000001 00000001 00000000 {read}");
    let mut wire = exchange(&[(0, FIRST), (1, ADVERT), (0, &request)]);
    wire.send_ulpdu(1, &format!("{TERMINATE} {fixed} 001c 4141 00000000 00000001 00000001 00000000 {read}"));
    one(&wire)
}

#[test]
fn a_terminate_in_another_layout_is_read() {
    for (fixed, layout) in [
        ("0101e000", None),
        ("1001e000", Some("frame 8")),
        ("10010700", Some("low bits")),
        ("01010700", Some("low bits")),
    ] {
        let found = rejected_read(fixed);
        assert_eq!((found.cause, found.culprit), (Cause::BeyondBuffer, Culprit::First), "{fixed}: {found}");
        let text = found.to_string().replace("\n  ", " ");
        assert_eq!(text.contains("read with"), layout.is_some(), "{fixed}: {text}");
        assert!(layout.is_none_or(|layout| text.contains(layout)), "{fixed}: {text}");
    }
}

/// 2/0/05 is an error of the reporter, and 0/2/05 is Invalid RDMAP version. Both have no copied
/// header here. So only a message with another version decides.
#[test]
fn two_possible_layouts_need_the_message_before() {
    for (control, cause) in [("43", Cause::LocalError), ("03", Cause::Message)] {
        let send = format!("41{control} 00000000 00000000 00000001 00000000 2a");
        let mut wire = exchange(&[(0, send.as_str())]);
        wire.send_ulpdu(1, &format!("{TERMINATE} 20050000"));
        let found = one(&wire);
        assert_eq!(found.cause, cause, "{found}");
    }
}

#[test]
fn a_wrong_stag_is_compared_with_the_advertised_stag() {
    let found = one(&rejected_write(0x1122_3345, 0x5600_0000_1000, 64, "1100"));
    assert_eq!((found.cause, found.culprit), (Cause::InvalidStag, Culprit::First), "{found}");
    // No advertisement in the capture has this offset.
    let found = one(&rejected_write(0x0bad_cafe, 0x9000, 64, "1100"));
    assert_eq!((found.cause, found.culprit), (Cause::InvalidStag, Culprit::NotInCapture), "{found}");
    assert!(found.unknown.is_some());
}

#[test]
fn an_invalidated_stag_is_compared_with_similar_stags() {
    let invalidate = |stag: &str| {
        let send = format!("4144 {stag} 00000000 00000002 00000000 2a");
        let mut wire = exchange(&[(0, FIRST), (1, ADVERT), (0, send.as_str())]);
        wire.send_ulpdu(1, &format!("{TERMINATE} 0100 c000 0013 4144 {stag} 00000000 00000002 00000000"));
        one(&wire)
    };
    let found = invalidate("11223345");
    assert_eq!((found.cause, found.culprit), (Cause::InvalidStag, Culprit::First), "{found}");
    let found = invalidate("0badcafe");
    assert_eq!((found.cause, found.culprit), (Cause::InvalidStag, Culprit::NotInCapture), "{found}");
}

#[test]
fn an_stag_that_its_user_invalidated_is_invalid() {
    let mut wire = exchange(&[
        (0, FIRST),
        (1, ADVERT),
        (0, "4144 11223344 00000000 00000002 00000000 2a"),
        (0, "c140 11223344 0000560000001000 01020304"),
    ]);
    wire.send_ulpdu(1, &format!("{TERMINATE} 1100 c000 0012 c140 11223344 0000560000001000"));
    let found = one(&wire);
    assert_eq!((found.cause, found.culprit), (Cause::InvalidStag, Culprit::First), "{found}");
    assert_eq!(frames(&found), [7, 8, 9].map(FrameNumber::from));
}

#[test]
fn the_rights_of_an_stag_are_not_in_the_capture() {
    let found = one(&rejected_write(0x1122_3344, 0x5600_0000_1000, 64, "0102"));
    assert_eq!((found.cause, found.culprit), (Cause::AccessRights, Culprit::NotInCapture), "{found}");
}

#[test]
fn an_endpoint_that_rejects_the_answer_to_its_own_read_is_at_fault() {
    let read = "4141 00000000 00000001 00000001 00000000
        00000100 0000000000001000 00000008 00000200 0000000000002000";
    let mut wire = exchange(&[(0, read), (1, "c142 00000100 0000000000001000 0102030405060708")]);
    wire.send_ulpdu(0, &format!("{TERMINATE} 1101 c000 0016 c142 00000100 0000000000001000"));
    let found = one(&wire);
    assert_eq!((found.cause, found.culprit), (Cause::OwnReadRequest, Culprit::First), "{found}");
}

/// Two Read Requests at the same time, rejected by a Terminate. The Reply has the IRD `ird`.
fn two_reads(ird: &str) -> Wire {
    let startup = (startup_frame(0x50, 2, &hex("0004 0004")), reply_frame(0x50, 2, &hex(&format!("{ird} 0004"))));
    let mut wire = Wire::started_as(&startup.0, &startup.1);
    for msn in [1, 2] {
        let fields = "00000100 0000000000001000 00000040 00000200 0000000000002000";
        wire.send_ulpdu(0, &format!("4141 00000000 00000001 {msn:08x} 00000000 {fields}"));
    }
    wire.send_ulpdu(1, &format!("{TERMINATE} 1202 c000 002e 4141 00000000 00000001 00000002 00000000"));
    wire
}

#[test]
fn too_many_reads_are_the_requesters_fault() {
    let found = one(&two_reads("0001"));
    assert_eq!((found.cause, found.culprit), (Cause::ReadDepth, Culprit::First), "{found}");
    // The IRD allows two requests, so the rejection is wrong.
    let found = one(&two_reads("0002"));
    assert_eq!((found.cause, found.culprit), (Cause::Terminate, Culprit::Second), "{found}");
    // Without a negotiated IRD, the limit is unknown.
    let found = one(&two_reads("3fff"));
    assert_eq!((found.cause, found.culprit), (Cause::ReadDepth, Culprit::NotInCapture), "{found}");
}

#[test]
fn a_send_that_finds_no_buffer_accuses_nobody() {
    let mut wire = exchange(&[(0, FIRST), (0, "4143 00000000 00000000 00000002 00000000 2a2b2c2d")]);
    wire.send_ulpdu(1, &format!("{TERMINATE} 1202 c000 0016 4143 00000000 00000000 00000002 00000000"));
    let found = one(&wire);
    assert_eq!((found.cause, found.culprit), (Cause::NoReceiveBuffer, Culprit::NotInCapture), "{found}");
    assert_eq!(frames(&found), [6, 7].map(FrameNumber::from));
    let mut wire = exchange(&[(0, FIRST), (0, "4143 00000000 00000000 00000002 00000000 2a2b2c2d")]);
    wire.send_ulpdu(1, &format!("{TERMINATE} 1205 c000 0016 4143 00000000 00000000 00000002 00000000"));
    let found = one(&wire);
    assert_eq!((found.cause, found.culprit), (Cause::TooLong, Culprit::NotInCapture), "{found}");
    assert!(found.headline.contains("4 bytes"), "{found}");
}

fn bad_crc() -> Wire {
    let mut wire = Wire::started();
    wire.send(0, &fpdu(&send_of(1, 30)));
    let mut bad = fpdu(&send_of(2, 30));
    bad[24] ^= 1;
    wire.send(0, &bad);
    wire
}

#[test]
fn a_bad_crc_is_the_senders_fault() {
    let mut wire = bad_crc();
    wire.rst(1);
    let found = one(&wire);
    assert_eq!((found.cause, found.culprit), (Cause::BadCrc, Culprit::First), "{found}");
    assert_eq!(frames(&found), [6, 7].map(FrameNumber::from));
    assert!(found.to_string().contains("the path changed the FPDU"), "{found}");
    let mut wire = bad_crc();
    wire.send_ulpdu(1, &format!("{TERMINATE} 2002 0000"));
    wire.fin(1);
    let found = one(&wire);
    assert_eq!((found.cause, found.culprit), (Cause::BadCrc, Culprit::First), "{found}");
    assert!(found.problems.iter().any(|problem| problem.is_cause && problem.requirements.len() > 1), "{found:#?}");
}

#[test]
fn a_terminate_about_a_right_crc_accuses_nobody() {
    let mut wire = exchange(&[(0, FIRST)]);
    wire.send_ulpdu(1, &format!("{TERMINATE} 2002 0000"));
    let found = one(&wire);
    assert_eq!((found.cause, found.culprit), (Cause::BadCrc, Culprit::NotInCapture), "{found}");
}

#[test]
fn a_retransmission_with_a_right_crc_shows_damage() {
    let mut wire = bad_crc();
    wire.send_ulpdu(1, &format!("{TERMINATE} 2002 0000"));
    wire.send_again(0, 36, &fpdu(&send_of(2, 30)));
    let found = one(&wire);
    assert_eq!((found.cause, found.culprit), (Cause::Damaged, Culprit::Network), "{found}");
}

#[test]
fn an_error_of_its_own_is_the_fault_of_the_reporter() {
    let mut wire = exchange(&[(0, FIRST)]);
    wire.send_ulpdu(1, &format!("{TERMINATE} 1000 0000"));
    let found = one(&wire);
    assert_eq!((found.cause, found.culprit), (Cause::LocalError, Culprit::Second), "{found}");
}

#[test]
fn a_wrong_key_is_the_fault_of_its_sender() {
    let mut wire = Wire::connected();
    let mut wrong = request();
    wrong[9] ^= 0x20;
    wire.send(0, &wrong);
    wire.fin(1);
    let found = one(&wire);
    assert_eq!((found.cause, found.culprit), (Cause::WrongKey, Culprit::First), "{found}");
    assert_eq!(frames(&found), [3, 4].map(FrameNumber::from));
}

#[test]
fn a_rejection_names_the_responder() {
    let mut wire = Wire::started_as(&startup_frame(0x40, 1, &[]), &reply_frame(0x60, 1, b"sorry"));
    wire.fin(1);
    let found = one(&wire);
    assert_eq!((found.cause, found.culprit), (Cause::Rejected, Culprit::Second), "{found}");
    assert!(found.unknown.as_deref().is_some_and(|text| text.contains("5 bytes")), "{found}");
}

#[test]
fn a_syn_without_an_answer_and_a_refused_syn_accuse_nobody() {
    let mut wire = Wire::connected().alone(0);
    let found = one(&wire);
    assert_eq!((found.cause, found.culprit), (Cause::NoAnswer, Culprit::NotInCapture), "{found}");
    wire.rst(1);
    let found = one(&wire);
    assert_eq!((found.cause, found.ending.kind), (Cause::Refused, EndKind::Refused), "{found}");
}

/// A connection on which both endpoints have sent a Send.
pub(super) fn quiet() -> Wire {
    let mut wire = Wire::started();
    (0..2).for_each(|direction| wire.send(direction, &fpdu(&send_of(1, 30))));
    wire
}

#[test]
fn a_connection_that_both_endpoints_close_has_no_problem() {
    let mut wire = quiet();
    (0..2).for_each(|direction| wire.fin(direction));
    let found = one(&wire);
    assert_eq!((found.cause, found.culprit), (Cause::None, Culprit::Nobody), "{found:#?}");
    assert_eq!(found.ending.kind, EndKind::Closed);
    assert!(found.is_healthy() && found.to_string().contains("no problem"));
    let found = one(&quiet());
    assert_eq!((found.cause, found.ending.kind), (Cause::None, EndKind::Open), "{found:#?}");
}

#[test]
fn keep_alives_without_an_answer_show_a_silent_peer() {
    let mut wire = quiet();
    for _ in 0..4 {
        wire.wait(1_000_000_000);
        wire.send_again(0, 1, &[]);
    }
    let found = one(&wire);
    assert_eq!((found.cause, found.ending.kind), (Cause::Silence, EndKind::Silent), "{found:#?}");
    assert_eq!(found.tcp[0].keep_alives, 4);
    wire.rst(0);
    let found = one(&wire);
    assert_eq!((found.cause, found.ending.kind), (Cause::Silence, EndKind::Reset), "{found}");
    assert!(found.headline.contains("4 keep-alives"), "{found}");
}

/// A Read Request that TCP acknowledges, but that has no response after `wait` nanoseconds.
fn unanswered_read(wait: u64) -> Diagnosis {
    let read = "00000100 0000000000001000 00000008 00000200 0000000000002000";
    let mut wire = exchange(&[(0, FIRST), (1, FIRST)]);
    wire.send_ulpdu(0, &format!("4141 00000000 00000001 00000001 00000000 {read}"));
    wire.send(1, &[]);
    wire.wait(wait);
    wire.rst(0);
    one(&wire)
}

#[test]
fn a_read_without_a_response_blames_the_responder_after_some_time() {
    let found = unanswered_read(20_000_000_000);
    assert_eq!((found.cause, found.culprit), (Cause::NoResponse, Culprit::Second), "{found}");
    let found = unanswered_read(3_000_000_000);
    assert_eq!((found.cause, found.culprit), (Cause::Reset, Culprit::NotInCapture), "{found}");
    let found = unanswered_read(1_000_000);
    assert_eq!((found.cause, found.culprit), (Cause::Reset, Culprit::First), "{found}");
}

#[test]
fn a_reset_from_another_distance_is_foreign() {
    let mut wire = quiet();
    wire.send(1, &[]);
    wire.send(1, &fpdu(&send_of(2, 30)));
    wire.rst(1);
    let with_ttl = |ttl: u8| {
        wire.changed(|mut frames| {
            if let Some((_, last)) = frames.last_mut() {
                // The TTL is octet 8 of the IPv4 header.
                last[14 + 8] = ttl;
            }
            frames
        })
    };
    let found = one(&with_ttl(61));
    assert_eq!((found.cause, found.culprit), (Cause::ForeignReset, Culprit::Network), "{found}");
    let found = one(&with_ttl(64));
    assert_eq!((found.cause, found.culprit), (Cause::Reset, Culprit::NotInCapture), "{found}");
    // The RST of another TCP on the same host has another initial TTL, but passed no router.
    assert_eq!(one(&with_ttl(255)).cause, Cause::Reset);
}

#[test]
fn lost_segments_are_the_share_of_the_network() {
    let mut wire = quiet();
    let lost = fpdu(&send_of(2, 30));
    wire.lose(0, &lost);
    wire.send(0, &fpdu(&send_of(3, 30)));
    wire.wait(200_000_000);
    wire.send_again(0, 72, &lost);
    (0..2).for_each(|direction| wire.fin(direction));
    let found = one(&wire);
    assert_eq!((found.cause, found.culprit), (Cause::Loss, Culprit::Network), "{found:#?}");
    assert_eq!((found.tcp[0].retransmissions, found.tcp[0].refills), (1, 1));
}

#[test]
fn half_a_capture_accuses_nobody() {
    let found = one(&quiet().alone(0));
    assert_eq!((found.cause, found.culprit), (Cause::OneDirection, Culprit::NotInCapture), "{found:#?}");
}

#[test]
fn an_abort_of_sdp_names_its_sender() {
    let mut script = SdpScript::bare();
    script.send(0, Mid::ABORT_CONN, "", 0);
    script.wire.fin(0);
    let found = one(&script.wire);
    assert_eq!((found.cause, found.culprit), (Cause::Aborted, Culprit::First), "{found:#?}");
}

#[test]
fn a_second_start_up_after_a_rejection_counts() {
    let mut wire = Wire::started_as(&request(), &reply_frame(0x60, 1, &[]));
    wire.send(0, &request());
    wire.send(1, &reply());
    (0..2).for_each(|direction| wire.send(direction, &fpdu(&send_of(1, 30))));
    assert_ne!(one(&wire).cause, Cause::Rejected);
}

#[test]
fn a_denied_mapping_is_reported() {
    let address = |last: u8| std::net::SocketAddr::from(([10, 0, 0, last], 7174));
    let point = |frame: u64| Some(CapturePoint { frame: frame.into(), time: 0 });
    let denied = Exchange {
        exchange: 3,
        handle: 1,
        connecting: address(2),
        connecting_mapped: None,
        requested: Some(address(1)),
        mapped: None,
        pm_time: None,
        request: point(4),
        accept: None,
        ack: None,
        deny: point(5),
        repeats: [0; 4],
        streams: Vec::new(),
        followers: 0,
        repeated: false,
    };
    let report = ExchangeReport::of(&denied).unwrap();
    assert_eq!((report.state, report.frame), ("denied", 5.into()));
    assert_eq!(
        report.to_string(),
        "port mapper exchange 3: the port mapper denies 10.0.0.2:7174 a connection to 10.0.0.1:7174 (frame 5)."
    );
    assert_eq!(ExchangeReport::of(&Exchange { followers: 1, ..denied }), None);
}

#[test]
fn a_diagnosis_serializes() {
    let json = serde_json::to_value(one(&rejected_write(0x1122_3344, 0x5600_0000_1000, 160, "1101"))).unwrap();
    assert_eq!((&json["cause"], &json["culprit"]), (&"beyond_buffer".into(), &"first".into()));
    assert_eq!((&json["ending"]["kind"], &json["chain"][1]["frame"]), (&"terminated".into(), &7.into()));
}
