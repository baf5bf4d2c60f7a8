//! MPLS label stacks (RFC 3032) and Ethernet pseudowires (RFC 4448).

use super::ether_type;
use super::header::{Header, Step, u8_at};
use super::unread::Unread;

const LABEL_LEN: usize = 4;
/// Maximum number of labels. Real label stacks have less than ten labels.
const MOST_LABELS: usize = 32;

/// Reads a label stack. No field announces the header after the last label. Like routers (RFC
/// 4928), weft guesses from the first four bits: 4 and 6 are IP, and 0 is the control word of a
/// pseudowire. Ethernet without a control word starts with an arbitrary address, so its EtherType
/// must match.
pub(super) fn read(bytes: &[u8]) -> Step {
    let mut at = 0;
    for _ in 0..MOST_LABELS {
        let bottom = u8_at(bytes, at + 2)? & 1 == 1;
        at += LABEL_LEN;
        if bottom {
            return payload(bytes.get(at..).ok_or(Unread::Truncated)?).map(|(header, offset)| (header, at + offset));
        }
    }
    Err(Unread::Malformed)
}

fn payload(bytes: &[u8]) -> Step {
    match u8_at(bytes, 0)? >> 4 {
        0 if ether_type::is_plausible(&bytes[4.min(bytes.len())..]) => Ok((Header::Ethernet, 4)),
        _ if ether_type::is_plausible(bytes) => Ok((Header::Ethernet, 0)),
        4 | 6 => Ok((Header::Ip, 0)),
        0 => Ok((Header::Ethernet, 4)),
        1 => Err(Unread::TunnelControl),
        _ => Err(Unread::Malformed),
    }
}
