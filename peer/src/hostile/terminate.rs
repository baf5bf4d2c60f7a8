//! Deviations in Terminates (RFC 5040 sections 4.8, 5.4 and 7.1).

use weft_core::wire::ddp::RawHeader;
use weft_core::wire::rdmap::{ErrorLayer, Opcode, Terminate, TerminateError};

use super::segment::{MSN, PAYLOAD, QN, change_word, is_tagged, make_tagged, octet, opcode, set_word, word};

const TERMINATE: &[Opcode] = &[Opcode::TERMINATE];
/// Where HdrCt, and the parts behind the fixed one, stand.
const CONTROL: usize = PAYLOAD + 2;
const PARTS: usize = PAYLOAD + 4;

fn is_terminate(octets: &[u8]) -> bool {
    opcode(octets) == Opcode::TERMINATE
}

/// The error is of this layer, and of this type.
fn is_of(terminate: &Terminate, layer: ErrorLayer, error_type: u8) -> bool {
    terminate.error.layer == layer && terminate.error.error_type == error_type
}

deviations! {
    "ddp.error-of-the-llp" [Terminate(|terminate| if terminate.error.layer == ErrorLayer::DDP {
        terminate.error.error_type = 3;
    })] ["DDP-7.2-14"] "Errors of DDP are told with type 3, which is the LLP's.";
    "ddp.error-unassigned" [Terminate(|terminate| if terminate.error.layer == ErrorLayer::DDP {
        terminate.error.code |= 0x40;
    })] ["DDP-7.2-1", "RDMAP-4.8-31"] "Errors of DDP are told with codes that RFC 5041 does not have.";
    "ddp.error-without-header" [Terminate(|terminate| if terminate.error.layer == ErrorLayer::DDP {
        (terminate.ddp_header, terminate.segment_length) = (None, None);
    })] ["DDP-7.1-17", "RDMAP-4.8-16", "RDMAP-3.1-7"] "The Terminate for an error of DDP has no headers.";
    "ddp.message-behind-terminate" [Segment(|sent| sent.follow(|octets| {
        // A Write of no octets.
        is_terminate(octets).then(|| vec![0xc1, 0x40, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0])
    }))] ["RDMAP-5.4-12", "DDP-7.1-19"] "A Write of no octets goes out behind the Terminate.";
    "ddp.other-code" [Terminate(|terminate| if terminate.error.layer == ErrorLayer::DDP {
        terminate.error = TerminateError::DDP_LOCAL_CATASTROPHIC;
    })] ["DDP-7.2-3", "DDP-7.2-4", "DDP-7.2-5", "DDP-7.2-6", "DDP-7.2-7", "DDP-7.2-8", "DDP-7.2-9", "DDP-7.2-10",
        "DDP-7.2-11", "DDP-7.2-12", "DDP-7.2-13", "DDP-7.2-2"] "All errors of DDP are told as Local Catastrophic.";
    "ddp.untagged-version-as-tagged" [Terminate(|terminate| if terminate.error == TerminateError::DDP_UNTAGGED_INVALID_VERSION {
        terminate.error = TerminateError::DDP_TAGGED_INVALID_VERSION;
    })] ["DDP-7.2-13"] "A wrong version of an untagged segment is told as that of a tagged one.";
    "rdmap.local-error-with-header" [Terminate(|terminate| if is_of(terminate, ErrorLayer::RDMAP, 0) {
        let octets = [0xc1, 0x40, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0];
        terminate.ddp_header = RawHeader::from_prefix(&octets).map(|(header, _)| header);
        terminate.segment_length = Some(14);
    })] ["RDMAP-4.8-14", "RDMAP-7.1-3", "RDMAP-7306.8.1-2"] "The Terminate for an error of this side's has a DDP header.";
    "rdmap.other-operation-code" [Terminate(|terminate| if is_of(terminate, ErrorLayer::RDMAP, 2) {
        terminate.error.code = 0xff;
    })] ["RDMAP-4.8-25", "RDMAP-4.8-26", "RDMAP-4.8-27", "RDMAP-4.8-29", "RDMAP-7306.8.2-9", "RDMAP-7306.5.1.1-7",
        "RDMAP-7306.5.1.2-8"] "All Remote Operation errors are told as unspecified.";
    "rdmap.other-protection-code" [Terminate(|terminate| if is_of(terminate, ErrorLayer::RDMAP, 1) {
        terminate.error.code = 0xff;
    })] ["RDMAP-4.8-18", "RDMAP-4.8-19", "RDMAP-4.8-20", "RDMAP-4.8-21", "RDMAP-4.8-22", "RDMAP-4.8-23"]
        "All Remote Protection errors are told as unspecified.";
    "rdmap.terminate-as-tagged" [Segment(|sent| sent.of(TERMINATE, make_tagged))]
        ["RDMAP-5.4-1", "RDMAP-5.4-7", "RDMAP-4.1-13", "DDP-4.2-2"] "The Terminate has a tagged header.";
    "rdmap.terminate-bits-reversed" [Segment(|sent| sent.of(TERMINATE, |octets| {
        octet(octets, CONTROL, |octet| *octet = octet.reverse_bits());
    }))] ["RDMAP-4.8-5", "RDMAP-4.8-37", "RDMAP-4.8-6", "RDMAP-4.8-1"] "M, D and R stand at the low end of their octet.";
    "rdmap.terminate-code-first" [Segment(|sent| sent.of(TERMINATE, |octets| if octets.len() >= PARTS {
        octets.swap(PAYLOAD, PAYLOAD + 1);
    }))] ["RDMAP-4.8-37", "RDMAP-4.8-38", "RDMAP-4.8-2", "RDMAP-4.8-3", "RDMAP-4.8-4"]
        "The Terminate has its code in front of layer and type.";
    "rdmap.terminate-control-little-endian" [Segment(|sent| sent.of(TERMINATE, |octets| if let Some(control) = octets.get_mut(PAYLOAD..PARTS) {
        control.reverse();
    }))] ["RDMAP-4.8-4", "RDMAP-4.8-37", "RDMAP-4.8-38", "RDMAP-4.8-1", "RDMAP-4.8-2", "RDMAP-4.8-5", "RDMAP-4.8-6", "RDMAP-4.8-11", "RDMAP-4.2-5", "RDMAP-4.8-40"]
        "The first four octets of the Terminate's header have the least significant one first.";
    "rdmap.terminate-header-of-nothing" [Segment(|sent| sent.of(TERMINATE, |octets| {
        if word(octets, PAYLOAD) & 0x4000 != 0 {
            change_word(octets, PARTS + 4, |word| word ^ 0xffff);
        }
    }))] ["RDMAP-4.8-10"] "The header in the Terminate is none that came.";
    "rdmap.terminate-layer" [Terminate(|terminate| terminate.error.layer = ErrorLayer(3))]
        ["RDMAP-4.8-2", "RDMAP-4.8-38"] "The Terminate has layer 3.";
    "rdmap.terminate-length" [Terminate(|terminate| {
        terminate.segment_length = terminate.segment_length.map(|length| length.wrapping_add(2));
    })] ["RDMAP-4.8-8"] "The length in the Terminate counts ULPDU_Length, too.";
    "rdmap.terminate-length-missing" [Segment(|sent| sent.of(TERMINATE, |octets| {
        if word(octets, PAYLOAD) & 0x4000 != 0 && octets.len() > PARTS + 2 {
            octets.drain(PARTS..PARTS + 2);
        }
    }))] ["RDMAP-4.8-9", "RDMAP-4.8-39", "RDMAP-4.2-5"] "The Terminate says M=1 and D=1, and has no length.";
    "rdmap.terminate-length-of-payload" [Terminate(|terminate| if let Some(header) = &terminate.ddp_header {
        let header = u16::try_from(header.as_octets().len()).unwrap_or(0);
        terminate.segment_length = terminate.segment_length.map(|length| length.saturating_sub(header));
    })] ["RDMAP-4.8-8", "DDP-7.1-17"] "The length in the Terminate does not count the header of the segment.";
    "rdmap.terminate-length-left-out" [Segment(|sent| sent.of(TERMINATE, |octets| {
        if word(octets, PAYLOAD) & 0x4000 != 0 && octets.len() > PARTS + 2 {
            octet(octets, CONTROL, |octet| *octet &= !0x80);
            octets.drain(PARTS..PARTS + 2);
        }
    }))] ["RDMAP-4.8-9", "RDMAP-4.8-39"] "The Terminate has a DDP header, but neither its length nor M.";
    "rdmap.terminate-on-queue-0" [Segment(|sent| sent.of(TERMINATE, |octets| set_word(octets, QN, 0)))]
        ["RDMAP-5.4-8", "RDMAP-3.1-2", "RDMAP-4.1-13"] "The Terminate has QN 0.";
    "rdmap.terminate-msn-2" [Segment(|sent| sent.of(TERMINATE, |octets| set_word(octets, MSN, 2)))]
        ["RDMAP-5.4-2", "DDP-4.3-7"] "The Terminate has MSN 2.";
    "rdmap.terminate-reserved-bits" [Segment(|sent| sent.of(TERMINATE, |octets| {
        octet(octets, CONTROL, |octet| *octet |= 0x1f);
        octet(octets, CONTROL + 1, |octet| *octet = 0xff);
    }))] ["RDMAP-4.8-6"] "The 13 reserved bits of the Terminate are set.";
    "rdmap.terminate-twice" [Segment(|sent| sent.follow(|octets| is_terminate(octets).then(|| {
        let mut second = octets.to_vec();
        set_word(&mut second, MSN, 2);
        second
    })))] ["RDMAP-5.4-12", "DDP-7.1-19"] "The Terminate goes out twice, with MSN 1 and 2.";
    "rdmap.terminate-type" [Terminate(|terminate| if terminate.error.layer == ErrorLayer::RDMAP {
        terminate.error.error_type = 7;
    })] ["RDMAP-4.8-3", "RDMAP-4.8-38"] "Errors of RDMAP are told with type 7.";
    "rdmap.terminate-unannounced-header" [Segment(|sent| sent.of(TERMINATE, |octets| {
        octet(octets, CONTROL, |octet| *octet &= !0xc0);
    }))] ["RDMAP-4.8-11", "RDMAP-4.8-40", "RDMAP-4.8-39", "RDMAP-4.2-5"] "M and D are 0, and the headers are there.";
    "rdmap.terminate-version-0" [Segment(|sent| sent.of(TERMINATE, |octets| octet(octets, 1, |octet| *octet &= 0x3f)))]
        ["RDMAP-4.1-3"] "RV is 0 in Terminates.";
    "rdmap.terminate-with-payload" [Segment(|sent| sent.of(TERMINATE, |octets| octets.extend([0x5a; 8])))]
        ["RDMAP-4.2-5"] "Eight octets stand behind the Terminate's header.";
    "rdmap.terminate-without-request" [Terminate(|terminate| terminate.read_request = None)]
        ["RDMAP-4.8-41", "RDMAP-7.1-5"] "The Terminate for a Read Request whose source is refused does not give it back.";
    "rdmap.terminate-with-request" [Segment(|sent| sent.of(TERMINATE, |octets| {
        if word(octets, PAYLOAD) & 0x2000 == 0 {
            octet(octets, CONTROL, |octet| *octet |= 0x20);
            octets.extend([0; 28]);
        }
    }))] ["RDMAP-4.8-13", "RDMAP-4.8-41", "RDMAP-4.8-15", "RDMAP-7.1-4", "RDMAP-7306.8.1-3"] "Each Terminate has the header of a Read Request.";
    "rdmap.terminate-with-half-a-request" [Segment(|sent| sent.of(TERMINATE, |octets| {
        if word(octets, PAYLOAD) & 0x2000 != 0 {
            octets.truncate(octets.len() - 8);
        }
    }))] ["RDMAP-4.8-12"] "The Read Request that a Terminate gives back lacks its SrcTO.";
    "rdmap.terminate-with-other-request" [Terminate(|terminate| if let Some(request) = &mut terminate.read_request {
        request.rdmardsz = request.rdmardsz.wrapping_add(1);
    })] ["RDMAP-4.8-42", "RDMAP-4.8-43"] "The Read Request that a Terminate gives back asks for one octet more than it did.";
    "rdmap.write-told-as-protection" [Terminate(|terminate| {
        if terminate.error.layer == ErrorLayer::DDP && terminate.ddp_header.is_some_and(|header| is_tagged(header.as_octets())) {
            terminate.error = TerminateError::new(0, 1, 0);
        }
    })] ["RDMAP-4.8-44"] "A Write to an STag that is not valid is told as a Remote Protection error.";
}
