//! Checks the fields of the headers SrcAH and SinkAH, which advertise buffers. Also checks that
//! each RDMA Write and RDMA Read accesses an advertised buffer (sections 6.3.2 and 6.3.3 of the SDP
//! draft).

use std::ops::Range;

use weft_core::requirement;
use weft_core::wire::ddp::Segment;
use weft_core::wire::rdmap::{Opcode, TerminateError};
use weft_core::wire::sdp::{Mid, RawSinkAvail, RawSrcAvail};

use super::view::SdpView;
use crate::direction::Direction;
use crate::follow::sdp::{Advert, MAX_LEN};
use crate::follow::{ConnectionState, RequestKind};
use crate::parse::{SegmentView, ULPDU_AT, Unit};
use crate::rules::rule::{Check, Findings, Rule};

const LEN: Range<usize> = 16..20;
const NON_DISCARDS: Range<usize> = 32..36;

pub(super) static FIELDS: Rule = Check::Sdp(fields).covers(requirements![
    "SDP-6.3.2.1-1",
    "SDP-6.3.2.1-2",
    "SDP-6.3.3.1-2",
    "SDP-6.3.3.1-3",
    "SDP-6.3.3.4-1"
]);

pub(super) static NOT_ADVERTISED: Rule =
    Check::End(not_advertised).covers(requirements!["SDP-6.3.2.3-2", "SDP-6.3.3.3-2"]);

pub(super) static REFUSED_BY_ITS_OWNER: Rule =
    Check::Opcode(1 << Opcode::TERMINATE.0, refused_by_its_owner).covers(requirements![
        "SDP-6.3.2-3",
        "SDP-6.3.2.3-1",
        "SDP-6.3.3-1",
        "SDP-6.3.3.1-1",
        "SDP-6.3.3.3-1",
        "SDP-9.2-24",
        "SDP-9.3-18"
    ]);

fn fields(_: &ConnectionState, unit: &Unit<'_>, view: &SdpView<'_>, findings: &mut Findings<'_>) {
    let (len, ids) = match view.mid() {
        Mid::SRC_AVAIL => {
            let Some(raw) = view.extension::<RawSrcAvail>() else { return };
            (raw.len.get(), [requirement!("SDP-6.3.2.1-1"), requirement!("SDP-6.3.2.1-2")])
        }
        Mid::SINK_AVAIL => {
            let Some(raw) = view.extension::<RawSinkAvail>() else { return };
            let (count, sender) = (raw.non_discards.get(), view.sender_state());
            if sender.certain && !sender.held_back && sender.payloads == 0 && count != 0 {
                let expected = "NonDiscards 0, because the sender had received no payload";
                let found = format!("NonDiscards {count}");
                findings.report(requirement!("SDP-6.3.3.4-1"), unit, NON_DISCARDS, expected, found);
            }
            (raw.len.get(), [requirement!("SDP-6.3.3.1-2"), requirement!("SDP-6.3.3.1-3")])
        }
        _ => return,
    };
    if len == 0 {
        findings.report(ids[0], unit, LEN, "a buffer of at least one byte", "Len 0");
    } else if len > MAX_LEN {
        findings.report(ids[1], unit, LEN, "a buffer of at most 2^31 bytes", format!("Len {len}"));
    }
}

/// Reports an RDMA Write or Read that accesses a buffer which the peer did not advertise.
fn not_advertised(state: &ConnectionState, findings: &mut Findings<'_>) {
    let Some(sdp) = state.context().sdp.as_deref().filter(|sdp| sdp.certain && sdp.complete) else {
        return;
    };
    for (direction, unexplained) in Direction::BOTH.into_iter().zip(&sdp.unexplained) {
        for access in &unexplained.rdma {
            let (id, what, by) = match access.write {
                true => (requirement!("SDP-6.3.3.3-2"), "an RDMA Write", "SinkAvail"),
                false => (requirement!("SDP-6.3.2.3-2"), "an RDMA Read", "SrcAvail"),
            };
            let expected = format!("the STag of an open {by}");
            let found = format!("{what} with STag {:#010x}", access.stag);
            findings.report_in_frame(id, direction, access.stag_location, &expected, found);
        }
    }
}

/// Returns whether octets `to..to + len` of `stag` are inside the buffer of `advert`.
fn holds(advert: &Advert, stag: u32, to: u64, len: u32) -> bool {
    let (from, start) = (u128::from(advert.va), u128::from(to));
    advert.stag == stag && start >= from && start + u128::from(len) <= from + u128::from(advert.len)
}

/// Reports a Terminate that rejects access to a buffer which the Terminate's sender advertised.
fn refused_by_its_owner(state: &ConnectionState, unit: &Unit<'_>, _: &SegmentView<'_>, findings: &mut Findings<'_>) {
    let owner = unit.direction();
    let Some(sdp) = state.context().sdp.as_deref().filter(|sdp| sdp.certain) else { return };
    let Some(seen) = state.traffic.terminate_at(unit) else { return };
    let Some(target) = seen.reported_segment() else { return };
    let is_no_stag = match seen.error {
        TerminateError::RDMAP_INVALID_STAG
        | TerminateError::RDMAP_STAG_NOT_ASSOCIATED
        | TerminateError::RDMAP_ACCESS_RIGHTS
        | TerminateError::DDP_TAGGED_INVALID_STAG
        | TerminateError::DDP_TAGGED_STAG_NOT_ASSOCIATED => true,
        TerminateError::RDMAP_BASE_OR_BOUNDS
        | TerminateError::RDMAP_TO_WRAP
        | TerminateError::DDP_TAGGED_BASE_OR_BOUNDS => false,
        _ => return,
    };
    // If the peer has reported that it no longer needs a buffer, the owner is allowed to invalidate
    // the buffer.
    let done: &[Mid] = match target.opcode() {
        Opcode::READ_REQUEST => const { &[Mid::RDMA_RD_COMPL, Mid::SEND_SM, Mid::SINK_AVAIL] },
        _ => const { &[Mid::RDMA_WR_COMPL, Mid::SINK_CANCEL_ACK, Mid::DATA] },
    };
    if sdp.may_know_of(owner.peer(), done, target.frame) {
        return;
    }
    let peer = &sdp.peers[owner];
    let is_write = target.opcode() == Opcode::WRITE;
    let advert = match target.opcode() {
        // After a Write to a SinkAvail, the owner considers its own SrcAvails void.
        Opcode::READ_REQUEST if peer.has_unreported_writes() => return,
        Opcode::READ_REQUEST => {
            let operations = &state.traffic.directions[owner.peer()].operations;
            let Some(request) = target.msn().and_then(|msn| operations.request(msn)) else { return };
            let RequestKind::Read(read) = request.kind else { return };
            let mut open = peer.source.adverts.open().iter();
            open.find(|advert| holds(advert, read.src_stag, read.src_to, read.rdmardsz))
        }
        Opcode::WRITE => {
            let Ok(Segment::Tagged(header, _)) = Segment::parse(target.header()) else { return };
            let len = target.ulpdu_len.saturating_sub(u32::try_from(target.header().len()).unwrap_or(0));
            let mut open = peer.sink.adverts.open().iter();
            open.find(|advert| holds(advert, header.stag.get(), header.tagged_offset.get(), len))
        }
        _ => return,
    };
    let Some(advert) = advert.filter(|advert| advert.len <= MAX_LEN) else { return };
    let ids = match (is_write, is_no_stag) {
        (true, _) if peer.has_open_cancel(is_write) => requirements!["SDP-9.3-18"],
        (false, _) if peer.has_open_cancel(is_write) => requirements!["SDP-9.2-24"],
        (true, true) => requirements!["SDP-6.3.3.3-1"],
        (true, false) => requirements!["SDP-6.3.3-1", "SDP-6.3.3.1-1"],
        (false, true) => requirements!["SDP-6.3.2.3-1"],
        (false, false) => requirements!["SDP-6.3.2-3"],
    };
    let found = format!("{}, about the {} in frame {}", seen.error, target.opcode(), target.frame);
    let expected = format!("access to the buffer that frame {} advertises", advert.frame);
    findings.report_each(ids, unit, ULPDU_AT + 18..unit.octets_len(), &expected, &found);
}

#[cfg(test)]
mod tests {
    use weft_core::requirement;
    use weft_core::wire::sdp::Mid;

    use crate::rules::sdp::testing::proves;
    use crate::testing::sdp::{STAG, SdpScript, VA, advert, word};

    /// In Pipelined Mode, the Accepting Peer sends a SinkAvail.
    fn sink_avail(len: u32, non_discards: u32) -> impl Fn(&mut SdpScript) {
        move |script: &mut SdpScript| {
            script.send(0, Mid::MODE_CHANGE, &word(4), 0);
            script.receive_all(1);
            script.send(1, Mid::SINK_AVAIL, &advert(len, Some(non_discards)), 0);
            script.receive_all(0);
        }
    }

    fn src_avail(len: u32) -> impl Fn(&mut SdpScript) {
        move |script: &mut SdpScript| {
            script.send(0, Mid::SRC_AVAIL, &advert(len, None), 1);
            script.receive_all(1);
        }
    }

    #[test]
    fn buffer_length_is_limited() {
        proves(requirement!("SDP-6.3.2.1-1"), src_avail(0), src_avail(1));
        proves(requirement!("SDP-6.3.2.1-2"), src_avail(0x8000_0001), src_avail(0x8000_0000));
        proves(requirement!("SDP-6.3.3.1-2"), sink_avail(0, 0), sink_avail(1, 0));
        proves(requirement!("SDP-6.3.3.1-3"), sink_avail(0x8000_0001, 0), sink_avail(0x8000_0000, 0));
    }

    #[test]
    fn non_discards_begin_at_0() {
        let upon_data = |script: &mut SdpScript| {
            script.send(0, Mid::DATA, "", 1);
            sink_avail(9000, 1)(script);
        };
        proves(requirement!("SDP-6.3.3.4-1"), sink_avail(9000, 1), upon_data);
    }

    #[test]
    fn rdma_uses_what_was_advertised() {
        let reads = |stag: u32| {
            move |script: &mut SdpScript| {
                src_avail(100)(script);
                script.reads(1, stag, VA, 100);
            }
        };
        proves(requirement!("SDP-6.3.2.3-2"), reads(STAG + 1), reads(STAG));
        let writes = |stag: u32| {
            move |script: &mut SdpScript| {
                sink_avail(9000, 0)(script);
                script.write(0, stag, VA, 100);
            }
        };
        proves(requirement!("SDP-6.3.3.3-2"), writes(STAG + 1), writes(STAG));
    }

    #[test]
    fn an_advertisement_may_be_captured_late() {
        let mut script = SdpScript::bare();
        src_avail(100)(&mut script);
        script.request_read(1, STAG, VA, 100);
        let wire = script.wire.changed(|mut frames| {
            let last = frames.len() - 1;
            frames.swap(last - 1, last);
            frames
        });
        assert_eq!(wire.errors(), []);
    }

    /// `direction` sends a Terminate with this error. `control` has its header control bits.
    /// `headers` has its DDP Segment Length and the copied headers. All three are hexadecimal.
    fn terminate(script: &mut SdpScript, direction: usize, error: &str, control: &str, headers: &str) {
        let ulpdu = format!("4147 00000000 00000002 00000001 00000000 {error} {control} {headers}");
        script.wire.send_ulpdu(direction, &ulpdu);
    }

    /// A cancel withdraws an advertisement only after the peer has processed the cancel.
    #[test]
    fn rejects_no_access_while_a_cancel_is_open() {
        let read = |cancels: bool| {
            move |script: &mut SdpScript| {
                src_avail(100)(script);
                script.request_read(1, STAG, VA, 100);
                if cancels {
                    script.send(0, Mid::SRC_AVAIL_CANCEL, "", 0);
                }
                let request = format!("00005101 0000000000000000 00000064 {STAG:08x} {VA:016x}");
                let header = "002e 4141 00000000 00000001 00000001 00000000";
                terminate(script, 0, "0100", "e000", &format!("{header} {request}"));
            }
        };
        proves(requirement!("SDP-9.2-24"), read(true), read(false));
        proves(requirement!("SDP-6.3.2.3-1"), read(false), read(true));
        let write = |cancels: bool| {
            move |script: &mut SdpScript| {
                sink_avail(9000, 0)(script);
                script.write(0, STAG, VA, 100);
                if cancels {
                    script.send(1, Mid::SINK_AVAIL_CANCEL, "", 0);
                }
                terminate(script, 1, "1100", "c000", &format!("0072 c140 {STAG:08x} {VA:016x}"));
            }
        };
        proves(requirement!("SDP-9.3-18"), write(true), write(false));
        proves(requirement!("SDP-6.3.3.3-1"), write(false), write(true));
    }

    #[test]
    fn rejects_no_access_to_an_advertised_buffer() {
        // The Terminates report a Read Request with its DDP and RDMAP headers. The error is a
        // Remote Protection Error of RDMAP. 0100 is Invalid STag, and 0101 is Base or bounds
        // violation.
        let read = |error: &'static str, to: u64| {
            move |script: &mut SdpScript| {
                src_avail(100)(script);
                script.request_read(1, STAG, to, 100);
                let request = format!("00005101 0000000000000000 00000064 {STAG:08x} {to:016x}");
                let header = "002e 4141 00000000 00000001 00000001 00000000";
                terminate(script, 0, error, "e000", &format!("{header} {request}"));
            }
        };
        proves(requirement!("SDP-6.3.2-3"), read("0101", VA), read("0101", VA + 1));
        // An STag that is not valid does not show that the layout of the SrcAH is wrong.
        proves(requirement!("SDP-6.3.2-3"), read("0101", VA), read("0100", VA));
        let reported_as_read = |script: &mut SdpScript| {
            src_avail(100)(script);
            script.send(1, Mid::RDMA_RD_COMPL, &word(99), 0);
            script.request_read(1, STAG, VA, 100);
            let request = format!("00005101 0000000000000000 00000064 {STAG:08x} {VA:016x}");
            let header = "002e 4141 00000000 00000001 00000001 00000000";
            terminate(script, 0, "0100", "e000", &format!("{header} {request}"));
        };
        proves(requirement!("SDP-6.3.2.3-1"), read("0100", VA), reported_as_read);
        proves(requirement!("SDP-6.3.2.3-1"), read("0100", VA), read("0101", VA));
        let write = |error: &'static str, to: u64| {
            move |script: &mut SdpScript| {
                sink_avail(9000, 0)(script);
                script.write(0, STAG, to, 100);
                terminate(script, 1, error, "c000", &format!("0072 c140 {STAG:08x} {to:016x}"));
            }
        };
        proves(requirement!("SDP-6.3.3-1"), write("1101", VA), write("1101", VA - 1));
        proves(requirement!("SDP-6.3.3-1"), write("1101", VA), write("1100", VA));
        proves(requirement!("SDP-6.3.3.3-1"), write("1100", VA), write("1101", VA));
        proves(requirement!("SDP-6.3.3.1-1"), write("1101", VA + 8900), write("1101", VA + 8901));
    }
}
