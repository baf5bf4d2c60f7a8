//! Compares RdmaRdCompl and SendSm messages with the SrcAvail that they answer (sections 9.2, 9.5.4
//! and 11.3 of the SDP draft).

use weft_core::RequirementId;
use weft_core::requirement;
use weft_core::wire::rdmap::Opcode;
use weft_core::wire::sdp::{Mid, RawRdmaRdCompl};

use super::view::SdpView;
use crate::follow::ConnectionState;
use crate::follow::sdp::{Advert, EndReason, SenderState};
use crate::parse::Unit;
use crate::rules::rule::{Check, Findings, Rule};

pub(super) static AMOUNT: Rule =
    Check::Sdp(amount).covers(requirements!["SDP-9.2-1", "SDP-9.2-12", "SDP-9.2-13", "SDP-9.2-14", "SDP-9.2-38"]);

pub(super) static INVALIDATE: Rule =
    Check::Sdp(invalidate).covers(requirements!["SDP-9.2-15", "SDP-9.2-26", "SDP-9.2-27", "SDP-9.5.2.1-3"]);

pub(super) static AWAITED: Rule = Check::Sdp(awaited).covers(requirements!["SDP-9.2-34", "SDP-9.2-36"]);

pub(super) static WITHOUT_SRC_AVAIL: Rule = Check::Sdp(without_src_avail).covers(requirements![
    "SDP-9.2-1",
    "SDP-9.2-15",
    "SDP-9.2-18",
    "SDP-9.5.4-4",
    "SDP-9.5.4-8",
    "SDP-9.5.4-9",
    "SDP-11.3-12",
    "SDP-11.3-13",
    "SDP-11.3-20",
    "SDP-11.3-21"
]);

/// Returns Len of an RdmaRdCompl, and the SrcAvail that the RdmaRdCompl answers.
fn about(view: &SdpView<'_>) -> Option<(u64, Advert)> {
    let sender = view.sender_state();
    let raw: RawRdmaRdCompl = view.extension_of(Mid::RDMA_RD_COMPL)?;
    sender.sources.oldest.filter(|_| sender.certain).map(|source| (raw.len.get().into(), source))
}

fn amount(_: &ConnectionState, unit: &Unit<'_>, view: &SdpView<'_>, findings: &mut Findings<'_>) {
    let Some((len, source)) = about(view) else { return };
    if view.state.latest.send.and_then(|sent| sent.invalidates).is_some_and(|stag| stag != source.stag) {
        // The message is about another SrcAvail. The rule about Invalidate reports this.
        return;
    }
    let (sender, range) = (view.sender_state(), view.range(16..20));
    let found = format!("{len} bytes, for the SrcAvail of frame {}", source.frame);
    let goes_on = (source.reported() > 0).then_some(requirement!("SDP-9.2-38"));
    let mut report = |ids: &[RequirementId], expected: &str| {
        findings.report_each(ids, unit, range.clone(), expected, &found);
        findings.report_each(goes_on.as_slice(), unit, range.clone(), expected, &found);
    };
    if len > source.left {
        let expected = format!("at most the {} remaining bytes of the SrcAvail", source.left);
        report(requirements!["SDP-9.2-13"], &expected);
        if sender.sources.count > 1 {
            report(requirements!["SDP-9.2-14"], &expected);
        }
        return;
    }
    let Some(moved) = sender.moved else { return };
    if moved.read < len {
        report(requirements!["SDP-9.2-1"], &format!("at most the {} bytes that RDMA Reads requested", moved.read));
    } else if let Some(returned) = moved.returned.filter(|returned| *returned < len) {
        report(requirements!["SDP-9.2-12"], &format!("at most the {returned} bytes that RDMA Reads returned"));
    }
}

fn invalidate(_: &ConnectionState, unit: &Unit<'_>, view: &SdpView<'_>, findings: &mut Findings<'_>) {
    let Some(sent) = view.state.latest.send.filter(|_| view.mid() == Mid::RDMA_RD_COMPL) else { return };
    let range = view.range(3..4);
    if matches!(sent.opcode, Opcode::SEND | Opcode::SEND_INVALIDATE) {
        let expected = "a Send with Solicited Event, with or without Invalidate";
        findings.report(requirement!("SDP-9.2-27"), unit, range.clone(), expected, sent.opcode.to_string());
    }
    let Some((len, source)) = about(view) else { return };
    let expected = format!("Invalidate STag {:#010x} of the SrcAvail of frame {}", source.stag, source.frame);
    match sent.invalidates {
        None if len >= source.left => {
            let found = "no Invalidate, although all bytes of the SrcAvail are reported";
            findings.report(requirement!("SDP-9.2-26"), unit, range, &expected, found);
        }
        Some(stag) if stag != source.stag => {
            let found = format!("Invalidate STag {stag:#010x}");
            // If the STag belongs to a newer SrcAvail, the message violates two more requirements.
            if view.state.latest.affected_advert.is_some_and(|affected| affected.mseq != source.mseq) {
                let ids = requirements!["SDP-9.2-15", "SDP-9.5.2.1-3"];
                findings.report_each(ids, unit, range.clone(), &expected, &found);
            }
            findings.report(requirement!("SDP-9.2-26"), unit, range, &expected, found);
        }
        _ => {}
    }
}

fn awaited(_: &ConnectionState, unit: &Unit<'_>, view: &SdpView<'_>, findings: &mut Findings<'_>) {
    let sender = view.sender_state();
    if view.mid() == Mid::RDMA_RD_COMPL && sender.certain && sender.awaited > 0 {
        let ids = requirements!["SDP-9.2-34", "SDP-9.2-36"];
        let expected =
            format!("no RdmaRdCompl until {} bytes arrive as Data, because a SendSm requested them", sender.awaited);
        findings.report_each(ids, unit, view.range(3..4), &expected, "an RdmaRdCompl");
    }
}

/// Reports an RdmaRdCompl or SendSm without an open SrcAvail that it could answer.
fn without_src_avail(_: &ConnectionState, unit: &Unit<'_>, view: &SdpView<'_>, findings: &mut Findings<'_>) {
    let (mid, sender) = (view.mid(), view.sender_state());
    let is_send_sm = mid == Mid::SEND_SM;
    if !(is_send_sm || mid == Mid::RDMA_RD_COMPL) || !sender.certain || sender.sources.count > 0 {
        return;
    }
    let (ids, reason) = reasons(sender, is_send_sm);
    let expected = "an open SrcAvail";
    findings.report_each(ids, unit, view.range(3..4), expected, &format!("{mid}, but {reason}"));
}

fn reasons(sender: &SenderState, is_send_sm: bool) -> (&'static [RequirementId], &'static str) {
    if sender.last_source == Some(EndReason::Void) && sender.sink_avails.count > 0 {
        let ids = requirements!["SDP-11.3-12", "SDP-11.3-13", "SDP-11.3-20", "SDP-11.3-21"];
        return (ids, "the sender's own SinkAvail took precedence");
    }
    match (sender.last_source, is_send_sm) {
        (_, true) if sender.cancels.src_avail_idle => {
            (requirements!["SDP-9.5.4-4"], "no SrcAvail was open when the SrcAvailCancel arrived")
        }
        (Some(EndReason::Revoked), true) => (requirements!["SDP-9.5.4-9"], "the SrcAvailCancel was already answered"),
        (Some(EndReason::Revoked), false) => (requirements!["SDP-9.5.4-8"], "the SrcAvail was canceled"),
        (_, true) => (requirements!["SDP-9.2-18"], "no SrcAvail is open"),
        (_, false) => (requirements!["SDP-9.2-1", "SDP-9.2-15"], "no SrcAvail is open"),
    }
}

#[cfg(test)]
mod tests {
    use weft_core::requirement;
    use weft_core::wire::sdp::Mid;

    use crate::rules::sdp::sdp_script::{SEND_SE_INV, advert_of, completes, pipelined, proves_each_way, src_avail};
    use crate::testing::sdp::{STAG, SdpScript, VA, advert, word};
    use crate::testing::{Wire, fpdu, hello, hex, reply_frame, startup_frame};

    /// One endpoint sends a SrcAvail of 50 octets, 10 of them as payload. The other endpoint sends
    /// RDMA Reads of the lengths `read`, and then RdmaRdCompls with the lengths `reported`.
    fn reads(read: &[u32], reported: &[u32]) -> impl Fn(&mut SdpScript, usize) {
        let (read, reported) = (read.to_vec(), reported.to_vec());
        move |script, way| {
            src_avail(script, 1 - way, 50, 10);
            let mut at = VA + 10;
            for len in &read {
                script.reads(way, STAG, at, *len);
                at += u64::from(*len);
            }
            for len in &reported {
                script.send_in(SEND_SE_INV, way, Mid::RDMA_RD_COMPL, &word(*len), 0);
            }
        }
    }

    #[test]
    fn reports_at_most_what_was_read() {
        proves_each_way(requirement!("SDP-9.2-1"), reads(&[39], &[40]), reads(&[40], &[40]));
        proves_each_way(requirement!("SDP-9.2-13"), reads(&[40], &[41]), reads(&[40], &[40]));
        proves_each_way(requirement!("SDP-9.2-38"), reads(&[30, 10], &[30, 40]), reads(&[30, 10], &[30, 10]));
        // An RDMA Read is also allowed to start at the start of the buffer.
        let from_the_start = |len: u32| {
            move |script: &mut SdpScript, way: usize| {
                src_avail(script, 1 - way, 50, 10);
                script.reads(way, STAG, VA, len);
                completes(script, way, Mid::RDMA_RD_COMPL, 40);
            }
        };
        proves_each_way(requirement!("SDP-9.2-1"), from_the_start(49), from_the_start(50));
    }

    #[test]
    fn reports_only_returned_octets() {
        let asks = |comes: bool| {
            move |script: &mut SdpScript, way: usize| {
                src_avail(script, 1 - way, 50, 10);
                if comes {
                    script.reads(way, STAG, VA + 10, 40);
                } else {
                    script.request_read(way, STAG, VA + 10, 40);
                }
                completes(script, way, Mid::RDMA_RD_COMPL, 40);
            }
        };
        proves_each_way(requirement!("SDP-9.2-12"), asks(false), asks(true));
    }

    /// Without CRC, it is possible that the dissector parses a Response only after more octets have
    /// arrived.
    #[test]
    fn reports_only_returned_octets_without_crc() {
        let is_found = |comes: &[u8], later: &[u8]| {
            let mut wire = Wire::connected();
            wire.send(0, &[hello(), startup_frame(0, 1, &[])].concat());
            wire.send(1, &reply_frame(0, 1, &[]));
            let mut script = SdpScript::after(wire);
            src_avail(&mut script, 0, 50, 10);
            script.request_read(1, STAG, VA + 10, 40);
            if !comes.is_empty() {
                script.wire.send(0, comes);
            }
            completes(&mut script, 1, Mid::RDMA_RD_COMPL, 40);
            if !later.is_empty() {
                script.wire.send(0, later);
            }
            script.wire.errors().iter().any(|finding| finding.requirement == requirement!("SDP-9.2-12"))
        };
        let response = fpdu(&[hex("c142 00005101 0000000000000000"), vec![0x5a; 40]].concat());
        let data = fpdu(&hex("4143 00000000 00000000 00000002 00000000 0010 00 ff 00000010 00000002 00000000"));
        assert!(is_found(&[], &response));
        assert!(!is_found(&response, &[]));
        assert!(!is_found(&[&response[..], &data[..2]].concat(), &data[2..]));
    }

    /// Sends two SrcAvails in Pipelined Mode. [`STAG`] is in the second SrcAvail if `second_first`
    /// is true, and in the first SrcAvail otherwise.
    fn two(script: &mut SdpScript, way: usize, second_first: bool) {
        pipelined(script, 1 - way);
        let mut stags = [STAG, 0x0099_0099];
        if second_first {
            stags.reverse();
        }
        for stag in stags {
            script.send(1 - way, Mid::SRC_AVAIL, &advert_of(stag, 50, None), 0);
        }
        script.both_receive_all();
    }

    #[test]
    fn one_at_a_time_and_the_oldest_first() {
        let completes_with = |len: u32| {
            move |script: &mut SdpScript, way: usize| {
                two(script, way, false);
                script.reads(way, STAG, VA, 50);
                completes(script, way, Mid::RDMA_RD_COMPL, len);
            }
        };
        proves_each_way(requirement!("SDP-9.2-14"), completes_with(51), completes_with(50));
        // The message invalidates the STag of the second SrcAvail, so it is about that SrcAvail.
        let about_the_second = |script: &mut SdpScript, way: usize| {
            two(script, way, true);
            script.reads(way, STAG, VA, 50);
            completes(script, way, Mid::RDMA_RD_COMPL, 51);
        };
        proves_each_way(requirement!("SDP-9.2-14"), completes_with(51), about_the_second);
        // The second SrcAvail is completed first. So the next message is about all of the first one.
        let exchanged = |script: &mut SdpScript, way: usize| {
            pipelined(script, 1 - way);
            script.send(1 - way, Mid::SRC_AVAIL, &advert_of(0x0099_0099, 90, None), 0);
            script.send(1 - way, Mid::SRC_AVAIL, &advert_of(STAG, 50, None), 0);
            script.both_receive_all();
            script.reads(way, 0x0099_0099, VA, 90);
            script.reads(way, STAG, VA, 50);
            completes(script, way, Mid::RDMA_RD_COMPL, 50);
            script.send(way, Mid::RDMA_RD_COMPL, &word(90), 0);
        };
        proves_each_way(requirement!("SDP-9.2-38"), reads(&[30, 10], &[30, 40]), exchanged);
        proves_each_way(requirement!("SDP-9.2-15"), exchanged, completes_with(50));
        let ends = |newer: bool| {
            move |script: &mut SdpScript, way: usize| {
                two(script, way, newer);
                script.reads(way, STAG, VA, 50);
                completes(script, way, Mid::RDMA_RD_COMPL, 50);
            }
        };
        proves_each_way(requirement!("SDP-9.2-15"), ends(true), ends(false));
        proves_each_way(requirement!("SDP-9.5.2.1-3"), ends(true), ends(false));
    }

    #[test]
    fn the_last_one_invalidates() {
        let ends = |opcode: u8, reported: u32| {
            move |script: &mut SdpScript, way: usize| {
                src_avail(script, 1 - way, 50, 10);
                script.reads(way, STAG, VA + 10, 40);
                script.send_in(opcode, way, Mid::RDMA_RD_COMPL, &word(reported), 0);
            }
        };
        proves_each_way(requirement!("SDP-9.2-26"), ends(5, 40), ends(6, 40));
        proves_each_way(requirement!("SDP-9.2-26"), ends(5, 40), ends(5, 39));
        proves_each_way(requirement!("SDP-9.2-27"), ends(3, 40), ends(5, 40));
        proves_each_way(requirement!("SDP-9.2-27"), ends(4, 40), ends(6, 40));
    }

    #[test]
    fn requested_data_arrives_first() {
        let completes_with = |data: usize| {
            move |script: &mut SdpScript, way: usize| {
                two(script, way, true);
                script.send(way, Mid::SEND_SM, "", 0);
                script.both_receive_all();
                script.send(1 - way, Mid::DATA, "", data);
                script.both_receive_all();
                script.reads(way, STAG, VA, 50);
                completes(script, way, Mid::RDMA_RD_COMPL, 50);
            }
        };
        proves_each_way(requirement!("SDP-9.2-34"), completes_with(49), completes_with(50));
        proves_each_way(requirement!("SDP-9.2-36"), completes_with(49), completes_with(50));
    }

    #[test]
    fn one_answer_to_one_src_avail() {
        let answers = |mids: &'static [Mid]| {
            move |script: &mut SdpScript, way: usize| {
                src_avail(script, 1 - way, 50, 10);
                script.reads(way, STAG, VA + 10, 40);
                for mid in mids {
                    let extension = if *mid == Mid::SEND_SM { String::new() } else { word(40) };
                    script.send_in(if *mid == Mid::SEND_SM { 5 } else { 6 }, way, *mid, &extension, 0);
                }
            }
        };
        proves_each_way(requirement!("SDP-9.2-18"), answers(&[Mid::SEND_SM, Mid::SEND_SM]), answers(&[Mid::SEND_SM]));
        let (one, two): (&[_], &[_]) = (&[Mid::RDMA_RD_COMPL], &[Mid::RDMA_RD_COMPL, Mid::RDMA_RD_COMPL]);
        proves_each_way(requirement!("SDP-9.2-15"), answers(two), answers(one));
        proves_each_way(requirement!("SDP-9.2-1"), answers(two), answers(one));
    }

    #[test]
    fn an_own_sink_avail_takes_precedence() {
        let answers = |crosses: bool| {
            move |script: &mut SdpScript, way: usize| {
                pipelined(script, 1 - way);
                if crosses {
                    script.send(way, Mid::SINK_AVAIL, &advert(9000, Some(0)), 0);
                }
                src_avail(script, 1 - way, 50, 0);
                script.send(way, Mid::SEND_SM, "", 0);
            }
        };
        for id in [
            requirement!("SDP-11.3-12"),
            requirement!("SDP-11.3-13"),
            requirement!("SDP-11.3-20"),
            requirement!("SDP-11.3-21"),
        ] {
            proves_each_way(id, answers(true), answers(false));
        }
    }

    #[test]
    fn a_cancel_has_one_answer() {
        let cancels = |open: bool, answers: &'static [Mid]| {
            move |script: &mut SdpScript, way: usize| {
                if open {
                    src_avail(script, 1 - way, 50, 10);
                    script.reads(way, STAG, VA + 10, 10);
                }
                script.send(1 - way, Mid::SRC_AVAIL_CANCEL, "", 0);
                for mid in answers {
                    let extension = if *mid == Mid::SEND_SM { String::new() } else { word(10) };
                    script.send_in(if *mid == Mid::SEND_SM { 5 } else { 6 }, way, *mid, &extension, 0);
                    script.receive_all(way);
                }
                script.receive_all(way);
                script.send(way, Mid::SEND_SM, "", 0);
            }
        };
        proves_each_way(requirement!("SDP-9.5.4-4"), cancels(false, &[]), cancels(true, &[]));
        let (bad, good): (&[_], &[_]) = (&[Mid::RDMA_RD_COMPL, Mid::SEND_SM], &[Mid::RDMA_RD_COMPL]);
        proves_each_way(requirement!("SDP-9.5.4-9"), cancels(true, bad), cancels(true, good));
        let late = |mid: Mid, answered: bool| {
            move |script: &mut SdpScript, way: usize| {
                src_avail(script, 1 - way, 50, 10);
                script.reads(way, STAG, VA + 10, 40);
                if answered {
                    script.send(1 - way, Mid::SRC_AVAIL_CANCEL, "", 0);
                    script.receive_all(way);
                    script.send(way, Mid::SEND_SM, "", 0);
                }
                completes(script, way, mid, 40);
            }
        };
        proves_each_way(requirement!("SDP-9.5.4-8"), late(Mid::RDMA_RD_COMPL, true), late(Mid::RDMA_RD_COMPL, false));
    }
}
