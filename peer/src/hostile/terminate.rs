//! Deviations in Terminates (RFC 5040 sections 4.8, 5.4 and 7.1).

use weft_core::wire::ddp::RawHeader;
use weft_core::wire::rdmap::{ErrorLayer, Opcode, Terminate, TerminateError};

use super::context::segment::{MSN, PAYLOAD, QN, change_word, is_tagged, make_tagged, octet, opcode, set_word, word};

const TERMINATE: &[Opcode] = &[Opcode::TERMINATE];
/// Offset of HdrCt, and offset of the first optional field.
const CONTROL: usize = PAYLOAD + 2;
const PARTS: usize = PAYLOAD + 4;

fn is_terminate(octets: &[u8]) -> bool {
    opcode(octets) == Opcode::TERMINATE
}

/// Returns whether the segment is a Terminate with D=1.
fn has_ddp_header(octets: &[u8]) -> bool {
    is_terminate(octets) && word(octets, PAYLOAD) & 0x4000 != 0
}

/// Returns whether the error has this layer and type.
fn is_of(terminate: &Terminate, layer: ErrorLayer, error_type: u8) -> bool {
    terminate.error.layer == layer && terminate.error.error_type == error_type
}

deviations! {
    "ddp.error-of-the-llp" [Terminate(|terminate| if terminate.error.layer == ErrorLayer::DDP {
        terminate.error.error_type = 3;
    })] ["DDP-7.2-14"] "reports DDP errors with type 3, which is reserved for the LLP";
    "ddp.error-unassigned" [Terminate(|terminate| if terminate.error.layer == ErrorLayer::DDP {
        terminate.error.code |= 0x40;
    })] ["DDP-7.2-1", "RDMAP-4.8-31"] "reports DDP errors with codes that RFC 5041 does not define";
    "ddp.error-without-header" [Terminate(|terminate| if terminate.error.layer == ErrorLayer::DDP {
        (terminate.ddp_header, terminate.segment_length) = (None, None);
    })] ["DDP-7.1-17", "RDMAP-4.8-16", "RDMAP-3.1-7"] "sends no copied headers in the Terminate for a DDP error";
    "ddp.message-after-terminate" [Segment(|sent| sent.follow(|octets| {
        // A Write without payload.
        is_terminate(octets).then(|| vec![0xc1, 0x40, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0])
    }))] ["RDMAP-5.4-12", "DDP-7.1-19", "DDP-3-13", "RDMAP-7-2"] "sends an empty Write after the Terminate";
    "ddp.other-code" [Terminate(|terminate| if terminate.error.layer == ErrorLayer::DDP {
        terminate.error = TerminateError::DDP_LOCAL_CATASTROPHIC;
    })] ["DDP-7.2-3", "DDP-7.2-4", "DDP-7.2-5", "DDP-7.2-6", "DDP-7.2-7", "DDP-7.2-8", "DDP-7.2-9", "DDP-7.2-10",
        "DDP-7.2-11", "DDP-7.2-12", "DDP-7.2-13", "DDP-7.2-2"] "reports all DDP errors as Local Catastrophic";
    "ddp.untagged-version-as-tagged" [Terminate(|terminate| if terminate.error == TerminateError::DDP_UNTAGGED_INVALID_VERSION {
        terminate.error = TerminateError::DDP_TAGGED_INVALID_VERSION;
    })] ["DDP-7.2-13"] "reports a wrong version in an untagged segment as an error of a tagged segment";
    "rdmap.local-error-with-header" [Terminate(|terminate| if is_of(terminate, ErrorLayer::RDMAP, 0) {
        let octets = [0xc1, 0x40, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0];
        terminate.ddp_header = RawHeader::from_prefix(&octets).map(|(header, _)| header);
        terminate.segment_length = Some(14);
    })] ["RDMAP-4.8-14", "RDMAP-7.1-3", "RDMAP-7306.8.1-2"] "sends a DDP header in the Terminate for a local error";
    "rdmap.other-operation-code" [Terminate(|terminate| if is_of(terminate, ErrorLayer::RDMAP, 2) {
        terminate.error.code = 0xff;
    })] ["RDMAP-4.8-25", "RDMAP-4.8-26", "RDMAP-4.8-27", "RDMAP-4.8-29", "RDMAP-7306.8.2-9", "RDMAP-7306.5.1.1-7",
        "RDMAP-7306.5.1.2-8"] "reports all Remote Operation errors as unspecified";
    "rdmap.other-protection-code" [Terminate(|terminate| if is_of(terminate, ErrorLayer::RDMAP, 1) {
        terminate.error.code = 0xff;
    })] ["RDMAP-4.8-18", "RDMAP-4.8-19", "RDMAP-4.8-20", "RDMAP-4.8-21", "RDMAP-4.8-22", "RDMAP-4.8-23"]
        "reports all Remote Protection errors as unspecified";
    "rdmap.terminate-as-tagged" [Segment(|sent| sent.of(TERMINATE, make_tagged))]
        ["RDMAP-5.4-1", "RDMAP-5.4-7", "RDMAP-4.1-13"] "sends the Terminate with a tagged header";
    "rdmap.terminate-bits-reversed" [Segment(|sent| sent.of(TERMINATE, |octets| {
        octet(octets, CONTROL, |octet| *octet = octet.reverse_bits());
    }))] ["RDMAP-4.8-5", "RDMAP-4.8-37", "RDMAP-4.8-6", "RDMAP-4.8-1"] "sends M, D and R of the Terminate in the lowest bits of their byte";
    "rdmap.terminate-code-first" [Segment(|sent| sent.of(TERMINATE, |octets| if octets.len() >= PARTS {
        octets.swap(PAYLOAD, PAYLOAD + 1);
    }))] ["RDMAP-4.8-37", "RDMAP-4.8-38", "RDMAP-4.8-2", "RDMAP-4.8-3", "RDMAP-4.8-4"]
        "sends the error code before layer and error type in the Terminate";
    "rdmap.terminate-control-little-endian" [Segment(|sent| sent.of(TERMINATE, |octets| if let Some(control) = octets.get_mut(PAYLOAD..PARTS) {
        control.reverse();
    }))] ["RDMAP-4.8-4", "RDMAP-4.8-37", "RDMAP-4.8-38", "RDMAP-4.8-1", "RDMAP-4.8-2", "RDMAP-4.8-5", "RDMAP-4.8-6", "RDMAP-4.8-11", "RDMAP-4.2-5", "RDMAP-4.8-40"]
        "sends the first four bytes of the Terminate's header in little-endian byte order";
    "rdmap.terminate-header-of-nothing" [Segment(|sent| sent.each_if(has_ddp_header, |octets| {
        change_word(octets, PARTS + 4, |word| word ^ 0xffff);
    }))] ["RDMAP-4.8-10"] "sends a Terminate whose copied header differs from the received header";
    "rdmap.terminate-layer" [Terminate(|terminate| terminate.error.layer = ErrorLayer(3))]
        ["RDMAP-4.8-2", "RDMAP-4.8-38"] "sends a Terminate with layer 3";
    "rdmap.terminate-length" [Terminate(|terminate| {
        terminate.segment_length = terminate.segment_length.map(|length| length.wrapping_add(2));
    })] ["RDMAP-4.8-8"] "counts the two bytes of ULPDU_Length in DDP Segment Length of the Terminate";
    "rdmap.terminate-length-missing" [Segment(|sent| sent.each_if(has_ddp_header, |octets| if octets.len() > PARTS + 2 {
        octets.drain(PARTS..PARTS + 2);
    }))] ["RDMAP-4.8-9", "RDMAP-4.8-39", "RDMAP-4.2-5"] "sends M=1 and D=1 in the Terminate, but no DDP Segment Length";
    "rdmap.terminate-length-of-payload" [Terminate(|terminate| if let Some(header) = &terminate.ddp_header {
        let header = u16::try_from(header.as_octets().len()).unwrap_or(0);
        terminate.segment_length = terminate.segment_length.map(|length| length.saturating_sub(header));
    })] ["RDMAP-4.8-8", "DDP-7.1-17"] "does not count the header of the segment in DDP Segment Length of the Terminate";
    "rdmap.terminate-length-left-out" [Segment(|sent| sent.each_if(has_ddp_header, |octets| if octets.len() > PARTS + 2 {
        octet(octets, CONTROL, |octet| *octet &= !0x80);
        octets.drain(PARTS..PARTS + 2);
    }))] ["RDMAP-4.8-9", "RDMAP-4.8-39"] "sends a Terminate with a DDP header, but with M=0 and without DDP Segment Length";
    "rdmap.terminate-on-queue-0" [Segment(|sent| sent.of(TERMINATE, |octets| set_word(octets, QN, 0)))]
        ["RDMAP-5.4-8", "RDMAP-3.1-2", "RDMAP-4.1-13"] "sends the Terminate with QN 0";
    "rdmap.terminate-msn-2" [Segment(|sent| sent.of(TERMINATE, |octets| set_word(octets, MSN, 2)))]
        ["RDMAP-5.4-2", "DDP-4.3-7"] "sends the Terminate with MSN 2";
    "rdmap.terminate-reserved-bits" [Segment(|sent| sent.of(TERMINATE, |octets| {
        octet(octets, CONTROL, |octet| *octet |= 0x1f);
        octet(octets, CONTROL + 1, |octet| *octet = 0xff);
    }))] ["RDMAP-4.8-6"] "sets the 13 reserved bits of the Terminate";
    "rdmap.terminate-twice" [Segment(|sent| sent.follow(|octets| is_terminate(octets).then(|| {
        let mut second = octets.to_vec();
        set_word(&mut second, MSN, 2);
        second
    })))] ["RDMAP-5.4-12", "DDP-7.1-19"] "sends the Terminate twice, with MSN 1 and 2";
    "rdmap.terminate-type" [Terminate(|terminate| if terminate.error.layer == ErrorLayer::RDMAP {
        terminate.error.error_type = 7;
    })] ["RDMAP-4.8-3", "RDMAP-4.8-38"] "reports RDMAP errors with type 7";
    "rdmap.terminate-unannounced-header" [Segment(|sent| sent.of(TERMINATE, |octets| {
        octet(octets, CONTROL, |octet| *octet &= !0xc0);
    }))] ["RDMAP-4.8-11", "RDMAP-4.8-40", "RDMAP-4.8-39", "RDMAP-4.2-5"] "sends M=0 and D=0 in the Terminate, but includes the headers";
    "rdmap.terminate-version-0" [Segment(|sent| sent.of(TERMINATE, |octets| octet(octets, 1, |octet| *octet &= 0x3f)))]
        ["RDMAP-4.1-3"] "sends RV 0 in Terminates";
    "rdmap.terminate-with-payload" [Segment(|sent| sent.of(TERMINATE, |octets| octets.extend([0x5a; 8])))]
        ["RDMAP-4.2-5"] "sends eight bytes after the Terminate's header";
    "rdmap.terminate-without-request" [Terminate(|terminate| terminate.read_request = None)]
        ["RDMAP-4.8-41", "RDMAP-7.1-5"] "omits the Read Request header from the Terminate if the source of a Read Request is invalid";
    "rdmap.terminate-with-request" [Segment(|sent| sent.of(TERMINATE, |octets| {
        if word(octets, PAYLOAD) & 0x2000 == 0 {
            octet(octets, CONTROL, |octet| *octet |= 0x20);
            octets.extend([0; 28]);
        }
    }))] ["RDMAP-4.8-13", "RDMAP-4.8-41", "RDMAP-4.8-15", "RDMAP-7.1-4", "RDMAP-7306.8.1-3"] "sends the header of a Read Request in each Terminate";
    "rdmap.terminate-with-half-a-request" [Segment(|sent| sent.of(TERMINATE, |octets| {
        if word(octets, PAYLOAD) & 0x2000 != 0 {
            octets.truncate(octets.len() - 8);
        }
    }))] ["RDMAP-4.8-12"] "omits SrcTO from the Read Request header in a Terminate";
    "rdmap.terminate-with-other-request" [Terminate(|terminate| if let Some(request) = &mut terminate.read_request {
        request.rdmardsz = request.rdmardsz.wrapping_add(1);
    })] ["RDMAP-4.8-42", "RDMAP-4.8-43"] "adds one to RDMARDSZ in the Read Request header in a Terminate";
    "rdmap.write-reported-as-protection" [Terminate(|terminate| {
        if terminate.error.layer == ErrorLayer::DDP && terminate.ddp_header.is_some_and(|header| is_tagged(header.as_octets())) {
            terminate.error = TerminateError::new(0, 1, 0);
        }
    })] ["RDMAP-4.8-44"] "reports a Write to an invalid STag as a Remote Protection error";
}
