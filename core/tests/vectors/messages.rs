//! Tests RDMAP messages. Each message is in one FPDU without markers.

use weft_core::wire::ddp::RawHeader;
use weft_core::wire::rdmap::{
    AtomicOperation, AtomicRequest, AtomicResponse, Immediate, Opcode, ReadRequest, Terminate, TerminateError,
};

use super::{both_ways, crc_field, framed, hex, tagged, unframed, untagged};

#[test]
fn rtr_send() {
    let expected = hex("0012414300000000000000000000000100000000587be8c4");
    both_ways(0, false, &untagged(Opcode::SEND, 0, 1, &[]), &expected);
}

#[test]
fn rtr_write() {
    both_ways(0, false, &tagged(Opcode::WRITE, 0, 0, &[]), &hex("000ec140000000000000000000000000 a30572ab"));
}

fn read_request(request: ReadRequest) -> Vec<u8> {
    let mut payload = Vec::new();
    request.emit(&mut payload);
    assert_eq!(ReadRequest::parse(&payload), Ok(request));
    untagged(Opcode::READ_REQUEST, 1, 1, &payload)
}

#[test]
fn rtr_read_request() {
    let ulpdu = read_request(ReadRequest::default());
    assert_eq!(ulpdu.len(), 46);
    crc_field(&ulpdu, "f2c6dd3d");
}

#[test]
fn rtr_read_response() {
    let expected = hex("000ec142000000000000000000000000 6975d6ca");
    both_ways(0, false, &tagged(Opcode::READ_RESPONSE, 0, 0, &[]), &expected);
}

const REQUEST: ReadRequest =
    ReadRequest { sink_stag: 0x100, sink_to: 0x1000, rdmardsz: 64, src_stag: 0x200, src_to: 0x2000 };

#[test]
fn a_read_request() {
    crc_field(&read_request(REQUEST), "f8777406");
}

fn terminate(terminate: Terminate) -> Vec<u8> {
    let mut payload = Vec::new();
    terminate.emit(&mut payload);
    assert_eq!(Terminate::parse(&payload), Ok(terminate));
    untagged(Opcode::TERMINATE, 2, 1, &payload)
}

fn bare(error: TerminateError) -> Terminate {
    Terminate { error, segment_length: None, ddp_header: None, read_request: None }
}

fn header(octets: &[u8]) -> RawHeader {
    let (header, rest) = RawHeader::from_prefix(octets).unwrap();
    assert!(rest.is_empty());
    header
}

#[test]
fn terminate_for_a_wrong_crc() {
    let expected = hex("00164147 00000000 00000002 00000001 00000000 20020000 7fe42585");
    both_ways(0, false, &terminate(bare(TerminateError::MPA_CRC)), &expected);
}

#[test]
fn terminate_for_too_little_ird() {
    let expected = hex("00164147 00000000 00000002 00000001 00000000 20060000 6540fb1b");
    both_ways(0, false, &terminate(bare(TerminateError::MPA_INSUFFICIENT_IRD)), &expected);
}

#[test]
fn terminate_without_a_matching_rtr() {
    let expected = hex("00164147 00000000 00000002 00000001 00000000 20070000 1bd2babe");
    both_ways(0, false, &terminate(bare(TerminateError::MPA_NO_MATCHING_RTR)), &expected);
}

#[test]
fn terminate_that_copies_a_tagged_header() {
    let copied = hex("c140deadbeef0000000000002000");
    let ulpdu = terminate(Terminate {
        segment_length: Some(0x1e),
        ddp_header: Some(header(&copied)),
        ..bare(TerminateError::DDP_TAGGED_INVALID_STAG)
    });
    assert_eq!(ulpdu[18..], [&hex("1100c000 001e")[..], &copied].concat());
    crc_field(&ulpdu, "3c221dc5");
}

#[test]
fn terminate_that_copies_a_read_request() {
    let offending = read_request(REQUEST);
    let ulpdu = terminate(Terminate {
        segment_length: Some(0x2e),
        ddp_header: Some(header(&offending[..18])),
        read_request: Some(REQUEST),
        ..bare(TerminateError::RDMAP_INVALID_STAG)
    });
    assert_eq!(ulpdu[18..], [&hex("0100e000 002e")[..], &offending].concat());
    assert_eq!(ulpdu.len(), 0x46);
    crc_field(&ulpdu, "0166f91f");
}

fn atomic(msn: u32, operation: AtomicOperation, request_identifier: u32) -> Vec<u8> {
    let request = AtomicRequest { request_identifier, remote_stag: 0x200, remote_tagged_offset: 0x2000, operation };
    let mut payload = Vec::new();
    request.emit(&mut payload);
    assert_eq!(AtomicRequest::parse(&payload), Ok(request));
    untagged(Opcode::ATOMIC_REQUEST, 1, msn, &payload)
}

#[test]
fn fetch_add() {
    let ulpdu = atomic(1, AtomicOperation::FetchAdd { add_data: 5, add_mask: 0 }, 1);
    assert_eq!(ulpdu.len(), 70);
    crc_field(&ulpdu, "40b02528");
}

#[test]
fn atomic_response() {
    let response = AtomicResponse { original_request_identifier: 1, original_remote_data_value: 7 };
    let mut payload = Vec::new();
    response.emit(&mut payload);
    let ulpdu = untagged(Opcode::ATOMIC_RESPONSE, 3, 1, &payload);
    assert_eq!(ulpdu.len(), 30);
    crc_field(&ulpdu, "12c23457");
}

#[test]
fn cmp_swap() {
    let operation =
        AtomicOperation::CmpSwap { swap_data: 9, swap_mask: u64::MAX, compare_data: 7, compare_mask: u64::MAX };
    crc_field(&atomic(2, operation, 2), "6820c8a9");
}

/// The Terminate reports an Atomic Request with a misaligned address (RFC 7306 section 8.2).
#[test]
fn terminate_for_an_atomic_request() {
    let offending = untagged(Opcode::ATOMIC_REQUEST, 1, 1, &[]);
    let ulpdu = terminate(Terminate {
        segment_length: Some(0x46),
        ddp_header: Some(header(&offending)),
        ..bare(TerminateError::RDMAP_CATASTROPHIC_STREAM)
    });
    assert_eq!((ulpdu.len(), &ulpdu[18..24]), (0x2a, &hex("0207c000 0046")[..]));
    crc_field(&ulpdu, "86a855da");
}

fn immediate(opcode: Opcode) -> Vec<u8> {
    let mut payload = Vec::new();
    Immediate { data: [0x01, 0x23, 0x45, 0x67, 0x89, 0xab, 0xcd, 0xef] }.emit(&mut payload);
    untagged(opcode, 0, 1, &payload)
}

#[test]
fn immediate_data() {
    crc_field(&immediate(Opcode::IMMEDIATE), "a7d2d36c");
}

#[test]
fn immediate_data_with_solicited_event() {
    crc_field(&immediate(Opcode::IMMEDIATE_SE), "3a19e742");
}

/// The test changes one bit of the CRC field.
#[test]
fn a_wrong_crc_is_found() {
    let mut octets = framed(0, false, &immediate(Opcode::IMMEDIATE));
    assert_eq!(unframed(0, false, &octets).len(), 26);
    let last = octets.len() - 1;
    octets[last] ^= 1;
    let layout = weft_core::wire::mpa::Layout::new(0, 26, None);
    assert!(weft_core::wire::mpa::Fpdu::new(&octets, layout).unwrap().check_crc().is_err());
}
