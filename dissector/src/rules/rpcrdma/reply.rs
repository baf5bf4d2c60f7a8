//! Checks that a reply returns the Write chunks and the Reply chunk of its call.

use weft_core::requirement;

use super::sent::{SENDS, Sent};
use crate::follow::ConnectionState;
use crate::parse::{SegmentView, Unit};
use crate::rules::rule::{Check, Findings, Rule};
use crate::upper::rpcrdma::header::Chunk;

pub(super) static WRITE_LIST: Rule =
    Check::Opcode(SENDS, write_list).covers(requirements!["RPCRDMA-3.4.6-1", "RPCRDMA-4.3.2.3-1"]);

fn write_list(state: &ConnectionState, unit: &Unit<'_>, view: &SegmentView<'_>, findings: &mut Findings<'_>) {
    let Some(sent) = Sent::of(state, unit, view) else { return };
    let Some(call) = sent.call() else { return };
    let (offered, returned) = (&call.lists.writes, &sent.header.lists.writes);
    let of_call = format!("as in the call (frame {})", call.frame);
    if offered.len() != returned.len() {
        let expected = format!("{} Write chunks, {of_call}", offered.len());
        let found = format!("{} Write chunks", returned.len());
        let range = 16..sent.header.len;
        sent.report(findings, requirement!("RPCRDMA-3.4.6-1"), range, &expected, found);
        return;
    }
    for (offered, returned) in offered.iter().zip(returned) {
        let Some(difference) = difference(offered, returned) else { continue };
        let id = match offered.count {
            0 => requirement!("RPCRDMA-4.3.2.3-1"),
            _ => requirement!("RPCRDMA-3.4.6-1"),
        };
        let expected = format!("{}, {of_call}", difference.expected);
        sent.report(findings, id, difference.range, &expected, difference.found);
        return;
    }
}

pub(super) static REPLY_CHUNK: Rule = Check::Opcode(SENDS, reply_chunk).covers(requirements!["RPCRDMA-4.3.3-1"]);

fn reply_chunk(state: &ConnectionState, unit: &Unit<'_>, view: &SegmentView<'_>, findings: &mut Findings<'_>) {
    let Some(sent) = Sent::of(state, unit, view) else { return };
    let Some(call) = sent.call() else { return };
    let Some(offered) = &call.lists.reply else { return };
    let id = requirement!("RPCRDMA-4.3.3-1");
    let of_call = format!("as in the call (frame {})", call.frame);
    match &sent.header.lists.reply {
        None => {
            // The list ends with the mark of the Reply chunk.
            let end = sent.header.len;
            let expected = format!("the Reply chunk, {of_call}");
            sent.report(findings, id, end.saturating_sub(4)..end, &expected, "no Reply chunk");
        }
        Some(returned) => {
            if let Some(difference) = difference(offered, returned) {
                let expected = format!("{}, {of_call}", difference.expected);
                sent.report(findings, id, difference.range, &expected, difference.found);
            }
        }
    }
}

/// The first difference between a chunk of a call and the returned chunk.
struct Difference {
    /// The octets of the returned chunk, as offsets in the message.
    range: std::ops::Range<u32>,
    expected: String,
    found: String,
}

/// Returns the first difference. The lengths of returned segments may be smaller.
fn difference(offered: &Chunk, returned: &Chunk) -> Option<Difference> {
    if offered.count != returned.count {
        let range = returned.at..returned.at + 4;
        let (expected, found) = (format!("{} segments", offered.count), format!("{} segments", returned.count));
        return Some(Difference { range, expected, found });
    }
    offered.segments.iter().zip(&returned.segments).find_map(|(offered, returned)| {
        if (offered.handle, offered.offset) != (returned.handle, returned.offset) {
            let text = |stag: u32, to: u64| format!("STag {stag:#010x}, offset {to:#x}");
            let (expected, found) = (text(offered.handle, offered.offset), text(returned.handle, returned.offset));
            return Some(Difference { range: returned.at..returned.at + 16, expected, found });
        }
        (returned.length > offered.length).then(|| Difference {
            range: returned.at + 4..returned.at + 8,
            expected: format!("at most {} bytes in the segment", offered.length),
            found: format!("{} bytes", returned.length),
        })
    })
}

#[cfg(test)]
mod tests {
    use weft_core::requirement;

    use super::super::testing::{call_with, connection, is_clean, reply_with};
    use crate::testing::{Wire, proves};

    /// A call with these chunk lists, and its reply with these chunk lists.
    fn exchange(call: &str, reply: &str) -> Wire {
        let (call, reply) = (call_with("00000001 00000000", call), reply_with(reply));
        connection(&[(0, "4143 00000000", call.as_str()), (1, "4143 00000000", reply.as_str())])
    }

    /// A segment with this STag and this length.
    fn segment(stag: &str, len: &str) -> String {
        format!("{stag} {len} 00000000092e3000")
    }

    #[test]
    fn a_reply_returns_the_write_chunks() {
        let list = |chunks: &str| format!("00000000 {chunks} 00000000 00000000");
        let one = |stag: &str, len: &str| format!("00000001 00000001 {}", segment(stag, len));
        let offered = list(&one("704379f4", "00001388"));
        let good = exchange(&offered, &list(&one("704379f4", "00001000")));
        is_clean(&good);
        let id = requirement!("RPCRDMA-3.4.6-1");
        for bad in [one("704379f5", "00001000"), one("704379f4", "00001389"), String::new(), "00000001 00000000".into()]
        {
            proves(id, &exchange(&offered, &list(&bad)), &good);
        }
        let empty = list("00000001 00000000");
        let good = exchange(&empty, &empty);
        is_clean(&good);
        proves(requirement!("RPCRDMA-4.3.2.3-1"), &exchange(&empty, &offered), &good);
    }

    #[test]
    fn a_reply_returns_the_reply_chunk() {
        let list = |stag: &str, len: &str| format!("00000000 00000000 00000001 00000001 {}", segment(stag, len));
        let offered = list("704379f4", "00001388");
        let good = exchange(&offered, &list("704379f4", "00000000"));
        is_clean(&good);
        let id = requirement!("RPCRDMA-4.3.3-1");
        for bad in [list("704379f5", "00000000"), list("704379f4", "00001389"), "00000000 00000000 00000000".into()] {
            proves(id, &exchange(&offered, &bad), &good);
        }
    }
}
