//! Checks replies that invalidate an STag (RFC 8797 section 4.1).

use weft_core::requirement;
use weft_core::wire::ddp::Segment;

use super::sent::{SENDS, Sent};
use crate::direction::Direction;
use crate::follow::ConnectionState;
use crate::parse::{SegmentView, ULPDU_AT, Unit};
use crate::rules::rule::{Check, Findings, Rule};

/// The Invalidate STag, after the two control octets of the segment.
const STAG_AT: std::ops::Range<usize> = ULPDU_AT + 2..ULPDU_AT + 6;

pub(super) static OWN_STAG: Rule = Check::Opcode(SENDS, own_stag).covers(requirements!["RPCRDMA-8797.4.1-1"]);

fn own_stag(state: &ConnectionState, unit: &Unit<'_>, view: &SegmentView<'_>, findings: &mut Findings<'_>) {
    if !view.opcode().invalidates() {
        return;
    }
    let Some(sent) = Sent::of(state, unit, view) else { return };
    let (Some(call), Segment::Untagged(header, _)) = (sent.call(), view.segment) else { return };
    let (stag, lists) = (header.ulp_word.get(), &call.lists);
    let reads = lists.reads.iter().map(|read| read.segment.handle);
    let others = lists.writes.iter().chain(&lists.reply).flat_map(|chunk| &chunk.segments);
    if !reads.chain(others.map(|segment| segment.handle)).any(|own| own == stag) {
        let expected = format!("an STag of the call in frame {}", call.frame);
        let found = format!("Invalidate STag {stag:#010x}");
        findings.report(requirement!("RPCRDMA-8797.4.1-1"), unit, STAG_AT, &expected, found);
    }
}

pub(super) static PERMITTED: Rule = Check::Opcode(SENDS, permitted).covers(requirements!["RPCRDMA-8797.4.1-2"]);

fn permitted(state: &ConnectionState, unit: &Unit<'_>, view: &SegmentView<'_>, findings: &mut Findings<'_>) {
    if !view.opcode().invalidates() {
        return;
    }
    let Some(sent) = Sent::of(state, unit, view) else { return };
    // Without a start-up frame, the settings of its sender are not known.
    let is_known = Direction::BOTH.into_iter().all(|direction| state.connection.startup[direction].is_some());
    if is_known && sent.is_reply() && !sent.decoded.settings.remote_invalidation {
        let expected = "a Send without Invalidate, because an endpoint has R = 0 or no settings in its private data";
        let found = view.opcode().name();
        findings.report(requirement!("RPCRDMA-8797.4.1-2"), unit, ULPDU_AT + 1..ULPDU_AT + 2, expected, found);
    }
}

#[cfg(test)]
mod tests {
    use weft_core::requirement;

    use super::super::testing::{call_with, is_clean, reply_with, with_settings};
    use crate::testing::{Wire, proves};

    /// A call with a Write chunk, and its reply with these control octets.
    fn exchange(settings: [&str; 2], control: &str) -> Wire {
        let lists = "00000000 00000001 00000001 704379f4 00001388 00000000092e3000 00000000 00000000";
        let (call, reply) = (call_with("00000001 00000000", lists), reply_with(lists));
        with_settings(settings, &[(0, "4143 00000000", call.as_str()), (1, control, reply.as_str())])
    }

    #[test]
    fn only_own_stags_are_invalidated() {
        let both = ["01010303", "01010307"];
        let good = exchange(both, "4144 704379f4");
        is_clean(&good);
        proves(requirement!("RPCRDMA-8797.4.1-1"), &exchange(both, "4144 704379f5"), &good);
    }

    #[test]
    fn both_endpoints_must_permit_invalidation() {
        let good = exchange(["01010303", "01000307"], "4143 00000000");
        is_clean(&good);
        for settings in [["01010303", "01000307"], ["01000303", "01010307"]] {
            proves(requirement!("RPCRDMA-8797.4.1-2"), &exchange(settings, "4144 704379f4"), &good);
        }
    }
}
