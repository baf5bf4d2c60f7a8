//! Tests of what the panels of the capture screen show: long fields, and sequence numbers.

use super::tests::{DOWN, at, click, commands, settled, text_of};
use super::*;
use crate::testing::{drawn, text};

/// The text of the field is `Key: 4d504120494420526571204672616d65 "MPA ID Req Frame"`, and a row
/// of the panel has room for 30 characters of it.
#[test]
fn a_long_field_takes_several_rows() {
    let mut screen = at("rping-crc.pcap", "MPA Request");
    let shown = text(&drawn(&mut screen, 80, 24));
    assert!(!shown.contains("\"MPA ID Req Frame\""), "only the selected field has all rows: {shown}");
    commands(&mut screen, &[Command::NextPanel, DOWN, DOWN]);
    let shown = text(&drawn(&mut screen, 80, 24));
    for row in ["│      Key: ", "│      4d504120494420526571204672616d│", "│      65 \"MPA ID Req Frame\" "] {
        assert!(shown.contains(row), "{row}: {shown}");
    }
    // A click on any row of a field selects the field.
    commands(&mut screen, &[DOWN]);
    drawn(&mut screen, 80, 24);
    click(&mut screen, "4d504120494420526571204672616");
    assert!(screen.fields.selected().unwrap().text.starts_with("Key: "));
    // The panel scrolls to the last field.
    commands(&mut screen, &[Command::Move(Motion::Last)]);
    assert!(text(&drawn(&mut screen, 80, 24)).contains("Private Data: 00010001"));
}

#[test]
fn sequence_numbers_are_relative_or_absolute() {
    let mut screen = settled("rping-crc.pcap");
    let shown = text_of(&mut screen);
    // The SYN of a connection has the relative number 0, and the first byte has 1.
    for row in ["10.1.0.2:38499 → 7174 TCP SYN  seq 0 len 0", "TCP ACK  seq 1 len 0"] {
        assert!(shown.contains(row), "{row}: {shown}");
    }
    commands(&mut screen, &[Command::Absolute]);
    let shown = text_of(&mut screen);
    assert!(shown.contains("TCP SYN  seq 590143516 len 0") && !shown.contains("seq 0 len 0"), "{shown}");
    commands(&mut screen, &[Command::Absolute]);
    assert!(text_of(&mut screen).contains("TCP SYN  seq 0 len 0"));
}
