//! Tests the CRC32c of octet strings, in transmission order. The strings are the examples of RFC
//! 3720 Appendix B.4, and the usual check string "123456789".

use weft_core::crc::{crc32c, to_octets};

use super::hex;

fn field(octets: &[u8]) -> [u8; 4] {
    to_octets(crc32c(octets))
}

#[test]
fn check_value() {
    assert_eq!(crc32c(b"123456789"), 0xe306_9283);
    assert_eq!(field(b"123456789"), [0x83, 0x92, 0x06, 0xe3]);
}

#[test]
fn thirty_two_zeroes() {
    assert_eq!(field(&[0; 32]), [0xaa, 0x36, 0x91, 0x8a]);
}

#[test]
fn thirty_two_ones() {
    assert_eq!(field(&[0xff; 32]), [0x43, 0xab, 0xa8, 0x62]);
}

#[test]
fn thirty_two_up() {
    assert_eq!(field(&(0..32).collect::<Vec<u8>>()), [0x4e, 0x79, 0xdd, 0x46]);
}

#[test]
fn thirty_two_down() {
    assert_eq!(field(&(0..32).rev().collect::<Vec<u8>>()), [0x5c, 0xdb, 0x3f, 0x11]);
}

#[test]
fn iscsi_read_pdu() {
    let pdu = hex(concat!(
        "01c00000 00000000 00000000 00000000 14000000 00000400",
        "00000014 00000018 28000000 00000000 02000000 00000000"
    ));
    assert_eq!(pdu.len(), 48);
    assert_eq!(field(&pdu), [0x56, 0x3a, 0x96, 0xd9]);
}
