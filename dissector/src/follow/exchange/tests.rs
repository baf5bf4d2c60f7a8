//! Tests port mapper exchanges. The datagrams have the format of Figure 17 of the SDP draft
//! (draft-pinkerton-iwarp-sdp-01). Section numbers also refer to this draft. Host 10.0.0.2 connects
//! from port 49152 to host 10.0.0.1.

use serde_json::Value;

use super::*;
use crate::Sink;
use crate::context::Context;
use crate::frame_number::FrameNumber;
use crate::output::connection_ladder::{Subject, Timeline};
use crate::output::json::JsonWriter;
use crate::output::ladder::RowKind;
use crate::output::text::exchange_line;
use crate::stream_id::StreamId;
use crate::testing::{Wire, hex, reply, request};
use crate::unit::Unit;

const REQ: u8 = 0x04;
const ACCEPT: u8 = 0x14;
const ACK: u8 = 0x24;
const DENY: u8 = 0x34;

/// Builds a message. `first` is its first octet, with Ver 0, the message type (MT) and IPV 4.
fn message(first: u8, ap_port: u16, cp_port: u16, handle: u64) -> Vec<u8> {
    let zeros = "00".repeat(12);
    hex(&format!("{first:02x} 00 0000 {ap_port:04x} {cp_port:04x} {handle:016x} 0a000002 {zeros} 0a000001 {zeros}"))
}

const REQUESTED: u16 = 7000;
/// Destination port of the connections of [`Wire`].
const MAPPED: u16 = 4210;
const FROM: u16 = 49152;

#[derive(Default)]
struct Collect {
    json: JsonWriter,
    units: Vec<Value>,
    joined: Vec<Exchange>,
    over: Vec<Exchange>,
    follows: Vec<Option<u64>>,
}

impl Sink for Collect {
    fn unit(&mut self, unit: &Unit<'_>) {
        let mut out = Vec::new();
        self.json.write(unit, &mut out).unwrap();
        self.units.push(serde_json::from_slice(&out).unwrap());
    }

    fn exchange(&mut self, exchange: &Exchange, over: bool) {
        if over { &mut self.over } else { &mut self.joined }.push(exchange.clone());
    }

    fn ended(&mut self, _: StreamId, context: &Context) {
        self.follows.push(context.exchange.as_ref().map(|exchange| exchange.exchange));
    }
}

fn read(wire: &Wire) -> Collect {
    let mut found = Collect::default();
    wire.feed(&mut found);
    found
}

fn values<'c>(found: &'c Collect, field: &str) -> Vec<&'c Value> {
    found.units.iter().map(|unit| &unit[field]).collect()
}

#[test]
fn a_three_way_exchange_and_the_connection_that_follows() {
    let mut wire = Wire::connected_after(&[
        (0, message(REQ, REQUESTED, FROM, 77)),
        (1, message(ACCEPT, MAPPED, FROM, 77)),
        (0, message(ACK, MAPPED, FROM, 77)),
    ]);
    wire.send(0, &request());
    wire.send(1, &reply());
    let found = read(&wire);
    assert_eq!(
        values(&found, "iwarp_pm.state"),
        ["requested", "accepted", "acknowledged"].map(Value::from).iter().chain([&Value::Null; 2]).collect::<Vec<_>>()
    );
    assert_eq!(values(&found, "iwarp_pm.exchange"), [&Value::from(0); 5], "start-up frames name the exchange, too");
    assert_eq!(found.units[3]["iwarp_pm.asked_port"], 7000);
    let exchange = &found.over[0];
    assert_eq!(
        (exchange.state(), &exchange.streams[..], exchange.followers),
        (State::Acknowledged, &[StreamId::FIRST][..], 1)
    );
    let frames = [exchange.request, exchange.accept, exchange.ack].map(|seen| seen.map(|seen| seen.frame));
    assert_eq!(frames, [1, 2, 3].map(|frame| Some(FrameNumber::from(frame))));
    assert_eq!((exchange.requested, exchange.mapped), ("10.0.0.1:7000".parse().ok(), "10.0.0.1:4210".parse().ok()));
    assert_eq!((found.joined.len(), found.follows), (1, vec![Some(0)]));
    let line = "port mapper exchange 0: 10.0.0.2:49152 requests 10.0.0.1:7000, acknowledged, mapped to 10.0.0.1:4210, followed by stream 0";
    assert_eq!(exchange_line(exchange), line);
}

#[test]
fn an_exchange_has_an_object_of_its_own() {
    let wire = Wire::connected_after(&[(0, message(REQ, REQUESTED, FROM, 77)), (1, message(ACCEPT, MAPPED, FROM, 77))]);
    let mut out = Vec::new();
    JsonWriter::default().exchange(&read(&wire).over[0], &mut out).unwrap();
    let expected = serde_json::json!({
        "kind": "sdp_pm_exchange", "stream": null, "exchange": 0, "state": "accepted", "handle": 77,
        "connecting": "10.0.0.2:49152", "connecting_mapped": null, "asked": "10.0.0.1:7000",
        "mapped": "10.0.0.1:4210", "pm_time": 0, "request": {"frame": 1, "time": 1_000_000},
        "accept": {"frame": 2, "time": 2_000_000}, "ack": null, "deny": null, "repeats": [0, 0, 0, 0],
        "streams": [0], "followers": 1
    });
    assert_eq!(serde_json::from_slice::<Value>(&out).unwrap(), expected);
}

#[test]
fn the_ladder_begins_with_the_exchange() {
    let wire = Wire::connected_after(&[(0, message(REQ, REQUESTED, FROM, 77)), (1, message(ACCEPT, MAPPED, FROM, 77))]);
    let mut timeline = Timeline::new(Subject::Stream(StreamId::FIRST), 100);
    timeline.at(3_000_000);
    wire.feed(&mut timeline);
    let ladder = timeline.ladder().unwrap();
    let rows: Vec<_> = ladder.rows.iter().map(|row| (row.time, row.frame.map(u64::from), row.label.as_str())).collect();
    assert_eq!(rows[..2], [(0, Some(1), "SDP port mapper PMReq"), (1_000_000, Some(2), "SDP port mapper PMAccept")]);
    assert!(rows[2].2.starts_with("the connection was prepared by port mapper exchange 0"), "{rows:?}");
    assert!(rows[3..].iter().any(|row| row.2 == "SYN"));
}

/// The ladder also shows repeated requests, and shows each finding below its datagram. The ladder
/// shows neither the connection that the exchange prepared, nor other exchanges.
#[test]
fn an_exchange_has_a_ladder_of_its_own() {
    let wire = Wire::connected_after(&[
        (0, message(REQ, REQUESTED, FROM, 77)),
        (0, message(REQ, REQUESTED, FROM, 78)),
        (0, message(REQ, REQUESTED, FROM, 77)),
        (1, message(DENY, REQUESTED, FROM, 77)),
    ]);
    let drawn = |number| {
        let mut timeline = Timeline::new(Subject::Exchange(number), 100);
        wire.feed(&mut timeline);
        timeline.ladder()
    };
    let ladder = drawn(0).unwrap();
    let rows: Vec<_> = ladder.rows.iter().map(|row| (row.frame.map(u64::from), row.kind)).collect();
    let arrow = |from| RowKind::Arrow { from, dashed: false };
    assert_eq!(rows, [(Some(1), arrow(0)), (Some(3), arrow(0)), (Some(4), arrow(1)), (Some(4), RowKind::Note)]);
    assert!(ladder.rows[3].label.starts_with("note PM-7.3.1.6-4"), "{ladder:?}");
    assert!(ladder.rows[1].label.ends_with("exchange 0, repeated"), "{ladder:?}");
    assert_eq!(drawn(1).unwrap().rows.len(), 1);
    assert_eq!(drawn(2), None);
}

/// By section 7.5.2, a SYN acknowledges the PMAccept, like a PMAck.
#[test]
fn a_two_way_exchange_is_followed_as_well() {
    let wire = Wire::connected_after(&[(0, message(REQ, REQUESTED, FROM, 77)), (1, message(ACCEPT, MAPPED, FROM, 77))]);
    let found = read(&wire);
    assert_eq!((found.over[0].state(), found.over[0].followers), (State::Accepted, 1));
}

#[test]
fn a_denied_exchange_is_not_followed() {
    let wire = Wire::connected_after(&[(0, message(REQ, MAPPED, FROM, 77)), (1, message(DENY, MAPPED, FROM, 77))]);
    let found = read(&wire);
    assert_eq!((found.over[0].state(), found.over[0].followers), (State::Denied, 0));
    assert_eq!(found.follows, [None]);
}

#[test]
fn what_is_sent_again_belongs_to_the_same_exchange() {
    let wire = Wire::connected_after(&[
        (0, message(REQ, REQUESTED, FROM, 77)),
        (0, message(REQ, REQUESTED, FROM, 77)),
        (1, message(ACCEPT, MAPPED, FROM, 77)),
        (1, message(ACCEPT, MAPPED, FROM, 77)),
        (0, message(ACK, MAPPED, FROM, 77)),
    ]);
    let found = read(&wire);
    let exchange = &found.over[0];
    assert_eq!((found.over.len(), exchange.repeats), (1, [1, 1, 0, 0]));
    let repeats = found.units.iter().map(|unit| unit["iwarp_pm.repeat"] == 1).collect::<Vec<_>>();
    assert_eq!(repeats, [false, true, false, true, false]);
}

/// By section 7.5, all fields of the five-tuple identify a request. Only AssocHandle, CpPort and
/// CpIPAddr identify an answer.
#[test]
fn requests_with_another_tuple_are_other_exchanges() {
    let wire = Wire::connected_after(&[
        (0, message(REQ, REQUESTED, FROM, 77)),
        (0, message(REQ, REQUESTED, FROM, 78)),
        (0, message(REQ, REQUESTED, FROM + 1, 77)),
        (0, message(REQ, REQUESTED + 1, FROM, 77)),
        (1, message(ACCEPT, MAPPED, FROM, 78)),
    ]);
    let found = read(&wire);
    let numbers: Vec<_> = found.units.iter().map(|unit| unit["iwarp_pm.exchange"].as_u64().unwrap()).collect();
    assert_eq!(numbers, [0, 1, 2, 3, 1]);
    assert_eq!(found.follows, [Some(1)]);
}

/// A Linux daemon sends all clients to one port. The source and the destination of a connection
/// together decide which exchange prepared the connection.
#[test]
fn both_ends_count_before_the_newest_accept() {
    let mine = |first, port| (usize::from(first == ACCEPT), message(first, port, FROM, 77));
    let other = |first, port| (usize::from(first == ACCEPT), message(first, port, FROM + 1, 78));
    let wire = Wire::connected_after(&[
        mine(REQ, REQUESTED),
        mine(ACCEPT, MAPPED),
        other(REQ, REQUESTED),
        other(ACCEPT, MAPPED),
    ]);
    assert_eq!(read(&wire).follows, [Some(0)]);
    let wire = Wire::connected_after(&[other(REQ, REQUESTED), other(ACCEPT, MAPPED)]);
    assert_eq!(read(&wire).follows, [Some(0)], "without a better match, the address alone decides");
    // The Linux daemon also maps the address of the connecting side. The mapped port is in the
    // field Reserved, and the mapped address is after the message.
    let mut asks = message(REQ, REQUESTED, 8001, 79);
    asks[2..4].copy_from_slice(&FROM.to_be_bytes());
    asks.extend_from_slice(&hex(&format!("0a000002 {}", "00".repeat(12))));
    let wire = Wire::connected_after(&[
        (0, asks),
        (1, message(ACCEPT, MAPPED, 8001, 79)),
        other(REQ, REQUESTED),
        other(ACCEPT, MAPPED),
    ]);
    assert_eq!(read(&wire).follows, [Some(0)]);
}

#[test]
fn the_oldest_exchange_goes_when_there_are_too_many() {
    let mut exchanges = Exchanges::default();
    let (src, dst) = ("10.0.0.2:40000".parse().unwrap(), "10.0.0.1:3935".parse().unwrap());
    let mut take = |octets: &[u8]| {
        let wire_len = u32::try_from(octets.len()).unwrap();
        let datagram = Datagram { frame: FrameNumber::FIRST, time: 1, src, dst, octets, wire_len, offset: None };
        exchanges.record_datagram(&datagram).1.map(|dropped| dropped.exchange)
    };
    for handle in 0..MAX_EXCHANGES as u64 {
        assert_eq!(take(&message(ACCEPT, MAPPED, FROM, handle)), None);
    }
    assert_eq!(take(&message(REQ, REQUESTED, FROM, MAX_EXCHANGES as u64)), Some(0));
    // Exchange 0 is no longer known. So a datagram with the tuple of exchange 0 begins another
    // exchange.
    assert_eq!(take(&message(ACK, MAPPED, FROM, 0)), Some(1));
    assert_eq!((exchanges.kept.len(), exchanges.by_tuple.len()), (MAX_EXCHANGES, MAX_EXCHANGES));
    assert_eq!((exchanges.by_mapped.len(), exchanges.by_addresses.len()), (1, 1));
}

#[test]
fn what_is_no_message_changes_nothing() {
    let mut wrong_version = message(REQ, REQUESTED, FROM, 77);
    wrong_version[0] = 0x44;
    let short = message(REQ, REQUESTED, FROM, 77)[..47].to_vec();
    let found = read(&Wire::connected_after(&[(0, wrong_version), (0, short), (0, Vec::new())]));
    assert!(found.over.is_empty());
    assert_eq!(found.units.len(), 3);
}
