//! Checks which ModeChanges are allowed, which peer sends them, and when (section 12 of the SDP
//! draft).

use weft_core::RequirementId;
use weft_core::wire::sdp::Mode;

use super::figure::{FIRST_MODE, is_first, name};
use super::mode_change::Change;
use super::view::SdpView;
use crate::follow::ConnectionState;
use crate::parse::Unit;
use crate::rules::rule::{Check, Findings, Rule};

pub(super) static TRANSITION: Rule = Check::Sdp(transition).covers(requirements![
    "SDP-11-2",
    "SDP-12-1",
    "SDP-12-2",
    "SDP-12-3",
    "SDP-12-4",
    "SDP-12-5",
    "SDP-12-6",
    "SDP-12-7",
    "SDP-12-8",
    "SDP-12-9",
    "SDP-12-10",
    "SDP-12-11",
    "SDP-12-12",
    "SDP-12-23",
    "SDP-12.1-1",
    "SDP-12.2-1",
    "SDP-12.3-1",
    "SDP-12.4-1",
    "SDP-12.5-3",
    "SDP-12.5-14",
    "SDP-12.5-19",
    "SDP-12.5-23"
]);

pub(super) static TIMING: Rule = Check::Sdp(timing).covers(requirements![
    "SDP-12.1-2",
    "SDP-12.4-3",
    "SDP-12.4-5",
    "SDP-12.4-7",
    "SDP-12.5-2",
    "SDP-12.5-8",
    "SDP-12.5-13"
]);

/// Returns the requirements that a ModeChange from Mode `now` to Mode `to` violates if the wrong
/// side sends it. Figures 26 and 27, and sections 12.1 to 12.4, define which side may send it.
fn wrong_sender(now: Mode, to: Mode, by_sink: bool) -> &'static [RequirementId] {
    match (now, to, by_sink) {
        (Mode::Buffered, Mode::Combined, false) => {
            requirements!["SDP-12-4", "SDP-12-8", "SDP-12-9", "SDP-12.2-1", "SDP-12.5-23"]
        }
        (Mode::Combined, Mode::Buffered, true) => requirements!["SDP-12-3", "SDP-12-8", "SDP-12-10", "SDP-12.1-1"],
        (Mode::Combined, Mode::Pipelined, true) => {
            requirements!["SDP-12-5", "SDP-12-8", "SDP-12-10", "SDP-12.3-1", "SDP-12.5-14"]
        }
        (Mode::Pipelined, Mode::Combined, true) => {
            requirements!["SDP-12-6", "SDP-12-8", "SDP-12-11", "SDP-12.4-1", "SDP-12.5-3", "SDP-12.5-19"]
        }
        _ => &[],
    }
}

fn transition(_: &ConnectionState, unit: &Unit<'_>, view: &SdpView<'_>, findings: &mut Findings<'_>) {
    let sender = view.sender_state();
    let Some(Change { from: Some(now), to, by_sink }) = Change::of(view) else { return };
    let range = view.range(16..20);
    let master = if now == Mode::Buffered { "the Data Sink" } else { "the Data Source" };
    let role = if by_sink { "the Data Sink" } else { "the Data Source" };
    let found = format!("a change to {} by {role} in {}", name(to), name(now));
    if to == now {
        let ids = requirements!["SDP-12-1", "SDP-12-12"];
        findings.report_each(ids, unit, range.clone(), "a Mode other than the current one", &found);
        if is_first(sender) {
            let expected = "a ModeChange that starts from Combined Mode, the first Mode";
            findings.as_note().report_each(&FIRST_MODE, unit, range, expected, &found);
        }
    } else if now != Mode::Combined && to != Mode::Combined {
        let ids = requirements!["SDP-12-1", "SDP-12-7"];
        findings.report_each(ids, unit, range, "Combined Mode between Buffered and Pipelined Mode", &found);
    } else {
        let expected = format!("a ModeChange from {master}, the Mode Master");
        findings.report_each(wrong_sender(now, to, by_sink), unit, range, &expected, &found);
    }
}

fn timing(_: &ConnectionState, unit: &Unit<'_>, view: &SdpView<'_>, findings: &mut Findings<'_>) {
    let sender = view.sender_state();
    let Some(Change { from: Some(now), to, by_sink: false }) = Change::of(view) else { return };
    let range = view.range(16..20);
    if sender.changes.leaves_pipelined {
        let ids = requirements!["SDP-12.4-3", "SDP-12.5-8", "SDP-12.4-5"];
        let expected = "no other ModeChange until the ModeChange that ended Pipelined Mode is acknowledged";
        let found = "a ModeChange before the acknowledgement of the earlier ModeChange";
        findings.report_each(ids, unit, range.clone(), expected, found);
    }
    if to == Mode::Buffered && sender.src_avails.count > 0 {
        let ids = requirements!["SDP-12.1-2", "SDP-12.5-13"];
        let expected = "an RdmaRdCompl or SendSm before the ModeChange";
        findings.report_each(ids, unit, range.clone(), expected, "BUFF_MODE while a SrcAvail is open");
    }
    if now == Mode::Pipelined && sender.moved.is_some_and(|moved| moved.writing) {
        let ids = requirements!["SDP-12.4-7", "SDP-12.5-2", "SDP-12.4-5"];
        let found = "a ModeChange, although no RdmaWrCompl reports the RDMA Writes";
        findings.report_each(ids, unit, range, "an RdmaWrCompl before the ModeChange", found);
    }
}

#[cfg(test)]
mod tests {
    use weft_core::RequirementId;
    use weft_core::requirement;
    use weft_core::wire::sdp::Mid;

    use crate::rules::sdp::sdp_script::{proves_each_way, sink_avail};
    use crate::testing::sdp::{STAG, SdpScript, VA, advert, word};

    const TO_BUFFERED: u32 = 0;
    const TO_COMBINED: u32 = 2;
    const SINK_TO_COMBINED: u32 = 3;
    const TO_PIPELINED: u32 = 4;

    /// Sends ModeChanges. `list` has the sender and the extended header of each ModeChange. The
    /// sender is 0 for the endpoint under test, and 1 for its peer.
    fn changes(list: &[(usize, u32)]) -> impl Fn(&mut SdpScript, usize) {
        move |script, way| {
            for (who, change) in list {
                let direction = if *who == 0 { way } else { 1 - way };
                script.send(direction, Mid::MODE_CHANGE, &word(*change), 0);
                script.both_receive_all();
            }
        }
    }

    fn either(id: RequirementId, bad: &[(usize, u32)], good: &[(usize, u32)]) {
        proves_each_way(id, changes(bad), changes(good));
    }

    #[test]
    fn only_those_of_figure_26() {
        let to_pipelined: &[_] = &[(0, TO_PIPELINED)];
        either(requirement!("SDP-12-1"), &[(0, TO_BUFFERED), (0, TO_PIPELINED)], to_pipelined);
        either(requirement!("SDP-12-7"), &[(0, TO_BUFFERED), (0, TO_PIPELINED)], to_pipelined);
        either(
            requirement!("SDP-12-7"),
            &[(0, TO_PIPELINED), (0, TO_BUFFERED)],
            &[(0, TO_PIPELINED), (0, TO_COMBINED), (0, TO_BUFFERED)],
        );
        either(
            requirement!("SDP-12-12"),
            &[(0, TO_PIPELINED), (0, TO_PIPELINED)],
            &[(0, TO_PIPELINED), (0, TO_COMBINED)],
        );
    }

    #[test]
    fn combined_mode_is_first() {
        either(requirement!("SDP-12-2"), &[(0, TO_COMBINED)], &[(0, TO_PIPELINED), (0, TO_COMBINED)]);
        either(requirement!("SDP-12-23"), &[(0, SINK_TO_COMBINED)], &[(1, TO_BUFFERED), (0, SINK_TO_COMBINED)]);
        either(requirement!("SDP-11-2"), &[(0, TO_COMBINED)], &[(0, TO_BUFFERED)]);
    }

    /// An extended header with S=1 changes the Mode of the peer's data: 1 starts Buffered Mode, and
    /// 5 starts Pipelined Mode.
    #[test]
    fn the_data_sink_changes_buffered_mode_alone() {
        either(requirement!("SDP-12-3"), &[(0, 1)], &[(0, TO_BUFFERED)]);
        either(requirement!("SDP-12.1-1"), &[(0, 1)], &[(0, TO_BUFFERED)]);
        either(requirement!("SDP-12-5"), &[(0, 5)], &[(0, TO_PIPELINED)]);
        either(requirement!("SDP-12-10"), &[(0, 5)], &[(0, TO_PIPELINED)]);
        either(requirement!("SDP-12.3-1"), &[(0, 5)], &[(0, TO_PIPELINED)]);
        either(requirement!("SDP-12.5-14"), &[(0, 5)], &[(0, TO_PIPELINED)]);
    }

    #[test]
    fn the_data_source_changes_the_others() {
        let (bad, good) = ([(1, TO_PIPELINED), (0, SINK_TO_COMBINED)], [(0, TO_PIPELINED), (0, TO_COMBINED)]);
        either(requirement!("SDP-12-6"), &bad, &good);
        either(requirement!("SDP-12-11"), &bad, &good);
        either(requirement!("SDP-12.4-1"), &bad, &good);
        either(requirement!("SDP-12.5-3"), &bad, &good);
        either(requirement!("SDP-12.5-19"), &bad, &good);
    }

    #[test]
    fn the_data_source_does_not_leave_buffered_mode() {
        let (bad, good) = ([(0, TO_BUFFERED), (0, TO_COMBINED)], [(1, TO_BUFFERED), (0, SINK_TO_COMBINED)]);
        either(requirement!("SDP-12-4"), &bad, &good);
        either(requirement!("SDP-12-8"), &bad, &good);
        either(requirement!("SDP-12-9"), &bad, &good);
        either(requirement!("SDP-12.2-1"), &bad, &good);
        either(requirement!("SDP-12.5-23"), &bad, &good);
    }

    /// The draft does not define the Mode after a ModeChange that its sender must not send.
    #[test]
    fn the_mode_after_a_wrong_change_is_not_known() {
        let sends = |mid: Mid, list: &'static [(usize, u32)]| {
            move |script: &mut SdpScript, way: usize| {
                changes(list)(script, way);
                script.send(way, mid, &advert(9000, (mid == Mid::SINK_AVAIL).then_some(0)), 0);
            }
        };
        let src_avail = |list| sends(Mid::SRC_AVAIL, list);
        let id = requirement!("SDP-11-6");
        proves_each_way(id, src_avail(&[(0, TO_BUFFERED)]), src_avail(&[(0, TO_PIPELINED), (0, TO_BUFFERED)]));
        // Mode 3 is reserved.
        proves_each_way(requirement!("SDP-9.2-2"), src_avail(&[]), src_avail(&[(0, 6)]));
        let sink_avail = |list| sends(Mid::SINK_AVAIL, list);
        let by_source = sink_avail(&[(1, TO_PIPELINED), (1, TO_COMBINED)]);
        let by_sink = sink_avail(&[(1, TO_PIPELINED), (0, SINK_TO_COMBINED)]);
        proves_each_way(requirement!("SDP-11-8"), by_source, by_sink);
        // One of two words is the extended header.
        let too_long = |script: &mut SdpScript, way: usize| {
            script.send(way, Mid::MODE_CHANGE, "00000000 00000004", 0);
            script.both_receive_all();
            script.send(way, Mid::SRC_AVAIL, &advert(9000, None), 0);
        };
        proves_each_way(id, src_avail(&[(0, TO_BUFFERED)]), too_long);
    }

    #[test]
    fn pipelined_mode_is_left_one_step_at_a_time() {
        let leaves = |waits: bool| {
            move |script: &mut SdpScript, way: usize| {
                changes(&[(0, TO_PIPELINED)])(script, way);
                script.send(way, Mid::MODE_CHANGE, &word(TO_COMBINED), 0);
                if waits {
                    script.receive_all(1 - way);
                }
                script.send(1 - way, Mid::DATA, "", 0);
                script.receive_all(way);
                script.send(way, Mid::MODE_CHANGE, &word(TO_BUFFERED), 0);
            }
        };
        proves_each_way(requirement!("SDP-12.4-3"), leaves(false), leaves(true));
        proves_each_way(requirement!("SDP-12.5-8"), leaves(false), leaves(true));
    }

    #[test]
    fn a_src_avail_ends_before_buffered_mode() {
        let changes_with = |end: Option<(Mid, &'static str)>| {
            move |script: &mut SdpScript, way: usize| {
                script.send(way, Mid::SRC_AVAIL, &advert(9000, None), 10);
                script.receive_all(1 - way);
                if let Some((mid, extension)) = end {
                    script.send(1 - way, mid, extension, 0);
                }
                script.receive_all(way);
                script.send(way, Mid::MODE_CHANGE, &word(TO_BUFFERED), 0);
            }
        };
        proves_each_way(requirement!("SDP-12.1-2"), changes_with(None), changes_with(Some((Mid::SEND_SM, ""))));
        proves_each_way(requirement!("SDP-12.5-13"), changes_with(None), changes_with(Some((Mid::SEND_SM, ""))));
    }

    #[test]
    fn reports_writes_before_it_leaves_pipelined_mode() {
        let leaves = |reports: bool| {
            move |script: &mut SdpScript, way: usize| {
                changes(&[(0, TO_PIPELINED)])(script, way);
                sink_avail(script, 1 - way, 9000, 0, 0);
                script.write(way, STAG, VA, 100);
                if reports {
                    script.receive_all(way);
                    script.send(way, Mid::RDMA_WR_COMPL, &word(100), 0);
                }
                script.send(way, Mid::MODE_CHANGE, &word(TO_COMBINED), 0);
            }
        };
        // Another rule reports a Write to an STag that was not advertised.
        let writes_elsewhere = |script: &mut SdpScript, way: usize| {
            changes(&[(0, TO_PIPELINED)])(script, way);
            sink_avail(script, 1 - way, 9000, 0, 0);
            script.write(way, STAG + 1, VA, 100);
            script.receive_all(way);
            script.send(way, Mid::RDMA_WR_COMPL, &word(100), 0);
            script.send(way, Mid::MODE_CHANGE, &word(TO_COMBINED), 0);
        };
        proves_each_way(requirement!("SDP-12.4-7"), leaves(false), writes_elsewhere);
        proves_each_way(requirement!("SDP-12.4-7"), leaves(false), leaves(true));
        proves_each_way(requirement!("SDP-12.5-2"), leaves(false), leaves(true));
        proves_each_way(requirement!("SDP-12.4-5"), leaves(false), leaves(true));
    }
}
