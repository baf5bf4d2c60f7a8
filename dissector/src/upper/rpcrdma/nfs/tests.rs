//! Tests of the arguments and results, with messages of the Linux client and server, and with
//! damaged messages.

use proptest::prelude::*;

use super::operation::{MAX_OPERATIONS, MAX_PARAMETERS};
use super::*;
use crate::testing::hex;
use crate::upper::rpcrdma::auth::PeerText;
use crate::upper::rpcrdma::header::{ReadSegment, Segment};

const NFS_3: (Program, u32) = (Program::Nfs, 3);
const NFS_4: (Program, u32) = (Program::Nfs, 4);

fn call((program, version): (Program, u32), procedure: u32, bytes: &str) -> (Body, Option<Stop>) {
    arguments((program, version, procedure), Xdr::new(&hex(bytes), true), Reduction::Call(&[]))
}

fn reply((program, version): (Program, u32), procedure: u32, bytes: &str) -> (Body, Option<Stop>) {
    results((program, version, procedure), Xdr::new(&hex(bytes), true), Reduction::Reply(Vec::new()))
}

fn names(body: &Body) -> Vec<&'static str> {
    body.operations.iter().map(|operation| operation_name(Program::Nfs, 4, operation.opcode).unwrap_or("?")).collect()
}

/// The arguments of a COMPOUND of the Linux client that opens a file for writing.
const OPEN: &str = "00000000 00000001 00000006 00000035 f92d056b8562c5860100000000000000 00000019 00000000 00000000
    00000001 00000016 00000008 0100010000000000 00000012 00000000 00000003 00000000 f92d056b8562c586 00000018
    6f70656e2069643a000000190000000000000056dea4eaae 00000001 00000000 00000002 00000000 00000002 00000004 000001a4
    00000000 00000004 6e657731 0000000a 00000003 0000003d 00000009 00000002 0010011a 00b0a23a";

#[test]
fn an_open_has_a_name_and_a_slot() {
    let (body, stop) = call(NFS_4, 1, OPEN);
    assert_eq!((stop, names(&body)), (None, vec!["SEQUENCE", "PUTFH", "OPEN", "GETFH", "ACCESS", "GETATTR"]));
    let [sequence, _, open, _, access, attributes] = &body.operations[..] else { panic!("{body:#?}") };
    assert_eq!(sequence.number(ParameterKind::Slot), Some(0));
    assert_eq!(open.name().map(PeerText::as_str), Some("new1"));
    let number = |kind| open.number(kind);
    assert_eq!((number(ParameterKind::ShareAccess), number(ParameterKind::OpenType)), (Some(3), Some(1)));
    assert_eq!((number(ParameterKind::CreateMode), number(ParameterKind::ClaimType)), (Some(0), Some(0)));
    assert_eq!(access.number(ParameterKind::AccessCheck), Some(0x3d));
    // The bits of 0x0010011a: type, change, size, fsid and fileid (RFC 8881 section 5.6).
    let attributes: Vec<_> = attributes.parameters.iter().take(5).map(|parameter| parameter.value.clone()).collect();
    assert_eq!(attributes, [1, 3, 4, 8, 20].map(ParameterValue::Number));
}

/// The results of a COMPOUND whose OPEN failed. The Linux server has sent them in a Reply chunk.
#[test]
fn a_failed_operation_ends_the_results() {
    let (body, stop) = reply(
        NFS_4,
        1,
        "00000002 00000000 00000003 00000035 00000000 f92d056b8562c5860100000000000000 0000002f 00000000 0000001d
         0000001d 00000000 00000016 00000000 00000012 00000002",
    );
    assert_eq!((stop, names(&body), body.status), (None, vec!["SEQUENCE", "PUTFH", "OPEN"], Some((2, 0))));
    let status: Vec<_> = body.operations.iter().map(|operation| operation.status).collect();
    assert_eq!(status, [Some(0), Some(0), Some(2)]);
}

/// The results of a CREATE with its GETFH and GETATTR, from the Linux server.
#[test]
fn results_without_interest_are_skipped() {
    let (body, stop) = reply(
        NFS_4,
        1,
        "00000000 00000000 00000003 00000006 00000000 00000001 1ac14b872255100d 1ac14b875720690e 00000002 00000000
         00000002 0000000a 00000000 00000014 01000101 00000000 9fd86bf3 85000000 00000000 00000009 00000000 00000002
         0010011a 00b0a23a 00000008 0000000000000002",
    );
    assert_eq!((stop, names(&body)), (None, vec!["CREATE", "GETFH", "GETATTR"]));
    assert_eq!(body.operations[1].parameters[0].len, 20);
}

#[test]
fn a_rename_has_two_names() {
    let handle = "00000004 01020304";
    let (body, stop) = call(NFS_3, 14, &format!("{handle} 00000004 6e657731 {handle} 00000007 72656e616d656400"));
    let names: Vec<_> = body.operations[0].texts(ParameterKind::Name).map(PeerText::as_str).collect();
    assert_eq!((stop, names), (None, vec!["new1", "renamed"]));
}

/// By RFC 1813 section 3.3.17, each entry has attributes and a file handle.
#[test]
fn directory_entries_are_counted() {
    let entry = |name: &str| format!("00000001 0000000000000005 00000004 {name} 0000000000000009 00000000 00000000");
    let entries = [entry("61616161"), entry("62626262")].concat();
    let (body, stop) = reply(NFS_3, 17, &format!("00000000 00000000 0000000000000000 {entries} 00000000 00000001"));
    let operation = &body.operations[0];
    assert_eq!((stop, operation.number(ParameterKind::Entries)), (None, Some(2)));
    assert_eq!(operation.number(ParameterKind::Eof), Some(1));
    // A list that ends early still has the number of its complete entries.
    let (body, stop) = reply(NFS_3, 17, &format!("00000000 00000000 0000000000000000 {entries} 00000001"));
    assert_eq!((stop, body.operations[0].number(ParameterKind::Entries)), (Some(Stop::Malformed), Some(2)));
}

#[test]
fn huge_counts_are_errors() {
    // A COMPOUND with 2^32 - 1 operations, and a SECINFO reply with as many mechanisms.
    assert_eq!(call(NFS_4, 1, "00000000 00000001 ffffffff").1, Some(Stop::Malformed));
    let (body, stop) = reply(NFS_4, 1, "00000000 00000000 00000001 00000021 00000000 ffffffff 00000001");
    assert_eq!((names(&body), stop), (vec!["SECINFO"], Some(Stop::Malformed)));
    // A name, a file handle, a bit map and a list of attributes with huge lengths.
    for arguments in [
        "00000000 00000001 00000001 0000000f ffffffff",
        "00000000 00000001 00000001 00000016 00000081 00",
        "00000000 00000001 00000001 00000009 00000009",
        "ffffffff",
    ] {
        assert_eq!(call(NFS_4, 1, arguments).1, Some(Stop::Malformed), "{arguments}");
    }
    // If the bytes are missing in the capture, the message is not malformed.
    let bytes = hex("00000000 00000001 00000001 0000000f 00000010");
    let (_, stop) = arguments((Program::Nfs, 4, 1), Xdr::new(&bytes, false), Reduction::Call(&[]));
    assert_eq!(stop, Some(Stop::Missing));
}

#[test]
fn only_the_first_operations_are_stored() {
    let count = MAX_OPERATIONS + 10;
    let (body, stop) = call(NFS_4, 1, &format!("00000000 00000001 {count:08x} {}", "00000018".repeat(count)));
    assert_eq!((body.operations.len(), body.count, stop), (MAX_OPERATIONS, Some((count as u32, 8)), None));
    // A GETATTR with 256 bits has 256 parameters.
    let attributes = format!("00000009 00000008 {}", "ffffffff".repeat(8));
    let (body, stop) = call(NFS_4, 1, &format!("00000000 00000001 00000005 {}", attributes.repeat(5)));
    let stored: usize = body.operations.iter().map(|operation| operation.parameters.len()).sum();
    assert_eq!((body.operations.len(), stored, stop), (5, MAX_PARAMETERS, None));
}

#[test]
fn an_unknown_operation_stops_the_decoder() {
    let (body, stop) = call(NFS_4, 1, "00000000 00000001 00000003 00000018 000000ff 00000018");
    assert_eq!((names(&body), stop), (vec!["PUTROOTFH", "?"], Some(Stop::Unknown)));
    // But an unknown operation that failed has no results.
    let (body, stop) = reply(NFS_4, 1, "0000273c 00000000 00000001 000000ff 0000273c");
    assert_eq!((body.operations[0].status, stop), (Some(10044), None));
}

/// Two WRITEs in one COMPOUND, each with its data in a Read chunk. The position of the second chunk
/// counts the bytes of the first chunk, with padding (RFC 8166 section 3.4.5).
#[test]
fn positions_count_the_removed_bytes() {
    let write = "00000026 00000000 f92d056b8562c58601000000 0000000000000000 00000002";
    let bytes = hex(&format!("00000000 00000001 00000002 {write} 00000005 {write} 00000003"));
    let segment = |position, length| ReadSegment { position, segment: Segment { handle: 1, length, offset: 0, at: 0 } };
    // The first length ends at 12 + 36 bytes, and the second length ends 36 bytes later. The first
    // chunk has 5 bytes and 3 bytes of padding.
    let decode = |reads: &[ReadSegment]| {
        let (body, stop) = arguments((Program::Nfs, 4, 1), Xdr::new(&bytes, true), Reduction::Call(reads));
        (body.operations.iter().filter(|operation| operation.is_reduced).count(), stop)
    };
    assert_eq!(decode(&[segment(48, 5), segment(92, 3)]), (2, None));
    assert_eq!(decode(&[segment(48, 5), segment(84, 3)]), (1, Some(Stop::Malformed)));
    assert_eq!(decode(&[segment(48, 2), segment(48, 3), segment(92, 3)]), (2, None));
}

proptest! {
    #[test]
    fn no_octets_cause_a_panic(
        words in proptest::collection::vec(prop_oneof![0u32..12, 0u32..80, any::<u32>()], 0..80),
        lengths in proptest::collection::vec(0u64..6, 0..4),
        position in 0u32..200,
        procedure in 0u32..24,
        is_complete: bool,
    ) {
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_be_bytes()).collect();
        let segment = Segment { handle: 0, length: u32::MAX, offset: u64::MAX, at: 0 };
        let reads = [ReadSegment { position, segment }; 2];
        for (program, version) in [NFS_3, NFS_4, (Program::NfsAcl, 3), (Program::NfsCallback, 1)] {
            let target = (program, version, procedure);
            let (body, _) = arguments(target, Xdr::new(&bytes, is_complete), Reduction::Call(&reads));
            prop_assert!(body.operations.len() <= MAX_OPERATIONS);
            let (body, _) = results(target, Xdr::new(&bytes, is_complete), Reduction::Reply(lengths.clone()));
            prop_assert!(body.operations.len() <= MAX_OPERATIONS);
        }
    }
}
