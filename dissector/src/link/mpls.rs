//! MPLS label stacks (RFC 3032) and Ethernet pseudowires (RFC 4448).

use super::ether_type;
use super::header::{Header, Step, u8_at};
use super::unread::Unread;

const LABEL_LEN: usize = 4;
/// Labels that one packet has at most; real stacks have less than ten.
const MOST_LABELS: usize = 32;

/// No field names what the last label carries. The first four bits do, as routers guess it (RFC
/// 4928): 4 and 6 are IP, 0 is a pseudowire's control word. Ethernet without a control word begins
/// with any address, so its EtherType has to match.
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
