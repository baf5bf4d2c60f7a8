//! Compares RdmaWrCompls with the SinkAvail that they answer (sections 9.3, 9.5.1, 9.5.5 and 12.4
//! of the SDP draft).

use weft_core::RequirementId;
use weft_core::requirement;
use weft_core::wire::rdmap::Opcode;
use weft_core::wire::sdp::{Mid, Mode, RawRdmaWrCompl};

use super::figure::{name, pair};
use super::view::SdpView;
use crate::follow::ConnectionState;
use crate::follow::sdp::{Advert, EndReason};
use crate::parse::Unit;
use crate::rules::rule::{Check, Findings, Rule};

pub(super) static IN_MODE: Rule = Check::Sdp(in_mode).covers(requirements![
    "SDP-11-8",
    "SDP-11-16",
    "SDP-11-17",
    "SDP-11-18",
    "SDP-11-19",
    "SDP-11-20",
    "SDP-11-21",
    "SDP-12-17",
    "SDP-12.4-5",
    "SDP-12.4-7",
    "SDP-12.5-2"
]);

pub(super) static WITHOUT_SINK_AVAIL: Rule = Check::Sdp(without_sink_avail).covers(requirements![
    "SDP-9.3-1",
    "SDP-9.3-8",
    "SDP-9.5.1-3",
    "SDP-9.5.1-12",
    "SDP-9.5.1-13",
    "SDP-9.5.2.2-2",
    "SDP-9.5.5-2",
    "SDP-12.4-8",
    "SDP-12.5-4"
]);

pub(super) static AMOUNT: Rule =
    Check::Sdp(amount).covers(requirements!["SDP-9.3-9", "SDP-9.3-10", "SDP-9.3-12", "SDP-9.3-14"]);

/// Returns the requirements that a use of an ended SinkAvail violates, and how the SinkAvail ended.
pub(super) fn ended(reason: Option<EndReason>) -> (&'static [RequirementId], &'static str) {
    match reason {
        Some(EndReason::Stale) => {
            (requirements!["SDP-9.5.1-3", "SDP-9.5.1-12", "SDP-9.5.1-13", "SDP-9.5.2.2-2"], "the SinkAvail was stale")
        }
        Some(EndReason::Revoked) => (requirements!["SDP-9.5.5-2"], "the SinkAvail was canceled"),
        Some(EndReason::Void) => (requirements!["SDP-12.4-8", "SDP-12.5-4"], "a ModeChange had ended Pipelined Mode"),
        Some(EndReason::Completed | EndReason::ByData) => {
            (requirements!["SDP-9.3-1", "SDP-9.3-8"], "the SinkAvail was completed")
        }
        None => (requirements!["SDP-9.3-1"], "no SinkAvail was open"),
    }
}

fn in_mode(_: &ConnectionState, unit: &Unit<'_>, view: &SdpView<'_>, findings: &mut Findings<'_>) {
    let sender = view.sender_state();
    let (Mid::RDMA_WR_COMPL, true, Some(mode)) = (view.mid(), sender.certain, sender.source_mode) else { return };
    if mode == Mode::Pipelined {
        return;
    }
    let (expected, found) = ("Pipelined Mode for an RdmaWrCompl", name(mode));
    let mut report = |ids: &[RequirementId]| findings.report_each(ids, unit, view.range(3..4), expected, found);
    report(pair(sender).as_slice());
    if mode == Mode::Combined {
        report(requirements!["SDP-11-8", "SDP-12-17"]);
        if sender.changes.previous_mode == Some(Mode::Pipelined) {
            report(requirements!["SDP-12.4-5", "SDP-12.4-7", "SDP-12.5-2"]);
        }
    }
}

fn without_sink_avail(_: &ConnectionState, unit: &Unit<'_>, view: &SdpView<'_>, findings: &mut Findings<'_>) {
    let sender = view.sender_state();
    if view.mid() != Mid::RDMA_WR_COMPL || !sender.certain || sender.usable.count > 0 {
        return;
    }
    let (ids, reason) = ended(sender.last_usable);
    findings.report_each(ids, unit, view.range(3..4), "a usable SinkAvail", &format!("an RdmaWrCompl, but {reason}"));
}

fn amount(_: &ConnectionState, unit: &Unit<'_>, view: &SdpView<'_>, findings: &mut Findings<'_>) {
    let (sender, mid) = (view.sender_state(), view.range(3..4));
    let Some(raw) = view.extension_of::<RawRdmaWrCompl>(Mid::RDMA_WR_COMPL) else { return };
    let sent = view.state.latest.send;
    if let Some(sent) = sent
        && matches!(sent.opcode, Opcode::SEND | Opcode::SEND_INVALIDATE)
    {
        let expected = "a Send with Solicited Event, with or without Invalidate";
        findings.report(requirement!("SDP-9.3-10"), unit, mid.clone(), expected, sent.opcode.to_string());
    }
    let Some(Advert { stag, frame, .. }) = sender.usable.oldest.filter(|_| sender.certain) else { return };
    if let Some(sent) = sent
        && sent.invalidates != Some(stag)
    {
        let expected = format!("Invalidate STag {stag:#010x} of the SinkAvail of frame {frame}");
        let found =
            sent.invalidates.map_or_else(|| "no Invalidate".to_owned(), |stag| format!("Invalidate STag {stag:#010x}"));
        if sent.invalidates.is_some() {
            // Invalidate is optional, but the draft calls the invalidation of another STag a
            // protocol violation.
            findings.report(requirement!("SDP-9.3-12"), unit, mid.clone(), &expected, found.clone());
        }
        findings.report(requirement!("SDP-9.3-9"), unit, mid, &expected, found);
    }
    let len = u64::from(raw.len.get());
    if let Some(moved) = sender.moved.filter(|moved| moved.written != len) {
        let written = moved.written;
        let expected = format!("Len {written}, the bytes that RDMA Writes put into the buffer of frame {frame}");
        findings.report(requirement!("SDP-9.3-14"), unit, view.range(16..20), &expected, format!("Len {len}"));
    }
}

#[cfg(test)]
mod tests {
    use weft_core::requirement;
    use weft_core::requirement::Severity;
    use weft_core::wire::sdp::{FieldOrder, Mid};

    use crate::rules::sdp::sdp_script::{advert_of, change, completes, pipelined, proves_each_way, sink_avail};
    use crate::testing::sdp::{STAG, SdpScript, VA, advert, word};

    /// One endpoint sends a SinkAvail of 9000 octets. The other endpoint sends an RDMA Write of
    /// `written` octets, and then an RdmaWrCompl of `reported` octets.
    fn writes(written: usize, reported: u32) -> impl Fn(&mut SdpScript, usize) {
        move |script, way| {
            pipelined(script, way);
            sink_avail(script, 1 - way, 9000, 0, 0);
            script.write(way, STAG, VA, written);
            completes(script, way, Mid::RDMA_WR_COMPL, reported);
        }
    }

    #[test]
    fn reports_exactly_what_was_written() {
        proves_each_way(requirement!("SDP-9.3-14"), writes(100, 99), writes(99, 99));
        proves_each_way(requirement!("SDP-9.3-14"), writes(99, 100), writes(100, 100));
    }

    #[test]
    fn it_invalidates() {
        let ends = |opcode: u8| {
            move |script: &mut SdpScript, way: usize| {
                pipelined(script, way);
                sink_avail(script, 1 - way, 9000, 0, 0);
                script.write(way, STAG, VA, 50);
                script.send_in(opcode, way, Mid::RDMA_WR_COMPL, &word(50), 0);
            }
        };
        proves_each_way(requirement!("SDP-9.3-9"), ends(5), ends(6));
        proves_each_way(requirement!("SDP-9.3-10"), ends(3), ends(5));
        proves_each_way(requirement!("SDP-9.3-10"), ends(4), ends(6));
    }

    #[test]
    fn it_invalidates_no_other_stag() {
        let ends = |stag: u32, opcode: u8| {
            move |script: &mut SdpScript, way: usize| {
                pipelined(script, way);
                script.send(1 - way, Mid::SINK_AVAIL, &advert_of(stag, 9000, Some(0)), 0);
                script.both_receive_all();
                script.write(way, stag, VA, 50);
                script.send_in(opcode, way, Mid::RDMA_WR_COMPL, &word(50), 0);
            }
        };
        let other = STAG + 1;
        proves_each_way(requirement!("SDP-9.3-12"), ends(other, 6), ends(STAG, 6));
        proves_each_way(requirement!("SDP-9.3-12"), ends(other, 6), ends(other, 5));
        let mut script = SdpScript::open(FieldOrder::Figure);
        ends(other, 6)(&mut script, 0);
        let findings = script.wire.findings();
        let found = findings.iter().find(|finding| finding.requirement == requirement!("SDP-9.3-12"));
        assert_eq!(found.map(|finding| finding.severity), Some(Severity::Error));
    }

    #[test]
    fn one_for_each_sink_avail() {
        let ends = |count: usize| {
            move |script: &mut SdpScript, way: usize| {
                writes(50, 50)(script, way);
                (1..count).for_each(|_| completes(script, way, Mid::RDMA_WR_COMPL, 50));
            }
        };
        proves_each_way(requirement!("SDP-9.3-8"), ends(2), ends(1));
        let completes_once = |advertised: bool| {
            move |script: &mut SdpScript, way: usize| {
                pipelined(script, way);
                if advertised {
                    sink_avail(script, 1 - way, 9000, 0, 0);
                }
                completes(script, way, Mid::RDMA_WR_COMPL, 0);
            }
        };
        proves_each_way(requirement!("SDP-9.3-1"), completes_once(false), completes_once(true));
    }

    /// Plays the example of section 9.5.1 of the SDP draft with two SinkAvails. The first SinkAvail
    /// is stale.
    #[test]
    fn stale_ones_are_not_used() {
        let uses = |sinks: usize| {
            move |script: &mut SdpScript, way: usize| {
                pipelined(script, way);
                (0..sinks).for_each(|_| script.send(1 - way, Mid::SINK_AVAIL, &advert(9000, Some(0)), 0));
                script.send(way, Mid::DATA, "", 7);
                script.receive_all(way);
                script.write(way, STAG, VA, 50);
                completes(script, way, Mid::RDMA_WR_COMPL, 50);
            }
        };
        for id in [
            requirement!("SDP-9.5.1-3"),
            requirement!("SDP-9.5.1-12"),
            requirement!("SDP-9.5.1-13"),
            requirement!("SDP-9.5.2.2-2"),
        ] {
            proves_each_way(id, uses(1), uses(2));
        }
    }

    #[test]
    fn canceled_ones_are_not_used() {
        let uses = |acknowledged: bool| {
            move |script: &mut SdpScript, way: usize| {
                pipelined(script, way);
                sink_avail(script, 1 - way, 9000, 0, 0);
                script.write(way, STAG, VA, 50);
                script.send(1 - way, Mid::SINK_AVAIL_CANCEL, "", 0);
                script.receive_all(way);
                if acknowledged {
                    script.send(way, Mid::SINK_CANCEL_ACK, "", 0);
                }
                completes(script, way, Mid::RDMA_WR_COMPL, 50);
            }
        };
        proves_each_way(requirement!("SDP-9.5.5-2"), uses(true), uses(false));
    }

    /// Sends an RdmaWrCompl after ModeChanges with these extended headers. `own` changes the Mode
    /// of the data that the endpoint sends. `peer` changes the Mode of the data that the endpoint
    /// receives.
    fn in_modes(own: &'static [u32], peer: &'static [u32]) -> impl Fn(&mut SdpScript, usize) {
        move |script, way| {
            peer.iter().for_each(|word| change(script, 1 - way, *word));
            own.iter().for_each(|word| change(script, way, *word));
            completes(script, way, Mid::RDMA_WR_COMPL, 50);
        }
    }

    #[test]
    fn in_pipelined_mode_only() {
        for (id, own, peer) in [
            (requirement!("SDP-11-16"), &[0][..], &[0][..]),
            (requirement!("SDP-11-17"), &[0], &[]),
            (requirement!("SDP-11-18"), &[0], &[4]),
            (requirement!("SDP-11-19"), &[], &[0]),
            (requirement!("SDP-11-20"), &[], &[]),
            (requirement!("SDP-11-21"), &[], &[4]),
            (requirement!("SDP-11-8"), &[], &[]),
            (requirement!("SDP-12-17"), &[4, 2], &[]),
        ] {
            proves_each_way(id, in_modes(own, peer), in_modes(&[4], peer));
        }
    }

    #[test]
    fn before_pipelined_mode_is_left() {
        let leaves = |after: bool| {
            move |script: &mut SdpScript, way: usize| {
                pipelined(script, way);
                sink_avail(script, 1 - way, 9000, 0, 0);
                script.write(way, STAG, VA, 50);
                if after {
                    change(script, way, 2);
                }
                completes(script, way, Mid::RDMA_WR_COMPL, 50);
            }
        };
        for id in [
            requirement!("SDP-12.4-7"),
            requirement!("SDP-12.5-2"),
            requirement!("SDP-12.4-5"),
            requirement!("SDP-12.4-8"),
            requirement!("SDP-12.5-4"),
        ] {
            proves_each_way(id, leaves(true), leaves(false));
        }
    }
}
