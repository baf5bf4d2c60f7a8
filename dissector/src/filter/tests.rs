//! Tests the filter language with explicit values. Tests the messages and columns of errors. Tests
//! that no text causes a panic.

use std::net::{IpAddr, Ipv4Addr};

use proptest::prelude::*;

use super::known::Source;
use super::values::FieldValue;
use super::*;

/// Returns whether a unit with the values `fields` passes the filter `text`.
fn passes(text: &str, fields: &[(&str, FieldValue)]) -> bool {
    let mut wanted = WantedFields::default();
    let filter = match Filter::parse(text, &mut wanted) {
        Ok(filter) => filter,
        Err(error) => panic!("{error}\n{}", error.pointed(text)),
    };
    let mut values = Values::default();
    for (name, held) in fields {
        values.add(wanted.add(known(name).unwrap()), held.clone());
    }
    filter.matches(&values)
}

fn octets_pass(text: &str, name: &str, octets: &[u8]) -> bool {
    let mut wanted = WantedFields::default();
    let filter = Filter::parse(text, &mut wanted).unwrap();
    let mut values = Values::default();
    values.add_octets(wanted.add(known(name).unwrap()), octets);
    filter.matches(&values)
}

fn opcodes(values: &[u64]) -> Vec<(&'static str, FieldValue)> {
    values.iter().map(|value| ("iwarp_rdma.opcode", FieldValue::Number(*value))).collect()
}

fn fault(text: &str) -> String {
    match Filter::parse(text, &mut WantedFields::default()) {
        Ok(_) => panic!("the filter {text} was accepted"),
        Err(error) => format!("{error}\n{}", error.pointed(text)),
    }
}

#[test]
fn filters_about_headers_select_segments() {
    for (text, expected) in [
        ("tcp.analysis.retransmission", true),
        ("tcp.stream == 3 && tcp.len == 0", true),
        ("frame.number in {5, 7}", true),
        ("ip.ttl < 64 or eth.type == 0x86dd", true),
        ("udp.length > 100", true),
        // These filters select connections, and the user of weft looks for their units.
        ("tcp.stream == 3", false),
        ("ip.addr == 10.0.0.1 && tcp.port == 7174", false),
        ("udp.port == 3935 || ipv6", false),
        // Only a unit has these fields.
        ("tcp.analysis.retransmission && iwarp_mpa.fpdu", false),
        ("not iwarp_rdma.opcode == Send", false),
        ("frame.number == 5 && kind == fpdu", false),
        ("finding || frame.number == 5", false),
    ] {
        let mut wanted = WantedFields::default();
        Filter::parse(text, &mut wanted).unwrap();
        assert_eq!(wanted.selects_segments(), expected, "{text}");
    }
}

#[test]
fn relations_ask_for_one_occurrence_but_ne_for_all() {
    let both = opcodes(&[0, 3]);
    for (text, expected) in [
        ("iwarp_rdma.opcode == 3", true),
        ("iwarp_rdma.opcode eq 4", false),
        ("iwarp_rdma.opcode != 3", false),
        ("iwarp_rdma.opcode ne 4", true),
        ("iwarp_rdma.opcode !== 3", true),
        ("iwarp_rdma.opcode === 3", false),
        ("not iwarp_rdma.opcode == 3", false),
        ("iwarp_rdma.opcode > 2", true),
        ("iwarp_rdma.opcode gt 3", false),
        ("iwarp_rdma.opcode >= 3 && iwarp_rdma.opcode le 0", true),
        ("iwarp_rdma.opcode < 0x0", false),
    ] {
        assert_eq!(passes(text, &both), expected, "{text}");
    }
}

#[test]
fn tests_of_what_is_not_there_fail_and_their_negations_pass() {
    for text in
        ["iwarp_rdma.opcode", "iwarp_rdma.opcode == 1", "iwarp_rdma.opcode != 1", "iwarp_rdma.opcode not in {1}"]
    {
        assert!(!passes(text, &[]), "{text}");
        assert!(passes(&format!("!({text})"), &[]), "{text}");
    }
}

#[test]
fn and_binds_tighter_than_or_and_not_tighter_than_both() {
    let three = opcodes(&[3]);
    let is = |value: u64| format!("iwarp_rdma.opcode == {value}");
    assert!(passes(&format!("{} || {} && {}", is(3), is(3), is(4)), &three));
    assert!(!passes(&format!("({} or {}) and {}", is(3), is(3), is(4)), &three));
    assert!(passes(&format!("!{} && {}", is(4), is(3)), &three));
    assert!(passes(&format!("not not {}", is(3)), &three));
}

#[test]
fn sets_hold_values_ranges_and_names() {
    let read_request = opcodes(&[1]);
    for (text, expected) in [
        ("iwarp_rdma.opcode in {1}", true),
        ("iwarp_rdma.opcode in {3, 0..2}", true),
        ("iwarp_rdma.opcode in {3 4 5}", false),
        ("iwarp_rdma.opcode in {\"rdma read request\"}", true),
        ("iwarp_rdma.opcode not in {2..15}", true),
        ("iwarp_rdma.opcode not in {0..15}", false),
    ] {
        assert_eq!(passes(text, &read_request), expected, "{text}");
    }
}

#[test]
fn accepts_names_of_values_for_numbers() {
    assert!(passes("iwarp_rdma.opcode == Send", &opcodes(&[3])));
    assert!(passes("iwarp_rdma.opcode == \"send\"", &opcodes(&[3])));
    assert!(!passes("iwarp_rdma.opcode != Send", &opcodes(&[3])));
    let severity = [("finding.severity", FieldValue::Number(2))];
    assert!(passes("finding.severity >= warning", &severity));
    assert!(passes("iwarp_ddp.last_flag == true", &[("iwarp_ddp.last_flag", FieldValue::Number(1))]));
    assert!(passes("crc_status == bad", &[("crc_status", FieldValue::StaticText("bad"))]));
    assert!(passes("crc_status matches \"^(BAD|trunc.*)$\"", &[("crc_status", FieldValue::StaticText("bad"))]));
}

#[test]
fn octets_are_written_in_several_ways() {
    let name = "iwarp_mpa.privatedata";
    for text in [
        "iwarp_mpa.privatedata == 72:65:76",
        "iwarp_mpa.privatedata == 72-65-76",
        "iwarp_mpa.privatedata == 726576",
        "iwarp_mpa.privatedata == 0x726576",
        "iwarp_mpa.privatedata == \"rev\"",
        "iwarp_mpa.privatedata == \"\\x72ev\"",
        "iwarp_mpa.privatedata contains 65:76",
        "iwarp_mpa.privatedata contains \"e\"",
        "iwarp_mpa.privatedata matches \"^R.V$\"",
        "iwarp_mpa.privatedata matches r\"^\\w{3}$\"",
        "iwarp_mpa.privatedata matches \"\\w\"",
        "iwarp_mpa.privatedata > 71:ff",
        "iwarp_mpa.privatedata in {00..01, 72..73}",
    ] {
        assert!(octets_pass(text, name, b"rev"), "{text}");
    }
    assert!(!octets_pass("iwarp_mpa.privatedata contains 76:65", name, b"rev"));
}

#[test]
fn addresses_compare_with_networks_and_times_with_fractions() {
    let address = [("ip.addr", FieldValue::Address(IpAddr::V4(Ipv4Addr::new(10, 1, 2, 3))))];
    assert!(passes("ip.addr == 10.1.0.0/16", &address));
    assert!(!passes("ip.addr == 10.2.0.0/16", &address));
    assert!(passes("ip.addr == 0.0.0.0/0", &address));
    assert!(passes("ip.addr in {10.1.2.1..10.1.2.9}", &address));
    let time = [("frame.time_relative", FieldValue::Time(1_500_000_000))];
    assert!(passes("frame.time_relative == 1.5", &time));
    assert!(passes("frame.time_relative > 1.499999999", &time));
}

#[test]
fn dates_and_differences_compare_with_numbers() {
    // 2024-02-29 12:34:56.5 UTC; the seconds are those of `date -u -d ... +%s`.
    let time = [("frame.time", FieldValue::Time(1_709_210_096_500_000_000))];
    for (text, expected) in [
        ("frame.time == \"2024-02-29 12:34:56.5\"", true),
        ("frame.time == \"Feb 29, 2024 12:34:56.5 UTC\"", true),
        ("frame.time > 2024-02-29", true),
        ("frame.time in {2024-02-29T12:34:56..2024-02-29T12:34:57}", true),
        ("frame.time < \"2024-02-29 12:34:56\"", false),
    ] {
        assert_eq!(passes(text, &time), expected, "{text}");
    }
    assert!(fault("frame.time > 1.5").contains("expected a date and a time in UTC here"));
    // A frame can have an earlier time than the frame before it.
    let earlier = [("frame.time_delta", FieldValue::Difference(-1_000))];
    assert!(passes("frame.time_delta < 0", &earlier));
    assert!(!passes("frame.time_delta in {0..1}", &earlier));
    let later = [("frame.time_delta", FieldValue::Difference(1_500_000_000))];
    assert!(passes("frame.time_delta == 1.5 && frame.time_delta in {1..2}", &later));
}

#[test]
fn fields_compare_with_fields() {
    let ports = |a, b| [("tcp.srcport", FieldValue::Number(a)), ("tcp.dstport", FieldValue::Number(b))];
    assert!(passes("tcp.srcport > tcp.dstport", &ports(2, 1)));
    assert!(!passes("tcp.srcport == tcp.dstport", &ports(2, 1)));
    assert!(!passes("tcp.srcport == tcp.dstport", &[]));
}

#[test]
fn errors_point_at_the_column_and_name_the_remedy() {
    insta::assert_snapshot!(
        [
            "iwarp_mpa.ulpdulenght > 3",
            "crc_status == bad && opcode == 3",
            "tcp.port = 3",
            "iwarp_rdma.opcode == Sent",
            "(iwarp_mpa && tcp.port == 1",
            "iwarp_mpa)",
            "iwarp_mpa == 3",
            "ip.addr == 300.1.1.1",
            "tcp.port in {}",
            "tcp.port in {1, 2",
            "tcp.port in {9..1}",
            "tcp.port matches \"1\"",
            "payload matches \"(\"",
            "payload == \"open",
            "payload == xyz",
            "tcp.port ==",
            "&& tcp",
            "tcp udp",
            "tcp.port == 99999999999999999999",
            "größe == 1",
            "",
        ]
        .map(fault)
        .join("\n\n")
    );
}

#[test]
fn nesting_has_an_end() {
    let deep = format!("{}tcp{}", "(".repeat(1_000), ")".repeat(1_000));
    assert!(fault(&deep).contains("nested more than 64 deep"));
    let long = vec!["tcp"; 10_000].join("||");
    assert!(Filter::parse(&long, &mut WantedFields::default()).is_ok());
}

/// This is a regression test. In an earlier version, a filter could have a thousand regular
/// expressions of up to a megabyte each. Such a filter took a gigabyte of memory and several
/// seconds.
#[test]
fn limits_all_regular_expressions_of_a_filter_together() {
    let many = |count| vec![r#"payload matches "a{9}""#; count].join(" or ");
    assert!(Filter::parse(&many(16), &mut WantedFields::default()).is_ok());
    assert!(fault(&many(17)).contains("at most 16 regular expressions; join them with |"));
    let joined = format!("payload matches \"{}\"", vec!["abc"; 1_000].join("|"));
    assert!(Filter::parse(&joined, &mut WantedFields::default()).is_ok());
    assert!(fault(r#"payload matches "(.{1000}){1000}""#).contains("invalid regular expression"));
}

#[test]
fn every_field_of_the_grammars_is_known_and_no_name_has_two_meanings() {
    for field in crate::grammar::fields() {
        assert!(matches!(known(field.name).unwrap().source, Source::Grammar(_)), "{}", field.name);
    }
    assert_eq!(known::nearest("iwarp_mpa.ulpdulenght"), Some("iwarp_mpa.ulpdulength"));
    assert_eq!(known::nearest("ulpdulength"), Some("iwarp_mpa.ulpdulength"));
    assert_eq!(known::nearest("frame.cap"), Some("frame.cap_len"));
    assert_eq!(known::nearest("tcp.hdr"), Some("tcp.hdr_len"));
    assert_eq!(known::nearest("something.else.entirely"), None);
}

proptest! {
    #[test]
    fn no_text_makes_the_parser_panic(text in "\\PC{0,60}") {
        let _ = Filter::parse(&text, &mut WantedFields::default()).map_err(|error| error.pointed(&text));
    }

    #[test]
    fn no_row_of_tokens_makes_the_parser_panic(
        tokens in proptest::collection::vec(
            prop::sample::select(vec![
                "tcp.port", "iwarp_rdma.opcode", "payload", "ip.addr", "frame.time_relative", "crc_status", "==", "!=",
                "in", "not", "{", "}", ",", "(", ")", "!", "&&", "or", "matches", "contains", "1..3", "..", "aa:bb",
                "10.0.0.1/33", "\"a", "\"b\"", "r\"(\"", "0x", "-1", "é", "\\", ">", "1.5", "::", "/",
            ]),
            0..12,
        )
    ) {
        let text = tokens.join(" ");
        if let Err(error) = Filter::parse(&text, &mut WantedFields::default()) {
            prop_assert!(error.column <= text.chars().count() + 1 && error.width >= 1);
        }
    }
}
