//! Checks send credit: how much credit a message needs (sections 10.2 to 10.5 of the SDP draft),
//! and how an endpoint announces credit (sections 10 and 10.1).

use weft_core::RequirementId;
use weft_core::requirement;
use weft_core::wire::sdp::Mid;

use super::view::SdpView;
use crate::direction::Direction;
use crate::follow::ConnectionState;
use crate::follow::sdp::{SdpState, reached};
use crate::parse::Unit;
use crate::rules::rule::{Check, Findings, Rule};

pub(super) static USE: Rule = Check::Sdp(has_credit).covers(requirements![
    "SDP-10.2-1",
    "SDP-10.3-4",
    "SDP-10.5-1",
    "SDP-10.5-2",
    "SDP-10.5-3",
    "SDP-10.5-4",
    "SDP-10.5-5",
    "SDP-10.5-6",
    "SDP-10.5-7",
    "SDP-10.5-8"
]);

pub(super) static ORDER: Rule = Check::Sdp(order).covers(requirements!["SDP-10.1-1"]);

pub(super) static REPORTED: Rule = Check::End(not_taken_back).covers(requirements!["SDP-10-1"]);

fn has_credit(_: &ConnectionState, unit: &Unit<'_>, view: &SdpView<'_>, findings: &mut Findings<'_>) {
    let known = view.sender_state();
    let (Some(granted), true) = (known.granted, known.certain && !is_hello_or_hello_ack(view)) else { return };
    let mseq = view.bsdh.mseq.get();
    let credit = granted.wrapping_sub(mseq.wrapping_sub(1)).cast_signed();
    let has_payload = view.mid().may_carry_payload() && view.payload_len() > 0;
    let edge = view.bsdh.mseq_ack.get().wrapping_add(view.bsdh.bufs.get().into());
    // In its first message after Hello or HelloAck, an endpoint is allowed to announce a different
    // number of buffers than in Hello or HelloAck (an interpretation of the draft).
    let widens = known.edge.is_none_or(|edge_before| !reached(edge_before, edge));
    let (own, expected) = match (credit, has_payload) {
        (..=0, _) => (requirements!["SDP-10.5-6", "SDP-10.2-1", "SDP-10.5-4"], "no message without credit"),
        (1, true) => {
            (requirements!["SDP-10.5-7", "SDP-10.5-3", "SDP-10.5-1"], "no payload when only one credit is left")
        }
        (1, false) if !widens => (
            requirements!["SDP-10.5-7", "SDP-10.5-2", "SDP-10.5-1"],
            "a message that grants credit, because only one credit is left",
        ),
        (2, true) => {
            (requirements!["SDP-10.5-8", "SDP-10.5-3", "SDP-10.5-1"], "no payload when only two credits are left")
        }
        _ => return,
    };
    let found = format!("{} with MSeq {mseq}, although the credit ends at MSeq {granted}", view.mid());
    findings.report_each(own, unit, view.range(8..12), expected, &found);
    findings.report(requirement!("SDP-10.5-5"), unit, view.range(8..12), expected, found.clone());
    if known.received == Default::default() {
        findings.report(requirement!("SDP-10.3-4"), unit, view.range(8..12), expected, found);
    }
}

fn is_hello_or_hello_ack(view: &SdpView<'_>) -> bool {
    matches!(view.mid(), Mid::HELLO | Mid::HELLO_ACK)
}

/// Reports Sends out of order. MSeq has to increase by one with each Send.
fn order(_: &ConnectionState, unit: &Unit<'_>, view: &SdpView<'_>, findings: &mut Findings<'_>) {
    let (Some(sent), Some(last)) = (view.state.latest.send, view.sender_state().mseq) else { return };
    let (mseq, expected) = (view.bsdh.mseq.get(), last.wrapping_add(1));
    if sent.follows && mseq != expected && !is_hello_or_hello_ack(view) {
        let expected = format!("MSeq {expected}, because the previous Send has MSeq {last}");
        findings.report(requirement!("SDP-10.1-1"), unit, view.range(8..12), &expected, format!("MSeq {mseq}"));
    }
}

/// Reports messages that take credit back. A posted buffer stays available until a message arrives
/// in it, so the sum of MSeqAck and Bufs never decreases.
fn not_taken_back(state: &ConnectionState, findings: &mut Findings<'_>) {
    let Some(sdp) = state.context().sdp.as_deref().filter(|sdp| sdp.complete) else { return };
    for direction in Direction::BOTH {
        credit_decreases(requirement!("SDP-10-1"), sdp, direction, findings);
    }
}

/// Reports the messages of `direction` that take credit back, as violations of `id`.
pub(super) fn credit_decreases(id: RequirementId, sdp: &SdpState, direction: Direction, findings: &mut Findings<'_>) {
    for decrease in &sdp.unexplained[direction].credit_decreases {
        let expected = format!("MSeqAck + Bufs of at least {}, as in an earlier message", decrease.from);
        let found = format!("MSeqAck + Bufs of {}", decrease.to);
        findings.report_in_frame(id, direction, decrease.header, &expected, found);
    }
}

#[cfg(test)]
mod tests {
    use weft_core::requirement;
    use weft_core::wire::sdp::Mid;

    use crate::rules::sdp::sdp_script::proves_each_way;
    use crate::testing::sdp::SdpScript;

    /// The peer announced 16 buffers. `count` messages without payload use `count` of these
    /// buffers. Then a message with `payload` octets follows. If `gives` is true, this message
    /// grants credit.
    fn after_messages(count: u32, payload: usize, gives: bool) -> impl Fn(&mut SdpScript, usize) {
        move |script, way| {
            (0..count).for_each(|_| script.send(way, Mid::DATA, "", 0));
            script.bufs += u16::from(gives);
            script.send(way, Mid::DATA, "", payload);
        }
    }

    #[test]
    fn nothing_without_credit() {
        // After 15 messages, one credit is left.
        for id in [requirement!("SDP-10.5-6"), requirement!("SDP-10.2-1"), requirement!("SDP-10.5-4")] {
            proves_each_way(id, after_messages(16, 0, true), after_messages(13, 0, true));
        }
        // A message that uses a reserved credit does not use more credit than there is.
        for id in [requirement!("SDP-10.2-1"), requirement!("SDP-10.5-4")] {
            proves_each_way(id, after_messages(16, 0, true), after_messages(14, 1, false));
        }
        let update = |received: bool| {
            move |script: &mut SdpScript, way: usize| {
                (0..14).for_each(|_| script.send(way, Mid::DATA, "", 0));
                script.receive_all(1 - way);
                script.send(1 - way, Mid::DATA, "", 0);
                if received {
                    script.receive_all(way);
                }
                script.send(way, Mid::DATA, "", 10);
            }
        };
        proves_each_way(requirement!("SDP-10.5-5"), update(false), update(true));
        proves_each_way(requirement!("SDP-10.3-4"), update(false), update(true));
    }

    #[test]
    fn the_last_credit_only_grants_credit() {
        for id in [requirement!("SDP-10.5-7"), requirement!("SDP-10.5-2"), requirement!("SDP-10.5-1")] {
            proves_each_way(id, after_messages(15, 0, false), after_messages(15, 0, true));
        }
        proves_each_way(requirement!("SDP-10.5-7"), after_messages(15, 1, true), after_messages(15, 0, true));
    }

    #[test]
    fn two_credits_are_not_for_payload() {
        for id in [requirement!("SDP-10.5-8"), requirement!("SDP-10.5-3"), requirement!("SDP-10.5-1")] {
            proves_each_way(id, after_messages(14, 1, false), after_messages(14, 0, false));
            proves_each_way(id, after_messages(14, 1, false), after_messages(13, 1, false));
        }
    }

    #[test]
    fn mseq_rises_with_each_send() {
        let skips = |skip: u32| {
            move |script: &mut SdpScript, way: usize| {
                script.send(way, Mid::DATA, "", 0);
                script.mseq[way] += skip;
                script.send(way, Mid::DATA, "", 0);
            }
        };
        proves_each_way(requirement!("SDP-10.1-1"), skips(1), skips(0));
        let missing = |script: &mut SdpScript, way: usize| {
            script.send(way, Mid::DATA, "", 0);
            script.lose(way, Mid::DATA, "", 0);
            script.send(way, Mid::DATA, "", 0);
        };
        proves_each_way(requirement!("SDP-10.1-1"), skips(1), missing);
    }

    #[test]
    fn buffers_do_not_vanish() {
        let offers = |bufs: u16| {
            move |script: &mut SdpScript, way: usize| {
                script.send(way, Mid::DATA, "", 0);
                script.send(1 - way, Mid::DATA, "", 0);
                script.receive_all(way);
                script.bufs = bufs;
                script.send(way, Mid::DATA, "", 0);
            }
        };
        proves_each_way(requirement!("SDP-10-1"), offers(14), offers(15));
    }
}
