//! Tests every opcode and each fault, with a sink that records its calls.

use proptest::prelude::*;
use weft_core::coverage::{Coverage, CoverageKind};
use weft_core::requirement;
use weft_core::wire::rdmap::{AtomicOperation, Control};
use weft_core::wire::{ddp, rdmap::TerminateError};

use super::*;
use crate::memory::AccessError;

#[derive(Debug, Clone, PartialEq, Eq)]
enum Call {
    Write(u32, u64, Vec<u8>),
    Response(u32, u64, Vec<u8>, bool),
    Receive(u32, Vec<u8>),
    Received(Received),
    Read(ReadRequest),
    Atomic(AtomicRequest),
    AtomicResponse(AtomicResponse),
    Terminate(TerminateError),
}

/// A sink that accepts all calls. Each receive buffer has eight bytes.
#[derive(Debug, Default)]
struct Notes {
    calls: Vec<Call>,
    refuse_reads: Option<AccessError>,
}

impl DataSink for Notes {
    fn write(&mut self, stag: u32, to: u64, payload: &[u8]) -> Result<(), Fault> {
        self.calls.push(Call::Write(stag, to, payload.to_vec()));
        Ok(())
    }
    fn read_response(&mut self, stag: u32, to: u64, payload: &[u8], last: bool) -> Result<(), Fault> {
        self.calls.push(Call::Response(stag, to, payload.to_vec(), last));
        Ok(())
    }
    fn receive_buffer(&mut self) -> Result<u64, Fault> {
        Ok(8)
    }
    fn receive(&mut self, offset: u32, payload: &[u8]) -> Result<(), Fault> {
        self.calls.push(Call::Receive(offset, payload.to_vec()));
        Ok(())
    }
    fn received(&mut self, message: Received) -> Result<(), Fault> {
        self.calls.push(Call::Received(message));
        Ok(())
    }
    fn request_buffer(&mut self) -> Result<(), Fault> {
        Ok(())
    }
    fn read_request(&mut self, request: ReadRequest) -> Result<(), Fault> {
        self.calls.push(Call::Read(request));
        self.refuse_reads.map_or(Ok(()), |error| Err(Fault::Source(error)))
    }
    fn atomic_request(&mut self, request: AtomicRequest) -> Result<(), Fault> {
        self.calls.push(Call::Atomic(request));
        Ok(())
    }
    fn atomic_response(&mut self, response: AtomicResponse) -> Result<(), Fault> {
        self.calls.push(Call::AtomicResponse(response));
        Ok(())
    }
    fn terminate(&mut self, terminate: Terminate) {
        self.calls.push(Call::Terminate(terminate.error));
    }
}

fn untagged(opcode: Opcode, qn: u32, msn: u32, mo: u32, last: bool, payload: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    let ulp = ddp::UntaggedUlp { control: Control::new(opcode, 1), word: 0x0102_0304 };
    ddp::Untagged { last, qn, msn: ddp::Msn::new(msn), mo }.emit(1, ulp, &mut out);
    out.extend_from_slice(payload);
    out
}

fn tagged(opcode: Opcode, stag: u32, to: u64, last: bool, payload: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    ddp::Tagged { last, stag, tagged_offset: to }.emit(1, Control::new(opcode, 1), &mut out);
    out.extend_from_slice(payload);
    out
}

fn send(opcode: Opcode, msn: u32, payload: &[u8]) -> Vec<u8> {
    untagged(opcode, 0, msn, 0, true, payload)
}

fn calls(segments: &[Vec<u8>]) -> Vec<Call> {
    let (mut receiver, mut notes) = (Receiver::new(1, true), Notes::default());
    for segment in segments {
        receiver.handle_segment(segment, &mut notes).unwrap();
    }
    assert!(!receiver.is_mid_message());
    notes.calls
}

/// Returns the fault of the last segment.
fn fault(segments: &[Vec<u8>]) -> Fault {
    let (mut receiver, mut notes) = (Receiver::new(1, true), Notes::default());
    let (last, before) = segments.split_last().unwrap();
    for segment in before {
        receiver.handle_segment(segment, &mut notes).unwrap();
    }
    let refused = receiver.handle_segment(last, &mut notes).unwrap_err();
    assert_eq!(usize::from(refused.segment_length), last.len());
    refused.fault
}

#[test]
fn every_send_is_recognised_by_its_opcode() {
    let mut proof = Coverage::new(CoverageKind::Test);
    let received = |opcode| match calls(&[send(opcode, 1, b"abc")]).pop() {
        Some(Call::Received(received)) => received,
        other => panic!("{other:?}"),
    };
    let plain = Received { length: 3, solicited: false, invalidate: None, immediate: None };
    let (stag, solicited) = (Some(0x0102_0304), true);
    proof.verify(requirement!("RDMAP-4.1-17"), || assert_eq!(received(Opcode::SEND), plain));
    proof.verify(requirement!("RDMAP-4.1-11"), || {
        assert_eq!(received(Opcode::SEND_SE), Received { solicited, ..plain });
    });
    proof.verify(requirement!("RDMAP-4.1-10"), || {
        assert_eq!(received(Opcode::SEND_INVALIDATE), Received { invalidate: stag, ..plain });
    });
    proof.verify(requirement!("RDMAP-4.1-12"), || {
        assert_eq!(received(Opcode::SEND_SE_INVALIDATE), Received { invalidate: stag, solicited, ..plain });
    });
    let immediate = |opcode| match calls(&[send(opcode, 1, b"12345678")]).as_slice() {
        [Call::Received(received)] => *received,
        other => panic!("{other:?}"),
    };
    let data = Received { length: 0, immediate: Some(Immediate { data: *b"12345678" }), ..plain };
    proof.verify(requirement!("RDMAP-7306.4.1-1"), || assert_eq!(immediate(Opcode::IMMEDIATE), data));
    proof.verify(requirement!("RDMAP-7306.4.1-2"), || {
        assert_eq!(immediate(Opcode::IMMEDIATE_SE), Received { solicited, ..data });
    });
    proof.verify(requirement!("RDMAP-7306.4.1-9"), || assert_eq!(immediate(Opcode::IMMEDIATE).invalidate, None));
}

#[test]
fn tagged_segments_and_requests_reach_the_sink() {
    let mut proof = Coverage::new(CoverageKind::Test);
    let write = [tagged(Opcode::WRITE, 5, 10, false, b"ab"), tagged(Opcode::WRITE, 5, 12, true, b"c")];
    proof.verify(requirement!("RDMAP-4.1-6"), || {
        assert_eq!(calls(&write), [Call::Write(5, 10, b"ab".to_vec()), Call::Write(5, 12, b"c".to_vec())]);
    });
    proof.verify(requirement!("DDP-5.2-10"), || {
        assert_eq!(calls(&[tagged(Opcode::WRITE, 0xffff_ffff, u64::MAX, true, b"")]), []);
    });
    proof.verify(requirement!("RDMAP-4.1-8"), || {
        let response = tagged(Opcode::READ_RESPONSE, 6, 1, true, b"x");
        assert_eq!(calls(&[response]), [Call::Response(6, 1, b"x".to_vec(), true)]);
    });
    let request = ReadRequest { sink_stag: 1, sink_to: 2, rdmardsz: 3, src_stag: 4, src_to: 5 };
    let mut octets = Vec::new();
    request.emit(&mut octets);
    proof.verify(requirement!("RDMAP-4.1-7"), || {
        let segment = untagged(Opcode::READ_REQUEST, 1, 1, 0, true, &octets);
        assert_eq!(calls(&[segment]), [Call::Read(request)]);
    });
    let operation = AtomicOperation::FetchAdd { add_data: 1, add_mask: 0 };
    let atomic = AtomicRequest { request_identifier: 9, remote_stag: 8, remote_tagged_offset: 7, operation };
    let mut octets = Vec::new();
    atomic.emit(&mut octets);
    proof.verify(requirement!("RDMAP-7306.4.1-3"), || {
        let segment = untagged(Opcode::ATOMIC_REQUEST, 1, 1, 0, true, &octets);
        assert_eq!(calls(&[segment]), [Call::Atomic(atomic)]);
    });
    let response = AtomicResponse { original_request_identifier: 9, original_remote_data_value: 1 };
    let mut octets = Vec::new();
    response.emit(&mut octets);
    proof.verify(requirement!("RDMAP-7306.4.1-4"), || {
        let segment = untagged(Opcode::ATOMIC_RESPONSE, 3, 1, 0, true, &octets);
        assert_eq!(calls(&[segment]), [Call::AtomicResponse(response)]);
    });
    proof.verify(requirement!("RDMAP-4.1-13"), || {
        let segment = untagged(Opcode::TERMINATE, 2, 1, 0, true, &[0x20, 2, 0, 0]);
        assert_eq!(calls(&[segment]), [Call::Terminate(TerminateError::MPA_CRC)]);
    });
}

#[test]
fn without_the_extensions_their_opcodes_are_reserved() {
    let mut proof = Coverage::new(CoverageKind::Test);
    let refusal =
        |segment: Vec<u8>| Receiver::new(1, false).handle_segment(&segment, &mut Notes::default()).unwrap_err().code();
    proof.verify(requirement!("RDMAP-7306.1.1-1"), || {
        for (opcode, qn) in [(8, 0), (9, 0), (10, 1), (11, 3)] {
            let segment = untagged(Opcode(opcode), qn, 1, 0, true, &[0; 52]);
            assert_eq!(refusal(segment), TerminateError::RDMAP_UNEXPECTED_OPCODE);
        }
    });
    proof.verify(requirement!("DDP-7.1-1"), || {
        assert_eq!(refusal(untagged(Opcode::SEND, 3, 1, 0, true, b"")), TerminateError::DDP_UNTAGGED_INVALID_QN);
    });
}

#[test]
fn a_message_goes_on_until_its_last_segment() {
    let open_send = untagged(Opcode::SEND, 0, 1, 0, false, b"ab");
    let open_write = tagged(Opcode::WRITE, 5, 0, false, b"ab");
    let open_response = tagged(Opcode::READ_RESPONSE, 7, 0, false, b"ab");
    for (open, next) in [
        (&open_send, send(Opcode::SEND, 2, b"")),
        (&open_write, tagged(Opcode::WRITE, 6, 0, true, b"x")),
        (&open_response, tagged(Opcode::READ_RESPONSE, 8, 0, true, b"x")),
    ] {
        assert_eq!(fault(&[open.clone(), next]), Fault::MissingLast);
    }
    let terminate = untagged(Opcode::TERMINATE, 2, 1, 0, true, &[0x20, 2, 0, 0]);
    let (mut receiver, mut notes) = (Receiver::new(1, true), Notes::default());
    receiver.handle_segment(&open_send, &mut notes).unwrap();
    assert!(receiver.is_mid_message());
    receiver.handle_segment(&terminate, &mut notes).unwrap();
    assert_eq!(notes.calls.last(), Some(&Call::Terminate(TerminateError::MPA_CRC)));
}

/// RFC 5041 section 5.3 does not require that the segments of a message are contiguous.
#[test]
fn messages_of_other_kinds_may_come_between_the_segments_of_a_message() {
    let segments = [
        untagged(Opcode::SEND, 0, 1, 0, false, b"ab"),
        tagged(Opcode::WRITE, 5, 0, false, b"ab"),
        tagged(Opcode::READ_RESPONSE, 7, 0, false, b"ab"),
        untagged(Opcode::READ_REQUEST, 1, 1, 0, true, &[0; 28]),
        tagged(Opcode::WRITE, 5, 2, true, b"c"),
        tagged(Opcode::READ_RESPONSE, 7, 2, true, b"c"),
        untagged(Opcode::SEND, 0, 1, 2, true, b"c"),
    ];
    let calls = calls(&segments);
    assert_eq!(calls.len(), 8);
    let received = Received { length: 3, solicited: false, invalidate: None, immediate: None };
    assert_eq!(calls.last(), Some(&Call::Received(received)));
}

#[test]
fn requests_and_immediate_data_have_one_size() {
    let mut proof = Coverage::new(CoverageKind::Test);
    for length in [0, 27, 29] {
        let segment = untagged(Opcode::READ_REQUEST, 1, 1, 0, true, &vec![0; length]);
        assert_eq!(fault(&[segment]), Fault::RequestSize);
    }
    proof.verify(requirement!("RDMAP-7306.6.3-4"), || {
        for length in [0, 7] {
            assert_eq!(fault(&[send(Opcode::IMMEDIATE, 1, &vec![0; length])]), Fault::ImmediateSize);
        }
    });
    proof.verify(requirement!("RDMAP-7306.5.2.1-5"), || {
        let mut atomic = vec![0; 52];
        atomic[3] = 1;
        assert_eq!(fault(&[untagged(Opcode::ATOMIC_REQUEST, 1, 1, 0, true, &atomic)]), Fault::AtomicOpcode);
    });
    proof.verify(requirement!("RDMAP-7306.5.2.2-5"), || {
        let segment = untagged(Opcode::ATOMIC_RESPONSE, 3, 1, 0, true, &[0; 11]);
        assert_eq!(fault(&[segment]), Fault::AtomicResponse);
    });
    let offset = untagged(Opcode::READ_REQUEST, 1, 1, 4, true, &[0; 28]);
    assert_eq!(fault(&[offset]), Fault::Queue { qn: 1, error: QueueError::MessageOffset });
    let gap = untagged(Opcode::READ_REQUEST, 1, 2, 0, true, &[0; 28]);
    assert_eq!(fault(&[gap]), Fault::Queue { qn: 1, error: QueueError::MsnGap });
}

/// RFC 5040 Figure 10: if the peer has no right to read the requested memory, the Terminate
/// contains the Read Request. Terminates for other faults do not contain it.
#[test]
fn a_refused_read_request_is_given_back() {
    let mut proof = Coverage::new(CoverageKind::Test);
    let request = ReadRequest { sink_stag: 1, sink_to: 2, rdmardsz: 3, src_stag: 4, src_to: 5 };
    let mut octets = Vec::new();
    request.emit(&mut octets);
    let segment = untagged(Opcode::READ_REQUEST, 1, 1, 0, true, &octets);
    let mut notes = Notes { refuse_reads: Some(AccessError::Wrap), ..Notes::default() };
    let refused = Receiver::new(1, true).handle_segment(&segment, &mut notes).unwrap_err();
    let terminate = refused.terminate(refused.code());
    proof.verify(requirement!("RDMAP-4.8-22"), || assert_eq!(terminate.error, TerminateError::RDMAP_TO_WRAP));
    proof.verify(requirement!("RDMAP-7.1-5"), || {
        assert_eq!((terminate.segment_length, terminate.read_request), (Some(46), Some(request)));
        assert_eq!(terminate.ddp_header.unwrap().as_octets(), &segment[..18]);
    });
    let gap = untagged(Opcode::READ_REQUEST, 1, 7, 0, true, &octets);
    let refused = Receiver::new(1, true).handle_segment(&gap, &mut Notes::default()).unwrap_err();
    proof.verify(requirement!("RDMAP-4.8-16"), || {
        let terminate = refused.terminate(refused.code());
        assert_eq!((terminate.segment_length, terminate.read_request), (Some(46), None));
    });
}

/// A receiver rejects segments of the other version (DDP-4.1-13). The RDMA Consortium uses version
/// 0, and the IETF uses version 1.
#[test]
fn each_version_receives_its_own() {
    let mut version_0 = send(Opcode::SEND, 1, b"abc");
    (version_0[0], version_0[1]) = (0x40, 0x03);
    assert_eq!(fault(&[version_0.clone()]), Fault::DdpVersion { tagged: false });
    let mut notes = Notes::default();
    assert_eq!(Receiver::new(0, true).handle_segment(&version_0, &mut notes), Ok(()));
    assert_eq!(notes.calls.len(), 2);
    version_0[0] |= 1;
    assert_eq!(fault(&[version_0]), Fault::RdmapVersion);
}

proptest! {
    #[test]
    fn no_octets_panic(segments: Vec<Vec<u8>>, version in 0u8..2, extensions: bool) {
        let (mut receiver, mut notes) = (Receiver::new(version, extensions), Notes::default());
        for segment in segments {
            let _ = receiver.handle_segment(&segment, &mut notes);
        }
    }

    /// Any segment with a valid header length has one of two results: the receiver accepts the
    /// segment, or rejects it with a code that a specification assigns.
    #[test]
    fn codes_are_assigned(opcode in 0u8..16, qn in 0u32..5, msn in 0u32..3, mo in 0u32..3, last: bool, length in 0usize..80, is_tagged: bool) {
        let segment = if is_tagged {
            tagged(Opcode(opcode), 1, 2, last, &vec![0; length])
        } else {
            untagged(Opcode(opcode), qn, msn, mo, last, &vec![0; length])
        };
        if let Err(error) = Receiver::new(1, true).handle_segment(&segment, &mut Notes::default()) {
            prop_assert!(error.code().is_assigned());
        }
    }
}
