//! Checks how a receiver answers SrcAvailCancel and SinkAvailCancel, and which transfers it
//! finishes and reports before the answer (sections 9.5.4 and 9.5.5 of the SDP draft).

use weft_core::requirement;
use weft_core::wire::sdp::Mid;

use super::view::SdpView;
use crate::follow::ConnectionState;
use crate::parse::Unit;
use crate::rules::rule::{Check, Findings, Rule};

pub(super) static ACKNOWLEDGED: Rule = Check::Sdp(acknowledged).covers(requirements!["SDP-9.5.4-5", "SDP-9.5.4-7"]);

pub(super) static SINK_CANCEL_ACK: Rule = Check::Sdp(sink_cancel_ack).covers(requirements![
    "SDP-9.5.5-4",
    "SDP-9.5.5-5",
    "SDP-9.5.5-6",
    "SDP-9.5.5-8",
    "SDP-9.5.5-10"
]);

/// Reports an endpoint that acknowledges a SrcAvailCancel before the endpoint has reported its RDMA
/// Reads by an RdmaRdCompl.
fn acknowledged(_: &ConnectionState, unit: &Unit<'_>, view: &SdpView<'_>, findings: &mut Findings<'_>) {
    let sender = view.sender_state();
    let is_new = sender.cancels.src_avail_received && !sender.cancels.src_avail_was_received;
    // An RdmaRdCompl itself reports the RDMA Reads, and a SendSm ends the SrcAvail. So neither of
    // these messages causes a finding.
    let reports = matches!(view.mid(), Mid::RDMA_RD_COMPL | Mid::SEND_SM);
    let Some(moved) = sender.moved.filter(|moved| sender.certain && is_new && !reports && moved.read > 0) else {
        return;
    };
    let found = format!(
        "MSeqAck {}, although no RdmaRdCompl reports {} bytes that RDMA Reads requested",
        view.bsdh.mseq_ack, moved.read
    );
    let expected = "no acknowledgement of the SrcAvailCancel in MSeqAck before the RdmaRdCompl";
    findings.report(requirement!("SDP-9.5.4-5"), unit, view.range(12..16), expected, found.clone());
    // The RdmaRdCompl is due when all Read Responses have arrived.
    if moved.returned.is_none_or(|returned| returned >= moved.read) {
        findings.report(requirement!("SDP-9.5.4-7"), unit, view.range(12..16), expected, found);
    }
}

fn sink_cancel_ack(_: &ConnectionState, unit: &Unit<'_>, view: &SdpView<'_>, findings: &mut Findings<'_>) {
    let sender = view.sender_state();
    if view.mid() != Mid::SINK_CANCEL_ACK || !sender.certain {
        return;
    }
    let range = view.range(3..4);
    if !sender.cancels.sink_avail_received {
        let (id, expected) = if sender.cancels.sink_avail_idle {
            (requirement!("SDP-9.5.5-4"), "no SinkCancelAck, because the SinkAvailCancel found no open SinkAvail")
        } else {
            (requirement!("SDP-9.5.5-10"), "one SinkCancelAck for each SinkAvailCancel")
        };
        findings.report(id, unit, range, expected, "a SinkCancelAck");
    } else if sender.moved.is_some_and(|moved| moved.written > 0) {
        let ids = requirements!["SDP-9.5.5-8", "SDP-9.5.5-6", "SDP-9.5.5-5"];
        let expected = "an RdmaWrCompl for the RDMA Writes before the SinkCancelAck";
        findings.report_each(ids, unit, range, expected, "a SinkCancelAck");
    }
}

#[cfg(test)]
mod tests {
    use weft_core::requirement;
    use weft_core::wire::sdp::Mid;

    use crate::rules::sdp::sdp_script::{completes, pipelined, proves_each_way, sink_avail, src_avail};
    use crate::testing::sdp::{STAG, SdpScript, VA};

    #[test]
    fn reports_reads_before_it_acknowledges_the_cancel() {
        let acknowledges = |early: bool| {
            move |script: &mut SdpScript, way: usize| {
                src_avail(script, 1 - way, 50, 10);
                script.reads(way, STAG, VA + 10, 20);
                script.send(1 - way, Mid::SRC_AVAIL_CANCEL, "", 0);
                if early {
                    script.receive_all(way);
                }
                script.send(way, Mid::DATA, "", 0);
                completes(script, way, Mid::RDMA_RD_COMPL, 20);
                script.send(way, Mid::SEND_SM, "", 0);
            }
        };
        proves_each_way(requirement!("SDP-9.5.4-5"), acknowledges(true), acknowledges(false));
        proves_each_way(requirement!("SDP-9.5.4-7"), acknowledges(true), acknowledges(false));
        // Before the Read Response arrives, no RdmaRdCompl is due.
        let without_response = |script: &mut SdpScript, way: usize| {
            src_avail(script, 1 - way, 50, 10);
            script.request_read(way, STAG, VA + 10, 20);
            script.send(1 - way, Mid::SRC_AVAIL_CANCEL, "", 0);
            script.receive_all(way);
            script.send(way, Mid::DATA, "", 0);
        };
        proves_each_way(requirement!("SDP-9.5.4-7"), acknowledges(true), without_response);
        proves_each_way(requirement!("SDP-9.5.4-5"), without_response, acknowledges(false));
    }

    #[test]
    fn one_answer_to_a_sink_avail_cancel() {
        let answers = |open: bool, count: usize| {
            move |script: &mut SdpScript, way: usize| {
                pipelined(script, way);
                if open {
                    sink_avail(script, 1 - way, 9000, 0, 0);
                }
                script.send(1 - way, Mid::SINK_AVAIL_CANCEL, "", 0);
                script.both_receive_all();
                (0..count).for_each(|_| script.send(way, Mid::SINK_CANCEL_ACK, "", 0));
            }
        };
        proves_each_way(requirement!("SDP-9.5.5-10"), answers(true, 2), answers(true, 1));
        proves_each_way(requirement!("SDP-9.5.5-4"), answers(false, 1), answers(true, 1));
    }

    #[test]
    fn reports_writes_before_the_answer() {
        let answers = |reports: bool| {
            move |script: &mut SdpScript, way: usize| {
                pipelined(script, way);
                (0..2).for_each(|_| sink_avail(script, 1 - way, 9000, 0, 0));
                script.write(way, STAG, VA, 50);
                script.send(1 - way, Mid::SINK_AVAIL_CANCEL, "", 0);
                script.both_receive_all();
                if reports {
                    completes(script, way, Mid::RDMA_WR_COMPL, 50);
                }
                script.send(way, Mid::SINK_CANCEL_ACK, "", 0);
            }
        };
        for id in [requirement!("SDP-9.5.5-5"), requirement!("SDP-9.5.5-6"), requirement!("SDP-9.5.5-8")] {
            proves_each_way(id, answers(false), answers(true));
        }
    }
}
