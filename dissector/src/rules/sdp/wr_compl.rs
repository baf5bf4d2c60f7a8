//! Compares RdmaWrCompls with the SinkAvail that they answer (sections 9.3, 9.5.1, 9.5.5 and 12.4).

use weft_core::RequirementId;
use weft_core::requirement;
use weft_core::wire::rdmap::Opcode;
use weft_core::wire::sdp::{Mid, Mode, RawRdmaWrCompl};

use super::figure::{PAIRS, name, pair};
use super::view::SdpView;
use crate::follow::ConnectionState;
use crate::follow::sdp::{Advert, Why};
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
        requirement!("SDP-12-17"),
        requirement!("SDP-12.4-5"),
        requirement!("SDP-12.4-7"),
        requirement!("SDP-12.5-2"),
    ],
    judge: Judge::Sdp(in_mode),
};

pub(super) static WITHOUT_SINK_AVAIL: Rule = Rule {
    requirements: &[
        requirement!("SDP-9.3-1"),
        requirement!("SDP-9.3-8"),
        requirement!("SDP-9.5.1-3"),
        requirement!("SDP-9.5.1-12"),
        requirement!("SDP-9.5.1-13"),
        requirement!("SDP-9.5.2.2-2"),
        requirement!("SDP-9.5.5-2"),
        requirement!("SDP-12.4-8"),
        requirement!("SDP-12.5-4"),
    ],
    judge: Judge::Sdp(without_sink_avail),
};

pub(super) static AMOUNT: Rule = Rule {
    requirements: &[
        requirement!("SDP-9.3-9"),
        requirement!("SDP-9.3-10"),
        requirement!("SDP-9.3-12"),
        requirement!("SDP-9.3-14"),
    ],
    judge: Judge::Sdp(amount),
};

/// Returns the requirements that a use of an ended SinkAvail violates, and how the SinkAvail ended.
pub(super) fn ended(why: Option<Why>) -> (&'static [RequirementId], &'static str) {
    match why {
        Some(Why::Stale) => (
            const {
                &[
                    requirement!("SDP-9.5.1-3"),
                    requirement!("SDP-9.5.1-12"),
                    requirement!("SDP-9.5.1-13"),
                    requirement!("SDP-9.5.2.2-2"),
                ]
            },
            "the SinkAvail was stale",
        ),
        Some(Why::Revoked) => (const { &[requirement!("SDP-9.5.5-2")] }, "the SinkAvail was canceled"),
        Some(Why::Void) => (
            const { &[requirement!("SDP-12.4-8"), requirement!("SDP-12.5-4")] },
            "a ModeChange had ended Pipelined Mode",
        ),
        Some(Why::Completed | Why::ByData) => {
            (const { &[requirement!("SDP-9.3-1"), requirement!("SDP-9.3-8")] }, "the SinkAvail was completed")
        }
        None => (const { &[requirement!("SDP-9.3-1")] }, "none was open"),
    }
}

fn in_mode(_: &ConnectionState, unit: &Unit<'_>, view: &SdpView<'_>, findings: &mut Findings<'_>) {
    let before = view.before();
    let (Mid::RDMA_WR_COMPL, true, Some(mode)) = (view.mid(), before.certain, before.source_mode) else { return };
    if mode == Mode::Pipelined {
        return;
    }
    let (expected, found) = ("Pipelined Mode", name(mode));
    let mut report = |ids: &[RequirementId]| findings.each(ids, unit, view.place(3..4), expected, found);
    report(pair(before).as_slice());
    if mode == Mode::Combined {
        report(&[requirement!("SDP-11-8"), requirement!("SDP-12-17")]);
        if before.changes.left == Some(Mode::Pipelined) {
            report(&[requirement!("SDP-12.4-5"), requirement!("SDP-12.4-7"), requirement!("SDP-12.5-2")]);
        }
    }
}

fn without_sink_avail(_: &ConnectionState, unit: &Unit<'_>, view: &SdpView<'_>, findings: &mut Findings<'_>) {
    let before = view.before();
    if view.mid() != Mid::RDMA_WR_COMPL || !before.certain || before.usable.count > 0 {
        return;
    }
    let (ids, why) = ended(before.last_usable);
    findings.each(ids, unit, view.place(3..4), "a usable SinkAvail", &format!("RdmaWrCompl; {why}"));
}

fn amount(_: &ConnectionState, unit: &Unit<'_>, view: &SdpView<'_>, findings: &mut Findings<'_>) {
    let (before, mid) = (view.before(), view.place(3..4));
    let Some(raw) = view.extension::<RawRdmaWrCompl>().filter(|_| view.mid() == Mid::RDMA_WR_COMPL) else { return };
    let sent = view.state.latest.sent;
    if let Some(sent) = sent
        && matches!(sent.opcode, Opcode::SEND | Opcode::SEND_INVALIDATE)
    {
        let expected = "Send with SE, with or without Invalidate";
        findings.at(requirement!("SDP-9.3-10"), unit, mid.clone(), expected, sent.opcode.to_string());
    }
    let Some(Advert { stag, frame, .. }) = before.usable.oldest.filter(|_| before.certain) else { return };
    if let Some(sent) = sent
        && sent.invalidates != Some(stag)
    {
        let expected = format!("Invalidate STag {stag:#010x} of the SinkAvail of frame {frame}");
        let found =
            sent.invalidates.map_or_else(|| "no Invalidate".to_owned(), |stag| format!("Invalidate STag {stag:#010x}"));
        if sent.invalidates.is_some() {
            // Invalidate is optional, but the draft calls the invalidation of another STag a
            // protocol violation.
            findings.at(requirement!("SDP-9.3-12"), unit, mid.clone(), &expected, found.clone());
        }
        findings.at(requirement!("SDP-9.3-9"), unit, mid, &expected, found);
    }
    let len = u64::from(raw.len.get());
    if let Some(moved) = before.moved.filter(|moved| moved.written != len) {
        let expected = format!("{}, the bytes that RDMA Writes put into the buffer of frame {frame}", moved.written);
        findings.at(requirement!("SDP-9.3-14"), unit, view.place(16..20), &expected, len.to_string());
    }
}

#[cfg(test)]
mod tests {
    use weft_core::requirement;
    use weft_core::requirement::Severity;
    use weft_core::wire::sdp::{FieldOrder, Mid};

    use crate::rules::sdp::talk::{advert_of, change, completes, pipelined, proves_each_way, sink_avail};
    use crate::testing::sdp::{STAG, Talk, VA, advert, word};

    /// A SinkAvail of 9000 octets, RDMA Writes of `written` octets, and an RdmaWrCompl of
    /// `reported` octets.
    fn writes(written: usize, reported: u32) -> impl Fn(&mut Talk, usize) {
        move |talk, way| {
            pipelined(talk, way);
            sink_avail(talk, 1 - way, 9000, 0, 0);
            talk.write(way, STAG, VA, written);
            completes(talk, way, Mid::RDMA_WR_COMPL, reported);
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
            move |talk: &mut Talk, way: usize| {
                pipelined(talk, way);
                sink_avail(talk, 1 - way, 9000, 0, 0);
                talk.write(way, STAG, VA, 50);
                talk.send_in(opcode, way, Mid::RDMA_WR_COMPL, &word(50), 0);
            }
        };
        proves_each_way(requirement!("SDP-9.3-9"), ends(5), ends(6));
        proves_each_way(requirement!("SDP-9.3-10"), ends(3), ends(5));
        proves_each_way(requirement!("SDP-9.3-10"), ends(4), ends(6));
    }

    #[test]
    fn it_invalidates_no_other_stag() {
        let ends = |stag: u32, opcode: u8| {
            move |talk: &mut Talk, way: usize| {
                pipelined(talk, way);
                talk.send(1 - way, Mid::SINK_AVAIL, &advert_of(stag, 9000, Some(0)), 0);
                talk.both_receive_all();
                talk.write(way, stag, VA, 50);
                talk.send_in(opcode, way, Mid::RDMA_WR_COMPL, &word(50), 0);
            }
        };
        let other = STAG + 1;
        proves_each_way(requirement!("SDP-9.3-12"), ends(other, 6), ends(STAG, 6));
        proves_each_way(requirement!("SDP-9.3-12"), ends(other, 6), ends(other, 5));
        let mut talk = Talk::begun(FieldOrder::Figure);
        ends(other, 6)(&mut talk, 0);
        let findings = talk.wire.findings();
        let found = findings.iter().find(|finding| finding.requirement == requirement!("SDP-9.3-12"));
        assert_eq!(found.map(|finding| finding.severity), Some(Severity::Error));
    }

    #[test]
    fn one_for_each_sink_avail() {
        let ends = |count: usize| {
            move |talk: &mut Talk, way: usize| {
                writes(50, 50)(talk, way);
                (1..count).for_each(|_| completes(talk, way, Mid::RDMA_WR_COMPL, 50));
            }
        };
        proves_each_way(requirement!("SDP-9.3-8"), ends(2), ends(1));
        let completes_once = |advertised: bool| {
            move |talk: &mut Talk, way: usize| {
                pipelined(talk, way);
                if advertised {
                    sink_avail(talk, 1 - way, 9000, 0, 0);
                }
                completes(talk, way, Mid::RDMA_WR_COMPL, 0);
            }
        };
        proves_each_way(requirement!("SDP-9.3-1"), completes_once(false), completes_once(true));
    }

    /// The example of section 9.5.1 with two SinkAvails. The first SinkAvail is stale.
    #[test]
    fn stale_ones_are_not_used() {
        let uses = |sinks: usize| {
            move |talk: &mut Talk, way: usize| {
                pipelined(talk, way);
                (0..sinks).for_each(|_| talk.send(1 - way, Mid::SINK_AVAIL, &advert(9000, Some(0)), 0));
                talk.send(way, Mid::DATA, "", 7);
                talk.receive_all(way);
                talk.write(way, STAG, VA, 50);
                completes(talk, way, Mid::RDMA_WR_COMPL, 50);
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
            move |talk: &mut Talk, way: usize| {
                pipelined(talk, way);
                sink_avail(talk, 1 - way, 9000, 0, 0);
                talk.write(way, STAG, VA, 50);
                talk.send(1 - way, Mid::SINK_AVAIL_CANCEL, "", 0);
                talk.receive_all(way);
                if acknowledged {
                    talk.send(way, Mid::SINK_CANCEL_ACK, "", 0);
                }
                completes(talk, way, Mid::RDMA_WR_COMPL, 50);
            }
        };
        proves_each_way(requirement!("SDP-9.5.5-2"), uses(true), uses(false));
    }

    /// An RdmaWrCompl after ModeChanges with these extended headers. `own` changes the Mode of the
    /// data that the endpoint sends, `peer` the Mode of the data that it receives.
    fn in_modes(own: &'static [u32], peer: &'static [u32]) -> impl Fn(&mut Talk, usize) {
        move |talk, way| {
            peer.iter().for_each(|word| change(talk, 1 - way, *word));
            own.iter().for_each(|word| change(talk, way, *word));
            completes(talk, way, Mid::RDMA_WR_COMPL, 50);
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
            move |talk: &mut Talk, way: usize| {
                pipelined(talk, way);
                sink_avail(talk, 1 - way, 9000, 0, 0);
                talk.write(way, STAG, VA, 50);
                if after {
                    change(talk, way, 2);
                }
                completes(talk, way, Mid::RDMA_WR_COMPL, 50);
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
