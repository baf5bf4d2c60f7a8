//! A capture with more connections than the dissector follows at the same time. The tests of `cli`
//! include this file, too.
#![allow(clippy::unwrap_used, reason = "helpers of tests may panic, like tests")]

/// The number of connections. The dissector follows at most 8,192 connections at the same time.
const CROWD: u16 = 8300;

/// Makes a capture of IP packets. One packet is encrypted. Then more connections open than the
/// dissector follows, each with an MPA Request. Then the first connections continue.
pub(crate) fn crowd() -> Vec<u8> {
    // Version 2.4, link type 101: an IP packet in each frame.
    let mut octets = [&[0xd4, 0xc3, 0xb2, 0xa1, 2, 0, 4, 0][..], &[0; 10], &[1, 0, 101, 0, 0, 0]].concat();
    let mut packet = |protocol: u8, payload: &[u8]| {
        let length = u8::try_from(20 + payload.len()).unwrap();
        let ip = [0x45, 0, 0, length, 0, 0, 0, 0, 64, protocol, 0, 0, 10, 0, 0, 1, 10, 1, 0, 2];
        let lengths = [length, 0, 0, 0, length, 0, 0, 0];
        octets.extend([&[0; 8][..], &lengths, &ip, payload].concat());
    };
    let tcp = |number: u16, seq: u8, octets: &[u8]| {
        let [high, low] = (number + 10_000).to_be_bytes();
        [&[high, low, 0x1c, 0x06, 0, 0, 0, seq, 0, 0, 0, 1, 0x50, 0x18, 4, 0, 0, 0, 0, 0][..], octets].concat()
    };
    // ESP (RFC 4303): an SPI and a sequence number.
    packet(50, &[0, 0, 1, 0, 0, 0, 0, 1]);
    (0..CROWD).for_each(|number| packet(6, &tcp(number, 1, b"MPA ID Req Frame\x40\x01\x00\x00")));
    (0..10).for_each(|number| packet(6, &tcp(number, 21, b"more")));
    octets
}
