//! Which octets of a DDP segment stay: the headers of DDP, RDMAP and of the protocol above RDMAP.

use std::ops::Range;

use weft_core::wire::rdmap::{
    Control, Opcode, RawAtomicRequest, RawAtomicResponse, RawReadRequest, RawTerminate, SEGMENT_LENGTH_LEN,
};
use weft_core::wire::sdp::{FieldOrder, RawBsdh, RawHeader};

use crate::part::Part;
use crate::upper::Ulp;

/// Length of the header of a tagged segment and of an untagged segment, in octets.
const TAGGED_LEN: usize = 14;
const UNTAGGED_LEN: usize = 18;
/// Bit T of the DDP control octet: the segment is tagged. The next constant is bit L: the segment
/// is the last segment of its message.
const TAGGED: u8 = 0x80;
const LAST: u8 = 0x40;
/// Offsets of MSN and MO in the header of an untagged segment.
const MSN_AT: usize = 10;
const MO_AT: usize = 14;
/// Length of a Terminate with all parts.
const TERMINATE_LEN: usize = RawTerminate::LEN + SEGMENT_LENGTH_LEN + UNTAGGED_LEN + RawReadRequest::LEN;

/// The protocol above RDMAP.
#[derive(Debug, Clone, Copy)]
pub(super) enum Upper<'u> {
    /// SDP, with the order of its fields.
    Sdp(FieldOrder),
    /// The other protocols that were recognised on the connection. The list is empty if none was
    /// recognised.
    Recognised(&'u [Ulp]),
}

impl Upper<'_> {
    /// The ranges of headers in a Send that starts with `octets`. A range can be empty.
    fn headers(self, octets: &[u8], is_complete: bool) -> Vec<Range<usize>> {
        match self {
            Upper::Sdp(order) => only(0..sdp_headers_len(octets, order)),
            Upper::Recognised([]) => command(octets),
            Upper::Recognised(ulps) => {
                let mut headers = ulps.iter().map(|ulp| ulp.headers(octets, is_complete));
                headers.find(|ranges| ranges.iter().any(|range| !range.is_empty())).unwrap_or_default()
            }
        }
    }

    /// The number of octets that stay at the start of a Read Response with the data `octets`.
    fn proof_len(self, octets: &[u8]) -> usize {
        match self {
            Upper::Sdp(_) => 0,
            Upper::Recognised(ulps) => ulps.iter().map(|ulp| ulp.proof_len(octets)).max().unwrap_or(0),
        }
    }
}

/// Length in octets of the base header and the extended header of the SDP message that starts with
/// `octets`.
pub(super) fn sdp_headers_len(octets: &[u8], order: FieldOrder) -> usize {
    let extension = RawBsdh::read(octets, order).and_then(|(header, _)| header.mid().extension_len());
    RawBsdh::LEN + extension.unwrap_or(0)
}

/// A list of one range.
fn only(range: Range<usize>) -> Vec<Range<usize>> {
    std::iter::once(range).collect()
}

/// The fields of a command of NVMe over RDMA or of iSCSI (iSER) that name a buffer. The diagnosis
/// reads these fields also on a connection without a recognised protocol.
fn command(octets: &[u8]) -> Vec<Range<usize>> {
    const NVME_LEN: usize = 64;
    const ISER_LEN: usize = 28;
    const ISCSI_LEN: usize = 48;
    if let Some(command) = octets.first_chunk::<NVME_LEN>() {
        // A command with a keyed data block: opcode, flags and identifier, and the data block.
        let has_data = matches!(command[0] & 0b11, 0b01 | 0b10);
        if has_data && command[1] == 0x40 && matches!(command[39], 0x40 | 0x4f) {
            return vec![0..4, 24..40];
        }
    }
    match octets.get(..ISER_LEN + ISCSI_LEN) {
        // A SCSI Command: the iSER header, the opcode and the flags, and the length of the data.
        Some([0x14 | 0x18, 0, 0, 0, rest @ ..]) if rest[ISER_LEN - 4] & 0x3f == 0x01 => {
            vec![0..ISER_LEN + 2, ISER_LEN + 20..ISER_LEN + 24]
        }
        _ => Vec::new(),
    }
}

/// A Send of one direction whose segments are still arriving.
#[derive(Debug)]
pub(super) struct OpenSend {
    msn: u32,
    /// The ranges of headers in the message.
    headers: Vec<Range<usize>>,
}

/// The ranges of `ulpdu` that stay, in order. A range can be empty, and it can end after the end of
/// `ulpdu`. `open` is the latest Send of the direction.
pub(super) fn headers(ulpdu: Part<'_>, upper: Upper<'_>, open: &mut Option<OpenSend>) -> Vec<Range<usize>> {
    let Some(&[ddp, rdmap]) = ulpdu.get(0..2).and_then(<[u8]>::first_chunk::<2>) else {
        return only(0..TAGGED_LEN);
    };
    let is_tagged = ddp & TAGGED != 0;
    let header = if is_tagged { TAGGED_LEN } else { UNTAGGED_LEN };
    let payload = ulpdu.from(header);
    let parts = match Control(rdmap).opcode() {
        Opcode::READ_REQUEST => only(0..RawReadRequest::LEN),
        Opcode::READ_RESPONSE => only(0..upper.proof_len(payload.beginning())),
        Opcode::TERMINATE => only(0..TERMINATE_LEN),
        Opcode::ATOMIC_REQUEST => only(0..size_of::<RawAtomicRequest>()),
        Opcode::ATOMIC_RESPONSE => only(0..size_of::<RawAtomicResponse>()),
        opcode if opcode.is_send() && !is_tagged => send(ulpdu, payload, ddp & LAST != 0, upper, open),
        _ => Vec::new(),
    };
    let parts = parts.into_iter().map(|part| header + part.start..header + part.end);
    std::iter::once(0..header).chain(parts).collect()
}

/// The ranges of headers in the payload of a segment of a Send.
fn send(
    ulpdu: Part<'_>,
    payload: Part<'_>,
    is_last: bool,
    upper: Upper<'_>,
    open: &mut Option<OpenSend>,
) -> Vec<Range<usize>> {
    let field = |at: usize| ulpdu.get(at..at + 4).and_then(<[u8]>::first_chunk::<4>).map(|o| u32::from_be_bytes(*o));
    let (Some(msn), Some(mo)) = (field(MSN_AT), field(MO_AT)) else {
        *open = None;
        return Vec::new();
    };
    if mo == 0 {
        let octets = payload.beginning();
        let is_complete = is_last && octets.len() == payload.len();
        *open = Some(OpenSend { msn, headers: upper.headers(octets, is_complete) });
    }
    let Some(send) = open.as_ref().filter(|send| send.msn == msn) else { return Vec::new() };
    let start = mo as usize;
    let end = start.saturating_add(payload.len());
    let within = send.headers.iter().map(|range| range.start.max(start)..range.end.min(end));
    within.filter(|range| !range.is_empty()).map(|range| range.start - start..range.end - start).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::hex;

    /// The kept ranges that are not empty, as text.
    fn kept(ulpdu: &[u8], upper: Upper<'_>, open: &mut Option<OpenSend>) -> String {
        let headers = headers(Part::complete(ulpdu), upper, open);
        let headers = headers.into_iter().filter(|range| !range.is_empty());
        headers.map(|range| format!("{range:?}")).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn keeps_headers_but_no_data() {
        let none = Upper::Recognised(&[]);
        let write = [hex("c140 11223344 0000000000001000"), vec![7; 40]].concat();
        assert_eq!(kept(&write, none, &mut None), "0..14");
        let read = [hex("4141 00000000 00000001 00000001 00000000"), vec![7; 28]].concat();
        assert_eq!(kept(&read, none, &mut None), "0..18 18..46");
        let send = [hex("4143 00000000 00000000 00000001 00000000"), vec![7; 100]].concat();
        assert_eq!(kept(&send, none, &mut None), "0..18");
    }

    /// A Data message of SDP (Figure 2 of the draft), in two segments. The first segment ends in
    /// the header.
    #[test]
    fn keeps_the_headers_of_a_message_in_several_segments() {
        let sdp = Upper::Sdp(FieldOrder::Figure);
        let message = [hex("0006 00 ff 00000014 00000001 00000002"), vec![7; 4]].concat();
        let mut open = None;
        let first = [hex("0143 00000000 00000000 00000005 00000000"), message[..12].to_vec()].concat();
        assert_eq!(kept(&first, sdp, &mut open), "0..18 18..30");
        let second = [hex("4143 00000000 00000000 00000005 0000000c"), message[12..].to_vec()].concat();
        assert_eq!(kept(&second, sdp, &mut open), "0..18 18..22");
        // A segment of another message has no known headers.
        let other = [hex("4143 00000000 00000000 00000006 0000000c"), message[12..].to_vec()].concat();
        assert_eq!(kept(&other, sdp, &mut open), "0..18");
    }

    #[test]
    fn keeps_the_header_of_smb_direct_and_the_identifier_of_smb() {
        let ulps = [Ulp::SmbDirect];
        let data = hex("ff00 1000 0000 0000 00000000 18000000 08000000 00000000 fe534d42 40000100");
        let send = [hex("4143 00000000 00000000 00000001 00000000"), data].concat();
        assert_eq!(kept(&send, Upper::Recognised(&ulps), &mut None), "0..18 18..38 42..46");
    }

    /// The message of the test of the recognition: an `RDMA_MSG` with empty lists, and an RPC call.
    #[test]
    fn keeps_the_start_of_an_rpc_message() {
        let ulps = [Ulp::RpcRdma];
        let call = hex(concat!(
            "12345678 00000001 00000020 00000000 00000000 00000000 00000000",
            "12345678 00000000 00000002 000186a3 00000004 00000001",
        ));
        let send = [hex("4143 00000000 00000000 00000001 00000000"), call].concat();
        assert_eq!(kept(&send, Upper::Recognised(&ulps), &mut None), "0..18 18..58");
    }
}
