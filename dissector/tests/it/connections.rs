//! Connections that end, come again, and are many.
#![expect(clippy::unwrap_used, reason = "helpers of tests; the lint's own exception covers test functions only")]

use crate::common::{ACK, FIN, RST, SYN, Watch, fpdus, send, startup, tcp, told};

fn streams(units: &[serde_json::Value]) -> Vec<u64> {
    units.iter().map(|unit| unit["stream"].as_u64().unwrap()).collect()
}

/// Frames of one whole connection: from the port given, a GET or an MPA start-up with one FPDU.
fn short_lived(watch: &mut Watch, port: u16, iwarp: bool, end: u8) {
    let from = |from: usize, seq, flags, payload: &[u8]| {
        let mut packet = tcp(from, seq, flags, payload);
        let at = if from == 0 { 20 } else { 22 };
        packet[at..at + 2].copy_from_slice(&port.to_be_bytes());
        packet
    };
    watch.packet(&from(0, 999, SYN, &[]));
    watch.packet(&from(1, 1999, SYN | ACK, &[]));
    if iwarp {
        watch.packet(&from(0, 1000, ACK, &startup(false, 0x40, 1, b"")));
        watch.packet(&from(1, 2000, ACK, &startup(true, 0x40, 1, b"")));
        watch.packet(&from(0, 1020, ACK, &fpdus(&[send(1, b"hi")], false, true)));
    } else {
        watch.packet(&from(0, 1000, ACK, b"GET /"));
    }
    watch.packet(&from(0, 1100, end | ACK, &[]));
    watch.packet(&from(1, 2100, end | ACK, &[]));
}

#[test]
fn many_short_connections_keep_their_numbers_and_units() {
    let mut watch = Watch::default();
    let ports = 10_000..12_500u16;
    for port in ports.clone() {
        short_lived(&mut watch, port, port % 2 == 0, if port % 3 == 0 { RST } else { FIN });
    }
    let units = watch.finish();
    let mut of_stream = std::collections::BTreeMap::<u64, Vec<_>>::new();
    for unit in &units {
        of_stream.entry(unit["stream"].as_u64().unwrap()).or_default().push(unit);
    }
    for (number, port) in (0..).zip(ports) {
        let mine = &of_stream[&number];
        let kinds: Vec<&str> = mine.iter().map(|unit| unit["kind"].as_str().unwrap()).collect();
        let expected: &[&str] = if port % 2 == 0 { &["mpa_request", "mpa_reply", "fpdu"] } else { &["streaming"] };
        let mut sorted = kinds.clone();
        sorted.sort_by_key(|kind| expected.iter().position(|e| e == kind));
        assert_eq!(sorted, expected, "stream {number}");
        assert!(mine[0]["src"].as_str().unwrap().ends_with(&format!(":{port}")));
    }
}

#[test]
fn a_repetition_long_after_the_end_is_no_new_connection() {
    let mut watch = Watch::default();
    short_lived(&mut watch, 9999, false, FIN);
    for port in 10_000..12_000 {
        short_lived(&mut watch, port, false, FIN);
    }
    let again = |flags, seq, octets: &[u8]| {
        let mut packet = tcp(0, seq, flags, octets);
        packet[20..22].copy_from_slice(&9999u16.to_be_bytes());
        packet
    };
    watch.packet(&again(ACK, 1000, b"GET /"));
    watch.packet(&again(SYN, 999, b""));
    watch.packet(&again(FIN | ACK, 1100, b""));
    // A new SYN opens the 2002nd; octets that were not there go on with the first.
    watch.packet(&again(ACK, 5000, b"more"));
    watch.packet(&again(SYN, 77, b""));
    watch.packet(&again(ACK, 78, b"new"));
    let units = watch.finish();
    let of_first: Vec<_> = units.iter().filter(|u| u["src"].as_str().unwrap().ends_with(":9999")).collect();
    let told: Vec<_> = of_first.iter().map(|u| (u["stream"].as_u64().unwrap(), u["len"].as_u64().unwrap())).collect();
    assert_eq!(told, [(0, 5), (0, 4), (2001, 3)]);
}

#[test]
fn a_syn_with_another_sequence_number_is_another_connection() {
    let mut watch = Watch::opened();
    watch.data(0, 0, b"one");
    watch.packet(&tcp(0, 999, SYN, &[]));
    watch.packet(&tcp(0, 70_000, SYN, &[]));
    watch.packet(&tcp(0, 70_001, ACK, b"three"));
    let units = watch.finish();
    assert_eq!(streams(&units), [0, 1]);
    assert_eq!(told(&units, 0, "len"), ["streaming 3", "streaming 5"]);
}

#[test]
fn octets_behind_fin_and_reset_still_count_when_they_were_captured_late() {
    let mut watch = Watch::opened();
    watch.data(0, 3, b"de");
    watch.packet(&tcp(0, 1005, FIN | ACK, &[]));
    watch.packet(&tcp(1, 2000, FIN | ACK, &[]));
    watch.packet(&tcp(1, 2001, RST, &[]));
    watch.data(0, 0, b"abc");
    assert_eq!(told(&watch.finish(), 0, "len"), ["streaming 5"]);
}

#[test]
fn octets_with_numbers_far_away_are_of_a_connection_without_captured_syn() {
    let mut watch = Watch::default();
    short_lived(&mut watch, 9999, false, FIN);
    let again = |seq: u32| {
        let mut packet = tcp(0, seq, ACK, b"GET /");
        packet[20..22].copy_from_slice(&9999_u16.to_be_bytes());
        packet
    };
    // Close to the end they are of the same connection, behind its FIN.
    watch.packet(&again(1101));
    watch.packet(&again(1101 + (2 << 20)));
    let units = watch.finish();
    let lengths: Vec<u64> = units.iter().map(|unit| unit["len"].as_u64().unwrap()).collect();
    assert_eq!((streams(&units), lengths), (vec![0, 1], vec![106, 5]));
}

/// Two taps with skewed clocks, or two files that were appended: what one end sent is all behind what the other sent.
#[test]
fn a_syn_behind_the_octets_it_begins_is_of_the_same_connection() {
    let request = startup(false, 0x40, 1, b"");
    let fpdu = fpdus(&[send(1, b"hi")], false, true);
    let from = [
        vec![tcp(0, 999, SYN, &[]), tcp(0, 1000, ACK, &request), tcp(0, 1020, ACK, &fpdu)],
        vec![tcp(1, 1999, SYN | ACK, &[]), tcp(1, 2000, ACK, &startup(true, 0x40, 1, b""))],
    ];
    // The SYN-ACK and the Reply acknowledge the SYN and the Request.
    let mut from = from;
    from[1][0][28..32].copy_from_slice(&1000_u32.to_be_bytes());
    from[1][1][28..32].copy_from_slice(&1020_u32.to_be_bytes());
    let [forth, back] = &from;
    let orders: [Vec<&Vec<u8>>; 3] = [
        back.iter().chain(forth).collect(),
        // The SYN comes last, and the octets behind it out of order.
        vec![&back[0], &forth[2], &forth[1], &back[1], &forth[0]],
        vec![&forth[1], &back[0], &forth[0], &forth[2], &back[1]],
    ];
    for order in orders {
        let mut watch = Watch::default();
        order.into_iter().for_each(|packet| watch.packet(packet));
        let units = watch.finish();
        let mut kinds: Vec<&str> = units.iter().map(|unit| unit["kind"].as_str().unwrap()).collect();
        kinds.sort_unstable();
        assert_eq!(kinds, ["fpdu", "mpa_reply", "mpa_request"]);
        assert_eq!(streams(&units), [0, 0, 0]);
    }
    // A SYN with a later number is of another connection.
    let mut watch = Watch::default();
    watch.packet(&tcp(0, 1000, ACK, b"GET /"));
    watch.packet(&tcp(0, 5000, SYN, &[]));
    watch.packet(&tcp(0, 5001, ACK, b"GET /"));
    assert_eq!(streams(&watch.finish()), [0, 1]);
}
