//! Send credit: how much credit a message needs (sections 10.2 to 10.5), and how an endpoint
//! announces credit (sections 10 and 10.1).

use weft_core::RequirementId;
use weft_core::requirement;
use weft_core::wire::sdp::Mid;

use super::view::SdpView;
use crate::direction::Direction;
use crate::follow::ConnectionState;
use crate::parse::Unit;
use crate::rules::findings::Findings;
use crate::rules::rule::{Judge, Rule};

pub(super) static USE: Rule = Rule {
    requirements: &[
        requirement!("SDP-10.2-1"),
        requirement!("SDP-10.3-4"),
        requirement!("SDP-10.5-1"),
        requirement!("SDP-10.5-2"),
        requirement!("SDP-10.5-3"),
        requirement!("SDP-10.5-4"),
        requirement!("SDP-10.5-5"),
        requirement!("SDP-10.5-6"),
        requirement!("SDP-10.5-7"),
        requirement!("SDP-10.5-8"),
    ],
    judge: Judge::Sdp(spends),
};

pub(super) static ORDER: Rule = Rule { requirements: &[requirement!("SDP-10.1-1")], judge: Judge::Sdp(order) };

pub(super) static REPORTED: Rule = Rule { requirements: &[requirement!("SDP-10-1")], judge: Judge::End(reported) };

/// Returns whether `a` is before `b`, both counted modulo 2^32.
fn before(a: u32, b: u32) -> bool {
    a.wrapping_sub(b).cast_signed() < 0
}

fn spends(_: &ConnectionState, unit: &Unit<'_>, view: &SdpView<'_>, findings: &mut Findings<'_>) {
    let known = view.before();
    let (Some(granted), true) = (known.granted, known.certain && !is_set_up(view)) else { return };
    let mseq = view.bsdh.mseq.get();
    let credit = granted.wrapping_sub(mseq.wrapping_sub(1)).cast_signed();
    let has_payload = view.mid().may_carry_payload() && view.payload_len() > 0;
    let edge = view.bsdh.mseq_ack.get().wrapping_add(view.bsdh.bufs.get().into());
    // An endpoint may change the number of buffers of its Hello or HelloAck in its first message
    // (C6, an interpretation of the draft).
    let widens = known.edge.is_none_or(|edge_before| before(edge_before, edge));
    let (own, expected): (&[RequirementId], _) = match (credit, has_payload) {
        (..=0, _) => (const { &[requirement!("SDP-10.5-6")] }, "no message without credit"),
        (1, true) => (
            const { &[requirement!("SDP-10.5-7"), requirement!("SDP-10.5-3"), requirement!("SDP-10.5-1")] },
            "no payload with one credit",
        ),
        (1, false) if !widens => (
            const { &[requirement!("SDP-10.5-7"), requirement!("SDP-10.5-2"), requirement!("SDP-10.5-1")] },
            "with one credit, only a message that grants credit",
        ),
        (2, true) => (
            const { &[requirement!("SDP-10.5-8"), requirement!("SDP-10.5-3"), requirement!("SDP-10.5-1")] },
            "no payload with two credits",
        ),
        _ => return,
    };
    let found = format!("{} with MSeq {mseq}; the credit ends at MSeq {granted}", view.mid());
    let always = [requirement!("SDP-10.2-1"), requirement!("SDP-10.5-4"), requirement!("SDP-10.5-5")];
    findings.each(own, unit, view.place(8..12), expected, &found);
    findings.each(&always, unit, view.place(8..12), expected, &found);
    if known.received == Default::default() {
        findings.at(requirement!("SDP-10.3-4"), unit, view.place(8..12), expected, found);
    }
}

fn is_set_up(view: &SdpView<'_>) -> bool {
    matches!(view.mid(), Mid::HELLO | Mid::HELLO_ACK)
}

/// Reports Sends out of order: MSeq has to increase by one with each Send.
fn order(_: &ConnectionState, unit: &Unit<'_>, view: &SdpView<'_>, findings: &mut Findings<'_>) {
    let (Some(sent), Some(last)) = (view.state.latest.sent, view.before().mseq) else { return };
    let (mseq, expected) = (view.bsdh.mseq.get(), last.wrapping_add(1));
    if sent.follows && mseq != expected && !is_set_up(view) {
        let expected = format!("{expected}: the previous Send has {last}");
        findings.at(requirement!("SDP-10.1-1"), unit, view.place(8..12), &expected, mseq.to_string());
    }
}

/// Reports messages that take credit back: only an arriving message uses up a posted buffer.
fn reported(state: &ConnectionState, findings: &mut Findings<'_>) {
    let Some(sdp) = state.context().sdp.as_deref().filter(|sdp| sdp.complete) else { return };
    for (direction, strays) in Direction::BOTH.into_iter().zip(&sdp.strays) {
        for step in &strays.steps_back {
            let expected = format!("MSeqAck + Bufs of at least {}, as announced before", step.from);
            findings.in_frame(requirement!("SDP-10-1"), direction, step.header, &expected, step.to.to_string());
        }
    }
}

#[cfg(test)]
mod tests {
    use weft_core::requirement;
    use weft_core::wire::sdp::Mid;

    use crate::rules::sdp::talk::proves_each_way;
    use crate::testing::sdp::Talk;

    /// The peer announced 16 buffers. `count` messages without payload use buffers. Then a message
    /// with `payload` octets follows, which grants credit if `gives` is true.
    fn spends(count: u32, payload: usize, gives: bool) -> impl Fn(&mut Talk, usize) {
        move |talk, way| {
            (0..count).for_each(|_| talk.send(way, Mid::DATA, "", 0));
            talk.bufs += u16::from(gives);
            talk.send(way, Mid::DATA, "", payload);
        }
    }

    #[test]
    fn nothing_without_credit() {
        // After 15 messages, one credit is left.
        for id in [requirement!("SDP-10.5-6"), requirement!("SDP-10.2-1"), requirement!("SDP-10.5-4")] {
            proves_each_way(id, spends(16, 0, true), spends(13, 0, true));
        }
        let update = |received: bool| {
            move |talk: &mut Talk, way: usize| {
                (0..14).for_each(|_| talk.send(way, Mid::DATA, "", 0));
                talk.receive_all(1 - way);
                talk.send(1 - way, Mid::DATA, "", 0);
                if received {
                    talk.receive_all(way);
                }
                talk.send(way, Mid::DATA, "", 10);
            }
        };
        proves_each_way(requirement!("SDP-10.5-5"), update(false), update(true));
        proves_each_way(requirement!("SDP-10.3-4"), update(false), update(true));
    }

    #[test]
    fn the_last_credit_only_grants_credit() {
        for id in [requirement!("SDP-10.5-7"), requirement!("SDP-10.5-2"), requirement!("SDP-10.5-1")] {
            proves_each_way(id, spends(15, 0, false), spends(15, 0, true));
        }
        proves_each_way(requirement!("SDP-10.5-7"), spends(15, 1, true), spends(15, 0, true));
    }

    #[test]
    fn two_credits_are_not_for_payload() {
        for id in [requirement!("SDP-10.5-8"), requirement!("SDP-10.5-3"), requirement!("SDP-10.5-1")] {
            proves_each_way(id, spends(14, 1, false), spends(14, 0, false));
            proves_each_way(id, spends(14, 1, false), spends(13, 1, false));
        }
    }

    #[test]
    fn mseq_rises_with_each_send() {
        let skips = |skip: u32| {
            move |talk: &mut Talk, way: usize| {
                talk.send(way, Mid::DATA, "", 0);
                talk.mseq[way] += skip;
                talk.send(way, Mid::DATA, "", 0);
            }
        };
        proves_each_way(requirement!("SDP-10.1-1"), skips(1), skips(0));
        let missing = |talk: &mut Talk, way: usize| {
            talk.send(way, Mid::DATA, "", 0);
            talk.lose(way, Mid::DATA, "", 0);
            talk.send(way, Mid::DATA, "", 0);
        };
        proves_each_way(requirement!("SDP-10.1-1"), skips(1), missing);
    }

    #[test]
    fn buffers_do_not_vanish() {
        let offers = |bufs: u16| {
            move |talk: &mut Talk, way: usize| {
                talk.send(way, Mid::DATA, "", 0);
                talk.send(1 - way, Mid::DATA, "", 0);
                talk.receive_all(way);
                talk.bufs = bufs;
                talk.send(way, Mid::DATA, "", 0);
            }
        };
        proves_each_way(requirement!("SDP-10-1"), offers(14), offers(15));
    }
}
