//! The expected octets are from RFC 5040 Figures 7 and 8, and from Terminates that a Linux kernel
//! sent.

use proptest::prelude::*;
use zerocopy::network_endian::{U32, U64};

use super::*;
use crate::error::Found;
use crate::wire::ddp::{RawTagged, RawUntagged};
use crate::wire::rdmap;

fn emitted(terminate: &Terminate) -> Vec<u8> {
    let mut out = Vec::new();
    terminate.emit(&mut out);
    out
}

fn bare(error: TerminateError) -> Terminate {
    Terminate { error, segment_length: None, ddp_header: None, read_request: None }
}

/// By RFC 5040 Figure 8, a Terminate has Layer, EType, Error Code and HdrCt. For an MPA error, the
/// Terminate has no copied header.
#[test]
fn an_mpa_error_has_four_octets() {
    assert_eq!(emitted(&bare(TerminateError::MPA_CRC)), [0x20, 0x02, 0, 0]);
    assert_eq!(Terminate::parse(&[0x20, 0x02, 0, 0]), Ok(bare(TerminateError::MPA_CRC)));
}

/// Tests a Terminate in the format of RFC 5040 Figure 7, with the bits M and D. The Terminate
/// reports that a Write used an invalid STag.
#[test]
fn a_tagged_header_follows_its_length() {
    let header = RawTagged {
        control: Control(0xc1),
        ulp_control: rdmap::Control(0x40),
        stag: U32::new(0xdead_beef),
        tagged_offset: U64::new(0x2000),
    };
    let terminate = Terminate {
        segment_length: Some(30),
        ddp_header: Some(RawHeader::Tagged(header)),
        ..bare(TerminateError::DDP_TAGGED_INVALID_STAG)
    };
    let expected = b"\x11\x00\xc0\x00\x00\x1e\xc1\x40\xde\xad\xbe\xef\0\0\0\0\0\0\x20\0";
    assert_eq!(emitted(&terminate), expected);
    assert_eq!(Terminate::parse(expected), Ok(terminate));
}

/// Tests a Terminate in the format of RFC 5040 Figure 7, with the bits M, D and R. The Terminate
/// has 52 octets. Its own DDP header has 18 octets, so `ULPDU_Length` is 70.
#[test]
fn a_read_request_is_copied_completely() {
    let mut octets = vec![0x01, 0x00, 0xe0, 0x00, 0x00, 0x2e];
    octets.extend(b"\x41\x41\0\0\0\0\0\0\0\x01\0\0\0\x01\0\0\0\0");
    octets.extend(b"\0\0\x01\0\0\0\0\0\0\0\x10\0\0\0\0\x40\0\0\x02\0\0\0\0\0\0\0\x20\0");
    let terminate = Terminate::parse(&octets).unwrap();
    let request = ReadRequest { sink_stag: 0x100, sink_to: 0x1000, rdmardsz: 64, src_stag: 0x200, src_to: 0x2000 };
    assert_eq!(terminate.error, TerminateError::RDMAP_INVALID_STAG);
    assert_eq!((terminate.segment_length, terminate.read_request), (Some(46), Some(request)));
    assert_eq!(terminate.ddp_header.map(|header| header.as_octets().len()), Some(18));
    assert_eq!(18 + octets.len(), 70);
    assert_eq!(emitted(&terminate), octets);
}

/// By RFC 5040 section 4.8, DDP Segment Length is present if D is set, even if M is clear.
#[test]
fn d_without_m_still_brings_the_length() {
    let octets = b"\x11\x00\x40\x00\x12\x34\xc1\x40\xde\xad\xbe\xef\0\0\0\0\0\0\x20\0";
    let terminate = Terminate::parse(octets).unwrap();
    assert_eq!(terminate.segment_length, None);
    assert!(terminate.ddp_header.is_some());
    assert_eq!(emitted(&terminate)[..6], [0x11, 0, 0x40, 0, 0, 0]);
}

/// In frame 13 of the capture `siw/terminate-no-receive-crc`, Linux swaps Layer and EType, and sets
/// reserved bits instead of M and D. According to the RFC, this Terminate announces no copied
/// header. So the header that Linux copied is in `rest`.
#[test]
fn linux_fills_parts_that_it_does_not_announce() {
    let octets = b"\x21\x02\x03\x00\x00\x64\x41\x43\0\0\0\0\0\0\0\0\0\0\0\x01\0\0\0\0";
    let (raw, parts) = RawTerminate::ref_from_prefix(octets).unwrap();
    assert_eq!((raw.header_control.m(), raw.header_control.d(), raw.reserved_bits()), (false, false, 768));
    assert_eq!(RawTerminateParts::split(raw.header_control, parts).rest, parts);
    assert_eq!(Terminate::parse(octets), Ok(bare(TerminateError::new(2, 1, 2))));
}

#[test]
fn each_missing_part_is_named() {
    let mut octets = vec![0x01, 0x00, 0xe0, 0x00, 0x00, 0x2e];
    octets.extend([0x41; 18]);
    octets.extend([0; 28]);
    let field = |length: usize| Terminate::parse(&octets[..length]).map_err(|error| (error.field, error.offset));
    assert_eq!(field(3), Err(("Terminate header", 0)));
    assert_eq!(field(5), Err(("DDP Segment Length", 4)));
    assert_eq!(field(6), Err(("Terminated DDP Header", 6)));
    assert_eq!(field(23), Err(("Terminated DDP Header", 6)));
    assert_eq!(field(24), Err(("Terminated RDMA Header", 24)));
    assert_eq!(field(51), Err(("Terminated RDMA Header", 24)));
    assert!(field(52).is_ok());
    let error = Terminate::parse(&octets[..51]).unwrap_err();
    assert_eq!((error.found, error.requirement), (Found::Octets(27), Some(requirement!("RDMAP-4.8-12"))));
}

fn header() -> impl Strategy<Value = RawHeader> {
    prop_oneof![
        (any::<[u8; RawTagged::LEN]>()).prop_map(|mut octets| {
            octets[0] |= 0x80;
            RawHeader::Tagged(RawTagged::read_from_bytes(&octets).unwrap())
        }),
        (any::<[u8; RawUntagged::LEN]>()).prop_map(|mut octets| {
            octets[0] &= 0x7f;
            RawHeader::Untagged(RawUntagged::read_from_bytes(&octets).unwrap())
        }),
    ]
}

proptest! {
    #[test]
    fn what_is_emitted_is_read_back(
        layer in 0u8..16, error_type in 0u8..16, code: u8, segment_length: Option<u16>,
        ddp_header in proptest::option::of(header()), read_request: Option<[u8; 28]>,
    ) {
        let read_request = read_request.map(|octets| ReadRequest::parse(&octets).unwrap());
        let error = TerminateError::new(layer, error_type, code);
        let terminate = Terminate { error, segment_length, ddp_header, read_request };
        prop_assert_eq!(Terminate::parse(&emitted(&terminate)), Ok(terminate));
    }

    /// For all values of the bits, the concatenated parts are equal to the original octets.
    #[test]
    fn splitting_loses_nothing(bits: u8, octets in proptest::collection::vec(any::<u8>(), 0..60)) {
        let mut out = Vec::new();
        RawTerminateParts::split(HeaderControl(bits), &octets).emit(&mut out);
        prop_assert_eq!(out, octets);
    }

    #[test]
    fn no_octets_panic(octets in proptest::collection::vec(any::<u8>(), 0..60)) {
        let _ = Terminate::parse(&octets);
    }
}
