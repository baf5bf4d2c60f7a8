//! Checks that messages fit into receive Private Buffers, and how peers change the size of these
//! buffers (sections 10 and 10.6 of the SDP draft).

use weft_core::RequirementId;
use weft_core::requirement;
use weft_core::wire::sdp::{Mid, RawChRcvBuf, RawChRcvBufAck};

use super::view::SdpView;
use crate::follow::ConnectionState;
use crate::follow::sdp::reached;
use crate::parse::Unit;
use crate::rules::rule::{Check, Findings, Rule};

pub(super) static LIMIT: Rule = Check::Sdp(limit).covers(requirements![
    "SDP-9.1-1",
    "SDP-10-2",
    "SDP-10-6",
    "SDP-10.6-2",
    "SDP-10.6-3",
    "SDP-10.6-4"
]);

pub(super) static REQUEST: Rule =
    Check::Sdp(request).covers(requirements!["SDP-10.6-17", "SDP-10.6-18", "SDP-10.6-19"]);

pub(super) static ANSWER: Rule =
    Check::Sdp(answer).covers(requirements!["SDP-10.6-8", "SDP-10.6-9", "SDP-10.6-10", "SDP-10.6-13", "SDP-10.6.1-1"]);

fn limit(_: &ConnectionState, unit: &Unit<'_>, view: &SdpView<'_>, findings: &mut Findings<'_>) {
    let sender = view.sender_state();
    let (Some(peer), true) = (sender.sizes.peer, sender.certain) else { return };
    let size = u32::try_from(view.size()).unwrap_or(u32::MAX);
    let mut report = |ids: &[RequirementId], expected: &str| {
        findings.report_each(ids, unit, view.range(4..8), expected, &format!("{size} bytes"));
    };
    let wanted = sender.sizes.own_request.map(|request| request.wanted);
    if size > peer {
        let expected = format!("at most {peer} bytes, the size of the peer's receive Private Buffers");
        report(requirements!["SDP-10-2", "SDP-10-6"], &expected);
        if view.mid().may_carry_payload() && view.payload_len() > 0 {
            report(requirements!["SDP-9.1-1"], &expected);
        }
        if wanted.is_some_and(|wanted| wanted > peer) {
            report(requirements!["SDP-10.6-3"], &format!("at most {peer} bytes until the ChRcvBufAck"));
        }
        if sender.received.has(Mid::CH_RCV_BUF_ACK) {
            report(requirements!["SDP-10.6-4"], &format!("at most {peer} bytes, the size in the ChRcvBufAck"));
        }
    } else if let Some(wanted) = wanted.filter(|wanted| size > *wanted && *wanted < peer) {
        let found = format!("at most {wanted} bytes, the size that the sender's own ChRcvBuf requests");
        report(requirements!["SDP-10.6-2"], &found);
    }
}

fn request(_: &ConnectionState, unit: &Unit<'_>, view: &SdpView<'_>, findings: &mut Findings<'_>) {
    let sender = view.sender_state();
    let Some(raw) = view.extension_of::<RawChRcvBuf>(Mid::CH_RCV_BUF) else { return };
    let (wanted, true, Some(peer)) = (raw.des_sz.get(), sender.certain, sender.sizes.peer) else { return };
    if let Some(request) = sender.sizes.own_request {
        let found = format!("a ChRcvBuf, although the ChRcvBuf with MSeq {} has no answer", request.mseq);
        let expected = "no ChRcvBuf until the previous one has a ChRcvBufAck";
        findings.report(requirement!("SDP-10.6-19"), unit, view.range(3..4), expected, found);
    }
    let range = view.range(16..20);
    if wanted > peer && sender.sizes.refused_larger {
        let expected = "no request for a larger size, because the peer has refused a larger size";
        findings.report(requirement!("SDP-10.6-17"), unit, range, expected, format!("{wanted} bytes"));
    } else if wanted < peer && sender.sizes.refused_smaller {
        let expected = "no request for a smaller size, because the peer has refused a smaller size";
        findings.report(requirement!("SDP-10.6-18"), unit, range, expected, format!("{wanted} bytes"));
    }
}

fn answer(_: &ConnectionState, unit: &Unit<'_>, view: &SdpView<'_>, findings: &mut Findings<'_>) {
    let sender = view.sender_state();
    let Some(raw) = view.extension_of::<RawChRcvBufAck>(Mid::CH_RCV_BUF_ACK) else { return };
    let (size, true, Some(old)) = (raw.act_sz.get(), sender.certain, sender.receive_size) else { return };
    let Some(request) = sender.sizes.peer_request else {
        if sender.sizes.disregards {
            let expected = "no answer from the Accepting Peer, because the ChRcvBufs crossed";
            findings.report(requirement!("SDP-10.6.1-1"), unit, view.range(3..4), expected, "a ChRcvBufAck");
        }
        return;
    };
    let found = format!("{size} bytes");
    let mut report = |id, expected: String| findings.report(id, unit, view.range(16..20), &expected, found.clone());
    let wanted = request.wanted;
    if wanted < old && size > old {
        let expected = format!("{wanted} to {old} bytes, because the ChRcvBuf requests fewer than {old} bytes");
        report(requirement!("SDP-10.6-8"), expected);
    } else if wanted < old && size < wanted {
        report(requirement!("SDP-10.6-9"), format!("{wanted} to {old} bytes, at least the requested size"));
    } else if wanted > old && size < old {
        let expected = format!("at least {old} bytes, because the ChRcvBuf requests more than {old} bytes");
        report(requirement!("SDP-10.6-10"), expected);
    }
    let ack = view.bsdh.mseq_ack.get();
    if size > old
        && let Some(edge) = sender.sizes.used_up(request, size)
        && !reached(ack, edge)
    {
        let expected = format!("MSeqAck {edge} or later, when all buffers of the old size are used up");
        findings.report(requirement!("SDP-10.6-13"), unit, view.range(12..16), &expected, format!("MSeqAck {ack}"));
    }
}

#[cfg(test)]
mod tests {
    use weft_core::requirement;
    use weft_core::wire::sdp::Mid;

    use crate::rules::sdp::sdp_script::proves_each_way;
    use crate::rules::sdp::testing::proves;
    use crate::testing::sdp::{SdpScript, word};

    fn asks(script: &mut SdpScript, way: usize, size: u32) {
        script.send(way, Mid::CH_RCV_BUF, &word(size), 0);
        script.both_receive_all();
    }

    fn answers(script: &mut SdpScript, way: usize, size: u32) {
        script.send(way, Mid::CH_RCV_BUF_ACK, &word(size), 0);
        script.both_receive_all();
    }

    /// Buffers have 4096 octets. The BSDH uses 16 of these octets.
    #[test]
    fn no_message_is_larger_than_a_buffer() {
        let data = |payload: usize| move |script: &mut SdpScript, way: usize| script.send(way, Mid::DATA, "", payload);
        for id in [requirement!("SDP-10-6"), requirement!("SDP-10-2"), requirement!("SDP-9.1-1")] {
            proves_each_way(id, data(4081), data(4080));
        }
    }

    #[test]
    fn a_smaller_size_counts_at_once() {
        let data = |payload: usize| {
            move |script: &mut SdpScript, way: usize| {
                script.send(way, Mid::CH_RCV_BUF, &word(1000), 0);
                script.send(way, Mid::DATA, "", payload);
            }
        };
        proves_each_way(requirement!("SDP-10.6-2"), data(985), data(984));
    }

    #[test]
    fn a_larger_size_counts_with_its_answer() {
        let data = |answered: bool, payload: usize| {
            move |script: &mut SdpScript, way: usize| {
                asks(script, way, 5000);
                (0..16).for_each(|_| script.send(way, Mid::DATA, "", 0));
                script.both_receive_all();
                if answered {
                    answers(script, 1 - way, 5000);
                } else {
                    script.send(1 - way, Mid::DATA, "", 0);
                    script.both_receive_all();
                }
                script.send(way, Mid::DATA, "", payload);
            }
        };
        proves_each_way(requirement!("SDP-10.6-3"), data(false, 4081), data(true, 4081));
        proves_each_way(requirement!("SDP-10.6-4"), data(true, 4985), data(true, 4984));
    }

    #[test]
    fn repeats_no_refused_request() {
        let again = |first: u32, answer: u32, second: u32| {
            move |script: &mut SdpScript, way: usize| {
                asks(script, way, first);
                answers(script, 1 - way, answer);
                asks(script, way, second);
            }
        };
        proves_each_way(requirement!("SDP-10.6-17"), again(5000, 4096, 4500), again(1000, 4096, 4500));
        proves_each_way(requirement!("SDP-10.6-18"), again(1000, 4096, 2000), again(1000, 3000, 2000));
        let twice = |answered: bool| {
            move |script: &mut SdpScript, way: usize| {
                asks(script, way, 1000);
                if answered {
                    answers(script, 1 - way, 1000);
                }
                asks(script, way, 900);
            }
        };
        proves_each_way(requirement!("SDP-10.6-19"), twice(false), twice(true));
    }

    #[test]
    fn answer_is_between_old_and_requested_size() {
        let answered = |wanted: u32, size: u32| {
            move |script: &mut SdpScript, way: usize| {
                asks(script, 1 - way, wanted);
                answers(script, way, size);
            }
        };
        proves_each_way(requirement!("SDP-10.6-8"), answered(1000, 4097), answered(1000, 4096));
        proves_each_way(requirement!("SDP-10.6-9"), answered(1000, 999), answered(1000, 1000));
        proves_each_way(requirement!("SDP-10.6-10"), answered(5000, 4095), answered(5000, 4096));
    }

    /// Each peer announced 16 buffers of the old size. The HelloAck used one buffer of the
    /// Connecting Peer.
    #[test]
    fn the_old_buffers_are_used_up_first() {
        let answered = |used: u32| {
            move |script: &mut SdpScript, way: usize| {
                asks(script, 1 - way, 5000);
                let old = if way == 0 { 15 } else { 16 };
                script.bufs = 40;
                (1..old - 1 + used).for_each(|_| {
                    script.send(1 - way, Mid::DATA, "", 0);
                    script.both_receive_all();
                });
                answers(script, way, 5000);
            }
        };
        proves_each_way(requirement!("SDP-10.6-13"), answered(0), answered(1));
    }

    /// The peer reduced the size only for a short time. The posted buffers still have the earlier,
    /// larger size.
    #[test]
    fn large_buffers_from_before_need_not_be_used_up() {
        let answered = |again: u32| {
            move |script: &mut SdpScript, way: usize| {
                for size in [1000, again] {
                    asks(script, 1 - way, size);
                    answers(script, way, size);
                }
            }
        };
        proves_each_way(requirement!("SDP-10.6-13"), answered(4097), answered(4096));
    }

    #[test]
    fn connecting_peer_answers_crossed_requests() {
        let crosses = |crosses: bool| {
            move |script: &mut SdpScript| {
                if crosses {
                    script.send(1, Mid::CH_RCV_BUF, &word(900), 0);
                }
                script.send(0, Mid::CH_RCV_BUF, &word(1000), 0);
                script.both_receive_all();
                answers(script, 1, 1000);
            }
        };
        proves(requirement!("SDP-10.6.1-1"), crosses(true), crosses(false));
        let connecting = |script: &mut SdpScript| {
            script.send(0, Mid::CH_RCV_BUF, &word(900), 0);
            script.send(1, Mid::CH_RCV_BUF, &word(1000), 0);
            script.both_receive_all();
            answers(script, 0, 1000);
        };
        proves(requirement!("SDP-10.6.1-1"), crosses(true), connecting);
    }
}
