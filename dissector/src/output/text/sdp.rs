//! Formats each message of SDP, or of the SDP port mapper, as one line.

use std::fmt::Write as _;

use weft_core::wire::portmap::{Cache, MessageType, PmTime, RawMessage};
use weft_core::wire::sdp::{
    FieldOrder, Mid, RawBsdh, RawHeader, RawModeChange, RawSinkAvail, RawSrcAvail, RawSuspComm,
};
use zerocopy::FromBytes;

use crate::grammar::sdp::{flags_name, half_name, mode_name};
use crate::part::Part;
use crate::unit::Carrier;

/// Formats an SDP message.
pub(super) fn sdp_summary(carrier: Carrier, order: FieldOrder, part: &Part<'_>) -> String {
    let Some((bsdh, header)) = RawBsdh::read(part.beginning(), order) else {
        let why = if part.len() < RawBsdh::LEN { "too short for its header" } else { "header not captured" };
        return format!("SDP message of {} bytes, {why}", part.len());
    };
    let mut line = format!("SDP {}{}", bsdh.mid(), extended_header(bsdh.mid(), header, order).unwrap_or_default());
    let _ = write!(line, "  MSeq {} MSeqAck {} Bufs {} Len {}", bsdh.mseq, bsdh.mseq_ack, bsdh.bufs, bsdh.len);
    if let Some(flags) = flags_name(u64::from(bsdh.flags)) {
        let _ = write!(line, "  {flags}");
    }
    if carrier != Carrier::Send {
        let _ = write!(line, "  in {}", if carrier == Carrier::Streaming { "streaming mode" } else { "private data" });
    }
    line
}

/// Formats the extended header. Returns `None` if the message has no extended header. Also returns
/// `None` for Hello and HelloAck, because their fields do not fit in one line.
fn extended_header(mid: Mid, octets: &[u8], order: FieldOrder) -> Option<String> {
    Some(match mid {
        Mid::SRC_AVAIL => {
            let (raw, _) = RawSrcAvail::read(octets, order)?;
            format!("  STag {:#010x} VA {:#x}  {} bytes", raw.stag, raw.va, raw.len)
        }
        Mid::SINK_AVAIL => {
            let (raw, _) = RawSinkAvail::read(octets, order)?;
            let RawSinkAvail { stag, va, len, non_discards } = raw;
            format!("  STag {stag:#010x} VA {va:#x}  {len} bytes  NonDiscards {non_discards}")
        }
        Mid::RDMA_WR_COMPL | Mid::RDMA_RD_COMPL => format!("  {} bytes", word(octets)?),
        Mid::MODE_CHANGE => {
            let (raw, _) = RawModeChange::read(octets, order)?;
            let mode = mode_name(u64::from(raw.mode())).unwrap_or_default();
            format!("  to {mode}, {}", half_name(u64::from(raw.s())).unwrap_or_default())
        }
        Mid::CH_RCV_BUF => format!("  DesSz {}", word(octets)?),
        Mid::CH_RCV_BUF_ACK => format!("  ActSz {}", word(octets)?),
        Mid::SUSP_COMM => {
            let (raw, _) = RawSuspComm::read(octets, order)?;
            format!("  port {}", raw.port)
        }
        _ => return None,
    })
}

/// The value of an extended header that consists of one 32-bit word.
fn word(octets: &[u8]) -> Option<u32> {
    octets.first_chunk().map(|octets| u32::from_be_bytes(*octets))
}

/// Formats a datagram of the port mapper protocol.
pub(super) fn portmap_summary(part: &Part<'_>) -> String {
    let Ok((raw, _)) = RawMessage::ref_from_prefix(part.beginning()) else {
        let why = if part.len() < size_of::<RawMessage>() { "too short" } else { "not captured completely" };
        return format!("SDP port mapper datagram of {} bytes, {why}", part.len());
    };
    let name = ["PMReq", "PMAccept", "PMAck", "PMDeny"][usize::from(raw.ver_mt_ipv >> 4 & 3)];
    let mut line = format!(
        "SDP port mapper {name}  ApPort {} CpPort {} AssocHandle {:#x}",
        raw.ap_port,
        raw.cp_port,
        raw.assoc_handle.get()
    );
    if raw.mt() == MessageType::PM_ACCEPT {
        line.push_str(&match PmTime(raw.pm_time).cache() {
            Cache::Once => "  cached for one connection".to_owned(),
            Cache::For(time) => format!("  cached for {} ms", time.as_millis()),
            Cache::Forever => "  cached permanently".to_owned(),
        });
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::hex;

    /// The messages have the layout of figures 2 and 7 to 15 of the SDP draft.
    #[test]
    fn shows_header_fields_of_sdp_messages() {
        let line = |octets: &str, order| sdp_summary(Carrier::Send, order, &Part::complete(&hex(octets)));
        for (octets, expected) in [
            (
                "0006 00 fe 00000024 00000001 00000002 00001000 076d8511 0000000710000003",
                "SrcAvail  STag 0x076d8511 VA 0x710000003  4096 bytes  MSeq 1 MSeqAck 2 Bufs 6 Len 36",
            ),
            (
                "0006 02 fd 00000028 00000001 00000002 00001000 00000011 0000000000000040 00000003",
                "SinkAvail  STag 0x00000011 VA 0x40  4096 bytes  NonDiscards 3  MSeq 1 MSeqAck 2 Bufs 6 Len 40  OOB_PEND",
            ),
            (
                "0006 04 05 00000014 00000001 00000002 00000700",
                "RdmaWrCompl  1792 bytes  MSeq 1 MSeqAck 2 Bufs 6 Len 20  REQ_PIPE",
            ),
            (
                "0006 00 06 00000014 00000001 00000002 00000700",
                "RdmaRdCompl  1792 bytes  MSeq 1 MSeqAck 2 Bufs 6 Len 20",
            ),
            (
                "0006 00 07 00000014 00000001 00000002 00000005",
                "ModeChange  to Pipelined, receiver's send half  MSeq 1 MSeqAck 2 Bufs 6 Len 20",
            ),
            (
                "0006 00 07 00000014 00000001 00000002 00000000",
                "ModeChange  to Buffered, receiver's receive half  MSeq 1 MSeqAck 2 Bufs 6 Len 20",
            ),
            ("0006 00 0b 00000014 00000001 00000002 00008000", "ChRcvBuf  DesSz 32768  MSeq 1 MSeqAck 2 Bufs 6 Len 20"),
            (
                "0006 00 0c 00000014 00000001 00000002 00004000",
                "ChRcvBufAck  ActSz 16384  MSeq 1 MSeqAck 2 Bufs 6 Len 20",
            ),
            (
                "0006 00 0d 00000018 00000001 00000002 00000000 1c06 0001",
                "SuspComm  port 7174  MSeq 1 MSeqAck 2 Bufs 6 Len 24",
            ),
            ("0006 03 ff 00000010 00000001 00000002", "Data  MSeq 1 MSeqAck 2 Bufs 6 Len 16  OOB_PRES, OOB_PEND"),
            // The octets end inside the extended header.
            ("0006 00 fe 00000024 00000001 00000002 00001000", "SrcAvail  MSeq 1 MSeqAck 2 Bufs 6 Len 36"),
        ] {
            assert_eq!(line(octets, FieldOrder::Figure), format!("SDP {expected}"));
        }
        let mirrored = line("07 00 0006 00000014 00000001 00000002 a0000000", FieldOrder::Mirrored);
        let expected = "SDP ModeChange  to Pipelined, receiver's send half  MSeq 1 MSeqAck 2 Bufs 6 Len 20";
        assert_eq!(mirrored, expected);
    }

    /// The values of PMTime are the limits of the ranges in section 7.3.1.4 of the SDP draft.
    #[test]
    fn shows_how_long_a_port_mapper_answer_may_be_cached() {
        let line = |first: &str, pm_time: &str| {
            let zeros = "00".repeat(12);
            let octets =
                hex(&format!("{first}{pm_time} 0000 1389 9c41 1122334455667788 0a000002 {zeros} 0a000009 {zeros}"));
            portmap_summary(&Part::complete(&octets))
        };
        for (pm_time, expected) in [
            ("00", "for one connection"),
            ("01", "for 250 ms"),
            ("7f", "for 31750 ms"),
            ("80", "for 128000 ms"),
            ("ff", "permanently"),
        ] {
            let expected = format!(
                "SDP port mapper PMAccept  ApPort 5001 CpPort 40001 AssocHandle 0x1122334455667788  cached {expected}"
            );
            assert_eq!(line("14", pm_time), expected);
        }
        assert!(line("04", "00").ends_with("AssocHandle 0x1122334455667788"));
    }
}
