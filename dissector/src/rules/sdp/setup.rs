//! Checks the order of the first messages of a connection, and whether streaming mode, private data
//! or Sends carry them (sections 5, 6.2, 6.2.1 and 8.1.1 of the SDP draft).
//!
//! The draft does not define a Hello in the private data of an MPA Request, but implementations
//! send such a Hello. So a finding about such a Hello is a note.

use weft_core::requirement;
use weft_core::wire::sdp::{Mid, RawBsdh, RawHeader, RawHelloAck};

use super::figure::is_first;
use super::view::SdpView;
use crate::direction::Direction;
use crate::follow::{ConnectionState, Excess};
use crate::parse::{Carrier, Kind, STREAMING_HEAD, Unit};
use crate::rules::rule::{Check, Findings, Rule};

pub(super) static ORDER: Rule = Check::Sdp(order).covers(requirements![
    "SDP-5-3",
    "SDP-6.1.1-2",
    "SDP-6.1.1-3",
    "SDP-6.2-1",
    "SDP-6.2.2-3",
    "SDP-8.1.1-2",
    "SDP-8.1.1-4",
    "SDP-8.1.1-12"
]);

pub(super) static TOO_EARLY: Rule = Check::End(too_early).covers(requirements!["SDP-8.1.1-4", "SDP-8.1.1-13"]);

pub(super) static FRAMED: Rule =
    Check::Other(framed).covers(requirements!["SDP-6.2.1-1", "SDP-8.1.1-1", "SDP-8.1.1-41"]);

pub(super) static COMBINED_FIRST: Rule =
    Check::Sdp(combined_first).covers(requirements!["SDP-8.1.1-29", "SDP-8.1.1-39"]);

pub(super) static DEPTH: Rule = Check::End(depth).covers(requirements![
    "SDP-6.2.1.7-1",
    "SDP-6.2.2.6-1",
    "SDP-8.1.1-9",
    "SDP-8.1.1-25",
    "SDP-8.1.1-27",
    "SDP-8.1.1-38"
]);

fn order(_: &ConnectionState, unit: &Unit<'_>, view: &SdpView<'_>, findings: &mut Findings<'_>) {
    let (state, mid, range) = (view.state, view.mid(), view.range(3..4));
    let from_connecting = view.direction == state.connecting;
    if view.carrier == Carrier::PrivateData && from_connecting {
        let ids = requirements!["SDP-5-3", "SDP-8.1.1-2", "SDP-8.1.1-12"];
        let found = "a Hello in the private data of an MPA Request";
        let expected = "the Hello as plain TCP data, before iWARP starts";
        findings.as_note().report_each(ids, unit, 0..view.size(), expected, found);
    }
    let Some(sent) = state.latest.send else { return };
    if view.replaces_hello_ack() {
        let expected = "a HelloAck as the first message of the Accepting Peer";
        let ids = requirements!["SDP-6.2-1", "SDP-8.1.1-4"];
        findings.report_each(ids, unit, range.clone(), expected, &mid.to_string());
        if view.size() == RawBsdh::LEN + RawHelloAck::LEN {
            // The message has the size of a HelloAck, so it is probably a HelloAck with a wrong MID.
            let ids = requirements!["SDP-6.2.2-3", "SDP-6.1.1-3"];
            findings.report_each(ids, unit, range, expected, &mid.to_string());
        }
    } else if mid == Mid::HELLO {
        let ids = requirements!["SDP-8.1.1-2", "SDP-8.1.1-12", "SDP-6.1.1-2", "SDP-5-3"];
        findings.report_each(ids, unit, range, "a Hello as plain TCP data, before iWARP starts", "a Hello in a Send");
    } else if mid == Mid::HELLO_ACK && from_connecting {
        let expected = "a HelloAck from the Accepting Peer only";
        findings.report(requirement!("SDP-6.1.1-3"), unit, range, expected, "a HelloAck from the Connecting Peer");
    } else if mid == Mid::HELLO_ACK
        && state.closing.hello_ack.is_some_and(|first| first < unit.frame)
        && sent.follows
        && !sent.is_first()
    {
        let expected = "one HelloAck, as the first message of the Accepting Peer";
        findings.report(requirement!("SDP-6.2-1"), unit, range, expected, "another HelloAck");
    }
}

/// Reports a Connecting Peer that sends a message before it has received the HelloAck.
fn too_early(state: &ConnectionState, findings: &mut Findings<'_>) {
    let Some(sdp) = state.context().sdp.as_deref().filter(|sdp| sdp.complete) else { return };
    if sdp.carrier == Carrier::PrivateData {
        // The Hello was in the private data of the MPA Request, so the Connecting Peer is the
        // Initiator, and MPA requires that the Initiator sends first.
        return;
    }
    let (Some((frame, header)), Some(end), tcp) = (sdp.first_message, sdp.hello_ack_end, &state.mpa.tcp) else {
        return;
    };
    let (connecting, accepting) = (sdp.connecting, sdp.connecting.peer());
    if tcp[connecting].had_received(frame, &tcp[accepting], end) == Some(false) {
        let ids = requirements!["SDP-8.1.1-13", "SDP-8.1.1-4"];
        let expected = "no iWARP message until the HelloAck arrives";
        findings.report_each_in_frame(ids, connecting, header, expected, "a message before the HelloAck");
    }
}

fn framed(state: &ConnectionState, unit: &Unit<'_>, findings: &mut Findings<'_>) {
    let Some(sdp) = state.context().sdp.as_deref() else { return };
    let (direction, octets) = (unit.direction(), unit.locate_first(0..STREAMING_HEAD));
    match unit.kind {
        // If `sender_error` is `None`, octets of this unit, or octets before this unit, are
        // missing.
        Kind::Unparsed { len } if unit.sender_error.is_some() && state.traffic.directions[direction].lost_framing => {
            let found = format!("{len} bytes that are not an FPDU");
            let mut stray = |id| findings.report_in_frame(id, direction, octets, "only FPDUs", found.clone());
            stray(requirement!("SDP-8.1.1-1"));
            if sdp.closing.hello_ack.is_some() {
                stray(requirement!("SDP-8.1.1-41"));
            }
        }
        Kind::Streaming { len, .. }
            if sdp.carrier == Carrier::Streaming && direction == sdp.connecting && !unit.incomplete =>
        {
            let (expected, found) = ("only iWARP after the Hello", format!("{len} bytes that are not iWARP"));
            findings.report_in_frame(requirement!("SDP-6.2.1-1"), direction, octets, expected, found);
        }
        _ => {}
    }
}

/// Reports a SrcAvail without payload, or a SinkAvail, before any ModeChange. The first Mode is
/// Combined Mode, which does not allow these messages.
fn combined_first(_: &ConnectionState, unit: &Unit<'_>, view: &SdpView<'_>, findings: &mut Findings<'_>) {
    let (expected, found) = match view.mid() {
        Mid::SRC_AVAIL if view.payload_len() == 0 => ("payload in the SrcAvail", "no payload"),
        Mid::SINK_AVAIL => ("no SinkAvail", "a SinkAvail"),
        _ => return,
    };
    if view.sender_state().certain && is_first(view.sender_state()) {
        let from_connecting = view.direction == view.state.connecting;
        let id = if from_connecting { requirement!("SDP-8.1.1-39") } else { requirement!("SDP-8.1.1-29") };
        let expected = format!("{expected}, because Combined Mode is the first Mode");
        findings.report(id, unit, view.range(3..4), &expected, found);
    }
}

/// Reports more unanswered Read Requests than the requester's LocORD or its peer's LocIRD allow.
///
/// This rule runs at the end of the capture. If octets of one direction are missing until their
/// retransmission, the dissector processes that direction later than the other direction. Therefore
/// the order of Responses and Read Requests is known only at the end.
fn depth(state: &ConnectionState, findings: &mut Findings<'_>) {
    let Some(sdp) = state.context().sdp.as_deref().filter(|_| state.traffic.is_complete()) else { return };
    for (direction, reads) in Direction::BOTH.into_iter().zip(&state.mpa.reads) {
        let is_in_order = |excess: &Excess| !state.mpa.tcp[direction.peer()].may_be_late_at(excess.frame);
        let is_connecting = direction == sdp.connecting;
        let limits = [(reads.loc_ord.max, "LocORD of the requester"), (reads.loc_ird.max, "LocIRD of the responder")];
        for (at, (excess, (limit, whose))) in reads.sdp_excess().into_iter().zip(limits).enumerate() {
            // Another rule reports a limit of 0.
            let limit = limit.filter(|limit| *limit > 0);
            let (Some(excess), Some(limit)) = (excess.filter(is_in_order), limit) else { continue };
            let expected = format!("at most {limit} unanswered Read Requests, the {whose}");
            let ids = match (at, is_connecting) {
                (0, true) => requirements!["SDP-6.2.1.7-1", "SDP-8.1.1-9"],
                (0, false) => requirements!["SDP-6.2.2.6-1", "SDP-8.1.1-25"],
                (_, true) => requirements!["SDP-8.1.1-38"],
                (_, false) => requirements!["SDP-8.1.1-27"],
            };
            let found = format!("{} unanswered Read Requests", excess.outstanding);
            findings.report_each_in_frame(ids, direction, excess.header, &expected, &found);
        }
    }
}

#[cfg(test)]
mod tests {
    use weft_core::requirement;
    use weft_core::wire::sdp::{FieldOrder, Mid};

    use crate::rules::sdp::testing::{proves, proves_of};
    use crate::testing::sdp::{STAG, SdpScript, VA, advert, hello_ack, ordered, word};
    use crate::testing::{Wire, fpdu, hello, reply, send_of, startup_frame};

    fn upon_private_data(order: FieldOrder) -> SdpScript {
        let mut wire = Wire::connected();
        wire.send(0, &startup_frame(0x40, 1, &ordered(order, hello())));
        wire.send(1, &reply());
        let mut script = SdpScript::after_hello(wire, order);
        // The Initiator sends the first FPDU.
        script.send(0, Mid::DATA, "", 0);
        script.send_octets(5, 1, &hello_ack());
        script
    }

    fn upon_tcp(order: FieldOrder) -> SdpScript {
        let mut wire = Wire::connected();
        wire.send(0, &[ordered(order, hello()), startup_frame(0x40, 1, &[])].concat());
        wire.send(1, &reply());
        let mut script = SdpScript::after_hello(wire, order);
        script.send_octets(5, 1, &hello_ack());
        script
    }

    #[test]
    fn hello_is_plain_tcp_data() {
        for id in [requirement!("SDP-5-3"), requirement!("SDP-8.1.1-2"), requirement!("SDP-8.1.1-12")] {
            proves_of(id, upon_private_data, upon_tcp);
        }
        assert_eq!(upon_private_data(FieldOrder::Figure).wire.errors(), []);
        let again = |script: &mut SdpScript| script.send_octets(3, 0, &hello());
        for id in [requirement!("SDP-6.1.1-2"), requirement!("SDP-8.1.1-2")] {
            proves(id, again, |script| script.send(0, Mid::DATA, "", 0));
        }
    }

    /// The Accepting Peer answers with a message of the size of a HelloAck and this MID. A message
    /// with MID ff is a Data without payload.
    fn answered(mid: u8) -> impl Fn(FieldOrder) -> SdpScript {
        move |order: FieldOrder| {
            let mut script = SdpScript::with_hello(order, |_| {});
            let mut octets = hello_ack();
            octets[3] = mid;
            if mid == 0xff {
                octets.truncate(16);
                octets[7] = 16;
            }
            script.send_octets(if mid == 1 { 5 } else { 3 }, 1, &octets);
            script
        }
    }

    #[test]
    fn first_answer_is_a_hello_ack() {
        for id in [requirement!("SDP-6.2-1"), requirement!("SDP-8.1.1-4")] {
            proves_of(id, answered(0xff), answered(1));
        }
        // MIDs 2 and 0 are in a message with the size of a HelloAck. The Data is not a HelloAck.
        for id in [requirement!("SDP-6.2.2-3"), requirement!("SDP-6.1.1-3")] {
            proves_of(id, answered(2), answered(1));
            proves_of(id, answered(0), answered(0xff));
        }
    }

    #[test]
    fn first_answer_is_no_hello() {
        // The first message of the Accepting Peer is not a Hello in a Send.
        let again = |order: FieldOrder| {
            let mut script = SdpScript::open(order);
            script.send_octets(3, 0, &hello());
            script
        };
        for id in [requirement!("SDP-5-3"), requirement!("SDP-8.1.1-12"), requirement!("SDP-6.1.1-2")] {
            proves_of(id, again, answered(0));
        }
    }

    #[test]
    fn only_the_accepting_peer_sends_a_hello_ack() {
        proves(
            requirement!("SDP-6.1.1-3"),
            |script| script.send_octets(5, 0, &hello_ack()),
            |script| {
                script.send(0, Mid::SEND_SM, "", 0);
            },
        );
    }

    #[test]
    fn there_is_one_hello_ack() {
        let again = |script: &mut SdpScript| script.send_octets(5, 1, &hello_ack());
        let data = |script: &mut SdpScript| script.send(1, Mid::DATA, "", 0);
        proves(requirement!("SDP-6.2-1"), again, data);
    }

    #[test]
    fn connecting_peer_waits_for_the_hello_ack() {
        let early = |is_early: bool| {
            move |order: FieldOrder| {
                let mut script = upon_tcp_without_answer(order);
                if is_early {
                    script.send(0, Mid::DATA, "", 0);
                    script.send_octets(5, 1, &hello_ack());
                } else {
                    script.send_octets(5, 1, &hello_ack());
                    script.send(0, Mid::DATA, "", 0);
                }
                script
            }
        };
        proves_of(requirement!("SDP-8.1.1-13"), early(true), early(false));
        proves_of(requirement!("SDP-8.1.1-4"), early(true), early(false));
        // The HelloAck arrived first, but the capture has the two frames in the wrong order.
        let mut script = early(false)(FieldOrder::Figure);
        script.wire = script.wire.changed(|mut frames| {
            let last = frames.len() - 1;
            frames.swap(last - 1, last);
            frames
        });
        assert_eq!(script.wire.errors(), []);
    }

    fn upon_tcp_without_answer(order: FieldOrder) -> SdpScript {
        let mut wire = Wire::connected();
        wire.send(0, &[ordered(order, hello()), startup_frame(0x40, 1, &[])].concat());
        wire.send(1, &reply());
        SdpScript::after_hello(wire, order)
    }

    #[test]
    fn only_iwarp_follows_the_hello() {
        let with = |more: &'static [u8]| {
            move |order: FieldOrder| {
                let mut wire = Wire::connected();
                wire.send(0, &[&ordered(order, hello()), more].concat());
                wire.send(1, &startup_frame(0x40, 1, &[]));
                wire.send(0, &reply());
                let mut script = SdpScript::after_hello(wire, order);
                script.send_octets(5, 1, &hello_ack());
                script
            }
        };
        proves_of(requirement!("SDP-6.2.1-1"), with(b"four"), with(b""));
        let strays = |script: &mut SdpScript| {
            script.send(0, Mid::DATA, "", 0);
            script.wire.send(0, &[0xff; 300]);
        };
        let data = |script: &mut SdpScript| {
            script.send(0, Mid::DATA, "", 0);
            script.send(0, Mid::DATA, "", 300);
        };
        proves(requirement!("SDP-8.1.1-1"), strays, data);
        proves(requirement!("SDP-8.1.1-41"), strays, data);
    }

    /// The snap length cuts an FPDU to one octet.
    #[test]
    fn an_octet_of_a_cut_fpdu_is_not_a_stray() {
        let mut script = SdpScript::bare();
        script.send(0, Mid::DATA, "", 0);
        let octets = fpdu(&send_of(2, 60));
        script.wire.send(0, &octets[..1]);
        script.wire.lose(0, &octets[1..]);
        script.send(1, Mid::DATA, "", 0);
        (0..2).for_each(|direction| script.wire.fin(direction));
        let found = script.wire.findings();
        let ids = [requirement!("SDP-8.1.1-1"), requirement!("SDP-8.1.1-41")];
        assert!(found.iter().all(|finding| !ids.contains(&finding.requirement)), "{found:#?}");
    }

    #[test]
    fn combined_mode_is_the_first() {
        let src_avail = |direction: usize, payload: usize| {
            move |script: &mut SdpScript| script.send(direction, Mid::SRC_AVAIL, &advert(9000, None), payload)
        };
        proves(requirement!("SDP-8.1.1-39"), src_avail(0, 0), src_avail(0, 1));
        proves(requirement!("SDP-8.1.1-29"), src_avail(1, 0), src_avail(1, 1));
        let sink_avail = |changes: bool| {
            move |script: &mut SdpScript| {
                if changes {
                    script.send(0, Mid::MODE_CHANGE, &word(4), 0);
                    script.receive_all(1);
                }
                script.send(1, Mid::SINK_AVAIL, &advert(9000, Some(0)), 0);
            }
        };
        proves(requirement!("SDP-8.1.1-29"), sink_avail(false), sink_avail(true));
        // The ModeChange is about the other half-connection.
        let other_half = |script: &mut SdpScript| {
            script.send(1, Mid::MODE_CHANGE, &word(4), 0);
            script.send(1, Mid::SINK_AVAIL, &advert(9000, Some(0)), 0);
        };
        proves(requirement!("SDP-8.1.1-29"), sink_avail(false), other_half);
    }

    /// Both LocIRD and LocORD are 4 in Hello and HelloAck.
    #[test]
    fn no_more_reads_than_announced() {
        let reads = |direction: usize, count: usize| {
            move |script: &mut SdpScript| {
                script.send(1 - direction, Mid::SRC_AVAIL, &advert(100, None), 1);
                script.receive_all(direction);
                script.send(direction, Mid::DATA, "", 0);
                for _ in 0..count {
                    script.request_read(direction, STAG, VA, 10);
                }
            }
        };
        for id in [requirement!("SDP-6.2.1.7-1"), requirement!("SDP-8.1.1-9"), requirement!("SDP-8.1.1-38")] {
            proves(id, reads(0, 5), reads(0, 4));
        }
        for id in [requirement!("SDP-6.2.2.6-1"), requirement!("SDP-8.1.1-25"), requirement!("SDP-8.1.1-27")] {
            proves(id, reads(1, 5), reads(1, 4));
        }
        // Another rule reports a LocORD of 0 in the HelloAck.
        let with_loc_ord = |loc_ord: u8| {
            move |order: FieldOrder| {
                let mut script = SdpScript::with_hello(order, |_| {});
                let mut octets = hello_ack();
                octets[27] = loc_ord;
                script.send_octets(5, 1, &octets);
                reads(1, 2)(&mut script);
                script
            }
        };
        proves_of(requirement!("SDP-6.2.2.6-1"), with_loc_ord(1), with_loc_ord(0));
        // Each Read Request follows the Response to the previous request. Without the SYN-ACK, the
        // dissector processes all Responses last.
        let mut script = upon_private_data(FieldOrder::Figure);
        script.send(0, Mid::SRC_AVAIL, &advert(100, None), 1);
        script.both_receive_all();
        script.send(1, Mid::DATA, "", 0);
        (0..6).for_each(|at| script.reads(1, STAG, VA + 10 * at, 10));
        let without_syn_ack = script.wire.changed(|mut frames| {
            frames.remove(1);
            frames
        });
        assert_eq!(without_syn_ack.errors(), []);
    }
}
