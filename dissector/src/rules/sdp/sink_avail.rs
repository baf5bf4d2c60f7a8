//! Checks SinkAvails: their Mode, size, NonDiscards and number (sections 9.3 to 9.5, 10.6 and 11.3
//! of the SDP draft).

use weft_core::RequirementId;
use weft_core::requirement;
use weft_core::wire::sdp::{Mid, Mode, RawSinkAvail};

use super::figure::{FIRST_MODE, is_first, name, pair};
use super::hello::MAX_PRIVATE_BUFFER;
use super::view::SdpView;
use crate::follow::ConnectionState;
use crate::parse::Unit;
use crate::rules::rule::{Check, Findings, Rule};

pub(super) static SIZE: Rule = Check::Sdp(size).covers(requirements![
    "SDP-9-1",
    "SDP-9.3-2",
    "SDP-9.4-3",
    "SDP-9.5.1-1",
    "SDP-9.5.1-2",
    "SDP-10-2",
    "SDP-10-9",
    "SDP-10.6-15",
    "SDP-10.6-16"
]);

pub(super) static IN_MODE: Rule = Check::Sdp(in_mode).covers(requirements![
    "SDP-9.4-2",
    "SDP-9.4-6",
    "SDP-11-2",
    "SDP-11-8",
    "SDP-11-16",
    "SDP-11-17",
    "SDP-11-19",
    "SDP-11-20",
    "SDP-11-22",
    "SDP-11-23",
    "SDP-12-2",
    "SDP-12-19",
    "SDP-12-20",
    "SDP-12-21",
    "SDP-12-23",
    "SDP-12.4-5",
    "SDP-12.5-9",
    "SDP-12.5-16"
]);

pub(super) static TIMING: Rule =
    Check::Sdp(timing).covers(requirements!["SDP-9.3-5", "SDP-9.5.5-11", "SDP-11.3-13", "SDP-11.3-18"]);

pub(super) static MAX_ADVERTS: Rule =
    Check::Sdp(max_adverts).covers(requirements!["SDP-9.4-6", "SDP-11-24", "SDP-11.3-23"]);

fn size(_: &ConnectionState, unit: &Unit<'_>, view: &SdpView<'_>, findings: &mut Findings<'_>) {
    let sender = view.sender_state();
    let Some(raw) = view.extension_of::<RawSinkAvail>(Mid::SINK_AVAIL) else { return };
    // Another rule reports a size of Private Buffers that is too large.
    let own = sender.receive_size.filter(|own| *own <= MAX_PRIVATE_BUFFER);
    let (len, true, Some(own)) = (raw.len.get(), sender.certain, own) else { return };
    if len > own {
        return;
    }
    let (range, expected) =
        (view.range(16..20), format!("more than {own} bytes, the size of the sender's receive Private Buffers"));
    let ids = requirements!["SDP-9-1", "SDP-9.3-2", "SDP-9.5.1-1", "SDP-9.5.1-2", "SDP-10-2", "SDP-10-9"];
    findings.report_each(ids, unit, range.clone(), &expected, &format!("{len} bytes"));
    if view.payload_len() > 0 {
        findings.report(requirement!("SDP-9.4-3"), unit, range.clone(), &expected, format!("{len} bytes"));
    }
    if sender.sizes.peer_request.is_some() {
        let expected = format!("more than {own} bytes, the buffer size before the ChRcvBuf that has no answer yet");
        findings.report(requirement!("SDP-10.6-15"), unit, range, &expected, format!("{len} bytes"));
    } else if sender.sent.has(Mid::CH_RCV_BUF_ACK) {
        let expected = format!("more than {own} bytes, the size in the sender's ChRcvBufAck");
        findings.report(requirement!("SDP-10.6-16"), unit, range, &expected, format!("{len} bytes"));
    }
}

fn in_mode(_: &ConnectionState, unit: &Unit<'_>, view: &SdpView<'_>, findings: &mut Findings<'_>) {
    let sender = view.sender_state();
    let (Mid::SINK_AVAIL, true, Some(mode)) = (view.mid(), sender.certain, sender.sink_mode) else { return };
    if mode == Mode::Pipelined {
        return;
    }
    let (expected, found) = ("Pipelined Mode for the data that the sender receives", name(mode));
    let mut report = |ids: &[RequirementId]| findings.report_each(ids, unit, view.range(3..4), expected, found);
    report(pair(sender).as_slice());
    report(requirements!["SDP-12-20"]);
    if view.payload_len() > 0 {
        report(requirements!["SDP-9.4-2", "SDP-9.4-6"]);
    }
    if mode == Mode::Combined {
        report(requirements!["SDP-11-8"]);
    }
    if sender.changes.sink_left_pipelined {
        let ids = requirements!["SDP-12-19", "SDP-12-21", "SDP-12.4-5", "SDP-12.5-9"];
        report(ids);
    } else if mode == Mode::Combined {
        report(requirements!["SDP-12.5-16"]);
    }
    if is_first(sender) {
        findings.as_note().report_each(&FIRST_MODE, unit, view.range(3..4), expected, found);
    }
}

fn timing(_: &ConnectionState, unit: &Unit<'_>, view: &SdpView<'_>, findings: &mut Findings<'_>) {
    let sender = view.sender_state();
    if !sender.certain {
        return;
    }
    if sender.cancels.sink_avail && matches!(view.mid(), Mid::SINK_AVAIL | Mid::SINK_AVAIL_CANCEL) {
        let expected = "no SinkAvail or SinkAvailCancel until the previous SinkAvailCancel is Processed";
        findings.report(requirement!("SDP-9.5.5-11"), unit, view.range(3..4), expected, view.mid().to_string());
    }
    let Some(raw) = view.extension_of::<RawSinkAvail>(Mid::SINK_AVAIL) else { return };
    if raw.non_discards.get() != sender.non_discards {
        let expected = format!("NonDiscards {}", sender.non_discards);
        let found = format!("NonDiscards {}", raw.non_discards.get());
        findings.report(requirement!("SDP-9.3-5"), unit, view.range(32..36), &expected, found);
    }
    // After a SrcAvailCancel, the SrcAvails count only until the SendSm that answers the cancel.
    if let Some(source) = sender.sources.oldest.filter(|_| !sender.cancels.src_avail_received) {
        let ids = requirements!["SDP-11.3-13", "SDP-11.3-18"];
        let expected = format!("no SinkAvail until the SrcAvail of frame {} is Processed", source.frame);
        findings.report_each(ids, unit, view.range(3..4), &expected, "a SinkAvail");
    }
}

fn max_adverts(_: &ConnectionState, unit: &Unit<'_>, view: &SdpView<'_>, findings: &mut Findings<'_>) {
    let (mid, sender) = (view.mid(), view.sender_state());
    if !matches!(mid, Mid::SRC_AVAIL | Mid::SINK_AVAIL) || !sender.certain {
        return;
    }
    let Some(most) = view.state.peers[view.peer()].max_adverts.filter(|most| *most > 0) else { return };
    let open = sender.src_avails.count + sender.sink_avails.count + 1;
    if open <= usize::from(most) {
        return;
    }
    let (range, expected) = (view.range(3..4), format!("at most {most} open advertisements, the peer's MaxAdverts"));
    let found = format!("{open} open advertisements");
    findings.report(requirement!("SDP-11.3-23"), unit, range.clone(), &expected, found.clone());
    if (sender.source_mode, sender.sink_mode) == (Some(Mode::Pipelined), Some(Mode::Pipelined)) {
        findings.report(requirement!("SDP-11-24"), unit, range.clone(), &expected, found.clone());
    }
    if mid == Mid::SINK_AVAIL && view.payload_len() > 0 {
        findings.report(requirement!("SDP-9.4-6"), unit, range, &expected, found);
    }
}

#[cfg(test)]
mod tests {
    use weft_core::requirement;
    use weft_core::wire::sdp::{FieldOrder, Mid};

    use crate::rules::sdp::sdp_script::{change, completes, pipelined, proves_each_way, sink_avail, src_avail};
    use crate::rules::sdp::testing::proves_of;
    use crate::testing::sdp::{SdpScript, advert, hello_ack, word};

    /// Sends a SinkAvail of `len` octets. Private Buffers have 4096 octets.
    fn of(len: u32, payload: usize) -> impl Fn(&mut SdpScript, usize) {
        move |script, way| {
            pipelined(script, 1 - way);
            sink_avail(script, way, len, 0, payload);
        }
    }

    #[test]
    fn larger_than_a_private_buffer() {
        for id in [
            requirement!("SDP-9-1"),
            requirement!("SDP-9.3-2"),
            requirement!("SDP-9.5.1-1"),
            requirement!("SDP-9.5.1-2"),
            requirement!("SDP-10-9"),
        ] {
            proves_each_way(id, of(4096, 0), of(4097, 0));
        }
        proves_each_way(requirement!("SDP-9.4-3"), of(4096, 9), of(4097, 9));
        proves_each_way(requirement!("SDP-10-2"), of(4096, 0), of(4097, 0));
        // The HelloAck has this ActRcvSz. More than 2^31 octets are not allowed.
        let with_size = |size: u32| {
            move |order: FieldOrder| {
                let mut script = SdpScript::with_hello(order, |_| {});
                let mut octets = hello_ack();
                octets[20..24].copy_from_slice(&size.to_be_bytes());
                script.send_octets(5, 1, &octets);
                pipelined(&mut script, 0);
                sink_avail(&mut script, 1, 9000, 0, 0);
                script
            }
        };
        proves_of(requirement!("SDP-9-1"), with_size(9000), with_size((1 << 31) + 1));
    }

    #[test]
    fn a_new_size_counts_with_its_answer() {
        let resized = |wanted: u32, answered: bool, len: u32| {
            move |script: &mut SdpScript, way: usize| {
                pipelined(script, 1 - way);
                script.send(1 - way, Mid::CH_RCV_BUF, &word(wanted), 0);
                script.both_receive_all();
                if answered {
                    script.send(way, Mid::CH_RCV_BUF_ACK, &word(wanted), 0);
                }
                sink_avail(script, way, len, 0, 0);
            }
        };
        proves_each_way(requirement!("SDP-10.6-15"), resized(1000, false, 4000), resized(1000, true, 4000));
        proves_each_way(requirement!("SDP-10.6-16"), resized(1000, true, 1000), resized(1000, true, 1001));
    }

    /// Sends a SinkAvail after ModeChanges with these extended headers. `own` changes the Mode of
    /// the data that the endpoint sends. `peer` changes the Mode of the data that the endpoint
    /// receives.
    fn in_modes(own: &'static [u32], peer: &'static [u32], payload: usize) -> impl Fn(&mut SdpScript, usize) {
        move |script, way| {
            own.iter().for_each(|word| change(script, way, *word));
            peer.iter().for_each(|word| change(script, 1 - way, *word));
            sink_avail(script, way, 9000, 0, payload);
        }
    }

    #[test]
    fn in_pipelined_mode_only() {
        for (id, own, peer) in [
            (requirement!("SDP-11-16"), &[0][..], &[0][..]),
            (requirement!("SDP-11-17"), &[0], &[]),
            (requirement!("SDP-11-19"), &[], &[0]),
            (requirement!("SDP-11-20"), &[], &[]),
            (requirement!("SDP-11-22"), &[4], &[0]),
            (requirement!("SDP-11-23"), &[4], &[]),
            (requirement!("SDP-11-8"), &[], &[]),
        ] {
            proves_each_way(id, in_modes(own, peer, 0), in_modes(own, &[4], 0));
        }
    }

    #[test]
    fn not_in_the_first_mode() {
        for id in [
            requirement!("SDP-11-2"),
            requirement!("SDP-12-2"),
            requirement!("SDP-12-23"),
            requirement!("SDP-12-20"),
            requirement!("SDP-12.5-16"),
        ] {
            proves_each_way(id, in_modes(&[], &[], 0), in_modes(&[], &[4], 0));
        }
        proves_each_way(requirement!("SDP-9.4-2"), in_modes(&[], &[], 9), in_modes(&[], &[4], 9));
        proves_each_way(requirement!("SDP-9.4-6"), in_modes(&[], &[], 9), in_modes(&[], &[4], 9));
    }

    /// The Data Sink is allowed to send a SinkAvail until it has received the ModeChange.
    #[test]
    fn no_sink_avail_after_pipelined_mode() {
        let late = |known: bool| {
            move |script: &mut SdpScript, way: usize| {
                pipelined(script, 1 - way);
                script.send(1 - way, Mid::MODE_CHANGE, "00000002", 0);
                if known {
                    script.receive_all(way);
                }
                script.send(way, Mid::SINK_AVAIL, &advert(9000, Some(0)), 0);
            }
        };
        for id in [
            requirement!("SDP-12-19"),
            requirement!("SDP-12-21"),
            requirement!("SDP-12.4-5"),
            requirement!("SDP-12.5-9"),
            requirement!("SDP-12-20"),
        ] {
            proves_each_way(id, late(true), late(false));
        }
    }

    #[test]
    fn non_discards_count() {
        let counts = |count: u32| {
            move |script: &mut SdpScript, way: usize| {
                pipelined(script, 1 - way);
                script.send(1 - way, Mid::DATA, "", 5);
                script.send(1 - way, Mid::DATA, "", 0);
                script.both_receive_all();
                sink_avail(script, way, 9000, count, 0);
                // This payload makes the SinkAvail stale, so NonDiscards does not count the
                // message.
                script.send(1 - way, Mid::DATA, "", 5);
                script.both_receive_all();
                sink_avail(script, way, 9000, 1, 0);
            }
        };
        proves_each_way(requirement!("SDP-9.3-5"), counts(0), counts(1));
        proves_each_way(requirement!("SDP-9.3-5"), counts(2), counts(1));
    }

    #[test]
    fn none_while_a_cancel_is_open() {
        let canceled = |answer: Mid, next: Mid| {
            move |script: &mut SdpScript, way: usize| {
                pipelined(script, 1 - way);
                sink_avail(script, way, 9000, 0, 0);
                script.send(way, Mid::SINK_AVAIL_CANCEL, "", 0);
                script.both_receive_all();
                script.send(1 - way, answer, "", 0);
                script.both_receive_all();
                let extension = if next == Mid::SINK_AVAIL { advert(9000, Some(0)) } else { String::new() };
                script.send(way, next, &extension, 0);
            }
        };
        for next in [Mid::SINK_AVAIL, Mid::SINK_AVAIL_CANCEL] {
            proves_each_way(
                requirement!("SDP-9.5.5-11"),
                canceled(Mid::DATA, next),
                canceled(Mid::SINK_CANCEL_ACK, next),
            );
        }
    }

    #[test]
    fn none_while_a_src_avail_waits() {
        let offered = |known: bool| {
            move |script: &mut SdpScript, way: usize| {
                pipelined(script, 1 - way);
                script.send(1 - way, Mid::SRC_AVAIL, &advert(9000, None), 0);
                if known {
                    script.receive_all(way);
                }
                script.send(way, Mid::SINK_AVAIL, &advert(9000, Some(0)), 0);
            }
        };
        proves_each_way(requirement!("SDP-11.3-18"), offered(true), offered(false));
        proves_each_way(requirement!("SDP-11.3-13"), offered(true), offered(false));
        let canceled = |script: &mut SdpScript, way: usize| {
            pipelined(script, 1 - way);
            script.send(1 - way, Mid::SRC_AVAIL, &advert(9000, None), 0);
            script.send(1 - way, Mid::SRC_AVAIL_CANCEL, "", 0);
            script.receive_all(way);
            script.send(way, Mid::SINK_AVAIL, &advert(9000, Some(0)), 0);
        };
        proves_each_way(requirement!("SDP-11.3-18"), offered(true), canceled);
    }

    /// MaxAdverts is 4 at both endpoints.
    #[test]
    fn no_more_than_max_adverts() {
        let open = |sources: u32, sinks: u32, payload: usize| {
            move |script: &mut SdpScript, way: usize| {
                (0..2).for_each(|source| pipelined(script, source));
                (0..sources).for_each(|_| src_avail(script, way, 9000, 0));
                (0..sinks).for_each(|_| sink_avail(script, way, 9000, 0, payload));
            }
        };
        proves_each_way(requirement!("SDP-11.3-23"), open(5, 0, 0), open(4, 0, 0));
        proves_each_way(requirement!("SDP-11.3-23"), open(2, 3, 0), open(2, 2, 0));
        proves_each_way(requirement!("SDP-11-24"), open(0, 5, 0), open(0, 4, 0));
        proves_each_way(requirement!("SDP-9.4-6"), open(0, 5, 9), open(0, 4, 9));
        // A completed SinkAvail is not open.
        let one_ends = |script: &mut SdpScript, way: usize| {
            open(4, 0, 0)(script, way);
            completes(script, 1 - way, Mid::RDMA_RD_COMPL, 9000);
            src_avail(script, way, 9000, 0);
        };
        proves_each_way(requirement!("SDP-11.3-23"), open(5, 0, 0), one_ends);
    }
}
