//! Checks SuspComm and SuspCommAck, which an endpoint uses when another process takes over a socket
//! (sections 6.5 and 13 of the SDP draft).

use weft_core::requirement;
use weft_core::wire::rdmap::Opcode;
use weft_core::wire::sdp::{Mid, RawSuspComm};

use super::view::SdpView;
use crate::follow::ConnectionState;
use crate::parse::{SegmentView, ULPDU_AT, Unit};
use crate::rules::rule::{Check, Findings, Rule};

/// The RDMA operations that SDP starts: RDMA Write and Read Request.
const RDMA: u16 = 1 << Opcode::WRITE.0 | 1 << Opcode::READ_REQUEST.0;

pub(super) static FIELDS: Rule = Check::Sdp(fields).covers(requirements![
    "SDP-6.5.1-2",
    "SDP-6.5.1.2-1",
    "SDP-6.5.1.3-1",
    "SDP-13.1.1-6",
    "SDP-13.1-2"
]);

pub(super) static NO_MESSAGES: Rule = Check::Sdp(no_messages).covers(requirements![
    "SDP-6.5.2-2",
    "SDP-13.1-2",
    "SDP-13.1.1-8",
    "SDP-13.1.1-12",
    "SDP-13.1.2-1"
]);

pub(super) static NO_RDMA: Rule =
    Check::Opcode(RDMA, no_rdma).covers(requirements!["SDP-6.5.2-2", "SDP-13.1-2", "SDP-13.1.1-9", "SDP-13.1.1-13"]);

pub(super) static RDMA_REPORTED: Rule =
    Check::Sdp(rdma_reported).covers(requirements!["SDP-13-2", "SDP-13.1-2", "SDP-13.1.1-5", "SDP-13.1.1-10"]);

fn fields(_: &ConnectionState, unit: &Unit<'_>, view: &SdpView<'_>, findings: &mut Findings<'_>) {
    let Some(raw) = view.extension_of::<RawSuspComm>(Mid::SUSP_COMM) else { return };
    let (first, port, second) = (raw.constant1.get(), raw.port.get(), raw.constant2.get());
    if first != 0 {
        findings.report(requirement!("SDP-6.5.1.2-1"), unit, 16..20, "Constant1 0", first.to_string());
    }
    if second != 1 {
        let range = view.range(22..24);
        findings.report(requirement!("SDP-6.5.1.3-1"), unit, range, "Constant2 1", second.to_string());
        if port == 1 {
            let expected = "the port first, then the value 1 of Constant2";
            let found = format!("first 1, then {second}");
            findings.report(requirement!("SDP-6.5.1-2"), unit, 20..24, expected, found);
        }
    }
    if port == 0 {
        let ids = requirements!["SDP-13.1.1-6", "SDP-13.1-2"];
        findings.report_each(ids, unit, view.range(20..22), "the port that the peer connects to", "port 0");
    }
}

fn no_messages(_: &ConnectionState, unit: &Unit<'_>, view: &SdpView<'_>, findings: &mut Findings<'_>) {
    let (mid, sender) = (view.mid(), view.sender_state());
    let range = view.range(3..4);
    if sender.sent.has(Mid::SUSP_COMM_ACK) {
        let ids = requirements!["SDP-6.5.2-2", "SDP-13.1.1-12"];
        findings.report_each(ids, unit, range, "no message after the sender's own SuspCommAck", &mid.to_string());
    } else if sender.sent.has(Mid::SUSP_COMM) {
        // If two SuspComms cross, the Connecting Peer answers (an interpretation of section
        // 13.1.2).
        let ids = match mid {
            Mid::SUSP_COMM_ACK if view.direction == view.state.connecting => return,
            Mid::SUSP_COMM_ACK => requirements!["SDP-13.1.2-1", "SDP-13.1.1-8", "SDP-13.1-2"],
            _ => requirements!["SDP-13.1.1-8", "SDP-13.1-2"],
        };
        findings.report_each(ids, unit, range, "no message after the sender's own SuspComm", &mid.to_string());
    }
}

fn no_rdma(state: &ConnectionState, unit: &Unit<'_>, view: &SegmentView<'_>, findings: &mut Findings<'_>) {
    let Some(sdp) = state.context().sdp.as_deref() else { return };
    let sent = sdp.peers[unit.direction()].sent;
    let (ids, what) = if sent.has(Mid::SUSP_COMM_ACK) {
        (requirements!["SDP-13.1.1-13", "SDP-6.5.2-2"], "SuspCommAck")
    } else if sent.has(Mid::SUSP_COMM) {
        (requirements!["SDP-13.1.1-9", "SDP-13.1-2"], "SuspComm")
    } else {
        return;
    };
    let expected = format!("no RDMA after the sender's own {what}");
    findings.report_each(ids, unit, ULPDU_AT..ULPDU_AT + view.header_len, &expected, &view.opcode().to_string());
}

/// Reports an endpoint that suspends the connection before the endpoint has reported all its RDMA
/// Writes and Reads.
fn rdma_reported(_: &ConnectionState, unit: &Unit<'_>, view: &SdpView<'_>, findings: &mut Findings<'_>) {
    let ids = match view.mid() {
        Mid::SUSP_COMM => requirements!["SDP-13-2", "SDP-13.1.1-5", "SDP-13.1-2"],
        Mid::SUSP_COMM_ACK => requirements!["SDP-13-2", "SDP-13.1.1-10"],
        _ => return,
    };
    let sender = view.sender_state();
    if sender.certain && !sender.held_back && sender.moved.is_some_and(|moved| moved.in_process) {
        let expected = "before this message, an RdmaWrCompl or RdmaRdCompl for all data that RDMA moved";
        findings.report_each(ids, unit, view.range(3..4), expected, "RDMA operations that no message reports");
    }
}

#[cfg(test)]
mod tests {
    use weft_core::requirement;
    use weft_core::wire::sdp::Mid;

    use crate::rules::sdp::sdp_script::advert_of;
    use crate::rules::sdp::testing::proves;
    use crate::testing::sdp::{STAG, SdpScript, VA, advert, word};

    const SUSP_COMM: &str = "00000000 1388 0001";

    fn suspends(header: &'static str) -> impl Fn(&mut SdpScript) {
        move |script: &mut SdpScript| script.send(0, Mid::SUSP_COMM, header, 0)
    }

    #[test]
    fn constants_and_a_port() {
        let right = suspends(SUSP_COMM);
        proves(requirement!("SDP-6.5.1.2-1"), suspends("00000001 1388 0001"), &right);
        proves(requirement!("SDP-6.5.1.3-1"), suspends("00000000 1388 0000"), &right);
        proves(requirement!("SDP-6.5.1-2"), suspends("00000000 0001 1388"), suspends("00000000 0001 0001"));
        proves(requirement!("SDP-13.1.1-6"), suspends("00000000 0000 0001"), &right);
        proves(requirement!("SDP-13.1-2"), suspends("00000000 0000 0001"), right);
    }

    /// The Accepting Peer sends SuspComm, and the Connecting Peer answers with SuspCommAck. The
    /// peer that sends in `direction` also sends a message with `mid`. If `before` is true, this
    /// message comes before the SuspComm. Otherwise it comes after the SuspCommAck.
    fn suspended(direction: usize, mid: Mid, before: bool) -> impl Fn(&mut SdpScript) {
        move |script: &mut SdpScript| {
            let more = |script: &mut SdpScript| script.send(direction, mid, "", 0);
            if before {
                more(script);
                script.both_receive_all();
            }
            script.send(1, Mid::SUSP_COMM, SUSP_COMM, 0);
            script.receive_all(0);
            script.send(0, Mid::SUSP_COMM_ACK, "", 0);
            if !before {
                more(script);
            }
        }
    }

    #[test]
    fn sends_no_message_after_suspension() {
        for id in [requirement!("SDP-6.5.2-2"), requirement!("SDP-13.1.1-12")] {
            proves(id, suspended(0, Mid::DATA, false), suspended(0, Mid::DATA, true));
        }
        for id in [requirement!("SDP-13.1.1-8"), requirement!("SDP-13.1-2")] {
            proves(id, suspended(1, Mid::DATA, false), suspended(1, Mid::DATA, true));
        }
        let crossing = |answers: usize| {
            move |script: &mut SdpScript| {
                script.send(0, Mid::SUSP_COMM, SUSP_COMM, 0);
                script.send(1, Mid::SUSP_COMM, SUSP_COMM, 0);
                script.both_receive_all();
                script.send(answers, Mid::SUSP_COMM_ACK, "", 0);
            }
        };
        proves(requirement!("SDP-13.1.2-1"), crossing(1), crossing(0));
        proves(requirement!("SDP-13.1.1-8"), crossing(1), crossing(0));
    }

    /// The Accepting Peer sends a SrcAvail in Pipelined Mode. Then the steps `what` follow.
    fn advertised(what: impl Fn(&mut SdpScript)) -> impl Fn(&mut SdpScript) {
        move |script: &mut SdpScript| {
            script.send(1, Mid::MODE_CHANGE, &word(4), 0);
            script.send(1, Mid::SRC_AVAIL, &advert(9000, None), 0);
            script.both_receive_all();
            what(script);
        }
    }

    fn susp_comm_of(direction: usize) -> impl Fn(&mut SdpScript) {
        move |script: &mut SdpScript| {
            script.send(direction, Mid::SUSP_COMM, SUSP_COMM, 0);
            script.both_receive_all();
        }
    }

    fn reads(script: &mut SdpScript) {
        script.reads(0, STAG, VA, 100);
    }

    fn reports(script: &mut SdpScript) {
        script.send(0, Mid::RDMA_RD_COMPL, &word(100), 0);
    }

    #[test]
    fn starts_no_rdma_after_suspension() {
        let read = |suspends_first: bool| {
            advertised(move |script| {
                if suspends_first {
                    susp_comm_of(0)(script);
                    reads(script);
                } else {
                    reads(script);
                    reports(script);
                    susp_comm_of(0)(script);
                }
            })
        };
        proves(requirement!("SDP-13.1.1-9"), read(true), read(false));
        let acknowledged = |acknowledges_first: bool| {
            advertised(move |script| {
                susp_comm_of(1)(script);
                if acknowledges_first {
                    script.send(0, Mid::SUSP_COMM_ACK, "", 0);
                    reads(script);
                } else {
                    reads(script);
                    reports(script);
                    script.send(0, Mid::SUSP_COMM_ACK, "", 0);
                }
            })
        };
        proves(requirement!("SDP-13.1.1-13"), acknowledged(true), acknowledged(false));
        proves(requirement!("SDP-6.5.2-2"), acknowledged(true), acknowledged(false));
    }

    #[test]
    fn reports_rdma_before_suspension() {
        let suspends = |is_reported: bool| {
            advertised(move |script| {
                reads(script);
                if is_reported {
                    reports(script);
                }
                susp_comm_of(0)(script);
            })
        };
        for id in [requirement!("SDP-13-2"), requirement!("SDP-13.1.1-5")] {
            proves(id, suspends(false), suspends(true));
        }
        let answers = |is_reported: bool| {
            advertised(move |script| {
                reads(script);
                susp_comm_of(1)(script);
                if is_reported {
                    reports(script);
                }
                script.send(0, Mid::SUSP_COMM_ACK, "", 0);
            })
        };
        proves(requirement!("SDP-13.1.1-10"), answers(false), answers(true));
        // Other rules report a wrong Len, and a Read from another buffer.
        let wrong_len = advertised(|script| {
            reads(script);
            script.send(0, Mid::RDMA_RD_COMPL, &word(0), 0);
            susp_comm_of(0)(script);
        });
        let other_buffer = advertised(|script| {
            script.reads(0, STAG + 1, VA, 100);
            reports(script);
            susp_comm_of(0)(script);
        });
        proves(requirement!("SDP-13-2"), suspends(false), wrong_len);
        proves(requirement!("SDP-13-2"), suspends(false), other_buffer);
        // Two SrcAvails are read, and `count` of them are reported.
        let two = |count: usize| {
            advertised(move |script| {
                script.send(1, Mid::SRC_AVAIL, &advert_of(2, 100, None), 0);
                script.both_receive_all();
                script.reads(0, STAG, VA, 9000);
                script.reads(0, 2, VA, 100);
                for len in &[9000, 100][..count] {
                    script.send(0, Mid::RDMA_RD_COMPL, &word(*len), 0);
                }
                susp_comm_of(0)(script);
            })
        };
        proves(requirement!("SDP-13-2"), two(1), two(2));
    }
}
