//! Checks SrcAvails: their Mode, payload and number (sections 9.2, 9.5.4 and 11 of the SDP draft).

use weft_core::RequirementId;
use weft_core::requirement;
use weft_core::wire::sdp::{Mid, Mode, RawSrcAvail};

use super::figure::{FIRST_MODE, is_first, pair};
use super::view::SdpView;
use crate::follow::ConnectionState;
use crate::follow::sdp::SenderState;
use crate::parse::Unit;
use crate::rules::rule::{Check, Findings, Rule};

pub(super) static IN_MODE: Rule = Check::Sdp(in_mode).covers(requirements![
    "SDP-9.2-2",
    "SDP-9.2-3",
    "SDP-11-2",
    "SDP-11-6",
    "SDP-11-7",
    "SDP-11-9",
    "SDP-11-13",
    "SDP-11-16",
    "SDP-11-17",
    "SDP-11-18",
    "SDP-11-19",
    "SDP-11-20",
    "SDP-11-21",
    "SDP-11.1-2",
    "SDP-11.2-7",
    "SDP-11.2-9",
    "SDP-11.3-7",
    "SDP-12-2",
    "SDP-12-15",
    "SDP-12-17",
    "SDP-12-18",
    "SDP-12-20",
    "SDP-12-23",
    "SDP-12.4-2",
    "SDP-12.4-10"
]);

pub(super) static OPEN: Rule =
    Check::Sdp(open).covers(requirements!["SDP-9.2-4", "SDP-9.5.4-10", "SDP-11.3-13", "SDP-11.3-15"]);

fn in_mode(_: &ConnectionState, unit: &Unit<'_>, view: &SdpView<'_>, findings: &mut Findings<'_>) {
    let sender = view.sender_state();
    let (Mid::SRC_AVAIL, true, Some(mode)) = (view.mid(), sender.certain, sender.source_mode) else { return };
    let payload = view.payload_len();
    let mut report = |ids: &[RequirementId], expected: &str, found: &str| {
        findings.report_each(ids, unit, view.range(3..4), expected, found);
    };
    match mode {
        Mode::Buffered => {
            let expected = "no SrcAvail in Buffered Mode";
            let ids = requirements!["SDP-11-6", "SDP-11.1-2", "SDP-12-20"];
            report(ids, expected, "a SrcAvail");
            report(pair(sender).as_slice(), expected, "a SrcAvail");
            if sender.changes.previous_mode == Some(Mode::Combined) {
                let found = "a SrcAvail after the sender's own ModeChange";
                report(requirements!["SDP-12-18", "SDP-12-15"], expected, found);
            }
        }
        Mode::Combined => {
            combined(sender, payload, &mut report);
            if payload == 0 && is_first(sender) {
                let expected = "at least one byte of payload in Combined Mode";
                let found = "a SrcAvail without payload in the first Mode";
                findings.as_note().report_each(&FIRST_MODE, unit, view.range(3..4), expected, found);
            }
        }
        Mode::Pipelined if payload > 0 => {
            let (expected, found) = ("no payload in Pipelined Mode", format!("{payload} bytes of payload"));
            let ids = requirements!["SDP-9.2-3", "SDP-11-13", "SDP-11.3-7", "SDP-12-17"];
            let octets = view.size() - payload..view.size();
            findings.report_each(ids, unit, octets.clone(), expected, &found);
            if sender.changes.previous_mode == Some(Mode::Combined) {
                findings.report_each(requirements!["SDP-12-15"], unit, octets, expected, &found);
            }
        }
        Mode::Pipelined => {}
    }
}

fn combined(sender: &SenderState, payload: usize, report: &mut impl FnMut(&[RequirementId], &str, &str)) {
    let was_pipelined = sender.changes.previous_mode == Some(Mode::Pipelined);
    if payload == 0 {
        let expected = "at least one byte of payload in Combined Mode";
        let ids = requirements!["SDP-9.2-2", "SDP-11-9", "SDP-11.2-9", "SDP-12-17"];
        report(ids, expected, "a SrcAvail without payload");
        if was_pipelined {
            let ids = requirements!["SDP-12-15", "SDP-12.4-2", "SDP-12.4-10"];
            report(ids, expected, "a SrcAvail without payload after the sender's own ModeChange");
        }
    }
    if sender.src_avails.count > 0 {
        let (expected, found) = (
            "one SrcAvail at a time in Combined Mode",
            format!("another SrcAvail; already open: {}", sender.src_avails.count),
        );
        report(requirements!["SDP-11.2-7", "SDP-11-7"], expected, &found);
        report(pair(sender).as_slice(), expected, &found);
        if was_pipelined {
            report(requirements!["SDP-12.4-10"], expected, &found);
        }
    }
}

fn open(_: &ConnectionState, unit: &Unit<'_>, view: &SdpView<'_>, findings: &mut Findings<'_>) {
    let sender = view.sender_state();
    let Some(raw) = view.extension_of::<RawSrcAvail>(Mid::SRC_AVAIL) else { return };
    let (len, payload) = (raw.len.get() as usize, view.payload_len());
    if payload > len {
        let expected = format!("at most {len} bytes of payload, the length of the advertised buffer");
        findings.report(requirement!("SDP-9.2-4"), unit, view.range(16..20), &expected, format!("{payload} bytes"));
    }
    if !sender.certain {
        return;
    }
    if sender.cancels.src_avail {
        let found = "a SrcAvail";
        let expected = "no SrcAvail until the SrcAvailCancel is Processed";
        findings.report(requirement!("SDP-9.5.4-10"), unit, view.range(3..4), expected, found);
    }
    if sender.source_mode == Some(Mode::Pipelined)
        && let Some(sink) = sender.usable.oldest
    {
        let ids = requirements!["SDP-11.3-15", "SDP-11.3-13"];
        let expected = format!("RDMA Writes to the SinkAvail of frame {}", sink.frame);
        findings.report_each(ids, unit, view.range(3..4), &expected, "a SrcAvail");
    }
}

#[cfg(test)]
mod tests {
    use weft_core::RequirementId;
    use weft_core::requirement;
    use weft_core::wire::sdp::Mid;

    use crate::rules::sdp::sdp_script::{change, pipelined, proves_each_way, sink_avail, src_avail};
    use crate::testing::sdp::{SdpScript, advert};

    /// Sends ModeChanges with the words `changes`, and then a SrcAvail with `payload` octets of
    /// payload.
    fn in_mode(changes: &[u32], payload: usize) -> impl Fn(&mut SdpScript, usize) {
        move |script, way| {
            changes.iter().for_each(|word| change(script, way, *word));
            src_avail(script, way, 9000, payload);
        }
    }

    fn payload(id: RequirementId, changes: &[u32], bad: usize, good: usize) {
        proves_each_way(id, in_mode(changes, bad), in_mode(changes, good));
    }

    #[test]
    fn with_payload_in_combined_mode() {
        payload(requirement!("SDP-9.2-2"), &[], 0, 1);
        payload(requirement!("SDP-11-9"), &[], 0, 1);
        payload(requirement!("SDP-11.2-9"), &[], 0, 1);
        payload(requirement!("SDP-11-2"), &[], 0, 1);
        payload(requirement!("SDP-12-2"), &[], 0, 1);
        payload(requirement!("SDP-12-23"), &[], 0, 1);
        payload(requirement!("SDP-12-17"), &[4, 2], 0, 1);
        payload(requirement!("SDP-12.4-2"), &[4, 2], 0, 1);
    }

    #[test]
    fn without_payload_in_pipelined_mode() {
        payload(requirement!("SDP-9.2-3"), &[4], 1, 0);
        payload(requirement!("SDP-11-13"), &[4], 1, 0);
        payload(requirement!("SDP-11.3-7"), &[4], 1, 0);
        payload(requirement!("SDP-12-17"), &[4], 1, 0);
        payload(requirement!("SDP-12-15"), &[4], 1, 0);
        payload(requirement!("SDP-12.4-10"), &[4, 2], 0, 1);
    }

    #[test]
    fn the_own_mode_change_counts_at_once() {
        let at_once = |payload: usize| {
            move |script: &mut SdpScript, way: usize| {
                script.send(way, Mid::MODE_CHANGE, "00000004", 0);
                script.send(way, Mid::SRC_AVAIL, &advert(9000, None), payload);
            }
        };
        proves_each_way(requirement!("SDP-12-15"), at_once(1), at_once(0));
    }

    #[test]
    fn none_in_buffered_mode() {
        let none = |id| proves_each_way(id, in_mode(&[0], 1), in_mode(&[], 1));
        none(requirement!("SDP-11-6"));
        none(requirement!("SDP-11.1-2"));
        none(requirement!("SDP-12-18"));
        none(requirement!("SDP-12-15"));
        none(requirement!("SDP-12-20"));
        // The peer's Mode is Buffered, Combined or Pipelined.
        let with_peer = |changes: &'static [u32], mode: &'static [u32]| {
            move |script: &mut SdpScript, way: usize| {
                mode.iter().for_each(|word| change(script, way, *word));
                changes.iter().for_each(|word| change(script, 1 - way, *word));
                src_avail(script, way, 9000, 1);
            }
        };
        proves_each_way(requirement!("SDP-11-16"), with_peer(&[0], &[0]), with_peer(&[0], &[]));
        proves_each_way(requirement!("SDP-11-17"), with_peer(&[], &[0]), with_peer(&[], &[]));
        proves_each_way(requirement!("SDP-11-18"), with_peer(&[4], &[0]), with_peer(&[4], &[]));
    }

    /// Sends two SrcAvails. If `answered` is true, a SendSm answers the first SrcAvail. Otherwise
    /// the first SrcAvail is still open when the second SrcAvail is sent.
    fn second(peer_mode: Option<u32>, mode: &[u32], answered: bool) -> impl Fn(&mut SdpScript, usize) {
        move |script, way| {
            peer_mode.into_iter().for_each(|word| change(script, 1 - way, word));
            src_avail(script, way, 50, 10);
            mode.iter().for_each(|word| change(script, way, *word));
            if answered {
                script.send(1 - way, Mid::SEND_SM, "", 0);
                script.both_receive_all();
                script.send(way, Mid::DATA, "", 40);
            }
            src_avail(script, way, 50, 10);
        }
    }

    #[test]
    fn one_at_a_time_in_combined_mode() {
        for id in [requirement!("SDP-11.2-7"), requirement!("SDP-11-7"), requirement!("SDP-11-20")] {
            proves_each_way(id, second(None, &[], false), second(None, &[], true));
        }
        proves_each_way(requirement!("SDP-11-19"), second(Some(0), &[], false), second(Some(0), &[], true));
        proves_each_way(requirement!("SDP-11-21"), second(Some(4), &[], false), second(Some(4), &[], true));
        proves_each_way(requirement!("SDP-12.4-10"), second(None, &[4, 2], false), second(None, &[4, 2], true));
    }

    #[test]
    fn no_more_payload_than_buffer() {
        let with = |payload: usize| move |script: &mut SdpScript, way: usize| src_avail(script, way, 10, payload);
        proves_each_way(requirement!("SDP-9.2-4"), with(11), with(10));
    }

    #[test]
    fn none_while_a_cancel_is_open() {
        let canceled = |answered: bool| {
            move |script: &mut SdpScript, way: usize| {
                src_avail(script, way, 50, 10);
                script.send(way, Mid::SRC_AVAIL_CANCEL, "", 0);
                script.receive_all(1 - way);
                script.send(1 - way, if answered { Mid::SEND_SM } else { Mid::DATA }, "", 0);
                script.receive_all(way);
                script.send(way, Mid::SRC_AVAIL, &advert(50, None), 10);
            }
        };
        proves_each_way(requirement!("SDP-9.5.4-10"), canceled(false), canceled(true));
    }

    #[test]
    fn a_known_sink_avail_is_used_first() {
        let offered = |known: bool| {
            move |script: &mut SdpScript, way: usize| {
                pipelined(script, way);
                script.send(1 - way, Mid::SINK_AVAIL, &advert(9000, Some(0)), 0);
                if known {
                    script.receive_all(way);
                }
                script.send(way, Mid::SRC_AVAIL, &advert(9000, None), 0);
            }
        };
        proves_each_way(requirement!("SDP-11.3-15"), offered(true), offered(false));
        proves_each_way(requirement!("SDP-11.3-13"), offered(true), offered(false));
        // A stale SinkAvail does not count.
        let stale = |script: &mut SdpScript, way: usize| {
            pipelined(script, way);
            script.send(way, Mid::DATA, "", 5);
            sink_avail(script, 1 - way, 9000, 0, 0);
            src_avail(script, way, 9000, 0);
        };
        proves_each_way(requirement!("SDP-11.3-15"), offered(true), stale);
    }
}
