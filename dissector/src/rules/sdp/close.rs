//! Checks DisConn, AbortConn and the end of TCP (sections 6.2, 6.2.3, 6.2.4, 8.2.1 and 8.2.2 of the
//! SDP draft).

use weft_core::requirement;
use weft_core::wire::sdp::Mid;

use super::view::SdpView;
use crate::direction::Direction;
use crate::follow::ConnectionState;
use crate::parse::Unit;
use crate::rules::rule::{Check, Findings, Rule};

pub(super) static AFTER_DIS_CONN: Rule =
    Check::Sdp(after_dis_conn).covers(requirements!["SDP-6.2.3-2", "SDP-8.2.1-4", "SDP-8.2.1-9", "SDP-8.2.1-32"]);

pub(super) static DIS_CONN: Rule = Check::Sdp(dis_conn).covers(requirements!["SDP-8.2.1-5", "SDP-8.2.1-7"]);

pub(super) static AFTER_ABORT_CONN: Rule = Check::Sdp(after_abort_conn).covers(requirements!["SDP-8.2.2-13"]);

pub(super) static ABORT_CONN: Rule = Check::Sdp(abort_conn).covers(requirements!["SDP-6.2.4-2"]);

pub(super) static END_OF_TCP: Rule = Check::End(end_of_tcp).covers(requirements!["SDP-6.2-2", "SDP-8.2.1-4"]);

fn after_dis_conn(_: &ConnectionState, unit: &Unit<'_>, view: &SdpView<'_>, findings: &mut Findings<'_>) {
    let (mid, sender) = (view.mid(), view.sender_state());
    if !sender.sent.has(Mid::DIS_CONN) || view.is_setup_message() {
        return;
    }
    let payload = if mid.may_carry_payload() { view.payload_len() } else { 0 };
    if payload > 0 || mid == Mid::SRC_AVAIL {
        let ids = requirements!["SDP-6.2.3-2", "SDP-8.2.1-9", "SDP-8.2.1-4"];
        let found = format!("{mid} with {payload} bytes");
        findings.report_each(ids, unit, view.range(3..4), "no ULP data after the sender's own DisConn", &found);
    }
    // After both endpoints have sent DisConn, the sender has to close TCP or send an AbortConn. A
    // message that only grants credit causes no finding.
    let is_credit = mid == Mid::DATA && payload == 0;
    if sender.certain && sender.received.has(Mid::DIS_CONN) && mid != Mid::ABORT_CONN && !is_credit {
        let expected = "the end of the connection after the second DisConn";
        findings.report(requirement!("SDP-8.2.1-32"), unit, view.range(3..4), expected, mid.to_string());
    }
}

/// Reports an endpoint that sends a second DisConn, or a DisConn before it has sent all its data.
fn dis_conn(_: &ConnectionState, unit: &Unit<'_>, view: &SdpView<'_>, findings: &mut Findings<'_>) {
    let sender = view.sender_state();
    if view.mid() != Mid::DIS_CONN {
        return;
    }
    if sender.sent.has(Mid::DIS_CONN) {
        let expected = "one DisConn from each endpoint";
        findings.report(requirement!("SDP-8.2.1-7"), unit, view.range(3..4), expected, "a second DisConn");
        return;
    }
    // If the sender has withdrawn data by a SrcAvailCancel, the sender does not have to send that
    // data.
    if let Some(open) = sender.src_avails.oldest.filter(|_| sender.certain && !sender.cancels.src_avail) {
        let expected = format!(
            "before the DisConn, an RdmaRdCompl (or a SendSm and Data) for the SrcAvail of frame {}",
            open.frame
        );
        let found = format!("a DisConn, although {} bytes of the SrcAvail are not transferred", open.left);
        findings.report(requirement!("SDP-8.2.1-5"), unit, view.range(3..4), &expected, found);
    }
}

fn after_abort_conn(_: &ConnectionState, unit: &Unit<'_>, view: &SdpView<'_>, findings: &mut Findings<'_>) {
    if view.sender_state().sent.has(Mid::ABORT_CONN) && !view.is_setup_message() {
        let expected = "the end of TCP after the sender's own AbortConn";
        findings.report(requirement!("SDP-8.2.2-13"), unit, view.range(3..4), expected, view.mid().to_string());
    }
}

fn abort_conn(_: &ConnectionState, unit: &Unit<'_>, view: &SdpView<'_>, findings: &mut Findings<'_>) {
    let sender = view.sender_state();
    if view.mid() == Mid::ABORT_CONN && sender.certain && !sender.sent.has(Mid::DIS_CONN) {
        let expected = "a DisConn from the same endpoint before the AbortConn";
        findings.report(requirement!("SDP-6.2.4-2"), unit, view.range(3..4), expected, "AbortConn without DisConn");
    }
}

/// Reports an endpoint that sends the first FIN without the messages that must precede a FIN.
fn end_of_tcp(state: &ConnectionState, findings: &mut Findings<'_>) {
    let Some(sdp) = state.context().sdp.as_deref().filter(|sdp| sdp.complete) else { return };
    let (connection, directions, closing) = (&state.connection, &state.traffic.directions, &sdp.closing);
    let is_plain = closing.hello_ack.is_some()
        && closing.abort_conn == [None; 2]
        && closing.susp_comm.iter().all(Option::is_none)
        && connection.rst == [None; 2]
        && directions.iter().all(|side| side.terminate.is_none());
    let (first, fin) = match connection.fin {
        [Some(forth), Some(back)] if back < forth => (Direction::Reverse, back),
        [Some(forth), _] => (Direction::Forward, forth),
        [None, Some(back)] => (Direction::Reverse, back),
        [None, None] => return,
    };
    let peer = first.peer();
    if !is_plain || state.mpa.tcp[peer].may_be_late_at(fin) || closing.dis_conn[peer].is_some() {
        return;
    }
    if closing.dis_conn[first].is_some() {
        let expected =
            "a DisConn from the peer, or an AbortConn from the sender, between the sender's DisConn and its FIN";
        findings.report_in_frame(requirement!("SDP-8.2.1-4"), first, fin, expected, "neither message");
    } else {
        // An endpoint that gives up the connection is allowed to close TCP at once (section 8.2.2).
        // It can use a FIN or a RST (an interpretation of the draft).
        let (expected, found) =
            ("DisConn before FIN, unless the endpoint gives up the connection", "no DisConn".to_owned());
        findings.as_note().report_in_frame(requirement!("SDP-6.2-2"), first, fin, expected, found);
    }
}

#[cfg(test)]
mod tests {
    use weft_core::requirement;
    use weft_core::wire::sdp::Mid;

    use crate::rules::sdp::sdp_script::{completes, src_avail};
    use crate::rules::sdp::testing::proves;
    use crate::testing::sdp::{STAG, SdpScript, VA, advert, word};

    /// Sends a DisConn, and then a message with `mid`.
    fn dis_conn_then(mid: Mid, extension: &'static str, payload: usize) -> impl Fn(&mut SdpScript) {
        move |script: &mut SdpScript| {
            script.send(0, Mid::DIS_CONN, "", 0);
            script.send(0, mid, extension, payload);
        }
    }

    #[test]
    fn no_data_follows_a_dis_conn() {
        let credit = dis_conn_then(Mid::DATA, "", 0);
        for id in [requirement!("SDP-6.2.3-2"), requirement!("SDP-8.2.1-9"), requirement!("SDP-8.2.1-4")] {
            proves(id, dis_conn_then(Mid::DATA, "", 1), &credit);
        }
        let src_avail = dis_conn_then(Mid::SRC_AVAIL, "00000064 11223344 0000000000001000", 0);
        proves(requirement!("SDP-6.2.3-2"), src_avail, dis_conn_then(Mid::SEND_SM, "", 0));
        assert_eq!(advert(100, None).trim_end(), "00000064 11223344 0000000000001000");
    }

    #[test]
    fn sends_one_dis_conn_after_all_data() {
        proves(requirement!("SDP-8.2.1-7"), dis_conn_then(Mid::DIS_CONN, "", 0), dis_conn_then(Mid::DATA, "", 0));
        let closes = |settle: fn(&mut SdpScript)| {
            move |script: &mut SdpScript| {
                src_avail(script, 0, 50, 10);
                settle(script);
                script.both_receive_all();
                script.send(0, Mid::DIS_CONN, "", 0);
            }
        };
        let read = closes(|script| {
            script.reads(1, STAG, VA + 10, 40);
            completes(script, 1, Mid::RDMA_RD_COMPL, 40);
        });
        let open = closes(|_| {});
        proves(requirement!("SDP-8.2.1-5"), open, read);
        let canceled = closes(|script| script.send(0, Mid::SRC_AVAIL_CANCEL, "", 0));
        proves(requirement!("SDP-8.2.1-5"), closes(|_| {}), canceled);
    }

    #[test]
    fn tcp_ends_after_an_abort_conn() {
        let aborts = |mids: &'static [Mid]| {
            move |script: &mut SdpScript| {
                script.send(0, Mid::DIS_CONN, "", 0);
                mids.iter().for_each(|mid| script.send(0, *mid, "", 0));
            }
        };
        let id = requirement!("SDP-8.2.2-13");
        proves(id, aborts(&[Mid::ABORT_CONN, Mid::DATA]), aborts(&[Mid::DATA, Mid::ABORT_CONN]));
        // The peer is allowed to send Data before it has received the AbortConn.
        let crossed = |script: &mut SdpScript| {
            aborts(&[Mid::ABORT_CONN])(script);
            script.send(1, Mid::DATA, "", 1);
        };
        proves(id, aborts(&[Mid::ABORT_CONN, Mid::ABORT_CONN]), crossed);
    }

    #[test]
    fn tcp_ends_after_both_dis_conns() {
        let both = |mid: Mid, extension: &'static str| {
            move |script: &mut SdpScript| {
                script.send(1, Mid::DIS_CONN, "", 0);
                script.receive_all(0);
                script.send(0, Mid::DIS_CONN, "", 0);
                script.send(0, mid, extension, 0);
            }
        };
        proves(requirement!("SDP-8.2.1-32"), both(Mid::MODE_CHANGE, "00000004"), both(Mid::ABORT_CONN, ""));
        assert_eq!(word(4), "00000004");
        // The DisConns cross. An endpoint is allowed to send messages until the peer's DisConn
        // arrives.
        let crossed = |script: &mut SdpScript| {
            script.send(1, Mid::DIS_CONN, "", 0);
            script.send(0, Mid::DIS_CONN, "", 0);
            script.send(0, Mid::SEND_SM, "", 0);
        };
        proves(requirement!("SDP-8.2.1-32"), both(Mid::SEND_SM, ""), crossed);
    }

    #[test]
    fn an_abort_conn_follows_a_dis_conn() {
        proves(
            requirement!("SDP-6.2.4-2"),
            |script| script.send(0, Mid::ABORT_CONN, "", 0),
            dis_conn_then(Mid::ABORT_CONN, "", 0),
        );
    }

    #[test]
    fn messages_before_the_end_of_tcp() {
        let ends = |messages: &'static [(usize, Mid)]| {
            move |script: &mut SdpScript| {
                for (direction, mid) in messages {
                    script.send(*direction, *mid, "", 0);
                    script.both_receive_all();
                }
                script.wire.fin(0);
                script.wire.fin(1);
            }
        };
        let graceful = ends(&[(0, Mid::DIS_CONN), (1, Mid::DIS_CONN)]);
        proves(requirement!("SDP-8.2.1-4"), ends(&[(0, Mid::DIS_CONN)]), graceful);
        let aborts = ends(&[(0, Mid::DIS_CONN), (0, Mid::ABORT_CONN)]);
        proves(requirement!("SDP-8.2.1-4"), ends(&[(0, Mid::DIS_CONN)]), aborts);
        proves(requirement!("SDP-6.2-2"), ends(&[]), graceful);
    }
}
