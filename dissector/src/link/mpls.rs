//! Reads MPLS label stacks (RFC 3032) and Ethernet pseudowires (RFC 4448).

use super::ether_type;
use super::header::{Header, Step, u8_at};
use super::skip_reason::SkipReason;

const LABEL_LEN: usize = 4;
/// Maximum number of labels. Real label stacks have less than ten labels.
const MAX_LABELS: usize = 32;

/// Reads a label stack. No field announces the header after the last label. Like routers (RFC
/// 4928), weft guesses the type of this header from its first four bits: 4 and 6 mean IP, and 0
/// means the control word of a pseudowire. If an Ethernet frame has no control word, it starts with
/// an arbitrary address. weft recognises such a frame by its EtherType.
pub(super) fn read(bytes: &[u8]) -> Step {
    let mut at = 0;
    for _ in 0..MAX_LABELS {
        let bottom = u8_at(bytes, at + 2)? & 1 == 1;
        at += LABEL_LEN;
        if bottom {
            return payload(bytes.get(at..).ok_or(SkipReason::Truncated)?)
                .map(|(header, offset)| (header, at + offset));
        }
    }
    Err(SkipReason::Malformed)
}

fn payload(bytes: &[u8]) -> Step {
    match u8_at(bytes, 0)? >> 4 {
        0 if ether_type::is_plausible(&bytes[4.min(bytes.len())..]) => Ok((Header::Ethernet, 4)),
        _ if ether_type::is_plausible(bytes) => Ok((Header::Ethernet, 0)),
        4 | 6 => Ok((Header::Ip, 0)),
        0 => Ok((Header::Ethernet, 4)),
        1 => Err(SkipReason::TunnelControl),
        _ => Err(SkipReason::Malformed),
    }
}
