//! Compares RDMA Writes and Read Requests with the advertisements that allow them (sections 9, 11.3
//! and 12.4, Figure 25).
//!
//! A rule runs at the next SDP message of the same endpoint, because MSeqAck of that message shows
//! which advertisements the endpoint had received.

use weft_core::RequirementId;
use weft_core::requirement;
use weft_core::wire::sdp::Mode;

use super::figure::{PAIRS, name, pair};
use super::view::SdpView;
use super::wr_compl;
use crate::direction::Direction;
use crate::follow::ConnectionState;
use crate::follow::sdp::{Act, Before, Stray, Why};
use crate::parse::Unit;
use crate::rules::findings::Findings;
use crate::rules::rule::{Judge, Rule};

pub(super) static IN_MODE: Rule = Rule {
    requirements: &[
        requirement!("SDP-11-8"),
        PAIRS[0],
        PAIRS[1],
        PAIRS[2],
        PAIRS[3],
        PAIRS[4],
        PAIRS[5],
        PAIRS[6],
        requirement!("SDP-12-17"),
        requirement!("SDP-12-20"),
        requirement!("SDP-12.4-6"),
        requirement!("SDP-12.5-2"),
    ],
    judge: Judge::Sdp(in_mode),
};

pub(super) static ALLOWED: Rule = Rule {
    requirements: &[
        requirement!("SDP-9.2-1"),
        requirement!("SDP-9.3-1"),
        requirement!("SDP-9.3-8"),
        requirement!("SDP-9.5.1-3"),
        requirement!("SDP-9.5.1-12"),
        requirement!("SDP-9.5.1-13"),
        requirement!("SDP-9.5.2.1-4"),
        requirement!("SDP-9.5.2.2-2"),
        requirement!("SDP-9.5.4-2"),
        requirement!("SDP-9.5.4-6"),
        requirement!("SDP-9.5.5-2"),
        requirement!("SDP-11.3-12"),
        requirement!("SDP-11.3-20"),
        requirement!("SDP-12.4-8"),
        requirement!("SDP-12.4-11"),
        requirement!("SDP-12.4-12"),
        requirement!("SDP-12.5-4"),
        requirement!("SDP-12.5-7"),
    ],
    judge: Judge::Sdp(allowed),
};

pub(super) static CANCELED: Rule = Rule {
    requirements: &[requirement!("SDP-9.5.4-6"), requirement!("SDP-9.5.5-6"), requirement!("SDP-9.5.5-7")],
    judge: Judge::Sdp(canceled),
};

pub(super) static AT_THE_END: Rule =
    Rule { requirements: &[requirement!("SDP-9.5.5-2"), requirement!("SDP-9.5.5-7")], judge: Judge::End(at_the_end) };

/// Reports RDMA Writes after the last message of an endpoint to a canceled SinkAvail. The
/// endpoint's SinkCancelAck shows that the endpoint had received the SinkAvailCancel.
fn at_the_end(state: &ConnectionState, findings: &mut Findings<'_>) {
    let Some(sdp) = state.context().sdp.as_deref().filter(|sdp| sdp.complete) else { return };
    for direction in Direction::BOTH {
        let Some(write) = sdp.write_after_cancel_ack(direction) else { continue };
        let found = format!("one to STag {:#010x}, whose SinkAvail was canceled", write.stag);
        let expected = "no RDMA Write after its own SinkCancelAck";
        for id in [requirement!("SDP-9.5.5-2"), requirement!("SDP-9.5.5-7")] {
            findings.in_frame(id, direction, write.place, expected, found.clone());
        }
    }
}

fn in_mode(_: &ConnectionState, _: &Unit<'_>, view: &SdpView<'_>, findings: &mut Findings<'_>) {
    let before = view.before();
    if !before.certain {
        return;
    }
    let mut report = |ids: &[RequirementId], act: Act, expected: &str, found: &str| {
        ids.iter().for_each(|id| findings.in_frame(*id, view.direction, act.place, expected, found.to_owned()));
    };
    if let (Some(write), Some(mode)) = (before.done.write, before.source_mode)
        && mode != Mode::Pipelined
    {
        let (expected, found) = ("RDMA Writes in Pipelined Mode only", name(mode));
        report(pair(before).as_slice(), write, expected, found);
        if mode == Mode::Combined {
            report(&[requirement!("SDP-11-8"), requirement!("SDP-12-17")], write, expected, found);
            if before.changes.left == Some(Mode::Pipelined) {
                report(
                    &[requirement!("SDP-12.4-6"), requirement!("SDP-12.5-2")],
                    write,
                    expected,
                    "an RDMA Write after the ModeChange that ended it",
                );
            }
        }
    }
    if let (Some(read), Some(Mode::Buffered)) = (before.done.read, before.sink_mode) {
        let expected = "no RDMA Read in Buffered Mode";
        report(pair(before).as_slice(), read, expected, "one");
        report(&[requirement!("SDP-12-17")], read, expected, "one, from the Data Sink, the Mode Master");
    }
}

fn allowed(_: &ConnectionState, _: &Unit<'_>, view: &SdpView<'_>, findings: &mut Findings<'_>) {
    let before = view.before();
    let (Some(stray), true) = (before.done.stray, before.certain) else { return };
    let Stray { act: Act { write, stag, from, len, place }, why, outside } = stray;
    if let Some(advert) = outside {
        let (id, what) = match write {
            true => (requirement!("SDP-9.3-1"), "an RDMA Write"),
            false => (requirement!("SDP-9.2-1"), "an RDMA Read"),
        };
        let expected = format!(
            "access inside the buffer that frame {} advertised: {} bytes from {:#x}",
            advert.frame, advert.len, advert.va
        );
        let found = format!("{what} of {len} bytes from {from:#x}, STag {stag:#010x}");
        return findings.in_frame(id, view.direction, place, &expected, found);
    }
    let (ids, reason) = if write { wr_compl::ended(why) } else { ended(why) };
    let what = if write { "an RDMA Write to" } else { "an RDMA Read from" };
    let found = format!("{what} STag {stag:#010x}; {reason}");
    let expected = if write { "a usable SinkAvail" } else { "an open SrcAvail" };
    let mut report = |id| findings.in_frame(id, view.direction, place, expected, found.clone());
    ids.iter().copied().for_each(&mut report);
    if write && why == Some(Why::Void) {
        late(before).iter().copied().for_each(report);
    }
}

/// Returns the requirements about SinkAvails that arrive after the ModeChange which ended Pipelined
/// Mode.
fn late(before: &Before) -> &'static [RequirementId] {
    match before.changes.late {
        0 => &[],
        1 => const { &[requirement!("SDP-12.4-11"), requirement!("SDP-12.5-7")] },
        _ => const { &[requirement!("SDP-12.4-11"), requirement!("SDP-12.4-12"), requirement!("SDP-12.5-7")] },
    }
}

/// Returns the requirements that a use of an ended SrcAvail violates, and how the SrcAvail ended.
fn ended(why: Option<Why>) -> (&'static [RequirementId], &'static str) {
    match why {
        Some(Why::Void | Why::Stale) => (
            const { &[requirement!("SDP-9.5.2.1-4"), requirement!("SDP-11.3-12"), requirement!("SDP-11.3-20")] },
            "its own SinkAvail took precedence",
        ),
        Some(Why::Revoked) => {
            (const { &[requirement!("SDP-9.5.4-2"), requirement!("SDP-9.5.4-6")] }, "the SrcAvail was canceled")
        }
        Some(Why::Completed | Why::ByData) => (const { &[requirement!("SDP-9.2-1")] }, "the SrcAvail was Processed"),
        None => (const { &[requirement!("SDP-9.2-1")] }, "none was open"),
    }
}

/// Reports an endpoint that starts an RDMA Read or Write after it has acknowledged a cancel.
fn canceled(_: &ConnectionState, _: &Unit<'_>, view: &SdpView<'_>, findings: &mut Findings<'_>) {
    let before = view.before();
    if !before.certain {
        return;
    }
    if let Some(read) = before.done.read.filter(|_| before.cancels.src_avail_was_received) {
        let expected = "no new RDMA Read after the SrcAvailCancel";
        findings.in_frame(requirement!("SDP-9.5.4-6"), view.direction, read.place, expected, "one".to_owned());
    }
    if let Some(write) = before.done.write.filter(|_| before.cancels.sink_avail_was_received) {
        let expected = "no new RDMA Write after the SinkAvailCancel";
        for id in [requirement!("SDP-9.5.5-7"), requirement!("SDP-9.5.5-6")] {
            findings.in_frame(id, view.direction, write.place, expected, "one".to_owned());
        }
    }
}

#[cfg(test)]
mod tests {
    use weft_core::requirement;
    use weft_core::wire::sdp::Mid;

    use crate::rules::sdp::talk::{change, completes, pipelined, proves_each_way, sink_avail, src_avail};
    use crate::testing::sdp::{STAG, Talk, VA, advert};

    const OTHER: u32 = 0x0099_0099;

    /// The endpoint that sends in direction `way` acknowledges all received messages.
    fn acknowledges(talk: &mut Talk, way: usize) {
        talk.receive_all(way);
        talk.send(way, Mid::DATA, "", 0);
        talk.both_receive_all();
    }

    #[test]
    fn reads_and_writes_are_advertised() {
        let reads = |stag: u32| {
            move |talk: &mut Talk, way: usize| {
                src_avail(talk, 1 - way, 50, 10);
                talk.reads(way, stag, VA, 50);
                acknowledges(talk, way);
            }
        };
        proves_each_way(requirement!("SDP-9.2-1"), reads(OTHER), reads(STAG));
        let writes = |stag: u32| {
            move |talk: &mut Talk, way: usize| {
                pipelined(talk, way);
                sink_avail(talk, 1 - way, 9000, 0, 0);
                talk.write(way, stag, VA, 50);
                acknowledges(talk, way);
            }
        };
        proves_each_way(requirement!("SDP-9.3-1"), writes(OTHER), writes(STAG));
    }

    /// Access to all octets of the buffer, and one octet before or after the buffer. For Writes,
    /// there are two equal SinkAvails.
    #[test]
    fn access_stays_inside_the_buffer() {
        let reads = |from: u64, len: u32| {
            move |talk: &mut Talk, way: usize| {
                src_avail(talk, 1 - way, 50, 10);
                talk.reads(way, STAG, from, len);
                acknowledges(talk, way);
            }
        };
        let id = requirement!("SDP-9.2-1");
        proves_each_way(id, reads(VA, 51), reads(VA, 50));
        proves_each_way(id, reads(VA - 1, 50), reads(VA + 49, 1));
        let writes = |from: u64, len: usize| {
            move |talk: &mut Talk, way: usize| {
                pipelined(talk, way);
                for _ in 0..2 {
                    sink_avail(talk, 1 - way, 9000, 0, 0);
                }
                talk.write(way, STAG, from, len);
                acknowledges(talk, way);
            }
        };
        let id = requirement!("SDP-9.3-1");
        proves_each_way(id, writes(VA + 8999, 2), writes(VA + 8999, 1));
        let in_parts = |last: usize| {
            move |talk: &mut Talk, way: usize| {
                pipelined(talk, way);
                sink_avail(talk, 1 - way, 9000, 0, 0);
                for (from, len) in [(0, 4000), (4000, 4000), (8000, last)] {
                    talk.write(way, STAG, VA + from, len);
                }
                acknowledges(talk, way);
            }
        };
        proves_each_way(id, in_parts(1001), in_parts(1000));
    }

    /// A write after the SinkAvail was completed, became stale, or was canceled.
    #[test]
    fn no_write_to_an_ended_sink_avail() {
        let writes = |ends: fn(&mut Talk, usize), ended: bool| {
            move |talk: &mut Talk, way: usize| {
                pipelined(talk, way);
                sink_avail(talk, 1 - way, 9000, 0, 0);
                if ended {
                    ends(talk, way);
                }
                talk.write(way, STAG, VA, 50);
                acknowledges(talk, way);
            }
        };
        let completed: fn(&mut Talk, usize) = |talk, way| completes(talk, way, Mid::RDMA_WR_COMPL, 0);
        let stale: fn(&mut Talk, usize) = |talk, way| talk.send(way, Mid::DATA, "", 9);
        let canceled: fn(&mut Talk, usize) = |talk, way| {
            talk.send(1 - way, Mid::SINK_AVAIL_CANCEL, "", 0);
            talk.receive_all(way);
            talk.send(way, Mid::SINK_CANCEL_ACK, "", 0);
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

    /// The writer sends no message after the Write. Its earlier SinkCancelAck shows what it had
    /// received.
    #[test]
    fn no_write_after_the_last_sink_cancel_ack() {
        let writes = |acknowledged: bool| {
            move |talk: &mut Talk, way: usize| {
                pipelined(talk, way);
                sink_avail(talk, 1 - way, 9000, 0, 0);
                talk.send(1 - way, Mid::SINK_AVAIL_CANCEL, "", 0);
                talk.receive_all(way);
                if acknowledged {
                    talk.send(way, Mid::SINK_CANCEL_ACK, "", 0);
                }
                talk.write(way, STAG, VA, 50);
            }
        };
        proves_each_way(requirement!("SDP-9.5.5-2"), writes(true), writes(false));
        let again = |talk: &mut Talk, way: usize| {
            writes(true)(talk, way);
            sink_avail(talk, 1 - way, 9000, 0, 0);
        };
        proves_each_way(requirement!("SDP-9.5.5-2"), writes(true), again);
    }

    #[test]
    fn starts_no_rdma_after_a_cancel() {
        let writes = |received: bool| {
            move |talk: &mut Talk, way: usize| {
                pipelined(talk, way);
                sink_avail(talk, 1 - way, 9000, 0, 0);
                talk.send(1 - way, Mid::SINK_AVAIL_CANCEL, "", 0);
                if received {
                    talk.receive_all(way);
                }
                talk.send(way, Mid::DATA, "", 0);
                talk.write(way, STAG, VA, 50);
                acknowledges(talk, way);
            }
        };
        proves_each_way(requirement!("SDP-9.5.5-7"), writes(true), writes(false));
        proves_each_way(requirement!("SDP-9.5.5-6"), writes(true), writes(false));
        let reads = |received: bool| {
            move |talk: &mut Talk, way: usize| {
                src_avail(talk, 1 - way, 50, 10);
                talk.send(1 - way, Mid::SRC_AVAIL_CANCEL, "", 0);
                if received {
                    talk.receive_all(way);
                }
                talk.send(way, Mid::DATA, "", 0);
                talk.reads(way, STAG, VA, 50);
                acknowledges(talk, way);
            }
        };
        proves_each_way(requirement!("SDP-9.5.4-6"), reads(true), reads(false));
        let answered = |first: bool| {
            move |talk: &mut Talk, way: usize| {
                src_avail(talk, 1 - way, 50, 10);
                talk.send(1 - way, Mid::SRC_AVAIL_CANCEL, "", 0);
                if first {
                    talk.reads(way, STAG, VA, 50);
                }
                talk.receive_all(way);
                talk.send(way, Mid::SEND_SM, "", 0);
                if !first {
                    talk.reads(way, STAG, VA, 50);
                }
                acknowledges(talk, way);
            }
        };
        proves_each_way(requirement!("SDP-9.5.4-2"), answered(false), answered(true));
    }

    #[test]
    fn a_src_avail_that_crossed_is_not_read() {
        let reads = |crosses: bool| {
            move |talk: &mut Talk, way: usize| {
                pipelined(talk, 1 - way);
                if crosses {
                    talk.send(way, Mid::SINK_AVAIL, &advert(9000, Some(0)), 0);
                }
                src_avail(talk, 1 - way, 50, 0);
                talk.reads(way, STAG, VA, 50);
                acknowledges(talk, way);
            }
        };
        for id in [requirement!("SDP-9.5.2.1-4"), requirement!("SDP-11.3-12"), requirement!("SDP-11.3-20")] {
            proves_each_way(id, reads(true), reads(false));
        }
    }

    #[test]
    fn no_write_after_pipelined_mode() {
        let writes = |after: bool| {
            move |talk: &mut Talk, way: usize| {
                pipelined(talk, way);
                sink_avail(talk, 1 - way, 9000, 0, 0);
                if !after {
                    talk.write(way, STAG, VA, 50);
                    completes(talk, way, Mid::RDMA_WR_COMPL, 50);
                }
                change(talk, way, 2);
                if after {
                    talk.write(way, STAG, VA, 50);
                }
                acknowledges(talk, way);
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
            move |talk: &mut Talk, way: usize| {
                pipelined(talk, way);
                talk.send(way, Mid::MODE_CHANGE, "00000002", 0);
                (0..count).for_each(|_| talk.send(1 - way, Mid::SINK_AVAIL, &advert(9000, Some(0)), 0));
                if writes {
                    talk.write(way, STAG, VA, 50);
                }
                acknowledges(talk, way);
            }
        };
        proves_each_way(requirement!("SDP-12.4-11"), writes(1, true), writes(1, false));
        proves_each_way(requirement!("SDP-12.5-7"), writes(1, true), writes(1, false));
        proves_each_way(requirement!("SDP-12.4-12"), writes(2, true), writes(1, true));
    }

    /// A read while the peer's data is in Buffered Mode, for each Mode of the reader's data.
    #[test]
    fn no_read_in_buffered_mode() {
        let reads = |own: &'static [u32], buffered: bool| {
            move |talk: &mut Talk, way: usize| {
                own.iter().for_each(|word| change(talk, way, *word));
                if buffered {
                    change(talk, 1 - way, 0);
                } else {
                    src_avail(talk, 1 - way, 50, 10);
                }
                talk.reads(way, STAG, VA, 50);
                acknowledges(talk, way);
            }
        };
        proves_each_way(requirement!("SDP-11-16"), reads(&[0], true), reads(&[0], false));
        proves_each_way(requirement!("SDP-11-19"), reads(&[], true), reads(&[], false));
        proves_each_way(requirement!("SDP-11-22"), reads(&[4], true), reads(&[4], false));
    }
}
