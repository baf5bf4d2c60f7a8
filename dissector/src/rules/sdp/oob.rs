//! Checks that each Out-Of-Band octet is announced in time, and arrives in a Data message (section
//! 9.5.3 of the SDP draft).

use weft_core::requirement;
use weft_core::wire::sdp::{FLAG_OOB_PEND, FLAG_OOB_PRES, Mid};

use super::view::SdpView;
use crate::follow::ConnectionState;
use crate::parse::Unit;
use crate::rules::rule::{Check, Findings, Rule};

/// Maximum number of octets between the announcement and the Out-Of-Band octet, not counting that
/// octet (an interpretation of the draft).
const MAX_DISTANCE: i64 = 65535;

pub(super) static ANNOUNCED: Rule =
    Check::Sdp(announced).covers(requirements!["SDP-9.5.3-4", "SDP-9.5.3-5", "SDP-9.5.3-6"]);

pub(super) static POSITION: Rule = Check::Sdp(position).covers(requirements!["SDP-9.5.3-8"]);

fn announced(state: &ConnectionState, unit: &Unit<'_>, view: &SdpView<'_>, findings: &mut Findings<'_>) {
    let sender = view.sender_state();
    let (flags, oob) = (view.bsdh.flags, sender.oob);
    if !sender.certain || oob.lost {
        return;
    }
    let range = view.range(2..3);
    if view.mid() == Mid::DIS_CONN && oob.count > 0 {
        // A user is allowed to withdraw announced octets before they are sent, and the capture does
        // not show whether a user did so. So the finding is a note.
        let expected = "one OOB_PEND for each Out-Of-Band byte, unless the user withdrew the byte";
        let found = format!("number of announced bytes that did not arrive before DisConn: {}", oob.count);
        findings.as_note().report(requirement!("SDP-9.5.3-4"), unit, range.clone(), expected, found);
    }
    let comes = view.mid() == Mid::DATA && flags & FLAG_OOB_PRES != 0;
    // The octet of the oldest announcement is too late if a Data message without OOB_PRES contains
    // the last allowed position. Later messages cause no finding.
    let is_late = |position: i64| oob.oldest.is_some_and(|at| position.saturating_sub(at) > MAX_DISTANCE);
    let passed = oob.position.saturating_add(i64::try_from(view.payload_len()).unwrap_or(i64::MAX));
    if !comes && view.mid() == Mid::DATA && is_late(passed) && !is_late(oob.position) {
        let expected = format!(
            "the Out-Of-Band byte within {MAX_DISTANCE} bytes after OOB_PEND, unless the user withdrew the byte"
        );
        let found = format!("{MAX_DISTANCE} bytes without the Out-Of-Band byte");
        findings.as_note().report(requirement!("SDP-9.5.3-6"), unit, range.clone(), &expected, found);
    }
    if !comes {
        return;
    }
    let at = if flags & FLAG_OOB_PEND != 0 { oob.oldest.or(Some(oob.position)) } else { oob.oldest };
    let Some(at) = at else {
        // On a resumed connection, it is possible that the Out-Of-Band octet was announced before
        // the suspension (section 13).
        if state.connection.resumes {
            return;
        }
        let expected = "OOB_PEND in this message or an earlier one";
        findings.report(requirement!("SDP-9.5.3-5"), unit, range, expected, "OOB_PRES without OOB_PEND");
        return;
    };
    let octets = i64::try_from(view.payload_len()).unwrap_or(i64::MAX);
    let between = oob.position.saturating_add(octets).saturating_sub(at).saturating_sub(1);
    if between > MAX_DISTANCE {
        let expected = format!("at most {MAX_DISTANCE} bytes between OOB_PEND and the Out-Of-Band byte");
        findings.report(requirement!("SDP-9.5.3-6"), unit, range, &expected, format!("{between} bytes"));
    }
}

fn position(_: &ConnectionState, unit: &Unit<'_>, view: &SdpView<'_>, findings: &mut Findings<'_>) {
    let present = view.bsdh.flags & FLAG_OOB_PRES != 0;
    if present && (view.mid() != Mid::DATA || view.payload_len() == 0) {
        let found = format!("{} with {} bytes after its header", view.mid(), view.payload_len());
        let expected = "the Out-Of-Band byte as the last byte of a Data message";
        findings.report(requirement!("SDP-9.5.3-8"), unit, view.range(2..3), expected, found);
    }
}

#[cfg(test)]
mod tests {
    use weft_core::requirement;
    use weft_core::wire::sdp::Mid;

    use crate::rules::sdp::sdp_script::{completes, pipelined, proves_each_way, sink_avail, src_avail};
    use crate::testing::sdp::{STAG, SdpScript, VA};

    const PRES: u8 = 1;
    const PEND: u8 = 2;

    fn send(script: &mut SdpScript, way: usize, flags: u8, payload: usize) {
        script.flags = flags;
        script.send(way, Mid::DATA, "", payload);
        script.flags = 0;
        script.both_receive_all();
    }

    #[test]
    fn it_is_announced_once() {
        let with = |before: &'static [u8], flags: u8| {
            move |script: &mut SdpScript, way: usize| {
                before.iter().for_each(|flags| send(script, way, *flags, 0));
                send(script, way, flags, 5);
                script.send(way, Mid::DIS_CONN, "", 0);
            }
        };
        proves_each_way(requirement!("SDP-9.5.3-5"), with(&[0], PRES), with(&[PEND], PRES));
        proves_each_way(requirement!("SDP-9.5.3-5"), with(&[0], PRES), with(&[0], PRES | PEND));
        proves_each_way(requirement!("SDP-9.5.3-4"), with(&[PEND, PEND], PRES), with(&[PEND], PRES));
    }

    /// By another interpretation of section 6.1.5, the first MSeq is 0. Then it is not clear what an
    /// MSeqAck of 0 acknowledges, but each later MSeqAck is clear.
    #[test]
    fn peers_that_count_from_0_are_judged() {
        let announced = |flags: u8| {
            move |script: &mut SdpScript, way: usize| {
                script.mseq = [u32::MAX; 2];
                for _ in 0..2 {
                    send(script, 0, 0, 1);
                    send(script, 1, 0, 1);
                }
                send(script, way, flags, 0);
                send(script, way, PRES, 5);
            }
        };
        proves_each_way(requirement!("SDP-9.5.3-5"), announced(0), announced(PEND));
    }

    /// The distance from the announcement to the Out-Of-Band octet includes advertised octets. In
    /// this test, the distance consists of the octets of the SrcAvails and the first four octets of
    /// the last message.
    #[test]
    fn it_is_not_announced_too_early() {
        let given_back = |script: &mut SdpScript, way: usize| {
            send(script, way, PEND, 0);
            src_avail(script, way, 65_532, 1);
            script.send(way, Mid::SRC_AVAIL_CANCEL, "", 0);
            script.both_receive_all();
            script.send(1 - way, Mid::SEND_SM, "", 0);
            script.both_receive_all();
            send(script, way, PRES, 5);
        };
        // 65,532 octets do not fit into one FPDU.
        let in_parts = |len: u32| {
            move |script: &mut SdpScript, way: usize| {
                send(script, way, PEND, 0);
                for part in [30_000, 30_000, len - 60_000] {
                    src_avail(script, way, part, 1);
                    script.reads(1 - way, STAG, VA + 1, part - 1);
                    completes(script, 1 - way, Mid::RDMA_RD_COMPL, part - 1);
                }
                send(script, way, PRES, 5);
            }
        };
        proves_each_way(requirement!("SDP-9.5.3-6"), in_parts(65_532), in_parts(65_531));
        proves_each_way(requirement!("SDP-9.5.3-6"), in_parts(65_532), given_back);
    }

    /// The octets of an RdmaWrCompl precede its flag, because RDMA Writes moved them earlier.
    #[test]
    fn written_octets_precede_the_announcement() {
        let writes = |announced_before: bool| {
            move |script: &mut SdpScript, way: usize| {
                pipelined(script, way);
                sink_avail(script, 1 - way, 60_000, 0, 0);
                if announced_before {
                    send(script, way, PEND, 0);
                }
                script.write(way, STAG, VA, 60_000);
                script.flags = if announced_before { 0 } else { PEND };
                completes(script, way, Mid::RDMA_WR_COMPL, 60_000);
                for _ in 0..3 {
                    send(script, way, 0, 2000);
                }
                send(script, way, PRES, 5);
            }
        };
        proves_each_way(requirement!("SDP-9.5.3-6"), writes(true), writes(false));
    }

    /// The capture does not show whether a user withdrew an announced octet, so the finding is a
    /// note.
    #[test]
    fn announced_octet_arrives_in_time() {
        let data = |octets: u32, last: usize| {
            move |script: &mut SdpScript, way: usize| {
                send(script, way, PEND, 0);
                for part in [30_000, 30_000, octets - 60_000] {
                    src_avail(script, way, part, 1);
                    script.reads(1 - way, STAG, VA + 1, part - 1);
                    completes(script, 1 - way, Mid::RDMA_RD_COMPL, part - 1);
                }
                send(script, way, 0, last);
                send(script, way, 0, last);
            }
        };
        proves_each_way(requirement!("SDP-9.5.3-6"), data(65_530, 5), data(65_530, 2));
    }

    #[test]
    fn it_is_the_last_octet_of_data() {
        let in_data =
            |payload: usize| move |script: &mut SdpScript, way: usize| send(script, way, PRES | PEND, payload);
        proves_each_way(requirement!("SDP-9.5.3-8"), in_data(0), in_data(1));
    }
}
