//! Checks MID, Len and the size of a message (SDP draft: sections 6, 6.1, 6.1.1 and 6.1.4, and the
//! section about each message).

use weft_core::RequirementId;
use weft_core::requirement;
use weft_core::wire::ddp::Msn;
use weft_core::wire::rdmap::Opcode;
use weft_core::wire::sdp::{Mid, RawBsdh, RawHeader};

use super::view::SdpView;
use crate::follow::ConnectionState;
use crate::parse::{SegmentView, ULPDU_AT, Unit};
use crate::rules::rule::{Check, Findings, Rule};

const SENDS: u16 =
    1 << Opcode::SEND.0 | 1 << Opcode::SEND_INVALIDATE.0 | 1 << Opcode::SEND_SE.0 | 1 << Opcode::SEND_SE_INVALIDATE.0;

pub(super) static BEGINS_WITH_BSDH: Rule = Check::Opcode(SENDS, begins_with_bsdh).covers(requirements!["SDP-6-1"]);

pub(super) static HEADER: Rule = Check::Sdp(header).covers(requirements![
    "SDP-6-1",
    "SDP-6-4",
    "SDP-6.1-1",
    "SDP-6.1.4-1",
    "SDP-6.1.1-1",
    "SDP-6.1.1-17",
    "SDP-6.1.1-18",
    "SDP-6.1.1-19",
    "SDP-6.1.1-20"
]);

pub(super) static LENGTHS: Rule = Check::Sdp(lengths).covers(requirements![
    "SDP-6-2",
    "SDP-6.1.1-1",
    "SDP-6.1.1-2",
    "SDP-6.1.1-3",
    "SDP-6.1.1-4",
    "SDP-6.1.1-5",
    "SDP-6.1.1-6",
    "SDP-6.1.1-7",
    "SDP-6.1.1-8",
    "SDP-6.1.1-9",
    "SDP-6.1.1-10",
    "SDP-6.1.1-11",
    "SDP-6.1.1-12",
    "SDP-6.1.1-13",
    "SDP-6.1.1-14",
    "SDP-6.1.1-15",
    "SDP-6.1.1-16",
    "SDP-6.1.1-21",
    "SDP-6.1.1-22",
    "SDP-6.1.1-23",
    "SDP-6.2.1-1",
    "SDP-6.2.1-4",
    "SDP-6.2.2-1",
    "SDP-6.2.2-4",
    "SDP-6.2.3-1",
    "SDP-6.2.4-1",
    "SDP-6.3.1-1",
    "SDP-6.3.2-1",
    "SDP-6.3.3-2",
    "SDP-6.3.5-2",
    "SDP-6.3.6-2",
    "SDP-6.3.7-2",
    "SDP-6.3.8-2",
    "SDP-6.3.9-1",
    "SDP-6.3.10-1",
    "SDP-6.3.11-2",
    "SDP-6.4.1-1",
    "SDP-6.4.1-2",
    "SDP-6.4.2-1",
    "SDP-6.4.2-2",
    "SDP-6.5.1-1",
    "SDP-6.5.2-1"
]);

/// Reports a Send that is too short for a BSDH.
fn begins_with_bsdh(state: &ConnectionState, unit: &Unit<'_>, view: &SegmentView<'_>, findings: &mut Findings<'_>) {
    let weft_core::wire::ddp::Segment::Untagged(header, _) = view.segment else { return };
    if state.context().sdp.is_none() || header.mo.get() != 0 || !view.last() {
        return;
    }
    // The zero-length Send that is the ready-to-receive message of RFC 6581 (section 9) is not an
    // SDP message.
    let is_ready =
        view.payload_len == 0 && header.msn() == Msn::FIRST && state.connection.startup.iter().any(Option::is_some);
    if (view.payload_len as usize) < RawBsdh::LEN && !is_ready {
        let at = ULPDU_AT + view.header_len;
        let (range, found) = (at..at + view.payload_len as usize, format!("{} bytes", view.payload_len));
        findings.report(requirement!("SDP-6-1"), unit, range, "a message that starts with a BSDH of 16 bytes", found);
    }
}

/// Checks whether a message with this MID may have `size` octets. If not, returns the allowed size
/// as text. Otherwise returns `None`.
fn size_violation(mid: Mid, size: usize) -> Option<String> {
    let least = RawBsdh::LEN + mid.extension_len()?;
    match (mid.may_carry_payload(), size) {
        (_, size) if size < least => Some(format!("at least {least}")),
        (false, size) if size > least => Some(least.to_string()),
        _ => None,
    }
}

fn header(_: &ConnectionState, unit: &Unit<'_>, view: &SdpView<'_>, findings: &mut Findings<'_>) {
    let (mid, len, size) = (view.mid(), view.bsdh.len.get(), view.size());
    let is_unknown = |mid: Mid| !mid.is_assigned() && !mid.is_experimental();
    let range = view.range(3..4);
    if is_unknown(mid) {
        let id = match mid.0 {
            0x0f => requirement!("SDP-6.1.1-17"),
            0x10..=0x3f => requirement!("SDP-6.1.1-18"),
            _ => requirement!("SDP-6.1.1-20"),
        };
        let found = format!("MID {:#04x}", mid.0);
        let expected = "a MID of the SDP draft (Figure 3)";
        findings.report_each(&[requirement!("SDP-6.1.1-1"), id], unit, range.clone(), expected, &found);
    }
    if len as usize != size {
        let (expected, found) = (format!("Len {size}, the size of the message"), format!("Len {len}"));
        findings.report(requirement!("SDP-6.1.4-1"), unit, 4..8, &expected, found.clone());
        if mid.is_experimental() {
            findings.report(requirement!("SDP-6.1.1-19"), unit, 4..8, &expected, found.clone());
        }
        if len.swap_bytes() as usize == size {
            let expected = format!("Len {size} in big-endian order");
            findings.report(requirement!("SDP-6-4"), unit, 4..8, &expected, "Len in little-endian order");
        }
        if is_unknown(mid) {
            let expected = "a BSDH with a MID of the SDP draft (Figure 3) and the right Len";
            findings.report(requirement!("SDP-6-1"), unit, 0..RawBsdh::LEN, expected, found);
        }
    }
    if view.state.latest.other_order.is_some() {
        let found = format!("the fields of a {mid} in the other field order");
        let expected = "Bufs, Flags and MID in the field order of the connection";
        findings.report(requirement!("SDP-6.1-1"), unit, 0..4, expected, found);
    }
}

/// Returns the requirements about Len of a message with this MID. The first requirement is the row of
/// Figure 3.
fn len_rows(mid: Mid) -> &'static [RequirementId] {
    match mid {
        Mid::HELLO => requirements!["SDP-6.1.1-2", "SDP-6.2.1-4"],
        Mid::HELLO_ACK => requirements!["SDP-6.1.1-3", "SDP-6.2.2-4"],
        Mid::DIS_CONN => requirements!["SDP-6.1.1-4"],
        Mid::ABORT_CONN => requirements!["SDP-6.1.1-5"],
        Mid::SEND_SM => requirements!["SDP-6.1.1-6"],
        Mid::RDMA_WR_COMPL => requirements!["SDP-6.1.1-7"],
        Mid::RDMA_RD_COMPL => requirements!["SDP-6.1.1-8"],
        Mid::MODE_CHANGE => requirements!["SDP-6.1.1-9"],
        Mid::SRC_AVAIL_CANCEL => requirements!["SDP-6.1.1-10"],
        Mid::SINK_AVAIL_CANCEL => requirements!["SDP-6.1.1-11"],
        Mid::SINK_CANCEL_ACK => requirements!["SDP-6.1.1-12"],
        Mid::CH_RCV_BUF => requirements!["SDP-6.1.1-13"],
        Mid::CH_RCV_BUF_ACK => requirements!["SDP-6.1.1-14"],
        Mid::SUSP_COMM => requirements!["SDP-6.1.1-15"],
        Mid::SUSP_COMM_ACK => requirements!["SDP-6.1.1-16"],
        Mid::SINK_AVAIL => requirements!["SDP-6.1.1-21"],
        Mid::SRC_AVAIL => requirements!["SDP-6.1.1-22"],
        Mid::DATA => requirements!["SDP-6.1.1-23", "SDP-6.3.1-1"],
        _ => &[],
    }
}

/// Returns the requirements about the headers of a message with this MID. They are violated if the
/// message has too few or too many octets, whatever its Len. `is_short` is set if it has too few.
fn size_rows(mid: Mid, is_short: bool) -> &'static [RequirementId] {
    match mid {
        Mid::HELLO => requirements!["SDP-6.2.1-1"],
        Mid::HELLO_ACK => requirements!["SDP-6.2.2-1"],
        Mid::DIS_CONN => requirements!["SDP-6.2.3-1"],
        Mid::ABORT_CONN => requirements!["SDP-6.2.4-1"],
        Mid::SEND_SM => requirements!["SDP-6.3.5-2"],
        Mid::RDMA_WR_COMPL => requirements!["SDP-6.3.6-2"],
        Mid::RDMA_RD_COMPL => requirements!["SDP-6.3.7-2"],
        Mid::MODE_CHANGE => requirements!["SDP-6.3.8-2"],
        Mid::SRC_AVAIL_CANCEL => requirements!["SDP-6.3.9-1"],
        Mid::SINK_AVAIL_CANCEL => requirements!["SDP-6.3.10-1"],
        Mid::SINK_CANCEL_ACK => requirements!["SDP-6.3.11-2"],
        Mid::CH_RCV_BUF if is_short => requirements!["SDP-6.4.1-1", "SDP-6.4.1-2"],
        Mid::CH_RCV_BUF => requirements!["SDP-6.4.1-1"],
        Mid::CH_RCV_BUF_ACK if is_short => requirements!["SDP-6.4.2-1", "SDP-6.4.2-2"],
        Mid::CH_RCV_BUF_ACK => requirements!["SDP-6.4.2-1"],
        Mid::SUSP_COMM => requirements!["SDP-6.5.1-1"],
        Mid::SUSP_COMM_ACK => requirements!["SDP-6.5.2-1"],
        Mid::SINK_AVAIL => requirements!["SDP-6.3.3-2"],
        Mid::SRC_AVAIL => requirements!["SDP-6.3.2-1"],
        _ => &[],
    }
}

/// Returns whether the additional octets of a message that is too long are probably between the BSDH
/// and the extended header: the message has that many zeros at offset 16, but not at its end.
fn has_gap(view: &SdpView<'_>) -> bool {
    let (size, head) = (view.size(), view.header_len().unwrap_or(RawBsdh::LEN));
    let is_zero = |at: usize| {
        let octets = view.part.get(at..at + size.saturating_sub(head));
        octets.is_some_and(|octets| octets.iter().all(|octet| *octet == 0))
    };
    size > head && head > RawBsdh::LEN && is_zero(RawBsdh::LEN) && !is_zero(head)
}

fn lengths(_: &ConnectionState, unit: &Unit<'_>, view: &SdpView<'_>, findings: &mut Findings<'_>) {
    let (mid, len, size) = (view.mid(), view.bsdh.len.get() as usize, view.size());
    let (range, expected, found) = if let Some(expected) = size_violation(mid, len) {
        (4..8, expected, format!("Len {len}"))
    } else if let Some(expected) = size_violation(mid, size) {
        (0..size, expected, format!("{size} bytes"))
    } else {
        return;
    };
    let expected = format!("{expected} bytes in a {mid}");
    findings.report(requirement!("SDP-6.1.1-1"), unit, range.clone(), &expected, found.clone());
    if mid == Mid::HELLO && view.replaces_hello_ack() {
        // The message is a HelloAck with a wrong MID, so the rows about the Hello do not apply.
        return;
    }
    findings.report_each(len_rows(mid), unit, range.clone(), &expected, &found);
    if size_violation(mid, size).is_none() {
        return;
    }
    let is_short = view.header_len().is_some_and(|head| size < head);
    findings.report_each(size_rows(mid, is_short), unit, range, &expected, &found);
    if has_gap(view) {
        let found = "zeros between the BSDH and the extended header";
        findings.report(requirement!("SDP-6-2"), unit, 0..size, "the extended header after the BSDH", found);
    }
}

#[cfg(test)]
mod tests {
    use weft_core::wire::sdp::{FieldOrder, Mid};
    use weft_core::{RequirementId, requirement};

    use crate::rules::sdp::testing::{proves, proves_of};
    use crate::testing::sdp::{SdpScript, advert, hello_ack, word};

    const SUSP_COMM: &str = "00000000 1388 0001";

    /// Checks that a message with `mid` and a wrong length causes findings with `ids`. The message
    /// is one octet too long if `more` is true, and one octet too short otherwise. Its Len is the
    /// actual size.
    fn length(ids: &[RequirementId], mid: Mid, extension: &str, more: bool) {
        for id in ids {
            let wrong = |script: &mut SdpScript| {
                script.send_changed(0, mid, extension, |octets| {
                    octets.resize(if more { octets.len() + 1 } else { octets.len() - 1 }, 0);
                    octets[7] = u8::try_from(octets.len()).unwrap();
                });
            };
            proves(*id, wrong, |script| script.send(0, mid, extension, 0));
        }
    }

    #[test]
    fn bare_messages_of_a_connection() {
        length(&[requirement!("SDP-6.1.1-4"), requirement!("SDP-6.2.3-1")], Mid::DIS_CONN, "", true);
        length(&[requirement!("SDP-6.1.1-5"), requirement!("SDP-6.2.4-1")], Mid::ABORT_CONN, "", true);
        length(&[requirement!("SDP-6.1.1-16"), requirement!("SDP-6.5.2-1")], Mid::SUSP_COMM_ACK, "", true);
        length(&[requirement!("SDP-6.1.1-6"), requirement!("SDP-6.3.5-2")], Mid::SEND_SM, "", true);
    }

    #[test]
    fn bare_messages_of_a_transfer() {
        length(&[requirement!("SDP-6.1.1-10"), requirement!("SDP-6.3.9-1")], Mid::SRC_AVAIL_CANCEL, "", true);
        length(&[requirement!("SDP-6.1.1-11"), requirement!("SDP-6.3.10-1")], Mid::SINK_AVAIL_CANCEL, "", true);
        length(&[requirement!("SDP-6.1.1-12"), requirement!("SDP-6.3.11-2")], Mid::SINK_CANCEL_ACK, "", true);
        length(&[requirement!("SDP-6.1.1-15"), requirement!("SDP-6.5.1-1")], Mid::SUSP_COMM, SUSP_COMM, true);
    }

    #[test]
    fn messages_with_one_word() {
        length(&[requirement!("SDP-6.1.1-7"), requirement!("SDP-6.3.6-2")], Mid::RDMA_WR_COMPL, &word(1), true);
        length(&[requirement!("SDP-6.1.1-8"), requirement!("SDP-6.3.7-2")], Mid::RDMA_RD_COMPL, &word(1), false);
        length(&[requirement!("SDP-6.1.1-9"), requirement!("SDP-6.3.8-2")], Mid::MODE_CHANGE, &word(4), true);
    }

    #[test]
    fn messages_that_resize_buffers() {
        for more in [true, false] {
            length(&[requirement!("SDP-6.1.1-13"), requirement!("SDP-6.4.1-1")], Mid::CH_RCV_BUF, &word(100), more);
            length(&[requirement!("SDP-6.1.1-14"), requirement!("SDP-6.4.2-1")], Mid::CH_RCV_BUF_ACK, &word(100), more);
        }
    }

    #[test]
    fn a_size_that_is_cut() {
        // If the message is too long, the word with the size is still at offset 16.
        length(&[requirement!("SDP-6.4.1-2")], Mid::CH_RCV_BUF, &word(100), false);
        length(&[requirement!("SDP-6.4.2-2")], Mid::CH_RCV_BUF_ACK, &word(100), false);
        let long = |mid: Mid| {
            move |script: &mut SdpScript| {
                script.send_changed(0, mid, &word(100), |octets| {
                    octets.resize(24, 0);
                    octets[7] = 24;
                });
            }
        };
        let cut = |mid: Mid| {
            move |script: &mut SdpScript| {
                script.send_changed(0, mid, "", |octets| octets[7] = 16);
            }
        };
        proves(requirement!("SDP-6.4.1-2"), cut(Mid::CH_RCV_BUF), long(Mid::CH_RCV_BUF));
        proves(requirement!("SDP-6.4.2-2"), cut(Mid::CH_RCV_BUF_ACK), long(Mid::CH_RCV_BUF_ACK));
    }

    /// Only Len of the DisConn is wrong: the DisConn has no octets after the BSDH.
    #[test]
    fn a_wrong_len_alone_is_not_a_wrong_layout() {
        let dis_conn = |len: u8, size: usize| {
            move |script: &mut SdpScript| {
                script.send_changed(0, Mid::DIS_CONN, "", |octets| {
                    octets.resize(size, 0);
                    octets[7] = len;
                });
            }
        };
        proves(requirement!("SDP-6.2.3-1"), dis_conn(17, 17), dis_conn(17, 16));
        proves(requirement!("SDP-6.1.1-4"), dis_conn(17, 16), dis_conn(16, 16));
    }

    /// Four zeros are before or after the word of the extended header.
    #[test]
    fn the_extended_header_follows_the_bsdh() {
        let with =
            |extension: &'static str| move |script: &mut SdpScript| script.send(0, Mid::CH_RCV_BUF, extension, 0);
        let id = requirement!("SDP-6-2");
        proves(id, with("00000000 00000064"), with("00000064 00000000"));
        // The message is too short.
        proves(id, with("00000000 00000064"), with(""));
    }

    #[test]
    fn messages_that_may_carry_payload() {
        let sink = advert(9000, Some(0));
        length(&[requirement!("SDP-6.1.1-21"), requirement!("SDP-6.3.3-2")], Mid::SINK_AVAIL, &sink, false);
        let src = advert(9000, None);
        length(&[requirement!("SDP-6.1.1-22"), requirement!("SDP-6.3.2-1")], Mid::SRC_AVAIL, &src, false);
        // Len is smaller than a BSDH.
        let short = |script: &mut SdpScript| script.send_changed(0, Mid::DATA, "", |octets| octets[7] = 15);
        for id in [requirement!("SDP-6.1.1-23"), requirement!("SDP-6.3.1-1"), requirement!("SDP-6.1.1-1")] {
            proves(id, short, |script| script.send(0, Mid::DATA, "", 1));
        }
    }

    #[test]
    fn hello_has_32_octets_and_hello_ack_28() {
        let hello = |len: u8| move |order| SdpScript::with_hello(order, |octets| octets[7] = len);
        for id in [requirement!("SDP-6.1.1-2"), requirement!("SDP-6.2.1-4")] {
            proves_of(id, hello(33), hello(32));
        }
        let answered = |len: usize| {
            move |order| {
                let mut script = SdpScript::with_hello(order, |_| {});
                let mut octets = hello_ack();
                octets.resize(len, 0);
                octets[7] = u8::try_from(len).unwrap();
                script.send_octets(5, 1, &octets);
                script
            }
        };
        for id in [requirement!("SDP-6.1.1-3"), requirement!("SDP-6.2.2-1"), requirement!("SDP-6.2.2-4")] {
            proves_of(id, answered(32), answered(28));
        }
        // In the other field order, a HelloAck of 32 octets has the MID and the size of a Hello.
        let errors = answered(32)(FieldOrder::Figure).wire.errors();
        assert!(errors.iter().all(|error| error.requirement != requirement!("SDP-6.1-1")), "{errors:#?}");
    }

    #[test]
    fn a_mid_of_figure_3_and_the_size_of_the_message() {
        let mid = |mid: u8| move |script: &mut SdpScript| script.send(0, Mid(mid), "", 0);
        proves(requirement!("SDP-6.1.1-17"), mid(0x0f), mid(0xff));
        proves(requirement!("SDP-6.1.1-18"), mid(0x10), mid(0x40));
        proves(requirement!("SDP-6.1.1-20"), mid(0xfc), mid(0x7f));
        let len = |mid: u8, octets: [u8; 4]| {
            move |script: &mut SdpScript| {
                script.send_changed(0, Mid(mid), "", |message| message[4..8].copy_from_slice(&octets));
            }
        };
        proves(requirement!("SDP-6.1.1-19"), len(0x40, [0, 0, 0, 17]), len(0x40, [0, 0, 0, 16]));
        proves(requirement!("SDP-6.1.4-1"), len(0xff, [0, 0, 0, 17]), len(0xff, [0, 0, 0, 16]));
        proves(requirement!("SDP-6-4"), len(0xff, [16, 0, 0, 0]), len(0xff, [0, 0, 16, 0]));
    }

    #[test]
    fn the_first_octets_are_a_bsdh() {
        let octets = |octets: &'static [u8]| {
            move |script: &mut SdpScript| {
                script.mseq[0] += 1;
                script.send_octets(3, 0, octets);
            }
        };
        let data = |script: &mut SdpScript| script.send(0, Mid::DATA, "", 0);
        proves(requirement!("SDP-6-1"), octets(&[0, 16, 0, 0xff, 0, 0, 0, 15, 0, 0, 0, 1, 0, 0, 0]), data);
        proves(requirement!("SDP-6-1"), octets(b"GET / HTTP/1.1\r\n"), data);
        // The first word of this SendSm is in the other field order.
        let other_order = |script: &mut SdpScript| {
            let word = if script.order == FieldOrder::Figure { [4, 0, 0, 0x10] } else { [0, 4, 0x10, 0] };
            script.send_changed(0, Mid::SEND_SM, "", |octets| octets[..4].copy_from_slice(&word));
        };
        proves(requirement!("SDP-6.1-1"), other_order, |script| script.send(0, Mid::SEND_SM, "", 0));
        // The monitor reads the message in its own order, so it reports nothing else.
        for order in [FieldOrder::Figure, FieldOrder::Mirrored] {
            let mut script = SdpScript::open(order);
            script.send(1, Mid::SRC_AVAIL, &advert(9000, None), 1);
            script.receive_all(0);
            other_order(&mut script);
            let ids: Vec<_> = script.wire.errors().iter().map(|error| error.requirement).collect();
            assert_eq!(ids, [requirement!("SDP-6.1-1")]);
        }
    }
}
