//! Compares RDMA Writes and Read Requests with the advertisements that allow them (sections 9, 11.3
//! and 12.4, Figure 25 of the SDP draft).
//!
//! A rule runs at the next SDP message of the endpoint that sent the Write or Read Request. MSeqAck
//! of that message shows which advertisements the endpoint had received.

use weft_core::RequirementId;
use weft_core::requirement;
use weft_core::wire::sdp::Mode;

use super::figure::{name, pair};
use super::view::SdpView;
use super::wr_compl;
use crate::direction::Direction;
use crate::follow::ConnectionState;
use crate::follow::sdp::{EndReason, RdmaAccess, SenderState, UnadvertisedAccess};
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
    "SDP-11-22",
    "SDP-12-17",
    "SDP-12-20",
    "SDP-12.4-6",
    "SDP-12.5-2"
]);

pub(super) static ALLOWED: Rule = Check::Sdp(allowed).covers(requirements![
    "SDP-9.2-1",
    "SDP-9.3-1",
    "SDP-9.3-8",
    "SDP-9.5.1-3",
    "SDP-9.5.1-12",
    "SDP-9.5.1-13",
    "SDP-9.5.2.1-4",
    "SDP-9.5.2.2-2",
    "SDP-9.5.4-2",
    "SDP-9.5.4-6",
    "SDP-9.5.5-2",
    "SDP-11.3-12",
    "SDP-11.3-20",
    "SDP-12.4-8",
    "SDP-12.4-11",
    "SDP-12.4-12",
    "SDP-12.5-4",
    "SDP-12.5-7"
]);

pub(super) static CANCELED: Rule =
    Check::Sdp(canceled).covers(requirements!["SDP-9.5.4-6", "SDP-9.5.5-6", "SDP-9.5.5-7"]);

pub(super) static AT_THE_END: Rule = Check::End(at_the_end).covers(requirements!["SDP-9.5.5-2", "SDP-9.5.5-7"]);

/// Reports RDMA Writes to a canceled SinkAvail if the endpoint sends no message after the Writes.
/// An earlier SinkCancelAck shows that the endpoint had received the SinkAvailCancel.
fn at_the_end(state: &ConnectionState, findings: &mut Findings<'_>) {
    let Some(sdp) = state.context().sdp.as_deref().filter(|sdp| sdp.complete) else { return };
    for direction in Direction::BOTH {
        let Some(write) = sdp.write_after_cancel_ack(direction) else { continue };
        let found = format!("an RDMA Write to STag {:#010x}, whose SinkAvail was canceled", write.stag);
        let expected = "no RDMA Write after the sender's own SinkCancelAck";
        findings.report_each_in_frame(AT_THE_END.requirements, direction, write.stag_location, expected, &found);
    }
}

fn in_mode(_: &ConnectionState, _: &Unit<'_>, view: &SdpView<'_>, findings: &mut Findings<'_>) {
    let sender = view.sender_state();
    if !sender.certain {
        return;
    }
    let mut report = |ids: &[RequirementId], access: RdmaAccess, expected: &str, found: &str| {
        findings.report_each_in_frame(ids, view.direction, access.stag_location, expected, found);
    };
    if let (Some(write), Some(mode)) = (sender.rdma_use.write, sender.source_mode)
        && mode != Mode::Pipelined
    {
        let (expected, found) = ("RDMA Writes in Pipelined Mode only", name(mode));
        report(pair(sender).as_slice(), write, expected, found);
        if mode == Mode::Combined {
            report(requirements!["SDP-11-8", "SDP-12-17"], write, expected, found);
            if sender.changes.previous_mode == Some(Mode::Pipelined) {
                let found = "an RDMA Write after the ModeChange that ended Pipelined Mode";
                report(requirements!["SDP-12.4-6", "SDP-12.5-2"], write, expected, found);
            }
        }
    }
    if let (Some(read), Some(Mode::Buffered)) = (sender.rdma_use.read, sender.sink_mode) {
        let expected = "no RDMA Read in Buffered Mode";
        report(pair(sender).as_slice(), read, expected, "an RDMA Read");
        report(requirements!["SDP-12-17"], read, expected, "an RDMA Read by the Data Sink, the Mode Master");
    }
}

fn allowed(_: &ConnectionState, _: &Unit<'_>, view: &SdpView<'_>, findings: &mut Findings<'_>) {
    let sender = view.sender_state();
    let (Some(unadvertised), true) = (sender.rdma_use.unadvertised, sender.certain) else { return };
    let UnadvertisedAccess { access: RdmaAccess { write, stag, from, len, stag_location }, reason, outside } =
        unadvertised;
    if let Some(advert) = outside {
        let (id, what) = match write {
            true => (requirement!("SDP-9.3-1"), "an RDMA Write"),
            false => (requirement!("SDP-9.2-1"), "an RDMA Read"),
        };
        let expected = format!(
            "access inside the {} bytes from {:#x} that frame {} advertised",
            advert.len, advert.va, advert.frame
        );
        let found = format!("{what} of {len} bytes at {from:#x}, STag {stag:#010x}");
        return findings.report_in_frame(id, view.direction, stag_location, &expected, found);
    }
    let (ids, clause) = if write { wr_compl::ended(reason) } else { ended(reason) };
    let what = if write { "an RDMA Write to" } else { "an RDMA Read from" };
    let found = format!("{what} STag {stag:#010x}, but {clause}");
    let expected = if write { "a usable SinkAvail" } else { "an open SrcAvail" };
    let late = if write && reason == Some(EndReason::Void) { late(sender) } else { &[] };
    for ids in [ids, late] {
        findings.report_each_in_frame(ids, view.direction, stag_location, expected, &found);
    }
}

/// Returns the requirements about SinkAvails that arrive after the ModeChange which ended Pipelined
/// Mode.
fn late(sender: &SenderState) -> &'static [RequirementId] {
    match sender.changes.late {
        0 => &[],
        1 => requirements!["SDP-12.4-11", "SDP-12.5-7"],
        _ => requirements!["SDP-12.4-11", "SDP-12.4-12", "SDP-12.5-7"],
    }
}

/// Returns the requirements that a use of an ended SrcAvail violates, and how the SrcAvail ended.
fn ended(reason: Option<EndReason>) -> (&'static [RequirementId], &'static str) {
    match reason {
        Some(EndReason::Void | EndReason::Stale) => {
            (requirements!["SDP-9.5.2.1-4", "SDP-11.3-12", "SDP-11.3-20"], "the sender's own SinkAvail took precedence")
        }
        Some(EndReason::Revoked) => (requirements!["SDP-9.5.4-2", "SDP-9.5.4-6"], "the SrcAvail was canceled"),
        Some(EndReason::Completed | EndReason::ByData) => (requirements!["SDP-9.2-1"], "the SrcAvail was Processed"),
        None => (requirements!["SDP-9.2-1"], "no SrcAvail was open"),
    }
}

/// Reports an endpoint that starts an RDMA Read or Write after the endpoint has acknowledged a
/// SrcAvailCancel or SinkAvailCancel.
fn canceled(_: &ConnectionState, _: &Unit<'_>, view: &SdpView<'_>, findings: &mut Findings<'_>) {
    let sender = view.sender_state();
    if !sender.certain {
        return;
    }
    if let Some(read) = sender.rdma_use.read.filter(|_| sender.cancels.src_avail_was_received) {
        let expected = "no new RDMA Read after the SrcAvailCancel";
        let id = requirement!("SDP-9.5.4-6");
        findings.report_in_frame(id, view.direction, read.stag_location, expected, "an RDMA Read");
    }
    if let Some(write) = sender.rdma_use.write.filter(|_| sender.cancels.sink_avail_was_received) {
        let expected = "no new RDMA Write after the SinkAvailCancel";
        let ids = requirements!["SDP-9.5.5-7", "SDP-9.5.5-6"];
        findings.report_each_in_frame(ids, view.direction, write.stag_location, expected, "an RDMA Write");
    }
}

#[cfg(test)]
mod tests {
    use weft_core::requirement;
    use weft_core::wire::sdp::Mid;

    use crate::rules::sdp::sdp_script::{change, completes, pipelined, proves_each_way, sink_avail, src_avail};
    use crate::testing::sdp::{STAG, SdpScript, VA, advert};

    const OTHER: u32 = 0x0099_0099;

    /// The endpoint that sends in direction `way` acknowledges all received messages.
    fn acknowledges(script: &mut SdpScript, way: usize) {
        script.receive_all(way);
        script.send(way, Mid::DATA, "", 0);
        script.both_receive_all();
    }

    #[test]
    fn reads_and_writes_are_advertised() {
        let reads = |stag: u32| {
            move |script: &mut SdpScript, way: usize| {
                src_avail(script, 1 - way, 50, 10);
                script.reads(way, stag, VA, 50);
                acknowledges(script, way);
            }
        };
        proves_each_way(requirement!("SDP-9.2-1"), reads(OTHER), reads(STAG));
        let writes = |stag: u32| {
            move |script: &mut SdpScript, way: usize| {
                pipelined(script, way);
                sink_avail(script, 1 - way, 9000, 0, 0);
                script.write(way, stag, VA, 50);
                acknowledges(script, way);
            }
        };
        proves_each_way(requirement!("SDP-9.3-1"), writes(OTHER), writes(STAG));
    }

    /// The correct accesses stay inside the buffer. Each wrong access includes one octet before the
    /// buffer, or one octet after the buffer. For the first Writes, there are two equal SinkAvails.
    #[test]
    fn access_stays_inside_the_buffer() {
        let reads = |from: u64, len: u32| {
            move |script: &mut SdpScript, way: usize| {
                src_avail(script, 1 - way, 50, 10);
                script.reads(way, STAG, from, len);
                acknowledges(script, way);
            }
        };
        let id = requirement!("SDP-9.2-1");
        proves_each_way(id, reads(VA, 51), reads(VA, 50));
        proves_each_way(id, reads(VA - 1, 50), reads(VA + 49, 1));
        let writes = |from: u64, len: usize| {
            move |script: &mut SdpScript, way: usize| {
                pipelined(script, way);
                for _ in 0..2 {
                    sink_avail(script, 1 - way, 9000, 0, 0);
                }
                script.write(way, STAG, from, len);
                acknowledges(script, way);
            }
        };
        let id = requirement!("SDP-9.3-1");
        proves_each_way(id, writes(VA + 8999, 2), writes(VA + 8999, 1));
        let in_parts = |last: usize| {
            move |script: &mut SdpScript, way: usize| {
                pipelined(script, way);
                sink_avail(script, 1 - way, 9000, 0, 0);
                for (from, len) in [(0, 4000), (4000, 4000), (8000, last)] {
                    script.write(way, STAG, VA + from, len);
                }
                acknowledges(script, way);
            }
        };
        proves_each_way(id, in_parts(1001), in_parts(1000));
    }

    /// The RDMA Write comes after the SinkAvail was completed, became stale, or was canceled.
    #[test]
    fn no_write_to_an_ended_sink_avail() {
        let writes = |ends: fn(&mut SdpScript, usize), ended: bool| {
            move |script: &mut SdpScript, way: usize| {
                pipelined(script, way);
                sink_avail(script, 1 - way, 9000, 0, 0);
                if ended {
                    ends(script, way);
                }
                script.write(way, STAG, VA, 50);
                acknowledges(script, way);
            }
        };
        let completed: fn(&mut SdpScript, usize) = |script, way| completes(script, way, Mid::RDMA_WR_COMPL, 0);
        let stale: fn(&mut SdpScript, usize) = |script, way| script.send(way, Mid::DATA, "", 9);
        let canceled: fn(&mut SdpScript, usize) = |script, way| {
            script.send(1 - way, Mid::SINK_AVAIL_CANCEL, "", 0);
            script.receive_all(way);
            script.send(way, Mid::SINK_CANCEL_ACK, "", 0);
        };
        for (id, ends) in [
            (requirement!("SDP-9.3-8"), completed),
            (requirement!("SDP-9.5.1-12"), stale),
            (requirement!("SDP-9.5.1-13"), stale),
            (requirement!("SDP-9.5.2.2-2"), stale),
            (requirement!("SDP-9.5.5-2"), canceled),
        ] {
            proves_each_way(id, writes(ends, true), writes(ends, false));
        }
    }

    /// The writer sends no message after the Write. Before the Write, it sent a SinkCancelAck, so
    /// it had received the SinkAvailCancel.
    #[test]
    fn no_write_after_the_last_sink_cancel_ack() {
        let writes = |acknowledged: bool| {
            move |script: &mut SdpScript, way: usize| {
                pipelined(script, way);
                sink_avail(script, 1 - way, 9000, 0, 0);
                script.send(1 - way, Mid::SINK_AVAIL_CANCEL, "", 0);
                script.receive_all(way);
                if acknowledged {
                    script.send(way, Mid::SINK_CANCEL_ACK, "", 0);
                }
                script.write(way, STAG, VA, 50);
            }
        };
        proves_each_way(requirement!("SDP-9.5.5-2"), writes(true), writes(false));
        let again = |script: &mut SdpScript, way: usize| {
            writes(true)(script, way);
            sink_avail(script, 1 - way, 9000, 0, 0);
        };
        proves_each_way(requirement!("SDP-9.5.5-2"), writes(true), again);
    }

    #[test]
    fn starts_no_rdma_after_a_cancel() {
        let writes = |received: bool| {
            move |script: &mut SdpScript, way: usize| {
                pipelined(script, way);
                sink_avail(script, 1 - way, 9000, 0, 0);
                script.send(1 - way, Mid::SINK_AVAIL_CANCEL, "", 0);
                if received {
                    script.receive_all(way);
                }
                script.send(way, Mid::DATA, "", 0);
                script.write(way, STAG, VA, 50);
                acknowledges(script, way);
            }
        };
        proves_each_way(requirement!("SDP-9.5.5-7"), writes(true), writes(false));
        proves_each_way(requirement!("SDP-9.5.5-6"), writes(true), writes(false));
        let reads = |received: bool| {
            move |script: &mut SdpScript, way: usize| {
                src_avail(script, 1 - way, 50, 10);
                script.send(1 - way, Mid::SRC_AVAIL_CANCEL, "", 0);
                if received {
                    script.receive_all(way);
                }
                script.send(way, Mid::DATA, "", 0);
                script.reads(way, STAG, VA, 50);
                acknowledges(script, way);
            }
        };
        proves_each_way(requirement!("SDP-9.5.4-6"), reads(true), reads(false));
        let answered = |first: bool| {
            move |script: &mut SdpScript, way: usize| {
                src_avail(script, 1 - way, 50, 10);
                script.send(1 - way, Mid::SRC_AVAIL_CANCEL, "", 0);
                if first {
                    script.reads(way, STAG, VA, 50);
                }
                script.receive_all(way);
                script.send(way, Mid::SEND_SM, "", 0);
                if !first {
                    script.reads(way, STAG, VA, 50);
                }
                acknowledges(script, way);
            }
        };
        proves_each_way(requirement!("SDP-9.5.4-2"), answered(false), answered(true));
    }

    #[test]
    fn a_src_avail_that_crossed_is_not_read() {
        let reads = |crosses: bool| {
            move |script: &mut SdpScript, way: usize| {
                pipelined(script, 1 - way);
                if crosses {
                    script.send(way, Mid::SINK_AVAIL, &advert(9000, Some(0)), 0);
                }
                src_avail(script, 1 - way, 50, 0);
                script.reads(way, STAG, VA, 50);
                acknowledges(script, way);
            }
        };
        for id in [requirement!("SDP-9.5.2.1-4"), requirement!("SDP-11.3-12"), requirement!("SDP-11.3-20")] {
            proves_each_way(id, reads(true), reads(false));
        }
    }

    #[test]
    fn no_write_after_pipelined_mode() {
        let writes = |after: bool| {
            move |script: &mut SdpScript, way: usize| {
                pipelined(script, way);
                sink_avail(script, 1 - way, 9000, 0, 0);
                if !after {
                    script.write(way, STAG, VA, 50);
                    completes(script, way, Mid::RDMA_WR_COMPL, 50);
                }
                change(script, way, 2);
                if after {
                    script.write(way, STAG, VA, 50);
                }
                acknowledges(script, way);
            }
        };
        for id in [
            requirement!("SDP-12.4-6"),
            requirement!("SDP-12.5-2"),
            requirement!("SDP-12.4-8"),
            requirement!("SDP-12.5-4"),
            requirement!("SDP-11-8"),
            requirement!("SDP-12-17"),
        ] {
            proves_each_way(id, writes(true), writes(false));
        }
    }

    #[test]
    fn late_sink_avails_are_ignored() {
        let writes = |count: u32, writes: bool| {
            move |script: &mut SdpScript, way: usize| {
                pipelined(script, way);
                script.send(way, Mid::MODE_CHANGE, "00000002", 0);
                (0..count).for_each(|_| script.send(1 - way, Mid::SINK_AVAIL, &advert(9000, Some(0)), 0));
                if writes {
                    script.write(way, STAG, VA, 50);
                }
                acknowledges(script, way);
            }
        };
        proves_each_way(requirement!("SDP-12.4-11"), writes(1, true), writes(1, false));
        proves_each_way(requirement!("SDP-12.5-7"), writes(1, true), writes(1, false));
        proves_each_way(requirement!("SDP-12.4-12"), writes(2, true), writes(1, true));
        // The SinkAvail is not late, because no ModeChange ended Pipelined Mode.
        let in_combined = |script: &mut SdpScript, way: usize| {
            sink_avail(script, 1 - way, 9000, 0, 0);
            script.write(way, STAG, VA, 50);
            acknowledges(script, way);
        };
        proves_each_way(requirement!("SDP-12.4-11"), writes(1, true), in_combined);
    }

    /// An endpoint sends an RDMA Read although Buffered Mode applies to the data that its peer
    /// sends. There are three rounds. In each round, another Mode applies to the data that the
    /// endpoint itself sends.
    #[test]
    fn no_read_in_buffered_mode() {
        let reads = |own: &'static [u32], buffered: bool| {
            move |script: &mut SdpScript, way: usize| {
                own.iter().for_each(|word| change(script, way, *word));
                if buffered {
                    change(script, 1 - way, 0);
                } else {
                    src_avail(script, 1 - way, 50, 10);
                }
                script.reads(way, STAG, VA, 50);
                acknowledges(script, way);
            }
        };
        proves_each_way(requirement!("SDP-11-16"), reads(&[0], true), reads(&[0], false));
        proves_each_way(requirement!("SDP-11-19"), reads(&[], true), reads(&[], false));
        proves_each_way(requirement!("SDP-11-22"), reads(&[4], true), reads(&[4], false));
    }
}
